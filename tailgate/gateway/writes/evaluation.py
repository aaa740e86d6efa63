"""Evaluates a write on the mirrors by PostgreSQL's rules: which rows change, and which data it read.

    plans, values, [rows of COPY] ──► DuckDB ──► rows ──► NOT NULL, CHECK ──► keys ──► Effect

It runs on a thread, with a connection that sees the tables at one time. Plans that read the rows of
the statement find them as the relation `sql.plan.writes.INCOMING`. Keys are checked after the whole
statement, not after each row, so UPDATE t SET id = id + 1 has no conflict with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.mirrors.mirror import conform
from tailgate.gateway.serving.fetching import fetched
from tailgate.gateway.writes.existing_keys import few_existing
from tailgate.gateway.writes.hashes import hashes
from tailgate.gateway.writes.modifiers import fitted
from tailgate.gateway.writes.plans import ChangePlan, InsertPlan, Query, WritePlan
from tailgate.lake.catalog import Catalog, Item, Table
from tailgate.lake.errors import CardinalityViolation, CheckViolation, NotNullViolation, StatementTooComplex, TailgateError, UniqueViolation
from tailgate.lake.tables.weights import net
from tailgate.lake.types import WEIGHT, Field, arrow_schema
from tailgate.sql.binder.writes.targets import constraint_of
from tailgate.sql.plan.sequences import SequenceCall
from tailgate.sql.plan.writes import INCOMING, TruncateTables
from tailgate.sql.render.duckdb import arguments
from tailgate.values.codec.style import Style
from tailgate.values.registry import text_column

# returns the values of each call, for this number of rows
CallEvaluator: TypeAlias = Callable[[tuple[SequenceCall, ...], Sequence[object], int], list[Sequence[object]]]
DETAIL_CHARACTERS_MAX = 64  # of a value in `Failing row contains`, as in PostgreSQL


@dataclass(frozen=True, slots=True)
class Effect:
    """The result of evaluating a write.

    - `count`: the number of rows in the command tag
    - `changes`: by table, net changes with weights as last column
    - `keys`: by table, hashes of the keys that it read or writes
    - `reads`: relations that it read as a whole
    - `returned`: rows of RETURNING
    """

    count: int = 0
    changes: Mapping[int, pa.Table] = field(default_factory=dict)
    keys: Mapping[int, np.ndarray] = field(default_factory=dict)
    reads: frozenset[int] = frozenset()
    returned: pa.Table | None = None


class Evaluation:
    """The evaluation of one statement.

    `values` are those of its parameters; `catalog` has the names that error messages show. `sequences` evaluates calls of sequences.
    """

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        values: Sequence[object],
        style: Style,
        catalog: Catalog,
        sequences: CallEvaluator | None = None,
    ) -> None:
        self.cursor, self.values, self.style, self.catalog, self.sequences = cursor, values, style, catalog, sequences

    def run(self, write: WritePlan, rows: pa.Table | None = None) -> Effect:
        """Evaluates any write; `rows` are those of a COPY."""
        match write:
            case InsertPlan():
                return self.insert(write, rows)
            case ChangePlan():
                return self.change(write)
            case TruncateTables():
                return self.truncate(write)

    # ---- plans ---------------------------------------------------------------------------------------------------------------

    def query(self, query: Query) -> pa.Table:
        """Returns the rows of a plan, with columns named c0, c1, …"""
        if query.source is not None:
            return self._numbered(query, self.query(query.source))
        values = self.values
        if query.calls:
            values = (*values, *(numbers[0] for numbers in self._called(query.calls, values, 1)))
            if (literal := query.literal(values)) is not None:
                return literal
        return self._queried(query, values)

    def _numbered(self, query: Query, source: pa.Table) -> pa.Table:
        """Returns the rows of a plan that calls sequences for each row of its source."""
        for number, values in enumerate(self._called(query.calls, self.values, source.num_rows)):
            source = source.append_column(f"number{number}", pa.array(values, pa.int64()))
        with self.incoming(source):
            return self._queried(query, self.values)

    def _called(self, calls: tuple[SequenceCall, ...], values: Sequence[object], rows: int) -> list[Sequence[object]]:
        assert self.sequences is not None
        return self.sequences(calls, values, rows)

    def _queried(self, query: Query, values: Sequence[object]) -> pa.Table:
        if not query.sql:
            raise StatementTooComplex("statement is too complex", hint="Insert fewer rows at once, or use COPY.")
        parameters = arguments(values, query.used, query.constants)
        result = self.cursor.execute(query.sql, parameters) if parameters else self.cursor.execute(query.sql)
        return fetched(result, pa.schema([pa.field(f"c{i}", f.type.arrow) for i, f in enumerate(query.columns)]))

    @contextmanager
    def incoming(self, rows: pa.Table) -> Iterator[None]:
        """Registers rows and their positions as the relation INCOMING within a `with` block."""
        placed = rows.append_column("place", pa.array(np.arange(rows.num_rows), pa.int64()))
        name = f"r{INCOMING}"
        self.cursor.register(name, placed.rename_columns([f"c{i}" for i in range(placed.num_columns)]))
        try:
            yield
        finally:
            self.cursor.unregister(name)

    # ---- INSERT --------------------------------------------------------------------------------------------------------------

    def insert(self, write: InsertPlan, copied: pa.Table | None) -> Effect:
        """Evaluates an INSERT, or a COPY with the rows `copied`."""
        table = write.table
        if copied is not None:
            rows = self._whole(write, copied)
        else:
            assert write.rows is not None
            written = None if write.rows.calls else write.rows.literal(self.values)
            rows = written if written is not None else self.query(write.rows)
        rows = fitted(rows, table.columns)
        if table.key is None:
            self.allowed(write, rows)
            return Effect(rows.num_rows, {table.id: net(weighted(rows, 1))}, {}, write.reads, self.returned(write, rows))
        hashes = key_hashes(table, rows)
        effect_rows, changes, count = self._keyed(write, rows, hashes)
        changed_keys = hashes
        if write.conflict == "update" and changes.num_rows != effect_rows.num_rows:
            changed_keys = np.concatenate([hashes, key_hashes(table, changes)])
        returned = self.returned(write, effect_rows)
        return Effect(count, {table.id: changes}, {table.id: changed_keys}, write.reads, returned)

    def check(self, write: InsertPlan, copied: pa.Table) -> None:
        """Raises 23502 or 23514 if a row violates NOT NULL or CHECK."""
        self.allowed(write, fitted(self._whole(write, copied), write.table.columns))

    def _whole(self, write: InsertPlan, copied: pa.Table) -> pa.Table:
        """Adds the columns that a COPY omits."""
        if write.rows is None or write.rows.written is not None:
            return copied
        if write.rows.source is not None:
            return self._numbered(write.rows, copied)
        with self.incoming(copied):
            return self.query(write.rows)

    def _keyed(self, write: InsertPlan, rows: pa.Table, hashes: np.ndarray) -> tuple[pa.Table, pa.Table, int]:
        """Checks the keys of an INSERT.

        Returns the inserted and updated rows in statement order, the net changes, and the number of
        these rows.
        """
        table = write.table
        width = len(table.columns)
        again = self.repeated(table, rows, hashes)
        if rows.num_rows == 0:
            return rows, weighted(rows, 1), 0
        if write.conflict == "update":
            met = self._met(write, rows)
            existing = met.column(0).to_numpy()
        else:
            existing = self.existing(write, rows)
        if write.conflict == "error":
            bad = min([*again[:1], *existing[:1]], default=None)
            self.allowed(write, rows, before=bad)
            if bad is not None:
                raise _of_row(int(bad), self._duplicate(table, rows.slice(int(bad), 1)))
            return rows, weighted(rows, 1), rows.num_rows
        self.allowed(write, rows)
        if write.conflict == "nothing":
            is_new = np.ones(rows.num_rows, bool)
            is_new[existing] = False
            is_new[again] = False
            new = rows.filter(pa.array(is_new))
            return new, weighted(new, 1), new.num_rows
        if len(again):
            raise CardinalityViolation(
                "ON CONFLICT DO UPDATE command cannot affect row a second time",
                hint="Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
            )
        passing = met.filter(met.column(width + 1))
        old = fitted(passing.select(range(1, width + 1)), table.columns)
        new = fitted(passing.select(range(width + 2, 2 * width + 2)), table.columns)
        is_fresh = np.ones(rows.num_rows, bool)
        is_fresh[existing] = False
        fresh = rows.filter(pa.array(is_fresh))
        self.allowed(write, new)
        self._moved_keys(table, old, new, fresh)
        after = pa.concat_tables([fresh, new])
        order = np.argsort(np.concatenate([np.flatnonzero(is_fresh), passing.column(0).to_numpy()]), kind="stable")
        changes = net(pa.concat_tables([weighted(fresh, 1), weighted(old, -1), weighted(new, 1)]))
        return after.take(pa.array(order)), changes, fresh.num_rows + new.num_rows

    def existing(self, write: InsertPlan, rows: pa.Table) -> np.ndarray:
        """Returns the positions of rows whose keys exist, in order."""
        few = few_existing(self.cursor, write.table, rows)
        return self._met(write, rows).column(0).to_numpy() if few is None else few

    def _met(self, write: InsertPlan, rows: pa.Table) -> pa.Table:
        """Returns the rows whose keys exist with what `existing` of the plan selects, in order."""
        assert write.existing is not None
        with self.incoming(rows):
            return self.query(write.existing).sort_by("c0")

    def repeated(self, table: Item, rows: pa.Table, hashes: np.ndarray) -> np.ndarray:
        """Returns the positions of rows whose key occurs in an earlier row of the statement."""
        if len(hashes) < 2 or len(np.unique(hashes)) == len(hashes):
            return np.empty(0, np.int64)
        assert table.key is not None
        names = [f"k{i}" for i in range(len(table.key))]
        keys = rows.select(list(table.key)).rename_columns(names).append_column("place", pa.array(np.arange(rows.num_rows)))
        firsts = keys.group_by(names, use_threads=False).aggregate([("place", "min")]).column("place_min").to_numpy()
        return np.setdiff1d(np.arange(rows.num_rows), firsts)

    def returned(self, write: InsertPlan, rows: pa.Table) -> pa.Table | None:
        if write.returning is None:
            return None
        with self.incoming(rows):
            return named(self.query(write.returning), write.returning.columns)

    # ---- UPDATE, DELETE, TRUNCATE --------------------------------------------------------------------------------------------

    def change(self, write: ChangePlan) -> Effect:
        """Evaluates an UPDATE or DELETE."""
        table = write.table
        width = len(table.columns)
        matches = self._once(table, self.query(write.rows))
        weights = matches.column(width).to_numpy()
        old = fitted(matches.select(range(width)), table.columns)
        parts = [weighted(old, -weights)]
        new = None
        if write.updates:
            new = fitted(matches.select(range(width + 1, 2 * width + 1)), table.columns)
            self.allowed(write, new)
            parts.append(weighted(new, weights))
        reads = set(write.rows.scans) - {INCOMING}
        keys = {}
        if table.key is not None:
            keys[table.id] = np.concatenate([key_hashes(table, part) for part in ([old] if new is None else [old, new])])
            if new is not None:
                self._moved_keys(table, old, new, new.slice(0, 0))
            if write.pinned and write.rows.scans.count(table.id) == 1:
                reads.discard(table.id)
        returned = None
        if write.returning is not None:
            begin = width + 1 + (width if write.updates else 0)
            copies = pa.array(np.repeat(np.arange(matches.num_rows), weights))
            returned = named(matches.select(range(begin, matches.num_columns)).take(copies), write.returning)
        changes = net(pa.concat_tables(parts))
        return Effect(int(weights.sum()), {table.id: changes}, keys, frozenset(reads), returned)

    def _once(self, table: Item, matches: pa.Table) -> pa.Table:
        """Returns each table row once if FROM joins it several times: the first match.

        PostgreSQL takes an unspecified match.
        """
        columns = list(table.key) if table.key is not None else list(range(len(table.columns)))
        rows = matches.num_rows
        if rows < 2:
            return matches
        self.cursor.register("__found", matches.select(columns).append_column("place", pa.array(np.arange(rows))))
        try:
            names = ", ".join(f"c{i}" for i in columns)
            firsts = self.cursor.execute(f"SELECT min(place) AS p FROM __found GROUP BY {names} ORDER BY p").fetchnumpy()["p"]
        finally:
            self.cursor.unregister("__found")
        return matches if len(firsts) == rows else matches.take(pa.array(firsts))

    def _moved_keys(self, table: Item, old: pa.Table, new: pa.Table, fresh: pa.Table) -> None:
        """Raises 23505 if a changed key equals that of another row."""
        assert table.key is not None
        key = list(table.key)
        if all(old.column(k).equals(new.column(k)) for k in key):
            return
        all_new = pa.concat_tables([new, fresh])
        again = self.repeated(table, all_new, key_hashes(table, all_new))
        if len(again):
            raise self._duplicate(table, all_new.slice(int(again[0]), 1))
        names = [f"k{i}" for i in range(len(key))]
        stored = ", ".join(f"c{k} AS k{i}" for i, k in enumerate(key))
        placed = new.select(key).rename_columns(names).append_column("place", pa.array(np.arange(new.num_rows)))
        self.cursor.register("__new", placed)
        self.cursor.register("__old", old.select(key).rename_columns(names))
        try:
            shown = ", ".join(names)
            place = self.cursor.execute(
                f"SELECT min(place) FROM (SELECT * FROM __new ANTI JOIN __old USING ({shown})) "
                f"SEMI JOIN (SELECT {stored} FROM r{table.id}) USING ({shown})"
            ).fetchone()
        finally:
            self.cursor.unregister("__new")
            self.cursor.unregister("__old")
        if place is not None and place[0] is not None:
            raise self._duplicate(table, new.slice(place[0], 1))

    def truncate(self, write: TruncateTables) -> Effect:
        """Evaluates a TRUNCATE: removes all rows of the tables."""
        changes, keys = {}, {}
        for table in write.tables:
            columns = ", ".join(f"c{i}" for i in range(len(table.columns)))
            weight = "-1" if table.key is not None else f"-CAST(sum({WEIGHT}) AS BIGINT)"
            grouped = "" if table.key is not None else f" GROUP BY {columns}"
            rows = self.cursor.execute(f"SELECT {columns}, {weight} FROM r{table.id}{grouped}").to_arrow_table()
            changes[table.id] = conform(rows, arrow_schema(table.columns, weight=True))
            if table.key is not None:
                keys[table.id] = key_hashes(table, changes[table.id])
        return Effect(0, changes, keys, frozenset(t.id for t in write.tables))

    # ---- checks --------------------------------------------------------------------------------------------------------------

    def allowed(self, write: InsertPlan | ChangePlan, rows: pa.Table, before: int | None = None) -> None:
        """Raises 23502 or 23514 for the first row, up to `before`, that violates NOT NULL or CHECK."""
        table, first = write.table, (len(rows), 0)
        for i, column in enumerate(table.columns):
            if not column.nullable and rows.column(i).null_count:
                first = min(first, (pc.index(pc.is_null(rows.column(i)), True).as_py(), i))
        if write.checks and rows.num_rows:
            with self.incoming(rows):
                for i, (_, forbidden) in enumerate(write.checks, len(table.columns)):
                    places = self.query(forbidden).column(0)
                    first = min(first, (pc.min(places).as_py(), i)) if len(places) else first
        place, failed = first
        if place == len(rows) or (before is not None and place > before):
            return
        detail = f"Failing row contains ({', '.join(self._texts(table, rows.slice(place, 1)))})."
        names = {"s": self.catalog.schema_of(table).name, "t": table.name}
        if failed < len(table.columns):
            name = table.columns[failed].name
            message = f'null value in column "{name}" of relation "{table.name}" violates not-null constraint'
            raise _of_row(place, NotNullViolation(message, detail=detail, names={**names, "c": name}))
        name = write.checks[failed - len(table.columns)][0]
        message = f'new row for relation "{table.name}" violates check constraint "{name}"'
        raise _of_row(place, CheckViolation(message, detail=detail, names={**names, "n": name}))

    def _texts(self, table: Item, row: pa.Table) -> list[str]:
        texts = []
        for column, values in zip(table.columns, row.columns, strict=True):
            value = text_column(values.combine_chunks(), column.type, self.style)[0].as_py()
            text = "null" if value is None else value.decode()
            texts.append(text if len(text) <= DETAIL_CHARACTERS_MAX else text[:DETAIL_CHARACTERS_MAX] + "...")
        return texts

    def _duplicate(self, table: Item, row: pa.Table) -> UniqueViolation:
        """Returns the error for a row whose key exists."""
        assert isinstance(table, Table) and table.key is not None
        texts, constraint = self._texts(table, row), constraint_of(table)
        names = ", ".join(table.columns[k].name for k in table.key)
        return UniqueViolation(
            f'duplicate key value violates unique constraint "{constraint}"',
            detail=f"Key ({names})=({', '.join(texts[k] for k in table.key)}) already exists.",
            names={"s": self.catalog.schema_of(table).name, "t": table.name, "n": constraint},
        )


def _of_row(row: int, error: TailgateError) -> TailgateError:
    error.row = row
    return error


def key_hashes(table: Item, rows: pa.Table) -> np.ndarray:
    """Returns the hash of each row's key."""
    assert table.key is not None
    return hashes(rows.select(list(table.key)))


# ---- Arrow tables ----------------------------------------------------------------------------------------------------------------


def named(rows: pa.Table, columns: Sequence[Field]) -> pa.Table:
    return conform(rows, arrow_schema(tuple(columns)))


def weighted(rows: pa.Table, weights: int | np.ndarray) -> pa.Table:
    """Appends weights as the last column."""
    column = np.full(rows.num_rows, weights, np.int64) if isinstance(weights, int) else weights.astype(np.int64)
    return rows.append_column(pa.field(WEIGHT, pa.int64(), False), pa.array(column))
