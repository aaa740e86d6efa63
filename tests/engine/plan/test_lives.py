"""Views are created, backfilled beside ticks, share operators and are dropped.

At every time, each ready view equals its query.

    random keyed tables as JSON upserts ──► the real circuit ──► relations
    history of a new view: Arrow pieces of the rows of its inputs
"""

from __future__ import annotations

import io
import json
import os
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tailgate.engine.ddl import create_source, create_view, drop
from tailgate.engine.plan.circuit.graph import Graph
from tailgate.engine.plan.views import catalog_graph, nodes, shared_joins
from tailgate.engine.plan.views.errors import UndeterminedErrors, errors_to_backfill
from tailgate.engine.plan.views.shared_joins import with_shared_joins
from tailgate.engine.plan.views.sharing import Sharing, Sum, equal_sums, total
from tailgate.engine.plan.views.streams import Streams, bound_plan
from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView, ready
from tailgate.lake.catalog.codec import decode_catalog, encode_catalog
from tailgate.lake.errors import TailgateError
from tailgate.lake.types import arrow_schema
from tailgate.sql.statements import CreateSource, CreateView, Drop, parse
from testing.random_queries import Table
from testing.records import frame_of
from testing.reference.evaluation import evaluate
from testing.reference.values import NAN, Row
from testing.views import as_json
from testing.worlds import World

pytestmark = [pytest.mark.spark, pytest.mark.long]

WORLDS = int(os.environ.get("TAILGATE_WORLDS", "3"))  # each takes about 15 s
STEPS, VIEWS_MAX = 24, 6
AT = datetime(2026, 1, 1, tzinfo=timezone.utc)


@dataclass
class Piece:
    """A part of a new view's history: rows with weights, and the channel that they are sent on."""

    channel: str
    columns: tuple[Any, ...]
    rows: list[tuple[Row, int]]


class Engine:
    """The planner's part of the runtime, without Kafka and the log."""

    def __init__(self, session: Any, folder: Path, world: World, partitions: int) -> None:
        from tailgate.engine.runtime.spark.circuits import Circuits

        self.session, self.folder, self.world, self.ids, self.partitions = session, folder, world, "", partitions
        self.circuits = Circuits(session)
        self.catalog, self.graph, self.circuit = Catalog(), Graph(), None
        self.rows: dict[int, Counter[Row]] = {}
        self.pieces: dict[int, list[Piece]] = {}
        self.forgotten: set[int] = set()
        self.sums: dict[tuple[int, int], Sum | None] = {}
        self.offset = 0
        for table in world.tables:
            columns = ", ".join(f"{c.name} {c.type}" for c in table.columns)
            text = f"""CREATE SOURCE {table.name} ({columns}, PRIMARY KEY (a) NOT ENFORCED)
                FROM KAFKA BROKER 'kafka' TOPIC '{table.name}' KEY FORMAT TEXT VALUE FORMAT JSON ENVELOPE UPSERT"""
            statement = parse(text)
            assert isinstance(statement, CreateSource)
            self.install(Change(put=create_source(statement, text, self.catalog, None)))  # type: ignore[arg-type]  # no registry
        self.tables = {self.catalog.relation(t.name).id: t for t in world.tables}

    def install(self, change: Change) -> None:
        """Builds the circuit after a catalog change. The catalog passes through its stored form."""
        after = decode_catalog(json.loads(json.dumps(encode_catalog(self.catalog.apply(change)))))
        graph = catalog_graph.compile_catalog(after, Streams(after))
        live = {o.node for o in graph.operators}
        forgotten = (self.forgotten | set(catalog_graph.removed_operators(self.graph, graph))) - live
        self.circuit = self.circuits.build(graph, sorted(forgotten))
        self.forgotten, self.graph, self.catalog = forgotten, graph, after
        for relation in graph.relations:
            self.rows.setdefault(relation.relation, Counter())
            self.rows.setdefault(relation.errors, Counter())

    def create(self, name: str, query: str) -> bool:
        text = f"CREATE MATERIALIZED VIEW {name} AS {query}"
        before = self.catalog
        try:
            statement = parse(text)
            assert isinstance(statement, CreateView)
            item = create_view(statement, text, self.catalog)
            assert isinstance(item, MaterializedView)
            after = self.catalog.apply(Change(put=(item,)))
            item = with_shared_joins(item, after)
            after = after.apply(Change(put=(item,)))
            stream = Streams(after)(item)
            item = nodes.with_new_nodes(replace(item, ready=False), after, stream)
            self.install(Change(put=(item,)))
        except TailgateError:
            return False
        except Exception as e:  # an invalid constant is reported when Spark folds it
            if "SqlError" not in str(e) and "SQLSTATE: 22" not in str(e):
                raise
            self.catalog = before
            return False
        try:
            errors = errors_to_backfill(item, stream, self.catalog, self.graph)
        except UndeterminedErrors as e:
            errors = {}
            if any(self.rows[relation] for relation in e.args[0]):
                self.drop(name)
                return False
        pieces = []
        for fill in catalog_graph.backfill_inputs(item, stream):
            if fill.kind == "unit":
                pieces.append(Piece(fill.channel, catalog_graph.SINGLE_ROW, [((True,), 1)]))
                continue
            base = self.catalog[fill.item]
            rows = list(self.rows[base.id].items())
            self.world.random.shuffle(rows)
            size = max(1, self.world.random.randint(1, len(rows) or 1))
            pieces += [Piece(fill.channel, base.columns, rows[i : i + size]) for i in range(0, len(rows), size)]
        self.world.random.shuffle(pieces)
        self.pieces[item.id] = pieces
        for relation, times in errors.items():
            for row, n in self.rows[relation].items():
                self.rows[item.errors][row] += times * n
        return True

    def drop(self, name: str) -> None:
        statement = parse(f"DROP MATERIALIZED VIEW {name} CASCADE")
        assert isinstance(statement, Drop)
        change, _ = drop(statement, self.catalog)
        self.install(change)
        for id in change.drop:
            self.pieces.pop(id, None)

    def tick(self, changes: list[tuple[Table, Row, int]]) -> None:
        records: list[Any] = []
        for table, row, weight in changes:
            value = None if weight < 0 else as_json(table, row)
            topic = self.catalog.relation(table.name).channel
            self.offset += 1  # an upsert skips offsets that its key has seen
            records.append((str(row[0]).encode(), value, topic, 0, self.offset, AT, 0, None))
        filling = [i for i in self.pieces if self.pieces[i]]
        if filling:
            piece = self.pieces[self.world.random.choice(filling)].pop()
            records.append((None, _arrow(piece), piece.channel, 0, 0, AT, 0, None))
        assert self.circuit is not None
        frame = frame_of(self.session, records)
        result = self.circuit.tick(frame._jdf, str(self.folder), 0, self.ids, self.partitions)
        self.ids = result.stateIds()
        self.forgotten -= set(result.forgotten())
        self.sums.update({(s[0], s[1]): (s[3], s[4]) if s[2] else None for s in map(list, result.sums())})
        for i, relation in enumerate(result.relations()):
            for row in pa.ipc.open_stream(bytes(result.changes(i))).read_all().to_pylist():
                *values, weight = row.values()
                self.rows[relation][tuple(map(_plain, values))] += weight
        for held in self.rows.values():
            for zero_row in [r for r, n in held.items() if n == 0]:
                del held[zero_row]
        for id in [i for i, left in self.pieces.items() if not left]:
            del self.pieces[id]
            share = Sharing(self.graph, equal_sums(total(self.sums, self.partitions)))
            self.install(Change(put=(share(ready(self.catalog[id]), self.catalog),)))

    @property
    def views(self) -> list[Item]:
        return [i for i in self.catalog.items.values() if isinstance(i, MaterializedView)]

    def check(self) -> int:
        """Compares each ready view with its query. Returns how many were compared."""
        compared = 0
        tables = {id: self.world.rows[t.id] for id, t in self.tables.items()}
        for id, table in self.tables.items():
            assert {tuple(map(_plain, r)) for r in self.world.rows[table.id]} == set(self.rows[id]), table.name
        for item in self.views:
            if not item.ready:
                continue
            expected, above = self._expected(item, tables)
            actual, errors = self.rows[item.id], self.rows[item.errors]
            assert all(n > 0 for n in errors.values()), (item.name, item.query, errors)
            assert above or not errors, (item.name, item.query, errors)
            tables[item.id] = expected
            if not above:
                compared += 1
                assert actual == expected, (item.name, item.query, expected - actual, actual - expected)
        return compared

    def _expected(self, item: Item, tables: dict[int, Counter[Row]]) -> tuple[Counter[Row], bool]:
        """Returns the rows, and whether any row fails here or in a view above."""
        result = evaluate(bound_plan(item, self.catalog), tables)
        above = any(self._expected(self.catalog[d], tables)[1] for d in item.depends if isinstance(self.catalog[d], MaterializedView))
        return result.rows, bool(result.errors) or above


def _arrow(piece: Piece) -> bytes:
    schema = arrow_schema(piece.columns, weight=True)
    values = [[row[i] for row, _ in piece.rows] for i in range(len(piece.columns))]
    arrays = [pa.array(v, type=f.type) for v, f in zip([*values, [n for _, n in piece.rows]], schema, strict=True)]
    out = io.BytesIO()
    with pa.ipc.new_stream(out, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    return out.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return NAN if isinstance(value, float) and value != value else value


def joined(world: World) -> str:
    """Returns a query that joins two tables, with a random filter, as other views join them."""
    one, other = world.tables[:2]
    column = one.columns[-1].name
    condition = world.random.choice(("TRUE", f"x.a > {world.random.randint(0, 4)}", f"x.{column} IS NOT NULL"))
    return f"SELECT x.a, x.{column} AS v, y.a AS b FROM {one.name} x JOIN {other.name} y ON x.a = y.a WHERE {condition}"


@pytest.mark.parametrize("number", range(WORLDS))
def test_lives(session: Any, tmp_path: Path, seed: int, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_joins, "SEPARATE_MAX", 0.5)  # the first view with a join has the form that later ones share
    world = World(seed * 1000 + number, keyed=True)
    engine = Engine(session, tmp_path, world, 1 + number % 3)
    compared, shared, queries = 0, 0, list[str]()
    for step in range(STEPS):
        engine.tick(world.change(6))
        compared += engine.check()
        choice = world.random.random()
        if choice < 0.6 and len(engine.views) < VIEWS_MAX:
            over = [Table(v.id, v.name, v.columns) for v in engine.views if v.ready]
            again = queries and world.random.random() < 0.4
            query = world.random.choice(queries) if again else world.query([*world.tables, *over], errors=world.random.random() < 0.3)
            if world.random.random() < 0.3:
                query = joined(world)
            if engine.create(f"v{step}", query):
                queries.append(query)
        elif choice < 0.7 and engine.views:
            engine.drop(world.random.choice(engine.views).name)
        node_ids = [n for v in engine.views if v.ready for _, n in v.nodes]
        shared = max(shared, len(node_ids) - len(set(node_ids)))
    assert compared > 2
    assert shared or WORLDS > 1
