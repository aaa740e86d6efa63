"""Finds the views that an operator's failure stops: all views that depend on its output."""

from __future__ import annotations

from collections.abc import Iterable

from tailgate.engine.plan.circuit.graph import Graph
from tailgate.engine.plan.views.nodes import is_maintained
from tailgate.engine.plan.views.replacements import group, stored_inputs
from tailgate.lake.catalog import Catalog, Item, MaterializedView


def reached_relations(graph: Graph, node: int) -> frozenset[int]:
    """Returns the relations that the output of a node can reach."""
    below: dict[int, list[int]] = {}
    for edge in graph.edges:
        below.setdefault(edge.origin, []).append(edge.to)
    nodes, queue = {node}, [node]
    while queue:
        for next_ in below.get(queue.pop(), ()):
            if next_ not in nodes:
                nodes.add(next_)
                queue.append(next_)
    return frozenset(output.relation for output in graph.outputs if output.origin in nodes)


def stopped_views(relations: Iterable[int], catalog: Catalog) -> tuple[MaterializedView, ...]:
    """Returns the maintained views with one of these (error) relations and all views above, by id."""
    ids = set(relations)
    views = [i for i in catalog.each(MaterializedView) if is_maintained(i)]
    stopped = {i.id for i in views if i.id in ids or i.errors in ids}
    while more := {i.id for i in views if i.id not in stopped and not stopped.isdisjoint(inputs_of(i, catalog))}:
        stopped |= more
    return tuple(i for i in sorted(views, key=lambda i: i.id) if i.id in stopped)


def inputs_of(item: Item, catalog: Catalog) -> set[int]:
    """Returns the items that a view reads.

    A replacement reads the other replacements of its group instead of the items that these replace.
    """
    replacements = catalog.replacements() if item.replaces else {}
    in_group = {id: other.id for id, other in replacements.items() if group(other) == group(item)}
    return {in_group.get(id, id) for id in stored_inputs(item, catalog)}
