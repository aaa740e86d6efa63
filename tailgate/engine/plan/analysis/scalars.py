"""Helpers of the rewrites for scalars, in addition to `sql.plan.rewriting`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tailgate.sql.plan import And, Call, Column, InList, IsDistinct, IsNull, Not, Or, Scalar
from tailgate.sql.plan.rewriting import columns_of, with_columns

NO_COLUMNS: frozenset[int] = frozenset()
# for each comparison, the one with its sides exchanged
SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def renumber(scalar: Scalar, to: Mapping[int, int]) -> Scalar:
    """Returns the scalar with the positions of its columns mapped by `to`, which has all of them."""
    return with_columns(scalar, lambda c: replace(c, index=to[c.index]))


def equated(condition: Scalar) -> tuple[Scalar, Scalar] | None:
    """Returns the sides of an equality (a = b, or a IS NOT DISTINCT FROM b), or None."""
    match condition:
        case Call(function, (a, b)) if function.name == "=" and function.kind == "operator":
            return a, b
        case Not(IsDistinct(a, b)):
            return a, b
    return None


def ties(condition: Scalar, some: frozenset[int], others: frozenset[int]) -> bool:
    """Returns whether a condition equates an expression over `some` with one over `others`."""
    sides = equated(condition)
    if sides is None:
        return False
    one, other = map(columns_of, sides)
    return bool(one and other) and ((one <= some and other <= others) or (one <= others and other <= some))


def strict_in(scalar: Scalar) -> frozenset[int]:
    """Returns columns whose NULL makes the scalar NULL."""
    match scalar:
        case Column(index=index):
            return frozenset([index])
        case Call(function, arguments) if function.strict:
            return NO_COLUMNS.union(*map(strict_in, arguments))
        case Not(argument) | InList(argument=argument):
            return strict_in(argument)
    return NO_COLUMNS


def rejects_null(condition: Scalar) -> frozenset[int]:
    """Returns columns whose NULL prevents the condition from being true."""
    match condition:
        case And(arguments):
            return NO_COLUMNS.union(*map(rejects_null, arguments))
        case Or(arguments):
            return frozenset.intersection(*map(rejects_null, arguments))
        case Not(IsNull(argument)):
            return strict_in(argument)
    return strict_in(condition)
