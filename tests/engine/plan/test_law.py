"""The law, with one, two and three partitions: at every time a view holds what its query gives over the rows at that time.

Random tables, queries over them and views over views; changes go through the real circuit in ticks; after each tick every view is compared
with the reference. A view for which the reference has failing rows may hold more than it (fewer rows failed), and says so by errors.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.ddl import create_function
from engine.plan import circuit, nodes
from engine.plan.plans import Streams
from lake.catalog import Catalog, Change, Item
from lake.errors import FeatureNotSupported, TailgateError
from lake.roles import OPERATOR_ID
from lake.types import arrow_schema
from sql import plan
from sql.bind import bind_query
from sql.relations import bottom_up
from sql.statements import CreateFunction, parse
from tests.reference import NAN, Row, evaluate
from tests.worlds import Table, World

pytestmark = [pytest.mark.spark, pytest.mark.long]

KAFKA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
WORLDS = int(os.environ.get("TAILGATE_WORLDS", "4"))  # about 5 s each
UNIT_TABLE = Table(0, "unit", circuit.UNIT)
VIEWS, TICKS = 12, 4


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from engine.runtime import session

    running = session.start(tmp_path_factory.mktemp("spark"), 1)
    yield running
    running.stop()


class Views:
    """Views that are never filled: all that their tables hold comes as history, in ticks."""

    def __init__(self, session: Any, folder: Path, world: World, partitions: int) -> None:
        from engine.runtime.circuits import Circuits

        self.session, self.folder, self.world, self.ids, self.partitions = session, folder, world, "", partitions
        self.time = 0  # of the next tick, in ms
        self.circuits = Circuits(session)
        put = tuple(Item(t.id, "table", t.name, t.columns, t.key, stored=True) for t in world.tables)
        self.catalog = Catalog().apply(Change(put=put))
        self.queries: dict[str, str] = {}
        self.kinds: dict[str, plan.JoinKind] = {}
        self.told: set[str] = set()  # channels of constants that have had their row
        self.rows: dict[int, Counter[Row]] = {}

    def function(self, text: str) -> None:
        """Makes a function that queries may call."""
        statement = parse(text)
        assert isinstance(statement, CreateFunction)
        self.catalog = self.catalog.apply(Change(put=create_function(statement, text, self.catalog, OPERATOR_ID)))

    def bound(self, item: Item, catalog: Catalog) -> plan.Relation:
        """The plan of a view; of those in `kinds` its inner join is of that kind."""
        relation = bind_query(item.query, catalog, view=True).plan
        kind = self.kinds.get(item.name)
        return relation if kind is None else bottom_up(relation, lambda n: replace(n, kind=kind) if isinstance(n, plan.Join) else n)

    def streams(self, catalog: Catalog) -> Streams:
        return Streams(catalog, self.bound)

    def add(self, name: str, query: str, kind: plan.JoinKind | None = None) -> bool:
        """Whether the query can be kept up to date. Constants that fail are told when a view is bound or built: such ones are left out."""
        if kind is not None:
            self.kinds[name] = kind
        try:
            bound = bind_query(query, self.catalog, view=True)
        except TailgateError:
            return False
        id = self.catalog.next_id
        item = Item(id, "materialized view", name, bound.columns, None, True, id + 1, bound.depends, query=query)
        after = self.catalog.apply(Change(put=(item,)))
        try:
            stream = self.streams(after)(item)
        except FeatureNotSupported:
            return False
        before, self.catalog = self.catalog, self.catalog.apply(Change(put=(nodes.number(replace(item, ready=False), after, stream),)))
        try:
            self.build()
        except Exception as e:  # of several kinds
            if not isinstance(e, TailgateError) and "SqlError" not in str(e) and "SQLSTATE: 22" not in str(e):
                raise
            self.catalog = before
            return False
        self.queries[name] = query
        self.rows[id], self.rows[id + 1] = Counter(), Counter()
        return True

    def build(self) -> None:
        streams = self.streams(self.catalog)
        self.circuit = self.circuits.build(circuit.compile_catalog(self.catalog, streams))
        self.channels: dict[int, list[str]] = {}
        for item in self.catalog.items.values():
            if item.kind == "materialized view":
                for fill in circuit.fill_inputs(item, streams(item)):
                    self.channels.setdefault(fill.item, []).append(fill.channel)
        self.constants = set(self.channels.get(0, ()))

    def tick(self, changes: list[tuple[Table, Row, int]]) -> None:
        records = []
        for table in self.world.tables:
            mine = [(row, weight) for t, row, weight in changes if t == table]
            if mine:
                data = _arrow(table, mine)
                records += [(None, data, channel, 0, 0, datetime(2026, 1, 1), 0) for channel in self.channels.get(table.id, ())]
        for channel in self.constants - self.told:
            records.append((None, _arrow(UNIT_TABLE, [((True,), 1)]), channel, 0, 0, datetime(2026, 1, 1), 0))
            self.told.add(channel)
        if not records:
            return
        frame = self.session.createDataFrame(records, KAFKA)
        result = self.circuit.tick(frame._jdf, str(self.folder), self.time, self.ids, self.partitions)
        self.ids = result.stateIds()
        for i, relation in enumerate(result.relations()):
            for row in pa.ipc.open_stream(bytes(result.changes(i))).read_all().to_pylist():
                *values, weight = row.values()
                self.rows[relation][tuple(map(_plain, values))] += weight
        for held in self.rows.values():
            for row in [r for r, n in held.items() if n == 0]:
                del held[row]

    def check(self) -> int:
        """How many views were compared without any failing row."""
        exact = 0
        for name, query in self.queries.items():
            item = self.catalog.relation(name)
            expected = evaluate(self.bound(item, self.catalog), self.world.rows)
            found, errors = self.rows[item.id], self.rows[item.errors]
            assert all(n > 0 for n in found.values()), (name, query)
            assert expected.errors or not errors, (name, query, errors)
            if not expected.errors:
                exact += 1
                assert found == expected.rows, (name, query, expected.rows - found, found - expected.rows)
        return exact


def _arrow(table: Table, changes: list[tuple[Row, int]]) -> bytearray:
    schema = arrow_schema(table.columns, weight=True)
    columns = [[row[i] for row, _ in changes] for i in range(len(table.columns))]
    arrays = [pa.array(values, type=f.type) for values, f in zip([*columns, [w for _, w in changes]], schema, strict=True)]
    out = io.BytesIO()
    batch = pa.record_batch(arrays, schema=schema)
    with pa.ipc.new_stream(out, schema) as writer:
        writer.write_batch(batch)
    return bytearray(out.getvalue())


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return tuple(value.values())
    return NAN if isinstance(value, float) and value != value else value


@pytest.mark.parametrize("number", range(WORLDS))
def test_every_view_is_its_query(session: Any, tmp_path: Path, seed: int, number: int) -> None:
    world = World(seed * 1000 + number)
    views = Views(session, tmp_path, world, 1 + number % 3)
    while len(views.queries) < VIEWS:
        number_of = len(views.queries)
        if number_of % 6 < 2:
            views.add(f"v{number_of}", world.halves(), ("semi", "anti")[number_of % 6])
        else:
            views.add(f"v{number_of}", world.query(errors=number_of % 2 == 0))
    exact = 0
    for _ in range(TICKS):
        views.tick(world.change(12))
        exact += views.check()
    assert exact > 0
