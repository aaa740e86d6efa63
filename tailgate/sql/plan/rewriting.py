"""Traverses and rebuilds scalars. Only this module lists the parts of each kind of scalar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from typing_extensions import assert_never

from tailgate.lake.types import BOOL
from tailgate.sql.plan import (
    And,
    Call,
    Case,
    Coalesce,
    Column,
    GreatestLeast,
    InList,
    IsDistinct,
    IsNull,
    Literal,
    Not,
    Or,
    Parameter,
    Scalar,
)  # fmt: skip
from tailgate.sql.plan.subqueries import argument as argument_in
from tailgate.sql.plan.subqueries import as_scalar, subquery


def parts(scalar: Scalar) -> tuple[Scalar, ...]:
    """Returns the operands of a scalar in the order of the text.

    Those of a subquery are its arguments.
    """
    if (inner := subquery(scalar)) is not None:
        return inner.arguments
    if argument_in(scalar) is not None:
        return ()
    match scalar:
        case Column() | Literal() | Parameter():
            return ()
        case Call(arguments=arguments) | And(arguments=arguments) | Or(arguments=arguments):
            return arguments
        case Coalesce(arguments=arguments) | GreatestLeast(arguments=arguments):
            return arguments
        case Not(argument=argument) | IsNull(argument=argument):
            return (argument,)
        case IsDistinct(left=left, right=right):
            return (left, right)
        case InList(argument=argument, items=items):
            return (argument, *items)
        case Case(branches=branches, otherwise=otherwise):
            return (*(s for branch in branches for s in branch), otherwise)
        case _:
            assert_never(scalar)


def rebuild(scalar: Scalar, new: Callable[[Scalar], Scalar]) -> Scalar:
    """Returns the scalar with `new` applied to each part, or the same object if no part changed."""
    old = parts(scalar)
    operands = tuple(map(new, old))
    if all(a is b for a, b in zip(old, operands, strict=True)):
        return scalar
    if (inner := subquery(scalar)) is not None:
        return as_scalar(replace(inner, arguments=operands))
    match scalar:
        case Column() | Literal() | Parameter():
            return scalar
        case Call() | And() | Or() | Coalesce() | GreatestLeast():
            return replace(scalar, arguments=operands)
        case Not() | IsNull():
            return replace(scalar, argument=operands[0])
        case IsDistinct():
            return replace(scalar, left=operands[0], right=operands[1])
        case InList():
            return replace(scalar, argument=operands[0], items=operands[1:])
        case Case():
            pairs = operands[:-1]
            return replace(scalar, branches=tuple(zip(pairs[::2], pairs[1::2], strict=True)), otherwise=operands[-1])
        case _:
            assert_never(scalar)


def walk(scalar: Scalar) -> Iterator[Scalar]:
    """Yields the scalar and all scalars below it, in pre-order."""
    yield scalar
    for part in parts(scalar):
        yield from walk(part)


def columns_of(scalar: Scalar) -> frozenset[int]:
    """Returns the positions of the columns that a scalar reads."""
    return frozenset(s.index for s in walk(scalar) if isinstance(s, Column))


def columns_of_all(scalars: Iterable[Scalar]) -> frozenset[int]:
    """Returns the positions of the columns that some of the scalars read."""
    return frozenset[int]().union(*map(columns_of, scalars))


def with_columns(scalar: Scalar, new: Callable[[Column], Scalar]) -> Scalar:
    """Replaces each column by `new` of it."""
    if isinstance(scalar, Column):
        return new(scalar)
    return rebuild(scalar, lambda s: with_columns(s, new))


def shifted(scalar: Scalar, by: int) -> Scalar:
    """Adds `by` to the position of each column, as for the right side of a join."""
    return with_columns(scalar, lambda c: replace(c, index=c.index + by)) if by else scalar


def moved(scalar: Scalar, start: int, by: int) -> Scalar:
    """Adds `by` to the position of each column at or after `start`."""
    return with_columns(scalar, lambda c: replace(c, index=c.index + by) if c.index >= start else c) if by else scalar


def substituted(scalar: Scalar, expressions: tuple[Scalar, ...]) -> Scalar:
    """Replaces each column by the expression at its position, as if a projection were expanded."""
    return with_columns(scalar, lambda c: expressions[c.index])


def conjuncts(scalar: Scalar | None) -> tuple[Scalar, ...]:
    """Returns the conditions that AND combines, also in nested ANDs; () for None."""
    if scalar is None:
        return ()
    return tuple(c for a in scalar.arguments for c in conjuncts(a)) if isinstance(scalar, And) else (scalar,)


def conjunction(conditions: tuple[Scalar, ...]) -> Scalar:
    """Combines conditions with AND. Returns true if there are none."""
    if not conditions:
        return Literal(True, BOOL)
    return conditions[0] if len(conditions) == 1 else And(conditions)
