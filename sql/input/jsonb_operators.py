"""jsonb's operators and casts over canonical text, as PostgreSQL computes them.

Source: PostgreSQL 15, section "JSON Functions and Operators"; src/backend/utils/adt/jsonb_op.c, jsonfuncs.c.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal

from lake.errors import InvalidParameterValue, NumericValueOutOfRange
from sql.input import jsonb, numbers

MISSING = object()  # told from JSON's null


def member(text: str, key: str | int) -> jsonb.Json:
    """A field or element, or MISSING: ->."""
    value = jsonb.load(text)
    if isinstance(key, str):
        return value.get(key, MISSING) if isinstance(value, dict) else MISSING
    if isinstance(value, dict):
        return MISSING
    items = value if isinstance(value, list) else [value]  # a scalar is stored as an array of one, and read as one
    return items[key] if -len(items) <= key < len(items) else MISSING


def as_json(value: jsonb.Json) -> str | None:
    return None if value is MISSING else jsonb.dump(value)


def as_text(value: jsonb.Json) -> str | None:
    """As ->> gives it: strings without quotes, JSON's null as NULL."""
    if value is MISSING or value is None:
        return None
    return value if isinstance(value, str) else jsonb.dump(value)


def elements(text: str) -> list[jsonb.Json]:
    """Of an array; 22023 for anything else."""
    value = jsonb.load(text)
    if not isinstance(value, list):
        raise InvalidParameterValue(f"cannot extract elements from {'an object' if isinstance(value, dict) else 'a scalar'}")
    return value


def members(text: str, function: str) -> dict[str, jsonb.Json]:
    """Of an object; 22023 for anything else."""
    value = jsonb.load(text)
    if isinstance(value, dict):
        return value
    what = "a non-object" if function != "jsonb_object_keys" else "an array" if isinstance(value, list) else "a scalar"
    raise InvalidParameterValue(f"cannot call {function} on {what}")


def at_path(text: str, path: list[str | None]) -> jsonb.Json:
    value = jsonb.load(text)
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step is not None and numbers.INTEGER.fullmatch(step) and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        else:
            return MISSING
    return value


def contains(a: jsonb.Json, b: jsonb.Json, top: bool = True) -> bool:
    """@>: b's parts are all in a; an array contains a scalar that stands alone."""
    match a, b:
        case dict(), dict():
            return all(k in a and contains(a[k], v, False) for k, v in b.items())
        case list(), list():
            return all(any(contains(x, y, False) for x in a) for y in b)
        case list(), _ if top and not isinstance(b, dict):
            return any(type(x) is type(b) and x == b for x in a)
    return type(a) is type(b) and a == b


def exists(text: str, key: str) -> bool:
    value = jsonb.load(text)
    if isinstance(value, (dict, list)):
        return key in value if isinstance(value, dict) else any(isinstance(v, str) and v == key for v in value)
    return isinstance(value, str) and value == key


def kind(value: jsonb.Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case Decimal():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def array_length(text: str) -> int:
    value = jsonb.load(text)
    if isinstance(value, list):
        return len(value)
    what = "a non-array" if isinstance(value, dict) else "a scalar"
    raise InvalidParameterValue(f"cannot get array length of {what}")


CAST_WORDS = {"bool": "boolean", "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real", "float8": "double precision"}


def number_of(text: str, type: str) -> Decimal:
    value = jsonb.load(text)
    if not isinstance(value, Decimal):
        raise InvalidParameterValue(f"cannot cast jsonb {kind(value)} to type {CAST_WORDS.get(type, type)}")
    return value


def to_integer(type: str) -> Callable[[str], int]:
    def convert(text: str) -> int:
        value = int(number_of(text, type).quantize(Decimal(1), rounding=ROUND_HALF_UP, context=numbers.EXACT))
        low, high = numbers.RANGES[type]
        if not low <= value <= high:
            raise NumericValueOutOfRange(f"{CAST_WORDS[type]} out of range")
        return value

    return convert


def to_real(type: str) -> Callable[[str], float]:
    return lambda text: numbers.real(str(number_of(text, type)), type)


def to_bool(text: str) -> bool:
    value = jsonb.load(text)
    if not isinstance(value, bool):
        raise InvalidParameterValue(f"cannot cast jsonb {kind(value)} to type boolean")
    return value
