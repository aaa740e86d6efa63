"""The methods of a jsonpath that make one item of one item, such as type() and double().

Source: PostgreSQL 15, src/backend/utils/adt/jsonpath_exec.c.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from tailgate.lake.errors import TailgateError, of
from tailgate.lake.types import FLOAT8
from tailgate.values.codec.style import DEFAULT
from tailgate.values.numbers import floats
from tailgate.values.numeric import arithmetic
from tailgate.values.strings.jsonb import Json

ARRAY, NON_NUMERIC = "22039", "22036"


class PathError(Exception):
    """An error of the evaluation, which conditions and silent calls suppress."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(message)
        self.error = of(sqlstate, message)


def applied(name: str, value: Json, *, lax: bool) -> Json:
    """Returns the item that a method makes of an item. Raises PathError."""
    match name:
        case "type":
            return type_name(value)
        case "size":
            if not isinstance(value, list) and not lax:
                raise PathError(ARRAY, "jsonpath item method .size() can only be applied to an array")
            return Decimal(len(value) if isinstance(value, list) else 1)
        case "double":
            return _double(value)
    if not isinstance(value, Decimal):
        raise PathError(NON_NUMERIC, f"jsonpath item method .{name}() can only be applied to a numeric value")
    return {"abs": arithmetic.absolute, "floor": arithmetic.floor, "ceiling": arithmetic.ceiling}[name](value)


def _double(value: Json) -> Json:
    if not isinstance(value, Decimal | str):
        raise PathError(NON_NUMERIC, "jsonpath item method .double() can only be applied to a string or numeric value")
    try:
        number = floats.read(value if isinstance(value, str) else f"{value:f}", FLOAT8, DEFAULT)
    except TailgateError:
        number = math.nan
    if math.isfinite(number):
        return value if isinstance(value, Decimal) else Decimal(f"{Decimal(f'{number:.15g}'):f}")
    if isinstance(value, Decimal):
        message = "numeric argument of jsonpath item method .double() is out of range for type double precision"
    else:
        message = "string argument of jsonpath item method .double() is not a valid representation of a double precision number"
    raise PathError(NON_NUMERIC, message)


def type_name(value: Json) -> str:
    names: dict[type[Any], str] = {bool: "boolean", Decimal: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")
