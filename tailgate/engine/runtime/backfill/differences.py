"""Changes of relations that no tick computes: differences between relations, and sums of errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.engine.runtime.backfill.arrivals import arriving
from tailgate.engine.runtime.backfill.resuming import keeps_rows
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.engine.runtime.ticks.engine_log import Changes
from tailgate.lake.catalog import ERRORS, Item
from tailgate.lake.log.entry import stream
from tailgate.lake.readers import reading
from tailgate.lake.tables.weights import negated, net_without, total
from tailgate.lake.types import WEIGHT, Field, arrow_schema
from tailgate.sql.ksqldb.pseudo_columns import ARRIVAL, PSEUDO_COLUMNS, ROW_NUMBER

POSITION = (*PSEUDO_COLUMNS, ROW_NUMBER)  # columns of the row of a stream that are the same when its record is read again


class Difference:
    """The difference between the rows of two relations.

    The snapshots are compared while ticks run; `now` adds the changes since then, between two
    ticks. With `keeps_rows`, it only adds rows of records that the old relation lacks.
    """

    def __init__(self, engine: Engine, old: int, new: int, columns: tuple[Field, ...], *, keeps_rows: bool = False) -> None:
        self._engine, self._old, self._new, self._keeps_rows = engine, old, new, keeps_rows
        self._schema = arrow_schema(columns, weight=True)
        at = engine.newest
        self._n = at.n
        self._net = self._total([negated(reading.snapshot(engine.lake, old, at.time)), reading.snapshot(engine.lake, new, at.time)])

    def now(self) -> tuple[int, bytes] | None:
        """Returns the changes that turn the old relation's rows into the new one's, or None."""
        parts = [self._net]
        for entry in self._engine.lake.log.after(self._n, self._engine.newest.n):
            if (deletions := entry.changes(self._old)) is not None:
                parts.append(negated(deletions.rename_columns(self._schema.names)))
            if (insertions := entry.changes(self._new)) is not None:
                parts.append(insertions.rename_columns(self._schema.names))
        net = arriving(self._total(parts), self._engine.newest.time)
        if self._keeps_rows:
            net = net.filter(pc.greater(net[WEIGHT], 0))
        return (self._old, stream(net)) if net.num_rows else None

    def _total(self, parts: list[pa.Table]) -> pa.Table:
        """Returns the net of changes. A row of a stream that is read again keeps its place in the order of all records.

        With `keeps_rows` it keeps all values, because UNIX_TIMESTAMP has another one.
        """
        net, names = total(parts, self._schema), self._schema.names[:-1]
        if self._keeps_rows and "rowoffset" in names:
            return net_without(net, *(name for name in names if name not in POSITION))
        return net_without(net, ARRIVAL) if ARRIVAL in names else net


class Addition:
    """The rows of a view as additions to another relation, whose columns the view has in another order.

    The snapshot is read while ticks run; `now` adds the changes since then, between two ticks.
    """

    def __init__(self, engine: Engine, target: Item, view: Item) -> None:
        self._engine, self._target, self._view = engine, target, view
        at = engine.newest
        self._n = at.n
        self._rows = reading.snapshot(engine.lake, view.id, at.time)

    def now(self) -> list[tuple[int, bytes]]:
        """Returns the changes of the relation."""
        entries = self._engine.lake.log.after(self._n, self._engine.newest.n)
        changes = [rows for entry in entries if (rows := entry.changes(self._view.id)) is not None]
        net = arriving(total([self._rows, *changes], arrow_schema(self._view.columns, weight=True)), self._engine.newest.time)
        target = arrow_schema(self._target.columns, weight=True)
        return [(self._target.id, stream(net.select(target.names).cast(target)))] if net.num_rows else []


def differences(engine: Engine, old: Item, new: Item) -> Iterable[Difference]:
    """Yields the differences of rows and errors between an item and its replacement."""
    yield Difference(engine, old.id, new.id, old.columns, keeps_rows=keeps_rows(old))
    yield Difference(engine, old.errors, new.errors, ERRORS)


def sums(engine: Engine, parts_by_relation: Mapping[int, Mapping[int, int]], ticked: Changes = ()) -> list[tuple[int, bytes]]:
    """Returns the initial changes of errors relations: sums of the rows of other relations.

    `parts_by_relation` maps each new errors relation to its parts: the id of another one, and its factor. `ticked`: changes of a tick
    that is not in the log yet.
    """
    schema = arrow_schema(ERRORS, weight=True)
    others = {other for times_of in parts_by_relation.values() for other in times_of}
    later = {relation: _rows(data) for relation, data in ticked if relation in others}
    initial_changes = []
    for relation, times_of in parts_by_relation.items():
        parts = []
        for other, times in times_of.items():
            rows = reading.snapshot(engine.lake, other, engine.newest.time)
            for changes in (rows, *([later[other]] if other in later else ())):
                parts.append(changes.set_column(2, WEIGHT, pc.multiply(changes.column(2), times)))
        net = total(parts, schema)
        if net.num_rows:
            initial_changes.append((relation, stream(net)))
    return initial_changes


def _rows(data: bytes | memoryview | Path | pa.Table) -> pa.Table:
    if isinstance(data, Path):
        data = data.read_bytes()
    return data if isinstance(data, pa.Table) else pa.ipc.open_stream(data).read_all()
