"""Walking and rebuilding scalars; the one place that lists their parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from typing_extensions import assert_never

from lake.types import BOOL
from sql.plan import (
    And,
    Call,
    Case,
    Coalesce,
    Column,
    Extreme,
    InList,
    IsDistinct,
    IsNull,
    Literal,
    Not,
    Or,
    Parameter,
    Scalar,
)  # fmt: skip
from sql.subqueries import argument as argument_in
from sql.subqueries import as_scalar, subquery


def parts(scalar: Scalar) -> tuple[Scalar, ...]:
    """What a scalar is computed from, in the order of the text; a subquery from its arguments."""
    if (inner := subquery(scalar)) is not None:
        return inner.arguments
    if argument_in(scalar) is not None:
        return ()
    match scalar:
        case Column() | Literal() | Parameter():
            return ()
        case Call(arguments=arguments) | And(arguments=arguments) | Or(arguments=arguments):
            return arguments
        case Coalesce(arguments=arguments) | Extreme(arguments=arguments):
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


def rebuilt(scalar: Scalar, new: Callable[[Scalar], Scalar]) -> Scalar:
    """The scalar with each of its parts replaced; the same object if nothing changed."""
    old = parts(scalar)
    made = tuple(map(new, old))
    if all(a is b for a, b in zip(old, made, strict=True)):
        return scalar
    if (inner := subquery(scalar)) is not None:
        return as_scalar(replace(inner, arguments=made))
    match scalar:
        case Column() | Literal() | Parameter():
            return scalar
        case Call() | And() | Or() | Coalesce() | Extreme():
            return replace(scalar, arguments=made)
        case Not() | IsNull():
            return replace(scalar, argument=made[0])
        case IsDistinct():
            return replace(scalar, left=made[0], right=made[1])
        case InList():
            return replace(scalar, argument=made[0], items=made[1:])
        case Case():
            pairs = made[:-1]
            return replace(scalar, branches=tuple(zip(pairs[::2], pairs[1::2], strict=True)), otherwise=made[-1])
        case _:
            assert_never(scalar)


def walk(scalar: Scalar) -> Iterator[Scalar]:
    """The scalar and all below it."""
    yield scalar
    for part in parts(scalar):
        yield from walk(part)


def columns_of(scalar: Scalar) -> frozenset[int]:
    """Positions of the columns it reads."""
    return frozenset(s.index for s in walk(scalar) if isinstance(s, Column))


def with_columns(scalar: Scalar, new: Callable[[Column], Scalar]) -> Scalar:
    """Each column replaced."""
    if isinstance(scalar, Column):
        return new(scalar)
    return rebuilt(scalar, lambda s: with_columns(s, new))


def shifted(scalar: Scalar, by: int) -> Scalar:
    """Columns moved by some positions, as on the right side of a join."""
    return with_columns(scalar, lambda c: replace(c, index=c.index + by)) if by else scalar


def moved(scalar: Scalar, start: int, by: int) -> Scalar:
    """Columns from a position on moved by some positions."""
    return with_columns(scalar, lambda c: replace(c, index=c.index + by) if c.index >= start else c) if by else scalar


def substituted(scalar: Scalar, expressions: tuple[Scalar, ...]) -> Scalar:
    """Over the input of a projection instead of over its output."""
    return with_columns(scalar, lambda c: expressions[c.index])


def conjuncts(scalar: Scalar | None) -> tuple[Scalar, ...]:
    """The terms that AND joins."""
    if scalar is None:
        return ()
    return tuple(c for a in scalar.arguments for c in conjuncts(a)) if isinstance(scalar, And) else (scalar,)


def conjunction(conditions: tuple[Scalar, ...]) -> Scalar:
    """One condition of those given; true if there is none."""
    if not conditions:
        return Literal(True, BOOL)
    return conditions[0] if len(conditions) == 1 else And(conditions)
