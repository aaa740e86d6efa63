"""A view keeps the relation sizes that it was planned with, so its plan never changes."""

from __future__ import annotations

from dataclasses import replace

from tailgate.engine.plan.views import catalog_graph, nodes
from tailgate.engine.plan.views.sharing import Sharing
from tailgate.engine.plan.views.sizes import with_sizes
from tailgate.engine.plan.views.streams import Streams
from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView, Table, ready
from tailgate.lake.catalog.codec import decode_catalog, encode_catalog
from tailgate.lake.types import INT8, Field
from tailgate.sql.bind import bind_query

TABLES = {"orders": ("id", "customer_id"), "customers": ("id", "nation_id"), "nations": ("id", "region")}
QUERY = "SELECT o.id, n.region FROM orders o JOIN customers c ON o.customer_id = c.id JOIN nations n ON c.nation_id = n.id"
SMALL_LAST = {16384: 1_000_000, 16386: 10_000, 16388: 20}
SMALL_FIRST = {16384: 20, 16386: 10_000, 16388: 1_000_000}


def world() -> Catalog:
    tables = [
        Table(16384 + 2 * i, name, tuple(Field(c, INT8, c != "id") for c in columns), (0,), stored=True)
        for i, (name, columns) in enumerate(TABLES.items())
    ]
    return Catalog().apply(Change(put=tuple(tables)))


def planned(catalog: Catalog, name: str, rows: dict[int, int], query: str = QUERY) -> Item:
    """Returns a backfilled view that was planned with these table sizes."""
    id = catalog.next_id
    bound = bind_query(query, catalog, view=True)
    item = MaterializedView(id, name, bound.columns, None, True, id + 1, bound.depends, query=query, ready=False)
    item = with_sizes(item, rows, catalog)
    after = catalog.apply(Change(put=(item,)))
    item = nodes.with_new_nodes(item, after, Streams(after)(item))
    after = after.apply(Change(put=(item,)))
    return Sharing(catalog_graph.compile_catalog(after, Streams(after)), lambda one, other: True)(ready(item), after)


def test_a_restarted_engine_plans_with_the_recorded_sizes() -> None:
    catalog = world()
    view = planned(catalog, "v", SMALL_LAST)
    catalog = catalog.apply(Change(put=(view,)))
    later = decode_catalog(encode_catalog(catalog))
    assert nodes.matches_record(later[view.id], later, Streams(later)(later[view.id]))
    grown = replace(view, sizes=SMALL_FIRST)
    assert not nodes.matches_record(grown, catalog, Streams(catalog)(grown)), "other sizes would be another plan"


def test_equal_views_are_shared_after_small_growth() -> None:
    catalog = world()
    first = planned(catalog, "v", SMALL_LAST)
    catalog = catalog.apply(Change(put=(first,)))
    second = planned(catalog, "w", {id: 3 * n for id, n in SMALL_LAST.items()})
    assert nodes.digests(first) == nodes.digests(second)
    assert second.sizes == first.sizes
    assert planned(catalog, "x", {id: 5 * n for id, n in SMALL_LAST.items()}).sizes != first.sizes


def test_an_existing_join_keeps_its_written_order() -> None:
    catalog = world()
    pairs = planned(catalog, "pairs", {}, "SELECT o.id, c.nation_id FROM orders o JOIN customers c ON o.customer_id = c.id")
    assert planned(catalog, "v", SMALL_LAST).sizes is not None
    catalog = catalog.apply(Change(put=(pairs,)))
    view = planned(catalog, "v", SMALL_LAST)
    assert view.sizes is None
    assert nodes.digests(view) & nodes.digests(pairs)
