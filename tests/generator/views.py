"""Runs random queries as maintained views and compares each, after every tick, with PostgreSQL.

The views run directly over the engine's circuit and its state stores (`Straight`, from the tests of
tailgate/engine/java), many at a time, with restarts and lost attempts in between. A failure is shrunk.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tailgate.lake.errors import TailgateError
from tailgate.lake.types import Field, Type
from tailgate.sql.bind import bind_query
from testing.random_queries import Table
from testing.views import Straight
from tests.engine.plan.comparison import shown
from tests.generator import world
from tests.generator.answers import of_rows
from tests.generator.queries import Queries
from tests.generator.servers import Answer, Server
from tests.generator.signatures import Signature
from tests.generator.trees import Node, shrunk
from tests.generator.values import quoted
from tests.generator.world import Row
from tests.sql.oracle import parsed, stored, unstored

ATTEMPTS = 4
BATCH = 24  # views of one circuit
TICKS = 3  # the first inserts all rows
CHANGES = 12
SHRINKING_S = 120.0
FIRST_ID = 16384
TYPES = (
    "int4", "text", "int8", "bool", "date", "timestamp", "timestamptz", "interval", "jsonb", "uuid",
    "inet", "int2", "bytea", "time", "timetz", "int4[]",
    "text[]", "numeric", "float8", "float4",
)  # fmt: skip

Change = tuple[str, Row, int]  # table, row, and weight: +1 or -1


def _types() -> dict[str, tuple[Type, ...]]:
    declared = {"numbers.d": Type("numeric", (10, 2)), "texts.v": Type("varchar", (8,)), "texts.h": Type("bpchar", (5,))}

    def of(table: str, column: str, name: str) -> Type:
        return declared.get(f"{table}.{column}") or Type(name.removesuffix("[]"), is_array=name.endswith("[]"))

    return {t.name: tuple(of(t.name, c, n) for c, n in t.columns) for t in world.TABLES}


def _name(sql: str) -> str:
    """Returns the name in a quoted identifier."""
    return sql[1:-1].replace('""', '"') if sql.startswith('"') else sql


COLUMNS = _types()
TABLES = {
    t.name: Table(
        FIRST_ID + 4 * i,
        _name(t.name),
        tuple(Field(_name(c), type, c != t.key) for (c, _), type in zip(t.columns, COLUMNS[t.name], strict=True)),
        (0,) if t.key else None,
    )
    for i, t in enumerate(world.TABLES)
}


@dataclass(frozen=True)
class Given:
    """The tables that the views read, as `Straight` expects them."""

    tables: tuple[Table, ...]
    random: random.Random


@dataclass(frozen=True)
class Step:
    """The changes of a tick, perhaps after a restart or an attempt that never entered the log."""

    changes: tuple[Change, ...]
    restart: bool = False
    lost: bool = False


@dataclass
class Failure:
    seed: str
    number: int
    why: str
    query: str
    steps: tuple[Step, ...]
    partitions: int

    def __str__(self) -> str:
        lines = [f"view {self.number} of seed {self.seed}, {self.partitions} partitions: {self.why}", self.query]
        for step in self.steps:
            lines.append("--" + " after a restart" * step.restart + " after a lost attempt" * step.lost)
            lines += [f"--   {weight:+d} {table} {row}" for table, row, weight in step.changes]
        return "\n".join(lines)


@dataclass
class View:
    number: int
    tree: Node
    query: str


@dataclass
class Maintenance:
    """Runs the views of a seed in batches.

    `server` is PostgreSQL, with the tables in a separate schema.
    """

    seed: str
    session: Any
    folder: Path
    server: Server
    shrinking_s: float = SHRINKING_S
    verdicts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    used: Counter[Signature] = field(default_factory=Counter)
    clauses: Counter[str] = field(default_factory=Counter)

    def prepare(self) -> None:
        self.server.execute("CREATE SCHEMA maintained")
        self.server.setup = (*self.server.setup, "SET search_path = maintained")
        self.server.close()
        for table in world.TABLES:
            columns = [f"{c} {world.DECLARED.get(f'{table.name}.{c}', t)}" for c, t in table.columns]
            self.server.execute(f"CREATE TABLE {table.name} ({', '.join(columns)})")

    def batch(self, number: int) -> list[Failure]:
        """Runs the views of a batch through all ticks. Returns the failures, shrunk."""
        r = random.Random(f"{self.seed}/{number}")
        steps, partitions = self.steps(r), number % 4 % 3 + 1
        self._empty()
        self._tell(steps[0])
        batch = [self._view(number * BATCH + i) for i in range(BATCH)]
        failures = []
        for view, why in self.run(batch, steps, partitions, r):
            failures.append(self._failure(view, why, steps, partitions))
        return failures

    def _view(self, number: int) -> View:
        """Generates a view.

        Tries a few times to find a query that does not fail on the current rows.
        """
        for attempt in range(ATTEMPTS):
            r = random.Random(f"{self.seed}/view {number}/{attempt}")
            queries = Queries(r, world.TABLES)
            types = [r.choice(TYPES) for _ in range(r.randint(1, 3))]
            depth = r.choice([1, 1, 2, 2, 3])
            tree = queries._combined(types, [], depth) if r.random() < 0.12 else queries.select(types, [], depth, labelled=True)
            view = View(number, tree, named(tree.text, len(types)))
            if not of_rows(self.server.query(view.query)):
                break
        self.used.update(queries.used)
        self.clauses.update(queries.clauses)
        return view

    # ---- changes of the tables ------------------------------------------------------------------

    def steps(self, r: random.Random) -> tuple[Step, ...]:
        rows = world.rows(r)
        present = {name: list(of) for name, of in rows.items()}
        first = [(name, row, 1) for name, of in rows.items() for row in of]
        r.shuffle(first)
        steps = [Step(tuple(first), lost=r.random() < 0.2)]
        fresh = 100
        for _ in range(TICKS - 1):
            changes: list[Change] = []
            coming = world.rows(r)
            for _ in range(CHANGES):
                name = r.choice([t.name for t in world.TABLES])
                if present[name] and r.random() < 0.5:
                    row = present[name].pop(r.randrange(len(present[name])))
                    changes.append((name, row, -1))
                    if r.random() < 0.3:
                        continue
                if coming[name] or name == "nothing":
                    row = r.choice(coming[name]) if coming[name] else ("1", "a", "0.5")
                    if TABLES[name].key is not None:
                        row, fresh = (str(fresh), *row[1:]), fresh + 1
                    present[name].append(row)
                    changes.append((name, row, 1))
            steps.append(Step(tuple(changes), r.random() < 0.3, r.random() < 0.2))
        return tuple(steps)

    # ---- one run --------------------------------------------------------------------------------

    def run(self, batch: list[View], steps: tuple[Step, ...], partitions: int, r: random.Random) -> Iterable[tuple[View, str]]:
        """Runs the ticks. Yields each view with a wrong result once, with a description."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        views = Straight(self.session, self.folder, Given(tuple(TABLES.values()), r), partitions)  # type: ignore[arg-type]
        try:
            yield from self._ticked(views, batch, steps)
        finally:
            views.end()

    def _ticked(self, views: Straight, batch: list[View], steps: tuple[Step, ...]) -> Iterable[tuple[View, str]]:
        self._empty()
        left = []
        for view in batch:
            why = self._bound(view, views)
            if why == "":
                left.append(view)
            elif why != "refused":
                yield view, why
        views.add_all([(f"v{v.number}", v.query, None) for v in left])
        for view in list(left):
            if f"v{view.number}" not in views.queries:  # a constant in it fails, or the circuit does not support it
                left.remove(view)
                self.verdicts["refused"] += 1
        for n, step in enumerate(steps):
            changes = [(TABLES[name], _values(name, row), weight) for name, row, weight in step.changes]
            if step.restart:
                views.restart()
            if step.lost:
                views.lost(changes)
            views.time = n + 1
            views.tick(changes)
            self._tell(step)
            for view in list(left):
                why = self._compared(view, views)
                self.verdicts[why if why in ("same", "failed", "evaluated") else "different"] += n == len(steps) - 1
                if why not in ("same", "failed", "evaluated"):
                    left.remove(view)
                    yield view, why

    def _bound(self, view: View, views: Straight) -> str:
        """Binds a view. Returns '' on success, 'refused', or a description of the wrong error."""
        try:
            bind_query(view.query, views.catalog, view=True)
        except TailgateError as error:
            if error.sqlstate in ("0A000", "42883", "54000", "54001"):
                self.verdicts["refused"] += 1
                self.refusals[error.message[:80]] += 1
                return "refused"
            theirs = self.server.query(view.query)
            if theirs.sqlstate or of_rows(Answer(sqlstate=error.sqlstate, message=error.message)):
                self.verdicts["failed"] += 1
                return "refused"
            return f"error {error.sqlstate}: {error.message}"
        return ""

    def _empty(self) -> None:
        for table in world.TABLES:
            self.server.execute(f"TRUNCATE {table.name}")

    def _tell(self, step: Step) -> None:
        for name, row, weight in step.changes:
            values = ", ".join("NULL" if v is None else quoted(v) for v in row)
            if weight > 0:
                self.server.execute(f"INSERT INTO {name} VALUES ({values})")
            else:
                columns = next(t.columns for t in world.TABLES if t.name == name)
                same = " AND ".join(
                    f"{c} IS NOT DISTINCT FROM {'NULL' if v is None else quoted(v)}" for (c, _), v in zip(columns, row, strict=True)
                )
                self.server.execute(f"DELETE FROM {name} WHERE ctid = (SELECT ctid FROM {name} WHERE {same} LIMIT 1)")

    def _compared(self, view: View, views: Straight) -> str:
        item = views.catalog.relation(f"v{view.number}")
        errors = views.rows[item.errors]
        if any(n < 0 for n in errors.values()):
            return "errors below zero"
        theirs = self.server.query(view.query)
        if theirs.hung or theirs.disconnected or theirs.sqlstate in ("57014", "53200", "54001"):
            return "same"
        if theirs.sqlstate:
            return "failed" if of_rows(theirs) else "same" if theirs.sqlstate == "0A000" else f"rows, not {theirs.sqlstate}"
        if errors:
            return "evaluated"
        types = [c.type for c in item.columns]
        bare = [Type(t.name, is_array=t.is_array) for t in types]
        try:
            expected = Counter(
                tuple(shown(None if v is None else parsed(v.decode(), b), t, False) for v, b, t in zip(row, bare, types, strict=True))
                for row in theirs.results[-1].rows
            )
        except TailgateError:
            return "same"  # a value without a stored form
        actual = Counter(tuple(shown(v, t, False) for v, t in zip(row, types, strict=True)) for row in views.rows[item.id].elements())
        if actual == expected:
            return "same"
        return f"missing {dict(expected - actual)}, too much {dict(actual - expected)}"

    # ---- shrinking of a failure -----------------------------------------------------------------

    def _failure(self, view: View, why: str, steps: tuple[Step, ...], partitions: int) -> Failure:
        width = len(self.server.query(f"SELECT * FROM ({view.query}) AS q LIMIT 0").results[-1].names or [1])

        def wrong(tree: Node, steps: tuple[Step, ...], partitions: int) -> str:
            query = named(tree.text, width)
            if self.server.query(query).sqlstate[:2] == "42":
                return ""
            counted = replace_counters(self)
            try:
                for _, reason in self.run([View(view.number, tree, query)], steps, partitions, random.Random(0)):
                    return reason
                return ""
            except Exception as error:  # noqa: BLE001  # an internal error is a failure, too
                return f"{type(error).__name__}"
            finally:
                counted()

        kind = why.split()[0]
        plain = tuple(replace(s, restart=False, lost=False) for s in steps)
        steps = plain if wrong(view.tree, plain, 1).startswith(kind) else steps
        partitions = 1 if steps is plain else partitions
        for count in range(1, len(steps)):
            if wrong(view.tree, steps[:count], partitions).startswith(kind):
                steps = steps[:count]
                break
        tree = shrunk(view.tree, lambda t: wrong(t, steps, partitions).startswith(kind), self.shrinking_s)
        return Failure(self.seed, view.number, wrong(tree, steps, partitions) or why, named(tree.text, width), steps, partitions)


def replace_counters(of: Maintenance) -> Any:
    """Saves the counters of `of`. Returns a function that restores them after shrinking."""
    saved = Counter(of.verdicts), Counter(of.refusals)

    def back() -> None:
        of.verdicts, of.refusals = saved

    return back


def named(query: str, width: int) -> str:
    return f"SELECT * FROM ({query}) AS q ({', '.join(f'x{i}' for i in range(width))})"


def _values(table: str, row: Row) -> tuple[Any, ...]:
    """Returns a row with the values that the engine's tests expect."""
    return tuple(unstored(stored(v, t), t) for v, t in zip(row, COLUMNS[table], strict=True))
