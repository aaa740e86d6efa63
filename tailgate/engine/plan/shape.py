"""Writes chains of filters and projections in Spark SQL."""

from __future__ import annotations

from collections.abc import Sequence

from tailgate.engine.plan.graph import Explode, Linear, Select, Where
from tailgate.lake.types import BOOL, Field
from tailgate.sql.plan import Literal, Scalar, nullable
from tailgate.sql.plan.may_fail import fallible
from tailgate.sql.plan.rewriting import conjuncts
from tailgate.sql.render.spark import expression

# the only column of a row whose columns are not used
NOTHING = Literal(True, BOOL)


def names(width: int) -> tuple[str, ...]:
    """Returns the names c0, c1, … of a row's columns."""
    return tuple(f"c{i}" for i in range(width))


def where(condition: Scalar, columns: tuple[Field, ...]) -> Where:
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
    return Where(f"coalesce({whole}, false)" if null else whole)


def select(expressions: Sequence[Scalar], width: int) -> Select:
    """Returns the projection to these expressions over `width` columns."""
    return Select(tuple(expression(e, names(width)) for e in expressions))


def then(shape: Linear, *steps: Where | Select | Explode) -> Linear:
    """Returns the chain with more steps at the end."""
    return Linear(shape.steps + steps)
