"""Scalars taken apart and put together: columns used, columns replaced, conjunctions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

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
)


def replace_columns(scalar: Scalar, by: Callable[[Column], Scalar]) -> Scalar:
    """The scalar with each of its columns replaced."""

    def go(s: Scalar) -> Scalar:
        return replace_columns(s, by)

    match scalar:
        case Column():
            return by(scalar)
        case Literal() | Parameter():
            return scalar
        case Call(function, arguments, type, position):
            return Call(function, tuple(map(go, arguments)), type, position)
        case And(arguments):
            return And(tuple(map(go, arguments)))
        case Or(arguments):
            return Or(tuple(map(go, arguments)))
        case Not(argument):
            return Not(go(argument))
        case IsNull(argument):
            return IsNull(go(argument))
        case IsDistinct(left, right):
            return IsDistinct(go(left), go(right))
        case InList(argument, items):
            return InList(go(argument), tuple(map(go, items)))
        case Case(branches, otherwise, type):
            return Case(tuple((go(when), go(then)) for when, then in branches), go(otherwise), type)
        case Coalesce(arguments, type):
            return Coalesce(tuple(map(go, arguments)), type)
        case Extreme(which, arguments, type):
            return Extreme(which, tuple(map(go, arguments)), type)
        case _:
            assert_never(scalar)


def parts(scalar: Scalar) -> tuple[Scalar, ...]:
    """The scalars directly inside."""
    match scalar:
        case Column() | Literal() | Parameter():
            return ()
        case Call(arguments=arguments) | And(arguments) | Or(arguments) | Coalesce(arguments=arguments) | Extreme(arguments=arguments):
            return arguments
        case Not(argument) | IsNull(argument):
            return (argument,)
        case IsDistinct(left, right):
            return (left, right)
        case InList(argument, items):
            return (argument, *items)
        case Case(branches, otherwise):
            return (*(s for branch in branches for s in branch), otherwise)
        case _:
            assert_never(scalar)


def walk(scalar: Scalar) -> Iterator[Scalar]:
    """The scalar and all that is inside it."""
    yield scalar
    for part in parts(scalar):
        yield from walk(part)


def columns_of(scalar: Scalar) -> frozenset[int]:
    """The positions of the columns it reads."""
    return frozenset(s.index for s in walk(scalar) if isinstance(s, Column))


def substitute(scalar: Scalar, expressions: tuple[Scalar, ...]) -> Scalar:
    """The scalar over the input of a projection instead of over its output."""
    return replace_columns(scalar, lambda c: expressions[c.index])


def shift(scalar: Scalar, by: int) -> Scalar:
    """The scalar with the positions of its columns moved."""
    return replace_columns(scalar, lambda c: Column(c.index + by, c.type, c.position))


def renumber(scalar: Scalar, to: Mapping[int, int]) -> Scalar:
    """The scalar with the positions of its columns changed; all of them are in `to`."""
    return replace_columns(scalar, lambda c: Column(to[c.index], c.type, c.position))


def conjuncts(condition: Scalar) -> tuple[Scalar, ...]:
    """What must all be true for the condition to be true, in order."""
    if isinstance(condition, And):
        return tuple(part for argument in condition.arguments for part in conjuncts(argument))
    return (condition,)


def conjunction(conditions: tuple[Scalar, ...]) -> Scalar:
    """One condition of one or more."""
    return conditions[0] if len(conditions) == 1 else And(conditions)
