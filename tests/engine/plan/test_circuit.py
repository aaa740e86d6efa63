"""The graph of a catalog: it survives restarts, never reuses ids, and shares common parts."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from tailgate.engine.plan.circuit import operators
from tailgate.engine.plan.circuit.decoders import ArrowDecoder, KafkaDecoder
from tailgate.engine.plan.circuit.graph import Graph, SourceNode
from tailgate.engine.plan.views import catalog_graph, nodes
from tailgate.engine.plan.views.errors import errors_to_backfill
from tailgate.lake.catalog import Change, Source
from tailgate.lake.types import INT8
from tailgate.sql import plan
from tests.engine.plan.catalogs import EVENTS, USERS, Shop, counted, equal, joined
from tests.engine.plan.random_plans import Plans


def kinds(graph: Graph) -> Counter[str]:
    return Counter(type(o).__name__ for o in graph.operators)


def sound(graph: Graph) -> None:
    """Checks the invariants that the Java library requires of a graph."""
    nodes_by_id = {s.node: s for s in graph.sources} | {o.node: o for o in graph.operators}
    assert len(nodes_by_id) == len(graph.sources) + len(graph.operators)
    order = [o.node for o in graph.operators]
    ports = Counter((e.to, e.port) for e in graph.edges) + Counter((e.to, e.port) for e in graph.dead_letter_edges)
    for edge in graph.edges:
        assert edge.origin in nodes_by_id
        assert edge.origin not in order or order.index(edge.origin) < order.index(edge.to)
    several = {operators.Join: 2, operators.SetOperation: 2, operators.ArrivalJoin: 4, operators.WithinJoin: 4, operators.Closing: 2}
    port_counts = {o.node: several.get(type(o), 1) for o in graph.operators}
    assert all(port < port_counts[node] for node, port in ports)  # a port that only constants reach has no edge
    relations = {r.relation for r in graph.relations}
    assert {o.relation for o in graph.outputs} <= relations
    assert all(o.origin in nodes_by_id for o in graph.outputs)


def new_shop() -> tuple[Shop, plan.Scan, plan.Scan]:
    shop = Shop()
    return shop, shop.source("events", EVENTS), shop.source("users", USERS, "id")


def test_a_keyed_source_is_stored_and_an_unused_append_only_source_is_not_read() -> None:
    shop, _, _ = new_shop()
    graph = shop.graph()
    assert [s.channel for s in graph.sources] == ["kafka:9092/users"]
    assert kinds(graph) == {"Upsert": 3}  # of users, and of the dead letters of both sources
    assert [d.source for d in graph.dead_letter_edges] == [nodes.source_node(shop["users"])]
    sound(graph)


def test_a_linear_view_has_no_operator() -> None:
    shop, events, _ = new_shop()
    shop.view("v", plan.Project(events, (plan.Column(1, EVENTS[1].type),), EVENTS[1:]))
    graph = shop.graph()
    assert kinds(graph) == {"Upsert": 3}
    (output,) = [o for o in graph.outputs if o.relation == shop["v"].id]
    assert output.origin == nodes.source_node(shop["events"])
    assert shop["v"].key is None


def test_two_views_share_a_join_after_the_backfill() -> None:
    shop, events, users = new_shop()
    shop.view("by_name", counted(joined(events, users), 3), starts={"16384": {"0": 0}})
    before = shop.graph()
    shop.view("by_kind", counted(joined(events, users), 1), starts={"16384": {"0": 0}}, filled=False)
    assert kinds(shop.graph())["Join"] == 2
    sound(shop.graph())
    filling = shop.graph()
    shop.fill("by_kind")
    shared = shop.graph()
    # the joins keep different columns, so nothing is shared
    assert kinds(shared)["Join"] == 2
    assert not catalog_graph.removed_operators(filling, shared)
    shop.view("again", counted(joined(events, users), 3), starts={"16384": {"0": 0}}, filled=False)
    assert kinds(shop.graph()) == {"Upsert": 3, "Join": 3, "Reduce": 3}
    filling = shop.graph()
    shop.fill("again")
    shared = shop.graph()
    assert kinds(shared) == {"Upsert": 3, "Join": 2, "Reduce": 2}
    assert len(catalog_graph.removed_operators(filling, shared)) == 2
    assert set(before.operators) <= set(shared.operators)
    outputs = {o.origin for o in shared.outputs if o.relation in (shop["by_name"].id, shop["again"].id)}
    assert len(outputs) == 1
    sound(shared)


def test_views_with_different_start_offsets_share_nothing() -> None:
    shop, events, users = new_shop()
    shop.view("old", counted(joined(events, users), 3), starts={"16384": {"0": 0}})
    shop.view("new", counted(joined(events, users), 3), starts={"16384": {"0": 700}})
    assert kinds(shop.graph()) == {"Upsert": 3, "Join": 2, "Reduce": 2}


def test_views_with_different_states_share_nothing() -> None:
    """Digests and start offsets are equal, but the topic may have been compacted in between."""
    shop, events, users = new_shop()
    shop.view("first", counted(joined(events, users), 3))
    shop.same = lambda one, other: False
    shop.view("second", counted(joined(events, users), 3))
    assert kinds(shop.graph()) == {"Upsert": 3, "Join": 2, "Reduce": 2}
    sound(shop.graph())


def test_joins_as_of_arrival_are_not_shared() -> None:
    """When the fill of the second ends, live changes wait in its own state."""
    shop, events, users = new_shop()
    join = joined(events, users)
    assert join.condition is not None
    arrival = plan.ArrivalJoin(join.left, join.right, "inner", join.condition)
    shop.view("first", arrival)
    shop.view("second", arrival)
    assert kinds(shop.graph()) == {"Upsert": 3, "ArrivalJoin": 2}
    sound(shop.graph())


def test_operators_after_an_unshared_operator_are_not_shared() -> None:
    """Its state may be equal now, but its input may differ later."""
    shop, events, users = new_shop()
    first = shop.view("first", counted(joined(events, users), 3))
    joins = {o.node for o in shop.graph().operators if isinstance(o, operators.Join)}
    shop.same = lambda one, other: other not in joins
    shop.view("second", counted(joined(events, users), 3))
    assert kinds(shop.graph()) == {"Upsert": 3, "Join": 2, "Reduce": 2}
    shop.same = lambda one, other: True
    shop.view("third", counted(joined(events, users), 3))
    assert kinds(shop.graph()) == {"Upsert": 3, "Join": 2, "Reduce": 2}
    assert {o.origin for o in shop.graph().outputs if o.relation in (first.relation, shop["third"].id)} == {
        node for _, node in shop["first"].nodes[-1:]
    }
    sound(shop.graph())


def test_a_view_over_a_view_shares_with_the_equivalent_single_query() -> None:
    shop, _, users = new_shop()
    first = shop.view("first", counted(users, 1))
    shop.view("second", counted(first, 1))
    shop.view("whole", counted(counted(users, 1), 1))
    graph = shop.graph()
    assert kinds(graph) == {"Upsert": 3, "Reduce": 2}
    sound(graph)


def test_a_dropped_view_keeps_shared_operators() -> None:
    shop, events, users = new_shop()
    shop.view("one", counted(joined(events, users), 3))
    shop.view("two", counted(joined(events, users), 3))
    graph = shop.graph()
    shop.drop("one")
    after = shop.graph()
    assert after.operators == graph.operators
    shop.drop("two")
    assert len(catalog_graph.removed_operators(after, shop.graph())) == 2
    assert kinds(shop.graph()) == {"Upsert": 3}


def test_live_changes_and_history_have_the_same_shapes() -> None:
    shop, events, users = new_shop()
    shop.view("v", counted(joined(events, users), 3), filled=False)
    graph = shop.graph()
    item = shop["v"]
    fills = catalog_graph.backfill_inputs(item, shop.streams()(item))
    assert [(f.kind, shop.catalog[f.item].name) for f in fills] == [("topic", "events"), ("relation", "users")]
    decoders = {s.node: s.decoder for s in graph.sources}
    assert isinstance(decoders[fills[0].node], KafkaDecoder)
    assert isinstance(decoders[fills[1].node], ArrowDecoder)
    (join,) = [o for o in graph.operators if isinstance(o, operators.Join)]
    for port, live, fill in ((0, nodes.source_node(shop["events"]), fills[0]), (1, nodes.upsert_node(shop["users"]), fills[1])):
        shapes = {e.origin: e.shape for e in graph.edges if (e.to, e.port) == (join.node, port)}
        assert shapes == {live: shapes[live], fill.node: shapes[live]}
    letters = {d.source for d in graph.dead_letter_edges}
    assert fills[0].node in letters  # undecodable records of the history are dead letters too
    sound(graph)


def test_a_view_over_a_view_is_backfilled_from_its_rows() -> None:
    shop, _, users = new_shop()
    first = shop.view("first", counted(users, 1))
    shop.view("second", counted(first, 1), filled=False)
    item = shop["second"]
    (fill,) = catalog_graph.backfill_inputs(item, shop.streams()(item))
    assert (fill.kind, fill.item) == ("relation", shop["first"].id)
    assert errors(shop, "second") == {shop["first"].errors: 1}


def test_errors_of_two_inputs_are_backfilled_once() -> None:
    shop, _, users = new_shop()
    first = shop.view("first", counted(users, 1))
    second = shop.view("second", counted(first, 0))
    shop.view("third", plan.Join(first, second, "inner", _equal(0, 2)), filled=False)
    assert errors(shop, "third") == {shop["second"].errors: 1}


def test_errors_of_the_ancestor_of_a_diamond_are_backfilled_once() -> None:
    shop, _, users = new_shop()
    fails = plan.Filter(users, may_fail(0))
    top = shop.view("a", counted(fails, 0, 1))
    left = shop.view("b", plan.Filter(top, may_fail(2)))
    right = shop.view("c", counted(top, 0))
    shop.view("d", plan.Join(left, right, "inner", equal(0, 3)), filled=False)
    assert errors(shop, "d") == {shop["b"].errors: 1, shop["c"].errors: 1, shop["a"].errors: -1}


def test_errors_of_views_that_share_only_a_source_add_up() -> None:
    shop, _, users = new_shop()
    left = shop.view("b", counted(plan.Filter(users, may_fail(0)), 0))
    right = shop.view("c", counted(plan.Filter(users, may_fail(0)), 0, 1))
    shop.view("d", plan.Join(left, right, "inner", equal(0, 2)), filled=False)
    assert errors(shop, "d") == {shop["b"].errors: 1, shop["c"].errors: 1}


def test_errors_of_self_joins_are_backfilled() -> None:
    """Covers self joins.

    A self join of a view gets errors of this view on both sides, and errors of views above it once.
    """
    shop, _, users = new_shop()
    shop.view("a", plan.Filter(users, may_fail(0)))
    a = plan.Scan(shop["a"].id, shop["a"].columns, shop["a"].key)
    shop.view("twice", plan.Join(a, a, "inner", equal(0, 2)), filled=False)
    assert errors(shop, "twice") == {shop["a"].errors: 2}
    top = shop.view("above", counted(a, 0))
    failing = shop.view("failing", plan.Filter(top, may_fail(1)))
    shop.view("both", plan.Join(failing, failing, "inner", equal(0, 2)), filled=False)
    assert errors(shop, "both") == {shop["failing"].errors: 2, shop["above"].errors: -1}


def may_fail(column: int) -> plan.Scalar:
    """Returns a condition that counts as fallible, because it is not just a column."""
    return plan.Not(plan.IsNull(plan.Column(column, INT8)))


def errors(shop: Shop, name: str) -> dict[int, int]:
    return errors_to_backfill(shop[name], shop.streams()(shop[name]), shop.catalog, shop.graph())


def _equal(left: int, right: int) -> plan.Scalar:
    from tailgate.lake.types import TEXT
    from tests.engine.plan.catalogs import equal

    return equal(left, right, TEXT)


def test_a_common_part_of_two_inputs_is_backfilled_once_for_each() -> None:
    """A query over a view is joined with the same query written inline.

    Digests are equal, but histories differ. The parts are merged when both are backfilled.
    """
    shop, _, users = new_shop()
    first = shop.view("first", counted(users, 1))
    inline = counted(users, 1)
    both = plan.Join(counted(first, 0, 1), counted(inline, 0, 1), "inner", _equal(0, 3))
    shop.view("both", both, filled=False)
    filling = shop.graph()
    assert kinds(filling) == {"Upsert": 3, "Reduce": 4, "Join": 1}
    shop.fill("both")
    assert kinds(shop.graph()) == {"Upsert": 3, "Reduce": 2, "Join": 1}
    sound(shop.graph())


def test_renumbering_uses_new_numbers() -> None:
    shop, events, users = new_shop()
    shop.view("v", counted(joined(events, users), 3))
    used = {o.node for o in shop.graph().operators}
    item = shop["v"]
    shop.put(nodes.with_new_nodes(replace(item, ready=False), shop.catalog, shop.streams()(item)))
    anew = {o.node for o in shop.graph().operators if isinstance(o, operators.Join | operators.Reduce)}
    assert len(anew) == 2
    assert not anew & used


def test_a_record_of_another_plan_is_detected() -> None:
    shop, events, users = new_shop()
    shop.view("v", counted(joined(events, users), 3))
    assert nodes.matches_record(shop["v"], shop.catalog, shop.streams()(shop["v"]))
    shop.plans[shop["v"].id] = counted(joined(events, users), 1)
    assert not nodes.matches_record(shop["v"], shop.catalog, shop.streams()(shop["v"]))


@pytest.mark.parametrize("lives", [40, pytest.param(400, marks=pytest.mark.long)])
def test_random_lives_of_a_catalog(seed: int, lives: int) -> None:
    """Views are created, backfilled and dropped at random.

    After each step, the graph survives a restart and ids keep their meaning.
    """
    for number in range(lives):
        source = random.Random(f"{seed} {number}")
        shop, events, users = new_shop()
        names: list[str] = []
        unfilled: list[str] = []
        expected: dict[int, str] = {}
        for step in range(12):
            choice = source.random()
            if choice < 0.5 or not names:
                scans = [events, users]
                for n in names:
                    if n not in unfilled:
                        scans.append(plan.Scan(shop[n].id, shop[n].columns, shop[n].key))
                relation = _random_view(source, tuple((s.relation, s.columns, s.key) for s in scans))
                name = f"v{step}"
                shop.view(name, relation, filled=False)
                names.append(name)
                unfilled.append(name)
            elif choice < 0.85 and unfilled:
                name = unfilled.pop(source.randrange(len(unfilled)))
                shop.fill(name)
            else:
                shop.drop(source.choice(names))
                names = [n for n in names if shop.catalog.find(n) is not None]
                unfilled = [n for n in unfilled if n in names]
            graph = shop.graph()
            sound(graph)
            assert shop.restarted().graph() == graph
            for operator in graph.operators:
                assert expected.setdefault(operator.node, operator.fingerprint) == operator.fingerprint
            ready = [o.fingerprint for o in graph.operators if not any(nodes.owner(o.node) == shop[n].id for n in unfilled)]
            assert len(ready) == len(set(ready))


def _random_view(source: random.Random, tables: tuple[tuple[int, tuple[plan.Field, ...], tuple[int, ...] | None], ...]) -> plan.Relation:
    """Returns a random plan that can be maintained."""
    from tailgate.engine.plan.rewrites.passes import rewrite
    from tailgate.engine.plan.rules.compile import compile_rewritten
    from tailgate.lake.errors import FeatureNotSupported

    while True:
        relation = Plans(source, tables).relation(3)
        try:
            catalog = Shop()
            for id, columns, key in tables:
                catalog.catalog = catalog.catalog.apply(Change(put=(_stored(id, columns, key),)))
            compile_rewritten(rewrite(relation), catalog.catalog, catalog.streams())
            return relation
        except FeatureNotSupported:
            continue


def _stored(id: int, columns: tuple[plan.Field, ...], key: tuple[int, ...] | None):  # type: ignore[no-untyped-def]

    return Source(id, f"r{id}", columns, key, stored=True)


__all__ = ["SourceNode"]
