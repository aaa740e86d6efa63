"""The rules of GROUP BY: which expressions SELECT and HAVING may contain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tailgate.lake.errors import DuplicateColumn, GroupingError
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb import functions
from tailgate.sql.ksqldb.expression_texts import text
from tailgate.sql.ksqldb.queries.items import Items


def check_grouping(query: e.SelectQuery, items: Items, keys: tuple[e.Expression, ...]) -> None:
    """Raises 42803 for an expression that is neither a key nor an aggregate, and 42701 for a key that occurs twice.

    `keys`: those of GROUP BY, and the bounds of the window.
    """
    for n, key in enumerate(query.group_by):
        if key in query.group_by[:n]:
            raise DuplicateColumn("Duplicate expression in GROUP BY clause", position=key.position)
    others = [item.expression for item, _, _ in items if item.expression is not None and not is_aggregate(item.expression, keys)]
    if others:
        raise GroupingError(
            f"Non-aggregate SELECT expression(s) not part of GROUP BY: {', '.join(map(text, others))}\n"
            "Either add the column(s) to the GROUP BY or remove them from the SELECT.",
            position=others[0].position,
        )
    if query.having is not None and not is_aggregate(query.having, keys):
        raise GroupingError(f"Non-aggregate HAVING expression not part of GROUP BY: {text(query.having)}", position=query.having.position)
    if not any(aggregates_in((*(item.expression for item, _, _ in items), query.having))):
        raise GroupingError(
            "GROUP BY requires aggregate functions in either the SELECT or HAVING clause.", position=query.group_by[0].position
        )


def aggregates_in(part: Any) -> Iterator[e.FunctionCall]:
    """Yields the calls of aggregates in an expression, or in a tuple of them."""
    return (call for call in e.walk(part) if isinstance(call, e.FunctionCall) and call.name in functions.AGGREGATE_NAMES)


def is_aggregate(expression: e.Expression, keys: tuple[e.Expression, ...]) -> bool:
    """Returns whether an expression contains columns only in keys and in arguments of aggregates."""
    if expression in keys or isinstance(expression, e.Constant):
        return True
    match expression:
        case e.Lambda(parameters, body):
            return is_aggregate(body, (*keys, *map(e.ColumnReference, parameters)))
        case e.FunctionCall(name, arguments):
            return name in functions.AGGREGATE_NAMES or all(is_aggregate(a, keys) for a in arguments)
        case e.Operation(_, operands):
            return all(is_aggregate(o, keys) for o in operands)
        case e.Cast(operand) | e.FieldAccess(operand):
            return is_aggregate(operand, keys)
        case e.Subscript(operand, index):
            return is_aggregate(operand, keys) and is_aggregate(index, keys)
        case e.Constructor(_, values, map_keys):
            return all(is_aggregate(v, keys) for v in (*values, *(k for k in map_keys if not isinstance(k, str))))
        case e.InList(operand, items):
            return all(is_aggregate(o, keys) for o in (operand, *items))
        case e.Between(operand, low, high):
            return all(is_aggregate(o, keys) for o in (operand, low, high))
        case e.CaseExpression(operand, branches, otherwise):
            parts = [part for branch in branches for part in branch] + [o for o in (operand, otherwise) if o is not None]
            return all(is_aggregate(part, keys) for part in parts)
    return False
