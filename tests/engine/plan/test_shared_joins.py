"""Views with different filters and columns share a join of the same relations, and keep that choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tailgate.engine.plan.rules import change
from tailgate.engine.plan.rules.change import stateful
from tailgate.engine.plan.views import catalog_graph, nodes, shared_joins
from tailgate.engine.plan.views.replacements import replacement
from tailgate.engine.plan.views.shared_joins import with_shared_joins
from tailgate.engine.plan.views.sharing import Sharing
from tailgate.engine.plan.views.streams import Streams
from tailgate.lake.catalog import Catalog, Change, MaterializedView, Source, Table, ready
from tailgate.lake.catalog.codec import decode_catalog, encode_catalog
from tailgate.lake.catalog.formats import DeclaredColumn, Json
from tailgate.lake.types import INT8, TEXT, Field
from tailgate.sql.bind import bind_query

ORDERS, CUSTOMERS = 16384, 16386
QUERY = "SELECT c.segment, count(*) AS n, sum(o.amount) AS amount FROM orders o JOIN customers c ON o.customer_id = c.id"
GROUPS = "GROUP BY c.segment"


def world() -> Catalog:
    amounts = (Field("id", INT8, False), Field("customer_id", INT8), Field("amount", INT8), Field("note", TEXT))
    segments = (Field("id", INT8, False), Field("segment", TEXT), Field("city", TEXT))
    declared = tuple(DeclaredColumn(field=column) for column in amounts)
    orders = Source(ORDERS, "orders", amounts, topic="orders", channel="kafka/orders", value_format=Json(), declared=declared)
    customers = Table(CUSTOMERS, "customers", segments, (0,), stored=True)
    return Catalog().apply(Change(put=(orders, customers)))


def created(catalog: Catalog, query: str, rows: Mapping[int, int] | None = None, offset: int = 0) -> MaterializedView:
    """Returns a view as it is chosen and numbered, before its fill. `rows`: the sizes of its inputs. `offset`: its first order."""
    id = catalog.next_id
    bound = bind_query(query, catalog, view=True)
    item = MaterializedView(id, f"v{id}", bound.columns, None, True, id + 1, bound.depends, query=query, ready=False, sizes=rows)
    return chosen(catalog, replace(item, starts={ORDERS: {"0": offset}}))


def chosen(catalog: Catalog, item: MaterializedView) -> MaterializedView:
    item = with_shared_joins(item, catalog.apply(Change(put=(item,))))
    after = catalog.apply(Change(put=(item,)))
    return nodes.with_new_nodes(item, after, Streams(after)(item))


def filled(catalog: Catalog, item: MaterializedView) -> Catalog:
    """Returns the catalog with the view after its fill, in which it shares operators."""
    after = catalog.apply(Change(put=(item,)))
    graph = catalog_graph.compile_catalog(after, Streams(after))
    return after.apply(Change(put=(Sharing(graph, lambda one, other: True)(ready(item), after),)))


def joins(catalog: Catalog) -> list[int]:
    """Returns the nodes of the joins of each view, in order."""
    streams, numbers = Streams(catalog), []
    for view in sorted(catalog.each(MaterializedView), key=lambda i: i.id):
        operators = stateful(streams(view))
        numbers += [nodes.node_of(view, n) for n, operator in enumerate(operators) if isinstance(operator, change.Join)]
    return numbers


def of_queries(*queries: str, rows: Mapping[int, int] | None = None) -> Catalog:
    catalog = world()
    for query in queries:
        catalog = filled(catalog, created(catalog, query, rows))
    return catalog


def test_many_views_with_other_filters_have_few_joins() -> None:
    catalog = of_queries(*(f"{QUERY} WHERE o.amount > {n} {GROUPS}" for n in range(20)))
    numbers = joins(catalog)
    assert len(numbers) == 20
    assert len(set(numbers)) < 8
    assert len(set(numbers[8:])) == 1, "the later ones share a join"
    graph = catalog_graph.compile_catalog(catalog, Streams(catalog))
    assert len(graph.operators) == len(set(numbers)) + 20
    later = decode_catalog(encode_catalog(catalog))
    assert all(nodes.matches_record(i, later, Streams(later)(i)) for i in later.each(MaterializedView)), "as after a restart"


def test_a_view_filters_the_join_of_a_view_without_filters() -> None:
    whole = f"{QUERY} WHERE o.amount > 1 {GROUPS}", f"{QUERY} {GROUPS}", f"{QUERY} WHERE o.amount > 2 AND c.id > 3 {GROUPS}"
    catalog = of_queries(*whole)
    before, _, last = joins(catalog)
    assert before != last
    assert last in joins(of_queries(*whole[:2])), "whose columns are enough"


def test_equal_joins_are_shared_as_they_are() -> None:
    queries = [
        f"SELECT c.segment, sum(o.amount + {n}) AS n FROM orders o JOIN customers c ON o.customer_id = c.id {GROUPS}" for n in range(9)
    ]
    catalog = of_queries(*queries)
    assert len(set(joins(catalog))) == 1
    assert not any(view.join_columns for view in catalog.each(MaterializedView))


def test_joins_that_store_few_of_many_rows_stay_separate() -> None:
    """Orders by segment and customer are stored as one row of each customer, with a weight."""
    counted = "SELECT c.segment, count(*) AS n FROM orders o JOIN customers c ON o.customer_id = c.id"
    queries = [f"{counted} WHERE c.city > '{n}' {GROUPS}" for n in range(9)]
    rows = {ORDERS: 1_000_000, CUSTOMERS: 1_000}
    assert len(set(joins(of_queries(*queries, rows=rows)))) == 9
    assert len(set(joins(of_queries(*queries, rows={**rows, ORDERS: 100})))) < 9


def test_views_that_begin_at_other_records_do_not_count() -> None:
    """Views share operators only from the same record on, so each would have another join without filters."""
    catalog = world()
    for n in range(9):
        catalog = filled(catalog, created(catalog, f"{QUERY} WHERE o.amount > {n} {GROUPS}", offset=n))
    assert len(set(joins(catalog))) == 9
    assert not any(view.join_columns for view in catalog.each(MaterializedView))


def test_a_view_that_replaces_itself_chooses_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """CREATE OR REPLACE with the same query gives views of earlier versions a shared join."""
    with monkeypatch.context() as earlier:
        earlier.setattr(shared_joins, "SEPARATE_MAX", 100.0)
        catalog = of_queries(*(f"{QUERY} WHERE o.amount > {n} {GROUPS}" for n in range(9)))
    view = max(catalog.each(MaterializedView), key=lambda i: i.id)
    assert not view.join_columns
    assert chosen(catalog, replacement(view, catalog.next_id, catalog.next_id)).join_columns


def test_other_columns_need_another_join() -> None:
    filters = [f"{QUERY} WHERE o.amount > {n} {GROUPS}" for n in range(9)]
    catalog = of_queries(*filters, f"{QUERY} WHERE c.city > 'm' {GROUPS}", f"{QUERY} WHERE c.city > 'n' {GROUPS}")
    *others, first, second = joins(catalog)
    assert first not in others
    assert first == second


def test_left_joins_are_shared_by_filters_of_the_left() -> None:
    left = QUERY.replace("JOIN", "LEFT JOIN")
    catalog = of_queries(*(f"{left} WHERE o.amount > {n} {GROUPS}" for n in range(12)))
    assert len(set(joins(catalog)[8:])) == 1
    catalog = of_queries(*(f"{left} AND c.city > '{n}' {GROUPS}" for n in range(12)))
    assert len(set(joins(catalog))) == 12, "those of the right determine which rows have a partner"


def test_a_view_that_is_filled_again_keeps_its_choice_except_for_replaced_relations() -> None:
    catalog = of_queries(*(f"{QUERY} WHERE o.amount > {n} {GROUPS}" for n in range(9)))
    view = max(catalog.each(MaterializedView), key=lambda i: i.id)
    again = chosen(world(), replace(view, ready=False))
    assert again.join_columns == view.join_columns
    table = catalog[CUSTOMERS]
    assert isinstance(table, Table)
    base = created(catalog, "SELECT id, segment FROM customers")
    catalog = filled(catalog, base)
    over = filled(catalog, created(catalog, f"SELECT o.id FROM orders o JOIN v{base.id} c ON o.customer_id = c.id"))
    new = replacement(over.expect(MaterializedView, base.id), over.next_id, over.next_id)
    replacing = over.apply(Change(put=(new,)))
    reader = max(over.each(MaterializedView), key=lambda i: i.id)
    refilled = replace(reader, join_columns={ORDERS: (0, 1), base.id: (0, 1)}, ready=False)
    assert chosen(replacing, refilled).join_columns == {ORDERS: (0, 1)}
