"""Evaluates VALUES lists of literals and parameters without DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tailgate.lake import sortable
from tailgate.lake.errors import NumericValueOutOfRange
from tailgate.sql import plan
from tailgate.values.numbers import numerics
from tailgate.values.numbers.integers import RANGES

_TEXTS = ("text", "varchar", "name")
_PLAIN = frozenset(
    """
    bool int2 int4 int8 float4 float8 text numeric date timestamp timestamptz uuid bytea varchar json jsonb enum
    inet cidr macaddr macaddr8
    """.split()
)


def constants(rows: plan.Relation, values: Sequence[object]) -> pa.Table | None:
    """Returns the rows of a VALUES list, or None if they contain other expressions."""
    if not isinstance(rows, plan.Values) or any(f.type.is_array or f.type.name not in _PLAIN for f in rows.columns):
        return None
    columns = []
    try:
        for i, column in enumerate(rows.columns):
            values_of_column = [constant(row[i], values) for row in rows.rows]
            if column.type.general:  # a literal is a decimal
                values_of_column = [sortable.stored(v) if isinstance(v, Decimal) else v for v in values_of_column]
            columns.append(pa.array(values_of_column, column.type.arrow))
    except (_NotConstantError, pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None
    return pa.Table.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])


class _NotConstantError(Exception):
    """An expression is not a literal, a parameter or a simple cast of one."""


def constant(scalar: plan.Scalar, values: Sequence[object]) -> object:
    """Returns the value of a literal or a parameter, maybe in a simple cast.

    Drivers send small numbers as int2, so casts between integer types are common.
    """
    match scalar:
        case plan.Literal(value=value):
            return value
        case plan.Parameter(number=number):
            return values[number - 1]
        case plan.Call(function=function, arguments=(inner,), type=type) if function.kind == "cast":
            argument: Any = constant(inner, values)
            source = inner.type.name
            if argument is None or (source in _TEXTS and type.name in _TEXTS):
                return argument
            if source in RANGES and type.name in RANGES:
                low, high = RANGES[type.name]
                if not low <= argument <= high:
                    raise NumericValueOutOfRange(f"{type} out of range")
                return argument
            if source in RANGES and type.name == "numeric":
                return Decimal(argument)
            if inner.type.general and type.name == "numeric":
                return numerics.fitted(argument if isinstance(argument, Decimal) else sortable.loaded(**argument), type)
    raise _NotConstantError
