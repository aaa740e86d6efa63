"""Chains of filters and projections, and their expressions in Spark SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tailgate.lake.types import BOOL, Field
from tailgate.sql.plan import Literal, Scalar, nullable
from tailgate.sql.plan.may_fail import fallible
from tailgate.sql.plan.rewriting import conjuncts
from tailgate.sql.render.spark import expression


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter: keeps the rows whose `expression` (Spark SQL over the columns before it) is true."""

    expression: str


@dataclass(frozen=True, slots=True)
class Project:
    """A projection: computes `expressions` (Spark SQL over the columns before it), the new c0, c1, …."""

    expressions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unnest:
    """A step that returns one row for each element of `array` (Spark SQL over c0, c1, …).

    The element and its number, counted from 1 (bigint), follow the columns. If the element is a
    struct, its `fields` columns replace it (0: it is not a struct). An array that is NULL or empty
    gives no row, or with `outer` one row of NULLs.
    """

    array: str
    fields: int = 0
    outer: bool = False


@dataclass(frozen=True, slots=True)
class Steps:
    """A chain of steps, first step first. Without steps it is the identity."""

    steps: tuple[Filter | Project | Unnest, ...] = ()


# the only column of a row whose columns are not used
NOTHING = Literal(True, BOOL)


def names(width: int) -> tuple[str, ...]:
    """Returns the names c0, c1, … of a row's columns."""
    return tuple(f"c{i}" for i in range(width))


def where(condition: Scalar, columns: tuple[Field, ...]) -> Filter:
    """Returns a filter that evaluates its parts in order, up to the first that is not true.

    Spark merges filters into one AND, which evaluates its right side if the left is NULL. Therefore
    the whole filter, and each part before one that can fail, is made non-NULL with coalesce.
    """
    parts = conjuncts(condition)
    spelled, null = [], False
    for i, part in enumerate(parts):
        text = expression(part, names(len(columns)))
        if nullable(part, columns) and any(map(fallible, parts[i + 1 :])):
            text = f"coalesce({text}, false)"
        else:
            null = null or nullable(part, columns)
        spelled.append(text)
    whole = spelled[0] if len(spelled) == 1 else " AND ".join(f"({s})" for s in spelled)
    return Filter(f"coalesce({whole}, false)" if null else whole)


def select(expressions: Sequence[Scalar], width: int) -> Project:
    """Returns the projection to these expressions over `width` columns."""
    return Project(tuple(expression(e, names(width)) for e in expressions))


def then(shape: Steps, *steps: Filter | Project | Unnest) -> Steps:
    """Returns the chain with more steps at the end."""
    return Steps(shape.steps + steps)
