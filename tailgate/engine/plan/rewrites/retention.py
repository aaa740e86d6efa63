"""Moves the retention of windows to the aggregation above them, whose groups it removes.

γ_k(closing with retention) = γ_k with retention(closing)     if a key determines the window

Raises 0A000 for windows with a retention below anything else: their rows are not stored, so they cannot be retracted.
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import INT8
from tailgate.sql.plan import Call, Closing, Column, Filter, Reduce, Relation, Retention, Scalar
from tailgate.sql.plan.rewriting import columns_of
from tailgate.sql.plan.traversal import bottom_up, walk

# functions of the expressions that ksqlDB's WINDOWSTART and WINDOWEND are
_ONE_TO_ONE = ("extract:epoch", "*", "-")


def move_retention(relation: Relation) -> Relation:
    """Returns the plan without Closings that have a retention. Raises 0A000."""

    def rule(node: Relation) -> Relation:
        closing = _closing(node.input) if isinstance(node, Reduce) else None
        if not isinstance(node, Reduce) or closing is None or closing.retention is None:
            return node
        bounds = columns_of(closing.end) if closing.session is None else columns_of(closing.session.start) | columns_of(closing.end)
        start = max(columns_of(closing.end)) - 1  # window_start is before window_end
        determined = [key for key in node.keys if _is_bound(key, {start} | bounds)]
        if not determined or (closing.session is not None and not any(_is_bound(key, columns_of(closing.end)) for key in determined)):
            raise FeatureNotSupported(
                "a retention of windows without their bounds in GROUP BY is not supported",
                hint="Group by window_start, and by window_end for sessions.",
                position=closing.position,
            )
        return replace(node, input=_without(node.input), retention=Retention(closing.end, closing.retention))

    moved = bottom_up(relation, rule)
    for node in walk(moved):
        if isinstance(node, Closing) and node.retention is not None:
            raise FeatureNotSupported(
                "a retention of windows without an aggregation of their rows is not supported",
                hint="Use GROUP BY with window_start.",
                position=node.position,
            )
    return moved


def _closing(relation: Relation) -> Closing | None:
    """Returns the Closing below filters, if there is one."""
    while isinstance(relation, Filter):
        relation = relation.input
    return relation if isinstance(relation, Closing) else None


def _without(relation: Relation) -> Relation:
    """Returns the same relation with a Closing that has no retention."""
    if isinstance(relation, Filter):
        return replace(relation, input=_without(relation.input))
    return replace(relation, retention=None) if isinstance(relation, Closing) else relation


def _is_bound(key: Scalar, bounds: set[int] | frozenset[int]) -> bool:
    """Returns whether a key is a bound of the window, or ksqlDB's number of milliseconds of it."""
    match key:
        case Column(index):
            return index in bounds
        case Call(function, arguments) if function.name in _ONE_TO_ONE or (function.kind == "cast" and key.type == INT8):
            return bool(columns_of(key)) and all(_is_bound(a, bounds) for a in arguments if columns_of(a))
    return False
