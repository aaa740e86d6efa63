"""The errors that a new view starts with: those it would have if it were as old as its inputs.

An error occurs in an operator or on an edge, and reaches every relation downstream once. A backfill
produces the errors on the new view's own edges. The errors upstream of these, on edges of existing
views, are known only as sums, one for each view:

    errors(v) = the errors of v's last operator and of all operators and edges upstream of it,
                each once, + those of v's output

The errors that the new view lacks are such a sum, too. This module expresses it as a linear
combination of the known sums. For example, if view d reads b and c, and both read a, then d starts
with errors(b) + errors(c) − errors(a): an error in a reached both b and c, but would have reached d
once.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction

from tailgate.engine.plan.change import STATEFUL, Kept, Leaf, Merged, Origin, Source, Stream, Unit, View, inputs, stateful
from tailgate.engine.plan.graph import Edge, Graph, JoinNode, Linear, Select, SetNode, UpsertNode
from tailgate.engine.plan.nodes import node_of
from tailgate.lake.catalog import Catalog, Item

Site = int | Edge | tuple[int, Linear]  # an operator; an edge to an operator; the rows that leave a node, after the steps
Sum = Counter[Site]

CONSTANT = 0  # stands for the node of constant rows
COLUMN = re.compile(r"c\d+")  # a column reference, which cannot fail


class Unknown(Exception):
    """Raised if no combination of the known sums gives the errors of a view.

    `args[0]` has the error relations. If all of them are empty, the new view starts without errors.
    """


def errors_to_fill(item: Item, stream: Stream, catalog: Catalog, graph: Graph) -> dict[int, int]:
    """Returns the error relations to add up, with their coefficients, which may be negative.

    `graph` is that of the catalog. Raises `Unknown` with the relations that must be empty if the
    sums of the views upstream do not determine the result.
    """
    sums = _Sums(catalog, graph)
    wanted: Sum = Counter()
    above: set[Site] = set()
    views: dict[int, Stream] = {}
    for leaf in _uses(stream):
        if isinstance(leaf, View):
            for node, shape in sums.places(catalog[leaf.item], leaf.stream):
                above |= sums.above(node)
                wanted[node, shape] += 1
            _ancestors(leaf, views)
    wanted.update(above)
    known = {catalog[id].errors: sums.of(catalog[id], below) for id, below in sorted(views.items())}
    found = _combination(_fallible(wanted), known)
    if found is None:
        raise Unknown(tuple(known))
    return found


def _uses(stream: Stream) -> list[Leaf]:
    """Returns the leaf at the origin of each edge of a view, once per edge."""
    edges = [stream, *(input for operator in stateful(stream) for input in inputs(operator))]
    return [leaf for e in edges for leaf in _ends(e.origin)]


def _ends(origin: Origin) -> list[Leaf]:
    """Returns the leaves that an origin consists of; an operator has none."""
    if isinstance(origin, Merged):
        return [leaf for i in origin.inputs for leaf in _ends(i.origin)]
    return [] if isinstance(origin, STATEFUL) else [origin]


def _ancestors(view: View, found: dict[int, Stream]) -> None:
    """Adds a view and all views upstream of it to `found`."""
    if view.item not in found:
        found[view.item] = view.stream
        for leaf in _uses(view.stream):
            if isinstance(leaf, View):
                _ancestors(leaf, found)


class _Sums:
    """The sums of errors of a graph's nodes and edges."""

    def __init__(self, catalog: Catalog, graph: Graph) -> None:
        self._catalog = catalog
        self._into: dict[int, list[Edge]] = {}
        for edge in graph.edges:
            self._into.setdefault(edge.to, []).append(edge)
        safe = {o.node for o in graph.operators if isinstance(o, UpsertNode | SetNode) or (isinstance(o, JoinNode) and o.condition is None)}
        self._may_fail = {o.node for o in graph.operators} - safe

    def places(self, item: Item, stream: Stream) -> list[tuple[int, Linear]]:
        """Returns the nodes that a view's rows come from, with the steps applied since."""
        return [(node, Linear(steps.steps + stream.shape.steps)) for node, steps in self._origins(item, stream, stream.origin)]

    def _origins(self, item: Item, whole: Stream, origin: Origin) -> list[tuple[int, Linear]]:
        match origin:
            case View(id, below):
                return self.places(self._catalog[id], below)
            case Merged(parts):
                found = [(p, place) for p in parts for place in self._origins(item, whole, p.origin)]
                return [(node, Linear(steps.steps + part.shape.steps)) for part, (node, steps) in found]
            case Source(id) | Kept(id):
                # nothing upstream can fail: records that cannot be decoded are dead letters
                return [(-id, Linear())]
            case Unit():
                return [(CONSTANT, Linear())]
            case _:
                return [(node_of(item, stateful(whole).index(origin)), Linear())]

    def above(self, node: int) -> set[Site]:
        """Returns the edges upstream of a node, and those nodes that can fail, this one included."""
        edges: set[Site] = set()
        reached = {node}
        queue = [node]
        while queue:
            for edge in self._into.get(queue.pop(), ()):
                edges.add(edge)
                if edge.origin not in reached:
                    reached.add(edge.origin)
                    queue.append(edge.origin)
        return edges | (reached & self._may_fail)

    def of(self, item: Item, stream: Stream) -> Sum:
        """Returns the sum of a view's errors, from the nodes and edges that can fail."""
        places = self.places(item, stream)
        above = set().union(*(self.above(node) for node, _ in places))
        return _fallible(Counter([*above, *places]))


def _fallible(sum: Sum) -> Sum:
    return Counter({site: n for site, n in sum.items() if _can_fail(site)})


def _can_fail(site: Site) -> bool:
    """Returns whether an operator, an edge or an output can fail."""
    if isinstance(site, int):
        return True
    shape = site.shape if isinstance(site, Edge) else site[1]
    return not all(isinstance(s, Select) and all(COLUMN.fullmatch(e) for e in s.expressions) for s in shape.steps)


def _combination(wanted: Sum, known: dict[int, Sum]) -> dict[int, int] | None:
    """Returns integer coefficients with which the known sums add up to `wanted`, or None.

    Uses Gauss-Jordan elimination with one unknown per known sum. Coefficients that are zero are
    left out.
    """
    relations = list(known)
    sites = list(dict.fromkeys([*wanted, *(s for sum in known.values() for s in sum)]))
    rows = [[Fraction(known[r][site]) for r in relations] + [Fraction(wanted[site])] for site in sites]
    pivots: list[tuple[int, int]] = []
    for column in range(len(relations)):
        at = len(pivots)
        chosen = next((i for i in range(at, len(rows)) if rows[i][column]), None)
        if chosen is None:
            continue
        rows[at], rows[chosen] = rows[chosen], rows[at]
        rows[at] = [value / rows[at][column] for value in rows[at]]
        for i, row in enumerate(rows):
            if i != at and row[column]:
                rows[i] = [value - row[column] * base for value, base in zip(row, rows[at], strict=True)]
        pivots.append((at, column))
    found = {relations[column]: rows[at][-1] for at, column in pivots}
    if any(row[-1] for row in rows[len(pivots) :]) or any(n.denominator != 1 for n in found.values()):
        return None
    return {relation: int(n) for relation, n in found.items() if n}
