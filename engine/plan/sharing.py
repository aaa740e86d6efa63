"""Which operators of a view that was just filled are replaced by operators of other views.

Two operators are one if they do the same, hold the same and will receive the same:

    do the same         their digests are equal (`engine.plan.digest`)
    hold the same       the sums of their inputs are equal: what an operator holds is a function of the sum of its input
    will receive        the same edges lead to them, once the operators above are replaced

Equal digests alone do not tell that the states are equal: a view reads its topic when it is filled, and Kafka may have compacted the topic
since another view read it, or another decision may have been made about a record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from engine.plan.circuit import FILL
from engine.plan.graph import Edge, Graph, Linear
from engine.plan.nodes import maintained, record, with_record
from lake.catalog import Catalog, Item

Sum: TypeAlias = tuple[int, int]
Same: TypeAlias = Callable[[int, int], bool]  # whether two operators hold the same


def equal_sums(sums: Mapping[int, Sum]) -> Same:
    """Returns a function that compares operators by the sums of their inputs; operators without a sum are never the same."""
    return lambda one, other: one in sums and other in sums and sums[one] == sums[other]


def total(parts: Mapping[tuple[int, int], Sum | None], partitions: int) -> dict[int, Sum]:
    """Returns the sum of each operator, of sums by operator and partition; without those whose sum is not known in every partition."""
    by_node: dict[int, list[Sum | None]] = {}
    for (node, _), sum in parts.items():
        by_node.setdefault(node, []).append(sum)
    found = {}
    for node, sums in by_node.items():
        known = [s for s in sums if s is not None]
        if len(known) == partitions == len(sums):
            found[node] = (_wrapped(s[0] for s in known), _wrapped(s[1] for s in known))
    return found


def _wrapped(numbers: Iterable[int]) -> int:
    """The sum, as 64 bits hold it."""
    return sum(numbers) % (1 << 64)


class Sharing:
    """Replaces operators, view by view; `graph` runs while the views are still being filled."""

    def __init__(self, graph: Graph, same: Same) -> None:
        self._same = same
        fills = {s.node for s in graph.sources if s.channel.startswith(FILL)}
        self._edges: dict[int, list[Edge]] = {}
        for edge in graph.edges:
            if edge.origin not in fills:
                self._edges.setdefault(edge.to, []).append(edge)
        self._replaced: dict[int, int] = {}

    def __call__(self, item: Item, catalog: Catalog) -> Item:
        """Returns the view with operators of maintained views in the places of its own where they are one."""
        known: dict[str, list[int]] = {}
        for other in sorted(catalog.items.values(), key=lambda i: i.id):
            if other.kind == "materialized view" and other.ready and maintained(other) and other.id != item.id:
                for digest, node in record(other):
                    known.setdefault(digest, []).append(node)
        for digest, node in record(item):
            inputs = self._inputs(node)
            one = next((n for n in known.get(digest, ()) if self._inputs(n) == inputs and self._same(node, n)), None)
            if one is not None:
                self._replaced[node] = one
            else:
                known.setdefault(digest, []).append(node)  # the view itself may have it twice
        return with_record(item, [(digest, self._replaced.get(node, node)) for digest, node in record(item)])

    def _inputs(self, node: int) -> Counter[tuple[int, Linear, int]]:
        """What an operator will receive: origins, steps and ports."""
        return Counter((self._replaced.get(e.origin, e.origin), e.shape, e.port) for e in self._edges.get(node, ()))
