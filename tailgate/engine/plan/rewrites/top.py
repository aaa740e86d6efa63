"""Rewrites ORDER BY with LIMIT, and filters on row numbers, to top-k.

    limit_n(sort_k(R)) = top_{n, k}(R)
    sort_k(R) = R                               without LIMIT, because a relation is a bag
    σ_{row_number ≤ n}(window(R)) = σ_{row_number ≤ n}(window(top_n(R)))
                                                rank likewise, with ties

`first_rows` runs before columns are removed, because rows that are equal in order are taken in the
order of their values.
"""

from __future__ import annotations

from tailgate.engine.plan.analysis.scalars import SWAPPED
from tailgate.lake.types import INT8
from tailgate.sql.plan import Call, Column, Filter, Limit, Literal, Relation, Scalar, Sort, TopK, Window
from tailgate.sql.plan.rewriting import conjuncts
from tailgate.sql.plan.traversal import bottom_up, inputs, with_inputs

# functions whose result for a row does not depend on later rows
RANKS = frozenset({"row_number", "rank", "dense_rank"})


def first_rows(relation: Relation) -> Relation:
    """Replaces LIMIT with a top-k, and removes ORDER BY without LIMIT."""
    if isinstance(relation, Limit):
        keys = relation.input.keys if isinstance(relation.input, Sort) else ()
        return TopK(first_rows(relation.input), (), keys, relation.count, relation.offset, position=relation.position)
    if isinstance(relation, Sort):
        return first_rows(relation.input)
    return with_inputs(relation, tuple(map(first_rows, inputs(relation))))


def first_ranks(relation: Relation) -> Relation:
    """Puts a top-k below each window of which a filter keeps only the first rows."""
    return bottom_up(relation, _first_ranks)


def _first_ranks(node: Relation) -> Relation:
    """Puts a top-k below a window if a filter keeps only the first rows of each partition."""
    if not isinstance(node, Filter) or not isinstance(node.input, Window) or isinstance(node.input.input, TopK):
        return node
    window = node.input
    if any(c.function.name not in RANKS for c in window.calls):
        return node
    for term in conjuncts(node.condition):
        limit = _limit(term, window)
        if limit is not None:
            count, ties = limit
            top = TopK(window.input, window.partition, window.order, Literal(count, INT8), ties=ties)
            return Filter(Window(top, window.partition, window.order, window.calls), node.condition)
    return node


def _limit(term: Scalar, window: Window) -> tuple[int, bool] | None:
    """Returns the highest rank that a condition accepts, and whether it accepts ties of it.

    Returns None if the condition does not limit a rank.
    """
    if not isinstance(term, Call) or term.function.kind != "operator" or term.function.name not in SWAPPED:
        return None
    left, right = term.arguments
    sign = term.function.name
    if isinstance(left, Literal):
        left, right, sign = right, left, SWAPPED[sign]
    width = len(window.input.columns)
    if not isinstance(left, Column) or left.index < width or not isinstance(right, Literal) or not isinstance(right.value, int):
        return None
    name = window.calls[left.index - width].function.name
    if sign not in ("<", "<=", "=") or name == "dense_rank":
        return None
    return max(right.value - (sign == "<"), 0), name == "rank"
