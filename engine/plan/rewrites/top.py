"""ORDER BY with LIMIT is a top-k; without one it means nothing, for a relation is a bag. So is a filter on the number of a row.

limit_n(sort_k(R)) = top_{n, k}(R)        sort_k(R) = R
σ_{row_number ≤ n}(window(R)) = σ_{row_number ≤ n}(window(top_n(R)))        rank likewise, with ties

The first goes before what takes columns away, because rows that are equal in order are taken in the order of their values.
"""

from __future__ import annotations

from lake.types import INT8
from sql.plan import Call, Column, Filter, Limit, Literal, Relation, Scalar, Sort, TopK, Window
from sql.relations import bottom_up, inputs, with_inputs
from sql.rewrite import conjuncts

RANKS = frozenset({"row_number", "rank", "dense_rank"})  # what rows behind do not change
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def first_rows(relation: Relation) -> Relation:
    if isinstance(relation, Limit):
        keys = relation.input.keys if isinstance(relation.input, Sort) else ()
        return TopK(first_rows(relation.input), (), keys, relation.count, relation.offset, position=relation.position)
    if isinstance(relation, Sort):
        return first_rows(relation.input)
    return with_inputs(relation, tuple(map(first_rows, inputs(relation))))


def first_ranks(relation: Relation) -> Relation:
    return bottom_up(relation, _first_ranks)


def _first_ranks(node: Relation) -> Relation:
    """A filter that lets only the first rows of each partition through, over a window of those alone."""
    if not isinstance(node, Filter) or not isinstance(node.input, Window) or isinstance(node.input.input, TopK):
        return node
    window = node.input
    if any(c.function.name not in RANKS for c in window.calls):
        return node
    for term in conjuncts(node.condition):
        found = _limit(term, window)
        if found is not None:
            count, ties = found
            top = TopK(window.input, window.partition, window.order, Literal(count, INT8), ties=ties)
            return Filter(Window(top, window.partition, window.order, window.calls), node.condition)
    return node


def _limit(term: Scalar, window: Window) -> tuple[int, bool] | None:
    """How many rows of a partition a condition lets through at most, and whether those equal to the last one too."""
    if not isinstance(term, Call) or term.function.kind != "operator" or term.function.name not in FLIPPED:
        return None
    left, right = term.arguments
    sign = term.function.name
    if isinstance(left, Literal):
        left, right, sign = right, left, FLIPPED[sign]
    width = len(window.input.columns)
    if not isinstance(left, Column) or left.index < width or not isinstance(right, Literal) or not isinstance(right.value, int):
        return None
    name = window.calls[left.index - width].function.name
    if sign not in ("<", "<=", "=") or name == "dense_rank":
        return None
    return max(right.value - (sign == "<"), 0), name == "rank"
