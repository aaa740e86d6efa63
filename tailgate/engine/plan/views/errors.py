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

from tailgate.engine.plan.circuit.graph import Edge, Graph
from tailgate.engine.plan.circuit.operators import ORDERED, Join, SetOperation, Upsert
from tailgate.engine.plan.circuit.steps import Project, Steps
from tailgate.engine.plan.rules import change
from tailgate.engine.plan.rules.change import Leaf, Origin, SingleRow, Source, StoredRelation, Stream, View, inputs, stateful
from tailgate.engine.plan.views.nodes import node_of
from tailgate.lake.catalog import Catalog, Item, MaterializedView

ErrorOrigin = int | Edge | tuple[int, Steps]  # an operator; an edge to an operator; the rows that leave a node, after the steps
Sum = Counter[ErrorOrigin]

CONSTANT = 0  # stands for the node of constant rows
COLUMN = re.compile(r"c\d+")  # a column reference, which cannot fail


class UndeterminedErrors(Exception):
    """Raised if no combination of the known sums gives the errors of a view.

    `args[0]` has the error relations. If all of them are empty, the new view starts without errors.
    """


def errors_to_backfill(item: Item, stream: Stream, catalog: Catalog, graph: Graph) -> dict[int, int]:
    """Returns the error relations to add up, with their coefficients, which may be negative.

    `graph` is that of the catalog. Raises `UndeterminedErrors` with the relations that must be empty if the
    sums of the views upstream do not determine the result.
    """
    sums = _Sums(catalog, graph)
    errors: Sum = Counter()
    above: set[ErrorOrigin] = set()
    views: dict[int, Stream] = {}
    for leaf in _edge_leaves(stream):
        if isinstance(leaf, View):
            for node, shape in sums.places(catalog[leaf.item], leaf.stream):
                above |= sums.above(node)
                errors[node, shape] += 1
            _ancestors(leaf, views)
    errors.update(above)
    sums_by_relation = {catalog[id].errors: sums.of(catalog[id], below) for id, below in sorted(views.items())}
    coefficients = _combination(_fallible(errors), sums_by_relation)
    if coefficients is None:
        raise UndeterminedErrors(tuple(sums_by_relation))
    return coefficients


def _edge_leaves(stream: Stream) -> list[Leaf]:
    """Returns the leaf at the origin of each edge of a view, once per edge."""
    edges = [stream, *(input for operator in stateful(stream) for input in inputs(operator))]
    return [leaf for e in edges for leaf in _leaves_of(e.origin)]


def _leaves_of(origin: Origin) -> list[Leaf]:
    """Returns the leaves that an origin consists of; an operator has none."""
    if isinstance(origin, change.Union):
        return [leaf for i in origin.inputs for leaf in _leaves_of(i.origin)]
    return [origin] if isinstance(origin, Leaf) else []


def _ancestors(view: View, views: dict[int, Stream]) -> None:
    """Adds a view and all views upstream of it to `views`."""
    if view.item not in views:
        views[view.item] = view.stream
        for leaf in _edge_leaves(view.stream):
            if isinstance(leaf, View):
                _ancestors(leaf, views)


class _Sums:
    """The sums of errors of a graph's nodes and edges."""

    def __init__(self, catalog: Catalog, graph: Graph) -> None:
        self._catalog = catalog
        self._into: dict[int, list[Edge]] = {}
        for edge in graph.edges:
            self._into.setdefault(edge.to, []).append(edge)
        safe = {
            o.node
            for o in graph.operators
            if isinstance(o, (Upsert, SetOperation, *ORDERED)) or (isinstance(o, Join) and o.condition is None)
        }
        self._may_fail = {o.node for o in graph.operators} - safe

    def places(self, item: Item, stream: Stream) -> list[tuple[int, Steps]]:
        """Returns the nodes that a view's rows come from, with the steps applied since."""
        return [(node, Steps(steps.steps + stream.shape.steps)) for node, steps in self._origins(item, stream, stream.origin)]

    def _origins(self, item: Item, whole: Stream, origin: Origin) -> list[tuple[int, Steps]]:
        match origin:
            case View(id, below):
                return self.places(self._catalog[id], below)
            case change.Union(parts):
                parts_and_places = [(p, place) for p in parts for place in self._origins(item, whole, p.origin)]
                return [(node, Steps(steps.steps + part.shape.steps)) for part, (node, steps) in parts_and_places]
            case Source(id) | StoredRelation(id):
                # nothing upstream can fail: records that cannot be decoded are dead letters
                return [(-id, Steps())]
            case SingleRow():
                return [(CONSTANT, Steps())]
            case _:
                assert isinstance(item, MaterializedView)
                return [(node_of(item, stateful(whole).index(origin)), Steps())]

    def above(self, node: int) -> set[ErrorOrigin]:
        """Returns the edges upstream of a node, and those nodes that can fail, this one included."""
        edges: set[ErrorOrigin] = set()
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


def _can_fail(site: ErrorOrigin) -> bool:
    """Returns whether an operator, an edge or an output can fail."""
    if isinstance(site, int):
        return True
    shape = site.shape if isinstance(site, Edge) else site[1]
    return not all(isinstance(s, Project) and all(COLUMN.fullmatch(e) for e in s.expressions) for s in shape.steps)


def _combination(target: Sum, sums: dict[int, Sum]) -> dict[int, int] | None:
    """Returns integer coefficients with which the known sums add up to `target`, or None.

    Uses Gauss-Jordan elimination with one unknown per known sum. Coefficients that are zero are
    left out.
    """
    relations = list(sums)
    sites = list(dict.fromkeys([*target, *(s for sum in sums.values() for s in sum)]))
    rows = [[Fraction(sums[r][site]) for r in relations] + [Fraction(target[site])] for site in sites]
    pivots: list[tuple[int, int]] = []
    for column in range(len(relations)):
        at = len(pivots)
        pivot = next((i for i in range(at, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[at], rows[pivot] = rows[pivot], rows[at]
        rows[at] = [value / rows[at][column] for value in rows[at]]
        for i, row in enumerate(rows):
            if i != at and row[column]:
                rows[i] = [value - row[column] * base for value, base in zip(row, rows[at], strict=True)]
        pivots.append((at, column))
    solution = {relations[column]: rows[at][-1] for at, column in pivots}
    if any(row[-1] for row in rows[len(pivots) :]) or any(n.denominator != 1 for n in solution.values()):
        return None
    return {relation: int(n) for relation, n in solution.items() if n}
