"""Catalogs with views that are given as bound plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tailgate.engine.plan.analysis.keys import key
from tailgate.engine.plan.circuit.graph import Graph
from tailgate.engine.plan.rules import compile
from tailgate.engine.plan.views import catalog_graph, nodes
from tailgate.engine.plan.views.sharing import Same, Sharing
from tailgate.engine.plan.views.streams import Streams, as_planned
from tailgate.lake.catalog import DEAD_LETTERS, DEAD_LETTERS_KEY, Catalog, Change, DeadLetters, Item, MaterializedView, Source, ready
from tailgate.lake.catalog.codec import decode_catalog, encode_catalog
from tailgate.lake.catalog.dropping import dropping
from tailgate.lake.catalog.formats import DeclaredColumn, Json, Text
from tailgate.lake.types import BYTEA, INT8, TEXT, Field
from tailgate.sql import plan

EVENTS = (Field("user_id", INT8), Field("kind", TEXT))
USERS = (Field("id", INT8, False), Field("name", TEXT))


@dataclass
class Shop:
    """A catalog and the bound plans of its views.

    `restarted` sees the catalog only in its stored form.
    """

    catalog: Catalog = field(default_factory=Catalog)
    plans: dict[int, plan.Relation] = field(default_factory=dict)
    same: Same = lambda one, other: True  # whether two operators have equal state

    def streams(self, catalog: Catalog | None = None) -> Streams:
        return Streams(catalog or self.catalog, lambda item, seen, streams: compile.stream(self.plan_of(item), seen, streams))

    def plan_of(self, item: Item) -> plan.Relation:
        """Returns the plan of a view, with the sizes of its inputs."""
        return as_planned(self.plans[item.id], item)

    def graph(self) -> Graph:
        return catalog_graph.compile_catalog(self.catalog, self.streams())

    def restarted(self) -> Shop:
        import json

        return Shop(decode_catalog(json.loads(json.dumps(encode_catalog(self.catalog)))), self.plans)

    def source(self, name: str, columns: tuple[Field, ...], key: str | None = None) -> plan.Scan:
        """Adds a JSON source, append-only or keyed by a column, and returns its scan."""
        id = self.catalog.next_id
        positions = None if key is None else ([c.name for c in columns].index(key),)
        item = Source(
            id,
            name,
            columns,
            positions,
            stored=key is not None,
            topic=name,
            brokers="kafka:9092",
            channel=f"kafka:9092/{name}",
            value_format=Json(),
            key_format=Text() if key else None,
            envelope="upsert" if key else "none",
            declared=tuple(DeclaredColumn(field=c) for c in columns),
            primary_key=(key,) if key else (),
        )
        letters = DeadLetters(id + 1, f"{name}_dead_letters", DEAD_LETTERS, DEAD_LETTERS_KEY, True, depends=(id,))
        self.catalog = self.catalog.apply(Change(put=(item, letters)))
        return plan.Scan(id, columns, positions)

    def view(self, name: str, of: plan.Relation, *, starts: Any = None, filled: bool = True) -> plan.Scan:
        id = self.catalog.next_id
        depends = tuple(sorted({n.relation for n in _scans(of)}))
        item = MaterializedView(id, name, of.columns, key(of), True, id + 1, depends, query="…", ready=False)
        if starts is not None:
            item = replace(item, starts={int(id): offsets for id, offsets in starts.items()})
        self.plans[id] = of
        catalog = self.catalog.apply(Change(put=(item,)))
        item = nodes.with_new_nodes(item, catalog, self.streams(catalog)(item))
        self.put(item)
        if filled:
            self.fill(name)
        return plan.Scan(id, of.columns, item.key)

    def fill(self, name: str) -> None:
        item = self[name]
        self.put(Sharing(self.graph(), self.same)(ready(item), self.catalog))

    def put(self, item: Item) -> None:
        self.catalog = self.catalog.apply(Change(put=(item,)))

    def drop(self, name: str) -> None:
        self.catalog = self.catalog.apply(Change(drop=tuple(i.id for i in dropping(self.catalog, (self[name],), cascade=True).items)))

    def __getitem__(self, name: str) -> Item:
        item = self.catalog.find(name)
        assert item is not None
        return item


def _scans(relation: plan.Relation) -> list[plan.Scan]:
    from tailgate.sql.plan.traversal import walk

    return [n for n in walk(relation) if isinstance(n, plan.Scan)]


def equal(left: int, right: int, type: Any = INT8) -> plan.Scalar:
    from tailgate.lake.types import BOOL
    from tests.engine.plan.random_plans import operator

    return plan.Call(operator("=", type), (plan.Column(left, type), plan.Column(right, type)), BOOL)


def joined(events: plan.Relation, users: plan.Relation) -> plan.Join:
    return plan.Join(events, users, "inner", equal(0, len(events.columns)))


def counted(relation: plan.Relation, *keys: int) -> plan.Reduce:
    from tests.engine.plan.random_plans import aggregate

    by = tuple(plan.Column(k, relation.columns[k].type) for k in keys)
    return plan.Reduce(relation, by, (plan.AggregateCall(aggregate("count", None, INT8), (), INT8),))


Build = Callable[[Shop], None]
__all__ = ["BYTEA", "EVENTS", "USERS", "Build", "Shop", "counted", "equal", "joined"]
