"""Finds operators of a backfilled view that can be replaced by operators of other views.

Two operators can be shared if all of this holds:

    same computation    their digests are equal (`engine.plan.views.digest`)
    same state          the sums of their inputs are equal; the state is a function of this sum
    same input          the same edges lead to them, after the operators above have been replaced

Operators that depend on the order of their input are never shared: when a fill ends, live changes wait in their state. Neither
are aggregations whose groups stay: their state is not a function of the sum.

Equal digests alone do not imply equal state. A view reads its topic during its backfill, and since
another view read the topic, Kafka may have compacted it, or a record may have been handled
differently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from tailgate.engine.plan.circuit.graph import Edge, Graph
from tailgate.engine.plan.circuit.operators import ORDERED, Reduce
from tailgate.engine.plan.circuit.steps import Steps
from tailgate.engine.plan.views.catalog_graph import BACKFILL
from tailgate.engine.plan.views.nodes import is_maintained, with_record
from tailgate.lake.catalog import Catalog, MaterializedView

Sum: TypeAlias = tuple[int, int]
# whether two operators have the same state
Same: TypeAlias = Callable[[int, int], bool]


def equal_sums(sums: Mapping[int, Sum]) -> Same:
    """Returns a function that compares operators by the sums of their inputs.

    Operators without a sum are never equal.
    """
    return lambda one, other: one in sums and other in sums and sums[one] == sums[other]


def total(parts: Mapping[tuple[int, int], Sum | None], partitions: int) -> dict[int, Sum]:
    """Adds up the sums of each operator over all partitions. `parts`: by (operator, partition).

    An operator without a known sum in every partition is left out.
    """
    by_node: dict[int, list[Sum | None]] = {}
    for (node, _), sum in parts.items():
        by_node.setdefault(node, []).append(sum)
    totals = {}
    for node, sums in by_node.items():
        known_sums = [s for s in sums if s is not None]
        if len(known_sums) == partitions == len(sums):
            totals[node] = (_wrapped(s[0] for s in known_sums), _wrapped(s[1] for s in known_sums))
    return totals


def _wrapped(numbers: Iterable[int]) -> int:
    """Returns the sum modulo 2^64."""
    return sum(numbers) % (1 << 64)


class Sharing:
    """The replacement of operators, view by view; `graph` is the running graph, with the backfills."""

    def __init__(self, graph: Graph, same: Same) -> None:
        self._same = same
        fills = {s.node for s in graph.sources if s.channel.startswith(BACKFILL)}
        self._edges: dict[int, list[Edge]] = {}
        for edge in graph.edges:
            if edge.origin not in fills:
                self._edges.setdefault(edge.to, []).append(edge)
        self._unshared = {o.node for o in graph.operators if isinstance(o, ORDERED) or (isinstance(o, Reduce) and o.keeps_groups)}
        self._replaced: dict[int, int] = {}

    def __call__(self, item: MaterializedView, catalog: Catalog) -> MaterializedView:
        """Returns the view with each operator replaced by an equal one of a maintained view, if any."""
        nodes_by_digest: dict[str, list[int]] = {}
        for other in sorted(catalog.each(MaterializedView), key=lambda i: i.id):
            if other.ready and is_maintained(other) and other.id != item.id:
                for digest, node in other.nodes:
                    nodes_by_digest.setdefault(digest, []).append(node)
        for digest, node in item.nodes:
            if node in self._unshared:
                continue
            inputs = self._inputs(node)
            one = next((n for n in nodes_by_digest.get(digest, ()) if self._inputs(n) == inputs and self._same(node, n)), None)
            if one is not None:
                self._replaced[node] = one
            else:
                nodes_by_digest.setdefault(digest, []).append(node)  # the view itself may contain the operator twice
        return with_record(item, [(digest, self._replaced.get(node, node)) for digest, node in item.nodes])

    def _inputs(self, node: int) -> Counter[tuple[int, Steps, int]]:
        """Returns the counts of edges (origin, steps, port) to a node, without those of the backfill."""
        return Counter((self._replaced.get(e.origin, e.origin), e.shape, e.port) for e in self._edges.get(node, ()))
