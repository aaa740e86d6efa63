"""Walking and rebuilding scalars; the one place that lists their parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from typing_extensions import assert_never

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


def parts(scalar: Scalar) -> tuple[Scalar, ...]:
    """What a scalar is computed from, in the order of the text."""
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


def substituted(scalar: Scalar, expressions: tuple[Scalar, ...]) -> Scalar:
    """Over the input of a projection instead of over its output."""
    return with_columns(scalar, lambda c: expressions[c.index])


def conjuncts(scalar: Scalar | None) -> tuple[Scalar, ...]:
    """The terms that AND joins."""
    if scalar is None:
        return ()
    return tuple(c for a in scalar.arguments for c in conjuncts(a)) if isinstance(scalar, And) else (scalar,)
