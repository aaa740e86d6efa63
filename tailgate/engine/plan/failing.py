"""Finds the views that an operator's failure stops: all views that depend on its output."""

from __future__ import annotations

from collections.abc import Iterable

from tailgate.engine.plan.graph import Graph
from tailgate.engine.plan.nodes import maintained
from tailgate.engine.plan.replacing import bases, group
from tailgate.lake.catalog import Catalog, Item


def reached(graph: Graph, node: int) -> frozenset[int]:
    """Returns the relations that the output of a node can reach."""
    below: dict[int, list[int]] = {}
    for edge in graph.edges:
        below.setdefault(edge.origin, []).append(edge.to)
    found, waiting = {node}, [node]
    while waiting:
        for next_ in below.get(waiting.pop(), ()):
            if next_ not in found:
                found.add(next_)
                waiting.append(next_)
    return frozenset(output.relation for output in graph.outputs if output.origin in found)


def stopped(relations: Iterable[int], catalog: Catalog) -> tuple[Item, ...]:
    """Returns the maintained views with one of these (error) relations and all views above, by id."""
    wanted = set(relations)
    views = [i for i in catalog.items.values() if i.kind == "materialized view" and maintained(i)]
    found = {i.id for i in views if i.id in wanted or i.errors in wanted}
    while more := {i.id for i in views if i.id not in found and not found.isdisjoint(reads(i, catalog))}:
        found |= more
    return tuple(catalog[id] for id in sorted(found))


def reads(item: Item, catalog: Catalog) -> set[int]:
    """Returns the items that a view reads.

    A replacement reads the other replacements of its group instead of the items that these replace.
    """
    coming = catalog.replacements() if item.replaces else {}
    beside = {id: other.id for id, other in coming.items() if group(other) == group(item)}
    return {beside.get(id, id) for id in bases(item, catalog)}
