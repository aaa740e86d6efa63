"""The law on random cases, and a minimizer for failures.

A case has views in every form and ticks with shuffled changes, restarts and lost attempts.
"""

from __future__ import annotations

import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tailgate.lake.catalog import MaterializedView
from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.plan import JoinKind
from testing.random_queries import START, Row, Table
from testing.reference.evaluation import by_value
from testing.views import Changes, Record, Straight, Views
from tests.engine.plan.coverage import features
from tests.engine.plan.forms import Forms
from tests.engine.plan.wide_world import Wide

FORMED, OVER = 10, 2  # views of a world: in forms, and over those
TICKS = 5
SHRINKING_S = 60.0  # time limit of the minimizer
START_MS = int((START - datetime(1970, 1, 1)).total_seconds() * 1000)
HOUR_MS = 3_600_000
SUM = (38, 0)  # precision and scale
# types that the reference cannot sort: for it, rows that differ only by the sign of a zero are the same row
UNSORTED = ("jsonb", "float8", "float4")
Change = tuple[Table, Row, int]
View = tuple[str, str, JoinKind | None]


@dataclass(frozen=True)
class Step:
    """A tick at a time in milliseconds.

    `lost` are the changes of an earlier attempt that never enters the log. Before the last piece of
    the history, weights may be negative and nothing is compared.
    """

    time: int
    changes: tuple[Change, ...]
    compared: bool = True
    lost: tuple[Change, ...] | None = None
    restart: bool = False
    maintain: bool = False


@dataclass(frozen=True)
class Given:
    """The input of views: tables and a random generator."""

    tables: tuple[Table, ...]
    random: random.Random


@dataclass(frozen=True)
class Case:
    """Views, including those that other views read, and the steps of their tables."""

    seed: int
    tables: tuple[Table, ...]
    views: tuple[View, ...]
    steps: tuple[Step, ...]
    partitions: int


class Broken(AssertionError):
    """The failure of a case: after a step, a view differs from its query."""

    def __init__(self, view: str, step: int, why: str) -> None:
        super().__init__(why)
        self.view, self.step = view, step


def steps(world: Wide) -> Iterator[Step]:
    """Yields the steps of a world: the history in pieces, in any order, then changes.

    One of the ticks deletes all rows of the stored tables. Most ticks are at times that occur in
    rows and bounds.
    """
    r, now = world.random, START_MS + world.random.randint(0, 6) * HOUR_MS - 1
    history = [c for _ in range(3) for c in world.change(22) + world.change(8, world.edges)]
    pieces = r.choice([1, 1, 2, 3])
    if pieces > 1:
        r.shuffle(history)
    for i in range(pieces):
        yield Step(now + i, tuple(history[i::pieces]), compared=i == pieces - 1)
    now += pieces
    empty = r.randrange(2, TICKS)
    for n in range(TICKS):
        grid = r.choice([1, 20 * 60_000, HOUR_MS])
        now += grid - now % grid
        changes = world.delete_rows(world.tables) if n == empty else world.tick(12) if r.random() < 0.9 else []
        r.shuffle(changes)
        lost = tuple(changes[: r.randint(0, len(changes))]) if r.random() < 0.25 else None
        yield Step(now, tuple(changes), True, lost, r.random() < 0.25, r.random() < 0.15)


class Law:
    """A runner of cases in one Spark session."""

    def __init__(self, session: Any, folder: Path) -> None:
        self.session, self.folder = session, folder
        self.cases, self.exact = 0, 0  # views; comparisons without failing rows
        self.covered: Counter[str] = Counter()
        self.refused: list[str] = []

    def world(self, seed: int, number: int) -> None:
        """Runs the views of a world.

        The error of a failure has all that is needed to reproduce it.
        """
        views, case = self.create(seed, number)
        try:
            self.run(views, case)
        except Broken as e:
            raise AssertionError(self.description(case, e, number)) from None
        finally:
            self.closed(views)
        self.cases += len(case.views)
        for name, query, _ in case.views:
            item = views.catalog.relation(name)
            self.covered.update(features(query, views.bound(item, views.catalog)))

    def create(self, seed: int, number: int) -> tuple[Straight, Case]:
        """Creates the views of a world, before any step."""
        world = Wide(seed * 1_000_000 + number)
        forms = Forms(world.random, world.tables)
        views = self.opened(Given(world.tables, world.random), number % 4 % 3 + 1)
        definitions: list[View] = [(f"v{i}", *forms(number * FORMED + i)) for i in range(FORMED)]
        views.add_all(definitions)
        views.tick(())
        items = [i for i in views.catalog.items.values() if isinstance(i, MaterializedView) and not views.rows[i.errors]]
        below = [
            Table(i.id, i.name, tuple(c for c in i.columns if c.type.name not in UNSORTED and c.type.modifiers != SUM)) for i in items
        ]  # without columns that the reference cannot sort, and sums that are too large for a divisor
        over = [(f"o{i}", forms.over([table for table in below if table.columns]), None) for i in range(OVER)]
        views.add_all(over)
        accepted = tuple(v for v in [*definitions, *over] if v[0] in views.queries)
        return views, Case(seed, world.tables, accepted, tuple(steps(world)), views.partitions)

    def opened(self, world: Given, partitions: int) -> Straight:
        self.folder.mkdir(exist_ok=True)
        views = Watched(self.session, self.folder, world, partitions)  # type: ignore[arg-type]
        views.refusals = self.refused
        return views

    def closed(self, views: Straight) -> None:
        views.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, views: Straight, case: Case) -> None:
        for n, step in enumerate(case.steps):
            views.time = step.time
            if step.restart:
                views.restart()
            if step.lost is not None:
                views.lost(step.lost)
            views.tick(step.changes)
            if step.maintain:
                views.maintain()
            for name in views.queries if step.compared else ():
                try:
                    self.exact += views.compared(name)
                except AssertionError as e:
                    raise Broken(name, n, str(e)) from None
            for name in views.left():
                raise Broken(name, n, "there is state of rows that have gone")
        if any(views.rows[views.catalog.relation(name).errors] for name in views.queries):
            self.replayed(views, case)

    def replayed(self, views: Straight, case: Case) -> None:
        """Checks that the views have the same rows after a replay of the remaining rows.

        This also covers views with errors, which the reference cannot compute.
        """
        before = {name: by_value(views.values(views.catalog.relation(name))) for name in views.queries}
        errors, held = dict(views.rows), [(t, row, n) for t in case.tables for row, n in views.rows[t.id].items()]
        views.anew()
        views.time = case.steps[-1].time
        views.tick(held)
        for name in views.queries:
            item = views.catalog.relation(name)
            if views.reads_constants(item):
                continue
            for one, again in ((before[name], by_value(views.values(item))), (errors[item.errors], views.rows[item.errors])):
                if one != again:
                    raise Broken(name, len(case.steps) - 1, f"of all changes: {one - again}, of what is left: {again - one}")

    # ---- the minimizer -------------------------------------------------------------------------------------------------------------

    def description(self, case: Case, broken: Broken, number: int) -> str:
        """Returns a failure as text, after minimizing it."""
        small, why = self.shrunk(case, broken)
        out = [f"TAILGATE_SEED={case.seed} TAILGATE_LAW_WORLD={number}: view {broken.view} is not its query", why, ""]
        for table in small.tables:
            if any(re.search(rf"\b{table.name}\b", v[1]) for v in small.views):
                out.append(f"CREATE TABLE {table.name} ({', '.join(f'{c.name} {c.type}' for c in table.columns)});")
        out += [f"CREATE MATERIALIZED VIEW {n} AS {q};{f'  -- its inner join {kind}' if kind else ''}" for n, q, kind in small.views]
        out.append(f"-- {small.partitions} partitions")
        for step in small.steps:
            chores = [c for c, on in (("restart", step.restart), (f"lost {step.lost}", step.lost is not None)) if on]
            out.append(f"-- at {step.time} {' '.join(chores)}")
            out += [f"--   {weight:+d} {table.name} {row}" for table, row, weight in step.changes]
        return "\n".join(out)

    def shrunk(self, case: Case, broken: Broken) -> tuple[Case, str]:
        """Removes parts of a case as long as it still fails. Returns the case and its failure."""
        end = time.monotonic() + SHRINKING_S
        case = replace(case, steps=case.steps[: broken.step + 1])
        why = str(broken)

        def fails(less: Case) -> bool:
            nonlocal case, why
            if time.monotonic() > end:
                return False
            failure = self.again(less)
            if failure is not None:
                case, why = less, failure
            return failure is not None

        fails(replace(case, views=read_by(broken.view, case.views)))
        fails(replace(case, partitions=1))
        fails(replace(case, steps=tuple(replace(s, restart=False, lost=None, maintain=False) for s in case.steps)))
        for n in reversed(range(len(case.steps) - 1)):  # merge the changes of a tick into the next one
            ticks = list(case.steps)
            ticks[n : n + 2] = [replace(ticks[n + 1], changes=ticks[n].changes + ticks[n + 1].changes)]
            fails(replace(case, steps=tuple(ticks)))
        size = max(len(rows_of(case)) // 2, 1)
        while size:
            rows = rows_of(case)
            for start in range(0, len(rows), size):
                fails(replace(case, steps=tuple(without(s, set(rows[start : start + size])) for s in case.steps)))
            size //= 2
        return case, why

    def again(self, case: Case) -> str | None:
        """Runs a case and returns its failure, or None."""
        views = self.opened(Given(case.tables, random.Random(case.seed)), case.partitions)
        try:
            for view in case.views:
                views.add_all([view])
                views.tick(())
            self.run(views, case)
        except Broken as e:
            return str(e)
        finally:
            self.closed(views)
        return None


def rows_of(case: Case) -> list[tuple[Table, Row]]:
    return list(dict.fromkeys((t, r) for s in case.steps for t, r, _ in s.changes))


def without(step: Step, rows: set[tuple[Table, Row]]) -> Step:
    """Returns a step without the changes of some rows."""
    changes, lost = (tuple(c for c in of if c[:2] not in rows) for of in (step.changes, step.lost or ()))
    return replace(step, changes=changes, lost=None if step.lost is None else lost)


def read_by(name: str, views: tuple[View, ...]) -> tuple[View, ...]:
    """Returns a view and those that it reads, in order."""
    query = next(q for n, q, _ in views if n == name)
    return tuple(v for v in views if v[0] == name or re.search(rf"\b{v[0]} AS\b", query))


class Watched(Straight):
    """Views that record the queries that were refused."""

    refusals: list[str]

    def refused(self, name: str, query: str, error: FeatureNotSupported) -> None:
        self.refusals.append(f"{error.args[0]}: {query}")


class Jobs(Watched):
    """Such views whose ticks are Spark jobs."""

    def _open(self) -> None:
        """Opens nothing: each task opens its store."""

    def maintain(self) -> None:
        """Does nothing: tasks do the background work."""

    def left(self) -> list[str]:
        return []

    def lost(self, changes: Changes) -> None:
        """Runs a tick that never enters the log."""
        before = self.ids
        self._run(self._records(changes))
        self.ids = before

    def _run(self, records: list[Record]) -> list[tuple[int, bytes]]:
        return Views._run(self, records or [(b"", "no source")])  # a tick without records changes the time
