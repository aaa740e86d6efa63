"""Maintained views over random tables, run by the real circuit and compared with the reference.

A view's history is in the tick after it was added. Views are never marked ready.

    Views       ticks are Spark jobs, as in the engine
    Straight    ticks run directly over the state stores (tailgate/engine/java's tests, Straight); attempts and files may be lost

A view of views is compared with its query over the rows of those views.
"""

from __future__ import annotations

import io
import json
import random
import shutil
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from tailgate.engine.ddl import create_function
from tailgate.engine.plan.rules import change, compile
from tailgate.engine.plan.rules.change import SingleRow, StoredRelation, Stream, View, leaves, stateful
from tailgate.engine.plan.views import catalog_graph, nodes
from tailgate.engine.plan.views.streams import Streams, as_planned
from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView, Source, items
from tailgate.lake.catalog.formats import DeclaredColumn, Json
from tailgate.lake.catalog.roles import OPERATOR_ID
from tailgate.lake.errors import FeatureNotSupported, TailgateError
from tailgate.lake.types import Field, arrow_schema
from tailgate.lake.writer.inbox import TABLE
from tailgate.sql import plan
from tailgate.sql.bind import bind_query
from tailgate.sql.numeric_types import MAINTAINED
from tailgate.sql.plan.traversal import bottom_up
from tailgate.sql.statements import CreateFunction, parse
from testing.random_queries import Table
from testing.records import frame_of
from testing.reference.evaluation import at, by_value, evaluate
from testing.reference.values import NAN, Row
from testing.worlds import World

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)  # of all records
SHARED = 0.4  # the part of the views whose joins have the form in which views share them
Record = tuple[bytes, str]  # a value and its channel
Changes = Sequence[tuple[Table, Row, int]]


class Views:
    """Views whose ticks are Spark jobs, with the current rows of all relations in `rows`."""

    numeric_rules = MAINTAINED

    def __init__(self, session: Any, folder: Path, world: World, partitions: int) -> None:
        from tailgate.engine.runtime.spark.circuits import Circuits

        self.session, self.folder, self.world, self.ids, self.partitions = session, folder, world, "", partitions
        self.time = 0  # of the next tick, in ms
        self.circuits = Circuits(session)
        self.catalog = Catalog().apply(Change(put=tuple(map(_item, world.tables))))
        self.queries: dict[str, str] = {}
        self.kinds: dict[str, plan.JoinKind] = {}
        # bound plans, each with the catalog that it was bound in
        self.plans: dict[int, tuple[Catalog, plan.Relation]] = {}
        # channel of a history → its relation; 0 is the row that constants are computed from
        self.fills: dict[str, int] = {}
        self.told: set[str] = set()  # channels whose history was sent
        self.rows: dict[int, Counter[Row]] = {t.id: Counter() for t in world.tables}

    # ---- views ---------------------------------------------------------------------------------------------------------------------

    def bound(self, item: Item, catalog: Catalog) -> plan.Relation:
        """Returns the plan of a view. `kinds` overrides the kind of its joins."""
        cached = self.plans.get(item.id)
        if cached is None or cached[0] is not catalog:
            relation = bind_query(item.query, catalog, view=True, numeric_rules=self.numeric_rules).plan
            kind = self.kinds.get(item.name)
            if kind is not None:
                relation = bottom_up(relation, lambda n: replace(n, kind=kind) if isinstance(n, plan.Join) else n)
            cached = self.plans[item.id] = catalog, relation
        return cached[1]

    def streams(self, catalog: Catalog) -> Streams:
        def compiled(item: Item, catalog: Catalog, streams: Callable[[Item], Stream]) -> Stream:
            return compile.stream(as_planned(self.bound(item, catalog), item), catalog, streams)

        return Streams(catalog, compiled)

    def function(self, text: str) -> None:
        """Creates a function that queries may call."""
        statement = parse(text)
        assert isinstance(statement, CreateFunction)
        self.catalog = self.catalog.apply(Change(put=create_function(statement, text, self.catalog, OPERATOR_ID)))

    def add(self, name: str, query: str, kind: plan.JoinKind | None = None) -> bool:
        """Adds a view and returns whether it can be maintained.

        A view is left out if a constant fails when it is bound or built.
        """
        return self.add_all([(name, query, kind)]) == 1

    def add_all(self, views: Iterable[tuple[str, str, plan.JoinKind | None]]) -> int:
        """Adds views that do not read each other and builds the circuit once.

        Returns how many were added.
        """
        items, id = [], self.catalog.next_id
        for name, query, kind in views:
            if kind is not None:
                self.kinds[name] = kind
            try:
                bound = bind_query(query, self.catalog, view=True, numeric_rules=self.numeric_rules)
                item = MaterializedView(id, name, bound.columns, None, True, id + 1, bound.depends, query=query)
                item = replace(item, sizes=self.planned_by(query, bound.depends), join_columns=self.shared_by(query, bound.depends))
                after = self.catalog.apply(Change(put=(item,)))
                stream = self.streams(after)(item)
            except FeatureNotSupported as e:
                self.refused(name, query, e)
            except TailgateError:
                pass
            else:
                items.append(nodes.with_new_nodes(replace(item, ready=False), after, stream))
                id += 2
        return self._install(items)

    def refused(self, name: str, query: str, error: FeatureNotSupported) -> None:
        """Receives each query that cannot be maintained. Subclasses may override this method."""

    def planned_by(self, query: str, depends: Iterable[int]) -> dict[int, int] | None:
        """Returns the sizes that a view is planned with, as its options."""
        return sizes(query, [(d, self.catalog[d].key is not None) for d in depends])

    def shared_by(self, query: str, depends: Iterable[int]) -> dict[int, tuple[int, ...]]:
        """Returns the columns that shared joins of a view keep, as one of its options: all columns, or none for most views."""
        if random.Random(f"{query} shared").random() > SHARED:
            return {}
        return {d: tuple(range(len(self.catalog[d].columns))) for d in sorted(depends)}

    def _install(self, items: list[Item]) -> int:
        before, self.catalog = self.catalog, self.catalog.apply(Change(put=tuple(items)))
        try:
            self.build()
        except Exception as e:  # several exception types are possible
            if not isinstance(e, TailgateError) and "SqlError" not in str(e) and "SQLSTATE: 22" not in str(e):
                raise
            self.catalog = before
            if len(items) < 2:
                return 0
            return self._install(items[: len(items) // 2]) + self._install(items[len(items) // 2 :])
        for item in items:
            self.queries[item.name] = item.query
            self.rows[item.id], self.rows[item.errors] = Counter(), Counter()
        return len(items)

    def build(self) -> None:
        """Builds the circuit of all views."""
        self.built = streams = self.streams(self.catalog)
        self.circuit = self.circuits.build(catalog_graph.compile_catalog(self.catalog, streams))
        views = (i for i in self.catalog.items.values() if isinstance(i, MaterializedView))
        fills = (fill for item in views for fill in catalog_graph.backfill_inputs(item, streams(item)))
        # views read these histories before their records
        self.fills = {fill.channel: fill.item for fill in fills if fill.kind != "topic"}

    # ---- ticks ---------------------------------------------------------------------------------------------------------------------

    def tick(self, changes: Changes) -> None:
        """Runs a tick that enters the log."""
        self._take(self._run(self._records(changes)))
        for table, row, weight in changes:
            self._add(table.id, row, weight)
        self.told = set(self.fills)

    def _records(self, changes: Changes) -> list[Record]:
        """Returns the records of a tick: the history for new views, then the changes of tables."""
        records: list[Record] = []
        for channel in sorted(set(self.fills) - self.told):
            item = self.fills[channel]
            columns, rows = (self.catalog[item].columns, self.rows[item]) if item else (catalog_graph.SINGLE_ROW, Counter({(True,): 1}))
            if rows:
                records.append((_arrow(columns, list(rows.items())), channel))
        for table in self.world.tables:
            mine = [(row, weight) for t, row, weight in changes if t == table]
            if table.append_only:
                records += [(as_json(table, row), _topic(table).channel) for row, weight in mine for _ in range(weight)]
            elif mine:
                records.append((_arrow(table.columns, mine), f"{TABLE}{table.id}"))
        return records

    def _run(self, records: list[Record]) -> list[tuple[int, bytes]]:
        """Runs the circuit and returns the net changes of relations, as Arrow streams."""
        if not records:
            return []
        frame = frame_of(self.session, [(None, data, channel, 0, 0, AT, 0, None) for data, channel in records])
        result = self.circuit.tick(frame._jdf, str(self.folder), self.time, self.ids, self.partitions)
        self.ids = result.stateIds()
        return [(relation, bytes(result.changes(i))) for i, relation in enumerate(result.relations())]

    def _take(self, changes: list[tuple[int, bytes]]) -> None:
        for relation, stream in changes:
            data = pa.ipc.open_stream(stream).read_all()
            for *values, weight in zip(*map(_values, data.columns), strict=True):
                self._add(relation, tuple(map(_plain, values)), weight)

    def _add(self, relation: int, row: Row, weight: int) -> None:
        rows = self.rows[relation]
        rows[row] += weight
        if not rows[row]:
            del rows[row]

    def check(self) -> int:
        """Compares all views. Returns how many had no failing row."""
        return sum(self.compared(name) for name in self.queries)

    def compared(self, name: str) -> bool:
        """Compares a view with its query. Returns whether no row failed.

        A view is not compared if a row fails, here or in a view above: then it may have more rows
        than its query, and errors.
        """
        item = self.catalog.relation(name)
        expected = evaluate(at(self.bound(item, self.catalog), self.time), self.rows)
        errors = self.rows[item.errors]
        failed = expected.errors or any(self.rows[self.catalog[d].errors] for d in item.depends if self.catalog[d].errors)
        assert all(n > 0 for n in errors.values()), f"errors below zero: {errors}"
        assert failed or not errors, f"errors of nothing: {errors}"
        if not failed:
            rows, shown = by_value(expected.rows), by_value(self.values(item))
            assert shown == rows, f"missing: {rows - shown}, too much: {shown - rows}"
        return not failed

    def values(self, item: Item) -> Counter[Row]:
        """Returns the rows of a view as the reference has them."""
        return evaluate(plan.Scan(item.id, item.columns, None), self.rows).rows


class Straight(Views):
    """Views whose ticks run without Spark jobs. Callers must call `end`."""

    straight: Any = None

    def build(self) -> None:
        """Builds the circuit and opens it over the state stores."""
        super().build()
        self.end()
        self._open()

    def _open(self) -> None:
        make, seed = self.session._jvm.tailgate.circuit.CircuitDriver, self.world.random.getrandbits(60)
        self.straight = make(self.session._jsparkSession, self.circuit, str(self.folder), self.partitions, self.ids, seed)

    def anew(self) -> None:
        """Resets all state, as if nothing had been sent."""
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.ids, self.time, self.told, self.rows = "", 0, set(), {id: Counter() for id in self.rows}
        self._open()

    def left(self) -> list[str]:
        """Returns views that hold state although all their inputs are empty.

        Views that have state without input rows are excepted.
        """
        held = {nodes.owner(node) for node in self.straight.held()}
        return [name for name in self.queries if (item := self.catalog.relation(name)).id in held and self._empty(item)]

    def _empty(self, item: Item) -> bool:
        stream = self.built(item)
        if any(isinstance(o, change.Reduce) and not o.keys for o in stateful(stream)):
            return False
        return all(isinstance(leaf, StoredRelation | View) and not self.rows[leaf.item] for leaf in leaves(stream))

    def reads_constants(self, item: Item) -> bool:
        """Returns whether a view reads a view with constants. Constants are rows of its history, and no tick sends them again."""
        above = [self.catalog[leaf.item] for leaf in leaves(self.built(item)) if isinstance(leaf, View)]
        return any(self.reads_constants(view) or any(isinstance(leaf, SingleRow) for leaf in leaves(self.built(view))) for view in above)

    def lost(self, changes: Changes) -> None:
        """Runs a tick that never enters the log."""
        self._attempt(self._records(changes))

    def restart(self) -> None:
        """Restarts, as after the end of the process."""
        self.straight.restart()

    def maintain(self) -> None:
        """Runs the background work: snapshots of the state."""
        self.straight.maintain()

    def end(self) -> None:
        if self.straight is not None:
            self.ids = self.straight.ids()
            self.straight.restart()

    def _run(self, records: list[Record]) -> list[tuple[int, bytes]]:
        answer = self._attempt(records)
        self.straight.commit()
        out, place = [], 4
        for _ in range(struct.unpack_from(">i", answer)[0]):
            relation, length = struct.unpack_from(">ii", answer, place)
            out.append((relation, answer[place + 8 : place + 8 + length]))
            place += 8 + length
        return out

    def _attempt(self, records: list[Record]) -> bytes:
        batch = bytearray()
        for data, channel in records:
            name = channel.encode()
            batch += struct.pack(f">ii{len(data)}si{len(name)}siq", -1, len(data), data, len(name), name, 0, 0)
        return bytes(self.straight.tick(batch, self.time))


def sizes(query: str, read: Iterable[tuple[int, bool]]) -> dict[int, int] | None:
    """Returns the sizes of its inputs that a view is planned with, or None.

    They differ from the actual sizes: keyed inputs are small, or all sizes are random. `read` has
    the inputs' ids, and whether they have keys.
    """
    r = random.Random(query)
    has_sizes, by_key = r.random() > 0.1, r.random() < 0.6
    rows = {id: (100 if key else 1_000_000) if by_key else r.choice([0, 3, 1000, 1_000_000]) for id, key in sorted(read)}
    return rows if has_sizes else None


def _item(table: Table) -> Item:
    """Returns the catalog item of a table, or of a JSON topic that is not stored."""
    if not table.append_only:
        return items.Table(table.id, table.name, table.columns, table.key, stored=True)
    return _topic(table)


def _topic(table: Table) -> Source:
    """Returns the catalog item of a JSON topic that is not stored."""
    return Source(
        table.id,
        table.name,
        table.columns,
        topic=table.name,
        brokers="kafka:9092",
        channel=f"kafka:9092/{table.name}",
        value_format=Json(),
        declared=tuple(DeclaredColumn(field=c) for c in table.columns),
    )


def as_json(table: Table, row: Row) -> bytes:
    """Returns a row as a JSON object, for a source."""
    parts = []
    for column, value in zip(table.columns, row, strict=True):
        text = f"{value:f}" if isinstance(value, Decimal) else json.dumps(str(value) if isinstance(value, datetime) else value)
        parts.append(f'"{column.name}": {text}')
    return ("{" + ", ".join(parts) + "}").encode()


def _arrow(columns: tuple[Field, ...], changes: list[tuple[Row, int]]) -> bytes:
    schema = arrow_schema(columns, weight=True)
    values: list[list[Any]] = [[row[i] for row, _ in changes] for i in range(len(columns))]
    for i, column in enumerate(columns):
        names = ("months", "days", "micros") if column.type.name == "interval" else ("u", "s", "x") if column.type.general else None
        if names is not None:
            values[i] = [v and dict(zip(names, v, strict=True)) for v in values[i]]
    arrays = [pa.array(v, type=f.type) for v, f in zip([*values, [w for _, w in changes]], schema, strict=True)]
    out = io.BytesIO()
    with pa.ipc.new_stream(out, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    return out.getvalue()


def _values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Returns the values of a column: Python's, and the stored numbers of dates and timestamps beyond Python's range."""
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        values = [_value(scalar) for scalar in column]
    return values


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return _values(scalar.values) if isinstance(scalar, pa.ListScalar) else scalar.value


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return tuple(value.values())
    return NAN if isinstance(value, float) and value != value else value
