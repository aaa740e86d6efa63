"""The parts of a graph, which the Java library adds one by one, and the difference between two graphs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypeVar

from tailgate.engine.plan.circuit.decoders import KafkaDecoder
from tailgate.engine.plan.circuit.graph import Graph, RelationTarget, SourceNode
from tailgate.engine.plan.circuit.operators import Operator
from tailgate.engine.plan.circuit.steps import Steps
from tailgate.lake.types import Field

DEAD_LETTER = (
    "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary, error string, attempts int, "
    "since timestamp, backfill boolean"
)
RELATION = -1  # the port of a link to a relation (tailgate.circuit.Node.Edge)

Key = TypeVar("Key")
Part = TypeVar("Part")

# a link's origin, whether it starts at the origin's dead letters, its end and its port
Place = tuple[int, bool, int, int]


@dataclass(frozen=True, slots=True)
class Parts:
    """A graph's nodes, relations and links.

    A place may have several links: UNION ALL of a stream with itself has two. Each is described by the
    columns of its origin and its steps.
    """

    nodes: dict[int, SourceNode | Operator]
    relations: dict[int, RelationTarget]
    links: dict[Place, tuple[tuple[str, Steps], ...]]


def parts_of(graph: Graph) -> Parts:
    """Returns the parts of a graph."""
    nodes: dict[int, SourceNode | Operator] = {n.node: n for n in (*graph.operators, *graph.sources)}
    columns = {id: ddl_of(n.columns) for id, n in nodes.items()}
    links: dict[Place, tuple[tuple[str, Steps], ...]] = {}

    def link(place: Place, ddl: str, shape: Steps) -> None:
        links[place] = (*links.get(place, ()), (ddl, shape))

    for edge in graph.edges:
        link((edge.origin, False, edge.to, edge.port), columns[edge.origin], edge.shape)
    for letter in graph.dead_letter_edges:
        link((letter.source, True, letter.to, letter.port), DEAD_LETTER, letter.shape)
    for output in graph.outputs:
        link((output.origin, False, output.relation, RELATION), columns[output.origin], output.shape)
    return Parts(nodes, {r.relation: r for r in graph.relations}, links)


def difference(before: Parts, after: Parts) -> tuple[str, Parts]:
    """Returns what to remove from a circuit with the parts `before`, as JSON, and then to add.

    The circuit then has the parts `after`. A part that changes is removed and added. Sources that read from a schema registry are always
    replaced, because the secrets for the registry may have changed.
    """
    nodes, added_nodes = _changed(before.nodes, {id: n for id, n in after.nodes.items() if not _has_registry(n)})
    added_nodes.update((id, n) for id, n in after.nodes.items() if _has_registry(n))
    relations, added_relations = _changed(before.relations, after.relations)
    links, added_links = _changed(before.links, after.links)
    places = [(origin, int(dead), to, port) for origin, dead, to, port in links]
    return json.dumps({"nodes": nodes, "relations": relations, "links": places}), Parts(added_nodes, added_relations, added_links)


def _changed(before: dict[Key, Part], after: dict[Key, Part]) -> tuple[list[Key], dict[Key, Part]]:
    """Returns the keys of removed or changed parts, and the parts that are new or changed."""
    removed = [key for key, part in before.items() if after.get(key) != part]
    return removed, {key: part for key, part in after.items() if before.get(key) != part}


def _has_registry(node: SourceNode | Operator) -> bool:
    decoder = node.decoder if isinstance(node, SourceNode) else None
    return isinstance(decoder, KafkaDecoder) and any(format.access for format in (decoder.key, decoder.value))


def ddl_of(columns: tuple[Field, ...]) -> str:
    """Returns Spark's DDL for these columns under the names c0, c1, …"""
    return ", ".join(f"c{i} {c.type.spark}" for i, c in enumerate(columns))
