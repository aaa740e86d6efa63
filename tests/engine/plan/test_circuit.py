"""The graph of a catalog: it survives restarts, never reuses ids, and shares common parts."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from tailgate.engine.plan import circuit, nodes, operators
from tailgate.engine.plan.decoders import ArrowDecoder, KafkaDecoder
from tailgate.engine.plan.errors import errors_to_backfill
from tailgate.engine.plan.graph import Graph, SourceNode
from tailgate.lake.catalog import Change, Source
from tailgate.lake.types import INT8
from tailgate.sql import plan
from tests.engine.plan.catalogs import EVENTS, USERS, Shop, counted, equal, joined
from tests.engine.plan.random_plans import Plans


def kinds(graph: Graph) -> Counter[str]:
    return Counter(type(o).__name__ for o in graph.operators)


def sound(graph: Graph) -> None:
    """Checks the invariants that the Java library requires of a graph."""
    made = {s.node: s for s in graph.sources} | {o.node: o for o in graph.operators}
    assert len(made) == len(graph.sources) + len(graph.operators)
    order = [o.node for o in graph.operators]
    ports = Counter((e.to, e.port) for e in graph.edges) + Counter((e.to, e.port) for e in graph.dead_letter_edges)
    for edge in graph.edges:
        assert edge.origin in made
        assert edge.origin not in order or order.index(edge.origin) < order.index(edge.to)
    wanted = {o.node: 2 if isinstance(o, operators.Join | operators.SetOperation) else 1 for o in graph.operators}
    assert all(port < wanted[node] for node, port in ports)  # a port that only constants reach has no edge
    relations = {r.relation for r in graph.relations}
    assert {o.relation for o in graph.outputs} <= relations
    assert all(o.origin in made for o in graph.outputs)


def shop() -> tuple[Shop, plan.Scan, plan.Scan]:
    made = Shop()
    return made, made.source("events", EVENTS), made.source("users", USERS, "id")


def test_a_keyed_source_is_kept_and_an_append_only_one_is_not_even_read() -> None:
    made, _, _ = shop()
    graph = made.graph()
    assert [s.channel for s in graph.sources] == ["kafka:9092/users"]
    assert kinds(graph) == {"Upsert": 3}  # of users, and of the dead letters of both sources
    assert [d.source for d in graph.dead_letter_edges] == [nodes.source_node(made["users"])]
    sound(graph)


def test_a_linear_view_has_no_operator() -> None:
    made, events, _ = shop()
    made.view("v", plan.Project(events, (plan.Column(1, EVENTS[1].type),), EVENTS[1:]))
    graph = made.graph()
    assert kinds(graph) == {"Upsert": 3}
    (output,) = [o for o in graph.outputs if o.relation == made["v"].id]
    assert output.origin == nodes.source_node(made["events"])
    assert made["v"].key is None


def test_two_views_with_one_join_share_it_once_the_second_is_filled() -> None:
    made, events, users = shop()
    made.view("by_name", counted(joined(events, users), 3), starts={"16384": {"0": 0}})
    before = made.graph()
    made.view("by_kind", counted(joined(events, users), 1), starts={"16384": {"0": 0}}, filled=False)
    assert kinds(made.graph())["Join"] == 2
    sound(made.graph())
    filling = made.graph()
    made.fill("by_kind")
    shared = made.graph()
    # the joins keep different columns, so nothing is shared
    assert kinds(shared)["Join"] == 2
    assert not circuit.removed_operators(filling, shared)
    made.view("again", counted(joined(events, users), 3), starts={"16384": {"0": 0}}, filled=False)
    assert kinds(made.graph()) == {"Upsert": 3, "Join": 3, "Reduce": 3}
    filling = made.graph()
    made.fill("again")
    shared = made.graph()
    assert kinds(shared) == {"Upsert": 3, "Join": 2, "Reduce": 2}
    assert len(circuit.removed_operators(filling, shared)) == 2
    assert set(before.operators) <= set(shared.operators)
    outputs = {o.origin for o in shared.outputs if o.relation in (made["by_name"].id, made["again"].id)}
    assert len(outputs) == 1
    sound(shared)


def test_views_that_began_to_read_a_topic_at_other_records_share_nothing() -> None:
    made, events, users = shop()
    made.view("old", counted(joined(events, users), 3), starts={"16384": {"0": 0}})
    made.view("new", counted(joined(events, users), 3), starts={"16384": {"0": 700}})
    assert kinds(made.graph()) == {"Upsert": 3, "Join": 2, "Reduce": 2}


def test_views_whose_states_differ_share_nothing() -> None:
    """Digests and start offsets are equal, but the topic may have been compacted in between."""
    made, events, users = shop()
    made.view("first", counted(joined(events, users), 3))
    made.same = lambda one, other: False
    made.view("second", counted(joined(events, users), 3))
    assert kinds(made.graph()) == {"Upsert": 3, "Join": 2, "Reduce": 2}
    sound(made.graph())


def test_an_operator_below_one_that_is_not_shared_is_not_shared() -> None:
    """Its state may be equal now, but its input may differ later."""
    made, events, users = shop()
    first = made.view("first", counted(joined(events, users), 3))
    joins = {o.node for o in made.graph().operators if isinstance(o, operators.Join)}
    made.same = lambda one, other: other not in joins
    made.view("second", counted(joined(events, users), 3))
    assert kinds(made.graph()) == {"Upsert": 3, "Join": 2, "Reduce": 2}
    made.same = lambda one, other: True
    made.view("third", counted(joined(events, users), 3))
    assert kinds(made.graph()) == {"Upsert": 3, "Join": 2, "Reduce": 2}
    assert {o.origin for o in made.graph().outputs if o.relation in (first.relation, made["third"].id)} == {
        node for _, node in made["first"].nodes[-1:]
    }
    sound(made.graph())


def test_a_view_over_a_view_shares_with_the_same_written_as_one_query() -> None:
    made, _, users = shop()
    first = made.view("first", counted(users, 1))
    made.view("second", counted(first, 1))
    made.view("whole", counted(counted(users, 1), 1))
    graph = made.graph()
    assert kinds(graph) == {"Upsert": 3, "Reduce": 2}
    sound(graph)


def test_a_dropped_view_leaves_what_others_share() -> None:
    made, events, users = shop()
    made.view("one", counted(joined(events, users), 3))
    made.view("two", counted(joined(events, users), 3))
    graph = made.graph()
    made.drop("one")
    after = made.graph()
    assert after.operators == graph.operators
    made.drop("two")
    assert len(circuit.removed_operators(after, made.graph())) == 2
    assert kinds(made.graph()) == {"Upsert": 3}


def test_a_view_that_is_filled_gets_live_changes_and_history_by_the_same_shapes() -> None:
    made, events, users = shop()
    made.view("v", counted(joined(events, users), 3), filled=False)
    graph = made.graph()
    item = made["v"]
    fills = circuit.backfill_inputs(item, made.streams()(item))
    assert [(f.kind, made.catalog[f.item].name) for f in fills] == [("topic", "events"), ("relation", "users")]
    decoders = {s.node: s.decoder for s in graph.sources}
    assert isinstance(decoders[fills[0].node], KafkaDecoder)
    assert isinstance(decoders[fills[1].node], ArrowDecoder)
    (join,) = [o for o in graph.operators if isinstance(o, operators.Join)]
    for port, live, fill in ((0, nodes.source_node(made["events"]), fills[0]), (1, nodes.upsert_node(made["users"]), fills[1])):
        shapes = {e.origin: e.shape for e in graph.edges if (e.to, e.port) == (join.node, port)}
        assert shapes == {live: shapes[live], fill.node: shapes[live]}
    letters = {d.source for d in graph.dead_letter_edges}
    assert fills[0].node in letters  # undecodable records of the history are dead letters too
    sound(graph)


def test_a_view_over_a_view_is_filled_from_its_rows() -> None:
    made, _, users = shop()
    first = made.view("first", counted(users, 1))
    made.view("second", counted(first, 1), filled=False)
    item = made["second"]
    (fill,) = circuit.backfill_inputs(item, made.streams()(item))
    assert (fill.kind, fill.item) == ("relation", made["first"].id)
    assert errors(made, "second") == {made["first"].errors: 1}


def test_errors_that_another_input_already_has_are_not_filled_twice() -> None:
    made, _, users = shop()
    first = made.view("first", counted(users, 1))
    second = made.view("second", counted(first, 0))
    made.view("third", plan.Join(first, second, "inner", _equal(0, 2)), filled=False)
    assert errors(made, "third") == {made["second"].errors: 1}


def test_errors_of_the_one_ancestor_of_a_diamond_are_filled_once() -> None:
    made, _, users = shop()
    fails = plan.Filter(users, may_fail(0))
    top = made.view("a", counted(fails, 0, 1))
    left = made.view("b", plan.Filter(top, may_fail(2)))
    right = made.view("c", counted(top, 0))
    made.view("d", plan.Join(left, right, "inner", equal(0, 3)), filled=False)
    assert errors(made, "d") == {made["b"].errors: 1, made["c"].errors: 1, made["a"].errors: -1}


def test_errors_of_views_that_share_only_a_source_add_up() -> None:
    made, _, users = shop()
    left = made.view("b", counted(plan.Filter(users, may_fail(0)), 0))
    right = made.view("c", counted(plan.Filter(users, may_fail(0)), 0, 1))
    made.view("d", plan.Join(left, right, "inner", equal(0, 2)), filled=False)
    assert errors(made, "d") == {made["b"].errors: 1, made["c"].errors: 1}


def test_errors_that_two_edges_would_have_got_are_filled_twice_or_not_at_all() -> None:
    """Covers self joins.

    A self join of a view gets errors of this view on both sides, and errors of views above it once.
    """
    made, _, users = shop()
    made.view("a", plan.Filter(users, may_fail(0)))
    a = plan.Scan(made["a"].id, made["a"].columns, made["a"].key)
    made.view("twice", plan.Join(a, a, "inner", equal(0, 2)), filled=False)
    assert errors(made, "twice") == {made["a"].errors: 2}
    top = made.view("above", counted(a, 0))
    failing = made.view("failing", plan.Filter(top, may_fail(1)))
    made.view("both", plan.Join(failing, failing, "inner", equal(0, 2)), filled=False)
    assert errors(made, "both") == {made["failing"].errors: 2, made["above"].errors: -1}


def may_fail(column: int) -> plan.Scalar:
    """Returns a condition that counts as fallible, because it is not just a column."""
    return plan.Not(plan.IsNull(plan.Column(column, INT8)))


def errors(made: Shop, name: str) -> dict[int, int]:
    return errors_to_backfill(made[name], made.streams()(made[name]), made.catalog, made.graph())


def _equal(left: int, right: int) -> plan.Scalar:
    from tailgate.lake.types import TEXT
    from tests.engine.plan.catalogs import equal

    return equal(left, right, TEXT)


def test_a_part_that_two_inputs_of_one_view_have_in_common_is_filled_once_each() -> None:
    """A query over a view is joined with the same query written inline.

    Digests are equal, but histories differ. The parts are merged when both are backfilled.
    """
    made, _, users = shop()
    first = made.view("first", counted(users, 1))
    inline = counted(users, 1)
    both = plan.Join(counted(first, 0, 1), counted(inline, 0, 1), "inner", _equal(0, 3))
    made.view("both", both, filled=False)
    filling = made.graph()
    assert kinds(filling) == {"Upsert": 3, "Reduce": 4, "Join": 1}
    made.fill("both")
    assert kinds(made.graph()) == {"Upsert": 3, "Reduce": 2, "Join": 1}
    sound(made.graph())


def test_numbering_anew_takes_numbers_that_were_never_used() -> None:
    made, events, users = shop()
    made.view("v", counted(joined(events, users), 3))
    used = {o.node for o in made.graph().operators}
    item = made["v"]
    made.put(nodes.with_new_nodes(replace(item, ready=False), made.catalog, made.streams()(item)))
    anew = {o.node for o in made.graph().operators if isinstance(o, operators.Join | operators.Reduce)}
    assert len(anew) == 2
    assert not anew & used


def test_a_record_of_another_plan_is_seen() -> None:
    made, events, users = shop()
    made.view("v", counted(joined(events, users), 3))
    assert nodes.matches_record(made["v"], made.catalog, made.streams()(made["v"]))
    made.plans[made["v"].id] = counted(joined(events, users), 1)
    assert not nodes.matches_record(made["v"], made.catalog, made.streams()(made["v"]))


def test_random_lives_of_a_catalog() -> None:
    """Views are created, backfilled and dropped at random.

    After each step, the graph survives a restart and ids keep their meaning.
    """
    for seed in range(120):
        source = random.Random(seed)
        made, events, users = shop()
        names: list[str] = []
        unfilled: list[str] = []
        meant: dict[int, str] = {}
        for step in range(12):
            choice = source.random()
            if choice < 0.5 or not names:
                scans = [events, users]
                for n in names:
                    if n not in unfilled:
                        scans.append(plan.Scan(made[n].id, made[n].columns, made[n].key))
                relation = _kept(source, tuple((s.relation, s.columns, s.key) for s in scans))
                name = f"v{step}"
                made.view(name, relation, filled=False)
                names.append(name)
                unfilled.append(name)
            elif choice < 0.85 and unfilled:
                name = unfilled.pop(source.randrange(len(unfilled)))
                made.fill(name)
            else:
                made.drop(source.choice(names))
                names = [n for n in names if made.catalog.find(n) is not None]
                unfilled = [n for n in unfilled if n in names]
            graph = made.graph()
            sound(graph)
            assert made.restarted().graph() == graph
            for operator in graph.operators:
                assert meant.setdefault(operator.node, operator.fingerprint) == operator.fingerprint
            ready = [o.fingerprint for o in graph.operators if not any(nodes.owner(o.node) == made[n].id for n in unfilled)]
            assert len(ready) == len(set(ready))


def _kept(source: random.Random, tables: tuple[tuple[int, tuple[plan.Field, ...], tuple[int, ...] | None], ...]) -> plan.Relation:
    """Returns a random plan that can be maintained."""
    from tailgate.engine.plan.compile import compile_rewritten
    from tailgate.engine.plan.rewrites import rewrite
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
