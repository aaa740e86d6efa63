"""Rewrites ORDER BY with LIMIT, and filters on row numbers, to top-k.

    limit_n(sort_k(R)) = top_{n, k}(R)
    sort_k(R) = R                               without LIMIT, because a relation is a bag
    σ_{row_number ≤ n}(window(R)) = σ_{row_number ≤ n}(window(top_n(R)))
                                                rank likewise, with ties
    π_{a[n]}(γ_{a = array_agg}(R)) = π_{a[n]}(γ_{a = the first n of array_agg}(R))
                                                jsonb_agg and slices likewise, and distinct values

`first_rows` runs before columns are removed, because rows that are equal in order are taken in the
order of their values.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from tailgate.engine.plan.analysis.scalars import SWAPPED
from tailgate.lake.types import INT8
from tailgate.sql.plan import AggregateCall, Call, Column, Filter, Limit, Literal, Project, Reduce, Relation, Scalar, Sort, TopK, Window
from tailgate.sql.plan.rewriting import conjuncts, parts
from tailgate.sql.plan.traversal import bottom_up, inputs, with_inputs

# functions whose result for a row does not depend on later rows
RANKS = frozenset({"row_number", "rank", "dense_rank"})
# aggregates whose result is an array of all values
ARRAYS = frozenset({"array_agg", "jsonb_agg"})
SET = "ksqldb_set"  # the function that removes the elements of an array that are equal to an earlier one


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


def first_values(relation: Relation) -> Relation:
    """Limits each aggregate whose result is an array of which only the first or the last elements are read."""
    return bottom_up(relation, _first_values)


def _first_values(node: Relation) -> Relation:
    if not isinstance(node, Project):
        return node
    read, below, filters = list(node.expressions), node.input, []
    while isinstance(below, Filter):
        filters.append(below)
        read.append(below.condition)
        below = below.input
    if not isinstance(below, Reduce):
        return node
    reads: dict[int, set[tuple[int | None, bool]]] = defaultdict(set)
    for scalar in read:
        _add_reads(scalar, reads)
    calls = tuple(_limited(call, reads[i]) for i, call in enumerate(below.aggregates, len(below.keys)))
    if calls == below.aggregates:
        return node
    limited: Relation = replace(below, aggregates=calls)
    for above in reversed(filters):
        limited = replace(above, input=limited)
    return replace(node, input=limited)


def _limited(call: AggregateCall, reads: set[tuple[int | None, bool]]) -> AggregateCall:
    """Returns an aggregate with the values that the relations above read. `reads`: as of `_add_reads`."""
    if call.function.name not in ARRAYS or call.limit is not None or len({unique for _, unique in reads}) != 1:
        return call
    counts = [n for n, _ in reads if n is not None]
    is_limited = len(counts) == len(reads) and (min(counts) > 0 or max(counts) < 0)
    return replace(call, limit=max(counts, key=abs) if is_limited else None, unique=all(unique for _, unique in reads))


def _add_reads(scalar: Scalar, reads: dict[int, set[tuple[int | None, bool]]]) -> None:
    """Adds, for each column, how many of its elements a scalar reads (None: all), and whether equal ones count once."""
    match scalar:
        case Column(index):
            reads[index].add((None, False))
        case Call(function, (Column(index),)) if function.name == SET:
            reads[index].add((None, True))
        case Call(function, (Call(of, (Column(index),)), Literal(1), Literal(int(n)))) if (function.name, of.name) == (
            "ksqldb_slice",
            SET,
        ) and n > 0:
            reads[index].add((n, True))
        case Call(function, (Column(index), Literal(int(n)))) if function.name == "[]" and n > 0:
            reads[index].add((n, False))
        case Call(function, (Column(index), Literal(1), Literal(int(n)))) if function.name == "ksqldb_slice" and n > 0:
            reads[index].add((n, False))
        case Call(function, (Column(index), Call(), _)) if function.name == "ksqldb_slice" and (n := _from_end(scalar)):
            reads[index].add((-n, False))
        case _:
            for part in parts(scalar):
                _add_reads(part, reads)


def _from_end(slice: Call) -> int:
    """Returns n for the slice of an array a from its element len(a) - n + 1 to len(a), otherwise 0."""
    match slice.arguments:
        case (array, Call(plus, (Call(minus, (Call(length, (of,)), Literal(int(n)))), Literal(1))), end) if (
            (plus.name, minus.name, length.name) == ("+", "-", "jsonb_array_length")
            and of == array
            and end == Call(length, (array,), end.type)
        ):
            return max(n, 0)
    return 0
