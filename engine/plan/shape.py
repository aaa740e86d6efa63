"""Chains of filters and projections, spelled for Spark."""

from __future__ import annotations

from collections.abc import Sequence

from engine.plan.graph import Explode, Linear, Select, Where
from lake.types import BOOL, Field
from sql.fallible import fallible
from sql.plan import Literal, Scalar, nullable
from sql.rewrite import conjuncts
from sql.spark import expression

NOTHING = Literal(True, BOOL)  # the one column of a row of which nothing is needed


def names(width: int) -> tuple[str, ...]:
    return tuple(f"c{i}" for i in range(width))


def where(condition: Scalar, columns: tuple[Field, ...]) -> Where:
    """The filter. Nothing that can fail is asked of a row for which something before it was not true.

    Spark merges filters into one AND, and its AND asks the right side where the left is NULL. So the whole is never NULL, nor is any
    part before one that can fail.
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
    return Where(f"coalesce({whole}, false)" if null else whole)


def select(expressions: Sequence[Scalar], width: int) -> Select:
    return Select(tuple(expression(e, names(width)) for e in expressions))


def then(shape: Linear, *steps: Where | Select | Explode) -> Linear:
    return Linear(shape.steps + steps)
