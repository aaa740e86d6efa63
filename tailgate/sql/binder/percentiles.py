"""percentile_cont and percentile_disc of several fractions: an array of the percentiles of each fraction.

    percentile_disc(ARRAY[0.5, 0.9]) WITHIN GROUP (ORDER BY x)
    ARRAY[percentile_disc(0.5) WITHIN GROUP (ORDER BY x), percentile_disc(0.9) WITHIN GROUP (ORDER BY x)]

Source: PostgreSQL 15, percentile_disc_multi_final() in src/backend/utils/adt/orderedsetaggs.c.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import FLOAT8
from tailgate.sql.binder.context import ExpressionBinder
from tailgate.sql.binder.positions import leftmost
from tailgate.sql.binder.types.coercion import coerce
from tailgate.sql.functions import catalogue
from tailgate.sql.plan import Call, Case, IsNull, Literal, Scalar

NAMES = ("percentile_cont", "percentile_disc")


def fractions(binder: ExpressionBinder, name: str, nodes: list[exp.Expr]) -> tuple[float | None, ...] | None:
    """Returns the fractions if a call has an array of them, else None. Raises 0A000 if they are not constant."""
    if name not in NAMES or len(nodes) != 1:
        return None
    array = binder.bind(nodes[0])
    if not array.type.is_array:
        return None
    if coerce(array, FLOAT8.array(), binder.parameters) is None:
        return None  # the resolution of the function raises the error
    items = _items(array)
    numbers = tuple(
        None if i.value is None else float(i.value) for i in items if i.value is None or isinstance(i.value, int | float | Decimal)
    )
    if len(numbers) == len(items) and any(n is not None for n in numbers):
        return numbers
    hint = "Write the fractions as constants, at least one of them not NULL."
    raise FeatureNotSupported(f"{name} of these fractions is not supported", hint=hint, position=leftmost(nodes[0]))


def _items(array: Scalar) -> list[Literal]:
    """Returns the elements of an array if all are constants, else an empty list."""
    if isinstance(array, Literal):
        return [Literal(v, array.type.element) for v in array.value] if isinstance(array.value, tuple) else []
    if not isinstance(array, Call) or array.function.name != "ARRAY":
        return []
    items = []
    for item in array.arguments:
        while isinstance(item, Call) and item.function.kind == "cast":
            (item,) = item.arguments
        items.append(item)
    constants = [i for i in items if isinstance(i, Literal)]
    return constants if len(constants) == len(items) else []


def of_each(fractions: tuple[float | None, ...], percentile: Callable[[exp.Expr], Scalar]) -> Scalar:
    """Returns the array of the percentiles, or NULL if there are no values to aggregate. `percentile` binds that of one fraction."""
    percentiles = {f: percentile(_number(f)) for f in fractions if f is not None}
    type = next(iter(percentiles.values())).type
    items = tuple(Literal(None, type) if f is None else percentiles[f] for f in fractions)
    array = Call(catalogue.calls("ARRAY")[0], items, type.array())
    return Case(((IsNull(next(iter(percentiles.values()))), Literal(None, array.type)),), array, array.type)


def _number(fraction: float) -> exp.Expr:
    type = exp.DataType(this=exp.DType.USERDEFINED, kind=FLOAT8.name, expressions=[])
    return exp.Cast(this=exp.Literal.string(repr(fraction)), to=type)
