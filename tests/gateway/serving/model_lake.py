"""A lake that a test writes tick by tick, with a model of each relation's rows at every time."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from tailgate.gateway.mirrors import tables
from tailgate.gateway.resources.memory import Memory
from tailgate.gateway.serving.service import Serving
from tailgate.lake.catalog import Change, Item, MaterializedView
from tailgate.lake.folder import Lake
from tailgate.lake.types import FLOAT8, INT8, INTERVAL, TEXT, WEIGHT, Field, Type, arrow_schema
from tailgate.lake.writer.log_writer import open_epoch

Row = tuple[object, ...]

WIDE = {"id": INT8, "name": TEXT, "span": INTERVAL, "amount": FLOAT8}
NARROW = {"id": INT8, "name": TEXT}


class ModelLake:
    """A lake that a test writes, and the rows of each relation at every time."""

    def __init__(self, path: Path) -> None:
        self.lake = Lake.create(path)
        self.writer = open_epoch(self.lake)
        self.now: dict[int, Counter[Row]] = {}
        self.at: dict[int, dict[int, Counter[Row]]] = {}  # time → relation → rows with their multiplicity
        self._noted = threading.Lock()  # held while a tick is in the log and not yet in `at`
        self.items: dict[int, Item] = {}
        self.schemas: dict[int, pa.Schema] = {}
        self._note()

    def create(self, name: str, columns: dict[str, Type] | None = None, key: tuple[int, ...] | None = (0,), **fields: object) -> Item:
        columns = columns or {"id": INT8, "name": TEXT, "amount": FLOAT8}
        id = self.writer.catalog.next_id
        form = tuple(Field(n, t) for n, t in columns.items())
        fields.setdefault("query", "SELECT " + ", ".join(f"NULL::{t} AS {n}" for n, t in columns.items()))
        item = MaterializedView(id, name, form, key, stored=True, errors=id + 1, **fields)  # type: ignore[arg-type]
        self.put(item)
        return item

    def put(self, item: Item) -> None:
        self.writer.append(kind="catalog", catalog=Change(put=(item,)))
        self.items[item.id] = item
        self.schemas[item.id] = arrow_schema(item.columns, weight=True)
        self.schemas[item.errors] = arrow_schema((Field("sqlstate", TEXT), Field("message", TEXT)), weight=True)
        self.now.setdefault(item.id, Counter())
        self.now.setdefault(item.errors, Counter())
        self._note()

    def drop(self, item: Item) -> None:
        self.writer.append(kind="catalog", catalog=Change(drop=(item.id,)))
        self._note()

    def tick(self, changes: dict[int, Iterable[tuple[Row, int]]]) -> int:
        """Appends a tick with the net changes. Returns its time."""
        sections = []
        for relation, updates in changes.items():
            net: Counter[Row] = Counter()
            for row, weight in updates:
                net[row] += weight
            lines = [(row, weight) for row, weight in net.items() if weight]
            for row, weight in lines:
                self.now[relation][row] += weight
                assert self.now[relation][row] >= 0
                if not self.now[relation][row]:
                    del self.now[relation][row]
            sections.append((relation, self.table(relation, lines)))
        with self._noted:
            self.writer.append(sections)
            return self._note()

    def rows(self, relation: int, time: int) -> Counter[Row]:
        """Returns the rows of a relation at the time of a tick that another thread appends."""
        with self._noted:
            return self.at[time][relation]

    def table(self, relation: int, lines: Iterable[tuple[Row, int]]) -> pa.Table:
        schema = self.schemas[relation]
        columns = list(zip(*[(*map(_thawed, row), weight) for row, weight in lines], strict=True)) or [() for _ in schema]
        return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)

    def _note(self) -> int:
        time = self.writer.newest.time
        self.at[time] = {relation: Counter(rows) for relation, rows in self.now.items()}
        return time


def bag(table: pa.Table) -> Counter[Row]:
    """Returns the rows of a table with their multiplicity, from its weights or from repeated rows."""
    rows: Counter[Row] = Counter()
    weighted = table.column_names[-1:] == [WEIGHT]
    for row in zip(*(_frozen(c) for c in table.columns), strict=True):
        key, weight = (row[:-1], row[-1]) if weighted else (row, 1)
        rows[key] += weight
    return rows


def _frozen(column: pa.ChunkedArray) -> list[object]:
    return [_hashable(v) for v in column.to_pylist()]


def _hashable(value: object) -> object:
    if isinstance(value, dict):
        return tuple(sorted(value.items()))
    return tuple(value) if isinstance(value, list) else value


def _thawed(value: object) -> object:
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return dict(value)  # an interval
    return list(value) if isinstance(value, tuple) else value


def unready(item: Item) -> Item:
    return replace(item, ready=False)


@contextlib.asynccontextmanager
async def serving(model: ModelLake) -> AsyncIterator[Serving]:
    server = Serving(model.lake, Memory(2 << 30))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def flip(model: ModelLake, relation: int, id: int) -> list[tuple[str, int]]:
    """Returns the old and a new name of the row with an id, with the weights of a change."""
    old = next(r[1] for r in model.now[relation] if r[0] == id)
    return [(old, -1), (old + "x" if len(old) < 5 else "x", 1)]


def ticks_applied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns a list to which each update of a mirror's table adds the number of ticks whose changes it applies."""
    applied: list[int] = []
    apply = tables.Tables.apply

    def counted(self: tables.Tables, connection: duckdb.DuckDBPyConnection, table: tables.Table, parts: Sequence[pa.Table]) -> None:
        applied.append(len(parts))
        apply(self, connection, table, parts)

    monkeypatch.setattr(tables.Tables, "apply", counted)
    return applied
