"""Evaluates VALUES lists of literals and parameters without DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any

import pyarrow as pa

from tailgate.lake import sortable
from tailgate.lake.errors import NumericValueOutOfRange
from tailgate.lake.types import Type
from tailgate.sql import plan
from tailgate.sql.compute.catalogue import UDFS
from tailgate.sql.plan.session_calls import HASHES, is_of_constants
from tailgate.values.numbers import numerics
from tailgate.values.numbers.integers import RANGES

HASHED_MAX = 10_000  # characters of a text that is hashed in the event loop: 20 ms
_TEXTS = ("text", "varchar", "name")
_PLAIN = frozenset(
    """
    bool int2 int4 int8 float4 float8 text numeric date timestamp timestamptz uuid bytea varchar json jsonb enum
    inet cidr macaddr macaddr8 bit varbit timetz char jsonpath money int4range int8range numrange daterange tsrange tstzrange
    int4multirange int8multirange nummultirange datemultirange tsmultirange tstzmultirange
    """.split()
)


@dataclass(frozen=True, slots=True)
class Constants:
    """Rows of literals and values of parameters, as Python objects by column, and the types of the columns."""

    types: tuple[Type, ...]
    columns: tuple[list[object], ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def table(self) -> pa.Table | None:
        """Returns the rows with the columns c0, c1, …, or None if a value does not fit its type."""
        try:
            arrays = [_array(values, type) for values, type in zip(self.columns, self.types, strict=True)]
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            return None
        return pa.Table.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))])


def _array(values: list[object], type: Type) -> pa.Array:
    if type.general:  # a literal is a decimal
        values = [sortable.stored(v) if isinstance(v, Decimal) else v for v in values]
    return pa.array(values, type.arrow)


def together(members: Sequence[Constants]) -> Constants:
    """Returns the rows of all members, which have the same types."""
    columns = zip(*(m.columns for m in members), strict=True)
    return Constants(members[0].types, tuple(list(chain.from_iterable(parts)) for parts in columns))


def constants(rows: plan.Relation, values: Sequence[object]) -> Constants | None:
    """Returns the rows of a VALUES list, or None if they contain other expressions."""
    if not isinstance(rows, plan.Values) or not rows.columns or any(f.type.is_array or f.type.name not in _PLAIN for f in rows.columns):
        return None
    try:
        columns = tuple([constant(row[i], values) for row in rows.rows] for i in range(len(rows.columns)))
    except NotConstantError:
        return None
    return Constants(tuple(f.type for f in rows.columns), columns)


class NotConstantError(Exception):
    """An expression is not a literal, a parameter or a simple cast of one, or hashes a text with more than HASHED_MAX characters."""


def constant(scalar: plan.Scalar, values: Sequence[object]) -> object:
    """Returns the value of a literal or a parameter, maybe in a simple cast, or a hash of such texts.

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
            if inner.type.general and type.name == "numeric" and not type.general:
                return numerics.fitted(argument if isinstance(argument, Decimal) else sortable.loaded(**argument), type)
        case plan.Call(function=function, arguments=arguments) if is_of_constants(function):
            operands: list[Any] = [constant(argument, values) for argument in arguments]
            if None in operands:
                return None
            if function.name in HASHES and len(operands[0]) > HASHED_MAX:
                raise NotConstantError
            return UDFS[function.name].function(*operands) if function.name in HASHES else operands[0] + operands[1]
    raise NotConstantError
