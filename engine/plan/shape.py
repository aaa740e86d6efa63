"""Chains of filters and projections, spelled for Spark."""

from __future__ import annotations

from collections.abc import Sequence

from sql.spark import expression

from engine.plan.fallible import fallible
from engine.plan.graph import Linear, Select, Where
from engine.plan.scalars import conjuncts
from lake.types import BOOL, Field
from sql.plan import Literal, Scalar, nullable

NOTHING = Literal(True, BOOL)  # the one column of a row of which nothing is needed


def names(width: int) -> tuple[str, ...]:
    return tuple(f"c{i}" for i in range(width))


def where(condition: Scalar, columns: tuple[Field, ...]) -> Where:
    """The filter. No conjunct is asked of a row for which one before it was not true.

    Spark's AND asks its right side where the left is NULL, and Spark merges filters into one AND; what is never NULL stops it.
    """
    parts = conjuncts(condition)
    spelled = []
    for i, part in enumerate(parts):
        text = expression(part, names(len(columns)))
        guards = len(parts) == 1 or any(map(fallible, parts[i + 1 :]))
        spelled.append(f"coalesce({text}, false)" if guards and nullable(part, columns) else text)
    return Where(spelled[0] if len(spelled) == 1 else " AND ".join(f"({s})" for s in spelled))


def select(expressions: Sequence[Scalar], width: int) -> Select:
    return Select(tuple(expression(e, names(width)) for e in expressions))


def then(shape: Linear, *steps: Where | Select) -> Linear:
    return Linear(shape.steps + steps)
