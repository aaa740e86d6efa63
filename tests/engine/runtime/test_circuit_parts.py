"""The difference between the parts of two graphs turns one into the other."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock, patch

import pytest

from tailgate.engine.plan.circuit.decoders import FormatSpec, KafkaDecoder
from tailgate.engine.plan.circuit.graph import Edge, Graph, SourceNode
from tailgate.engine.plan.circuit.steps import Filter, Steps
from tailgate.engine.runtime.spark.circuit_parts import Parts, difference, parts_of
from tailgate.engine.runtime.spark.circuits import CASES, Circuits
from tailgate.sql import plan
from tests.engine.plan.catalogs import EVENTS, USERS, Shop, counted, joined


def changed(before: Parts, removed: str, added: Parts) -> Parts:
    """Returns what Circuit.without and the additions make of a circuit with the parts `before`."""
    parts = json.loads(removed)
    places = {(origin, bool(dead), to, port) for origin, dead, to, port in parts["links"]}
    nodes = {id: n for id, n in before.nodes.items() if id not in parts["nodes"]}
    relations = {id: r for id, r in before.relations.items() if id not in parts["relations"]}
    links = {place: link for place, link in before.links.items() if place not in places}
    assert not nodes.keys() & added.nodes.keys() and not relations.keys() & added.relations.keys() and not links.keys() & added.links.keys()
    return Parts(nodes | added.nodes, relations | added.relations, links | added.links)


def test_a_new_view_adds_only_its_own_parts() -> None:
    shop = Shop()
    events, users = shop.source("events", EVENTS), shop.source("users", USERS, "id")
    shop.view("v", counted(joined(events, users), 1))
    before = parts_of(shop.graph())
    shop.view("w", counted(events, 1), filled=False)
    removed, added = difference(before, parts_of(shop.graph()))
    assert json.loads(removed) == {"nodes": [], "relations": [], "links": []}
    assert set(added.relations) == {shop["w"].id}
    assert not added.nodes.keys() & before.nodes.keys() and len(added.nodes) == 2  # the reduce, and the source of the history


def test_the_difference_of_random_catalogs(seed: int) -> None:
    for number in range(40):
        chance = random.Random(f"{seed} {number}")
        shop = Shop()
        events, users = shop.source("events", EVENTS), shop.source("users", USERS, "id")
        queries = (events, users, counted(events, 1), counted(joined(events, users), 1), plan.UnionAll((events, events), EVENTS))
        before, names = parts_of(Graph()), list[str]()
        for step in range(8):
            if names and chance.random() < 0.3:
                shop.drop(names.pop(chance.randrange(len(names))))
            else:
                names.append(f"v{step}")
                shop.view(names[-1], chance.choice(queries), filled=chance.random() < 0.7)
            after = parts_of(shop.graph())
            assert changed(before, *difference(before, after)) == after, number
            before = after


def test_two_links_of_one_place_are_replaced_together() -> None:
    shop = Shop()
    events = shop.source("events", EVENTS)
    shop.view("v", counted(plan.UnionAll((events, events), EVENTS), 1))
    graph = shop.graph()
    before = parts_of(graph)
    twice = next(place for place, links in before.links.items() if len(links) == 2)
    edge = next(e for e in graph.edges if (e.origin, False, e.to, e.port) == twice)
    edges = list(graph.edges)
    edges[edges.index(edge)] = Edge(edge.origin, Steps((*edge.shape.steps, Filter("c0 > 1"))), edge.to, edge.port)
    removed, added = difference(before, parts_of(replace(graph, edges=tuple(edges))))
    assert json.loads(removed)["links"] == [[edge.origin, 0, edge.to, edge.port]]
    assert [len(links) for links in added.links.values()] == [2]


def test_a_source_with_a_registry_is_always_replaced() -> None:
    access = FormatSpec("avro", schema="{}", registry="http://registry", access=json.dumps({"user": "u"}))
    source = SourceNode(1, "k/t", KafkaDecoder(FormatSpec("none"), access), Steps(), EVENTS)
    parts = parts_of(Graph(sources=(source,)))
    removed, added = difference(parts, parts)
    assert json.loads(removed)["nodes"] == [1] and added.nodes == {1: source}


def test_caches_of_the_jvms_objects_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailgate.engine.runtime.spark.circuits.CACHED_MAX", 3)
    circuits = Circuits(MagicMock())
    with patch.object(circuits, "_empty"):
        for number in range(5):
            circuits.shape(f"c{number} int", Steps((Filter("c0 > 1"),)))
            circuits._ints([number])
            circuits._struct(f"c{number} int")
    assert [len(cache) for cache in (circuits._shapes, circuits._arrays, circuits._structs)] == [3, 3, 3]


def test_the_first_circuit_with_upper_or_lower_case_initializes_sparks_class() -> None:
    """Otherwise the first tick of such a view would, and all other views would wait for it."""
    session: Any = MagicMock()
    circuits = Circuits(session)
    initialize = session._jvm.java.lang.Class.forName
    with patch.object(circuits, "_empty"):
        circuits.shape("c0 string", Steps((Filter("length(c0) > 1"),)))
        initialize.assert_not_called()
        for expression in ("upper(c0) = 'A'", "LOWER(c0) = 'a'"):
            circuits.shape("c0 string", Steps((Filter(expression),)))
        initialize.assert_called_once_with(CASES)


def test_a_circuit_without_a_difference_runs_on() -> None:
    shop = Shop()
    events = shop.source("events", EVENTS)
    shop.view("v", counted(events, 1))
    circuits = Circuits(MagicMock())
    with patch.object(circuits, "_empty"):
        running = circuits.build(shop.graph(), [5, 6])
        assert circuits.build(shop.graph(), [5], running=running) is running
        for graph, forgotten, state in ((shop.graph(), [7], running), (shop.graph(), [7], None), (Graph(), [7], running)):
            running = circuits.build(graph, forgotten, running=state)
            assert running is not state
