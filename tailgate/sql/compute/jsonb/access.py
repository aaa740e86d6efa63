"""Functions that read a jsonb, which is its canonical text.

Source: PostgreSQL 15, section "JSON Functions and Operators"; src/backend/utils/adt/{jsonb,jsonfuncs,
jsonb_op}.c.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from tailgate.lake.errors import InvalidParameterValue, NumericValueOutOfRange, TailgateError
from tailgate.lake.sortable import EXACT
from tailgate.lake.types import FLOAT4, FLOAT8, Type
from tailgate.sql.compute.registry import udf
from tailgate.values.codec.style import DEFAULT
from tailgate.values.numbers import floats
from tailgate.values.numbers.integers import RANGES, strtoint
from tailgate.values.numbers.numerics import scaled
from tailgate.values.strings import jsonb
from tailgate.values.strings.jsonb import Json, dump, load

MISSING = object()  # the result of looking for a value that does not exist; None is JSON's null

udf("text", to="jsonb", name="jsonb_parse")(jsonb.canonical)
udf("jsonb", to="bytea", name="jsonb_order")(jsonb.order_key)


# --- parts ---------------------------------------------------------------------------------------


def _part(text: str, key: str | int) -> Json:
    """Returns a member of an object or an element of an array, or MISSING."""
    value = load(text)
    if isinstance(key, str):
        return value.get(key, MISSING) if isinstance(value, dict) else MISSING
    if isinstance(value, dict):
        return MISSING
    items = value if isinstance(value, list) else [value]  # PostgreSQL reads a scalar as an array
    return items[key] if -len(items) <= key < len(items) else MISSING


def _part_at_path(text: str, path: list[str | None]) -> Json:
    value = load(text)
    for step in path:
        if step is None:
            return MISSING
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and (index := strtoint(step)) is not None and -len(value) <= index < len(value):
            value = value[index]
        else:
            return MISSING
    return value


def _json(value: Json) -> str | None:
    return None if value is MISSING else dump(value)


def _text(value: Json) -> str | None:
    """Returns a string without quotes, None for JSON's null, and the JSON text of other values."""
    if value is MISSING or value is None:
        return None
    return value if isinstance(value, str) else dump(value)


@udf("jsonb", "text", to="jsonb")
def jsonb_get(text: str, key: str) -> str | None:
    return _json(_part(text, key))


@udf("jsonb", "text", to="text")
def jsonb_get_text(text: str, key: str) -> str | None:
    return _text(_part(text, key))


@udf("jsonb", "int4", to="jsonb")
def jsonb_element(text: str, index: int) -> str | None:
    return _json(_part(text, index))


@udf("jsonb", "int4", to="text")
def jsonb_element_text(text: str, index: int) -> str | None:
    return _text(_part(text, index))


@udf("jsonb", "text[]", to="jsonb")
def jsonb_path(text: str, path: list[str | None]) -> str | None:
    return _json(_part_at_path(text, path))


@udf("jsonb", "text[]", to="text")
def jsonb_path_text(text: str, path: list[str | None]) -> str | None:
    return _text(_part_at_path(text, path))


# --- containment ---------------------------------------------------------------------------------


@udf("jsonb", "jsonb", to="bool")
def jsonb_contains(whole: str, part: str) -> bool:
    return _contains(load(whole), load(part), top=True)


def _contains(whole: Json, part: Json, *, top: bool = False) -> bool:
    """Returns whether a value contains another one; only a top-level array contains a scalar."""
    match whole, part:
        case dict(), dict():
            return all(k in whole and _contains(whole[k], v) for k, v in part.items())
        case list(), list():
            return all(any(_contains(x, y) for x in whole) for y in part)
        case list(), _ if top and not isinstance(part, dict):
            return any(type(x) is type(part) and x == part for x in whole)
    return type(whole) is type(part) and whole == part


@udf("jsonb", "text", to="bool")
def jsonb_exists(text: str, key: str) -> bool:
    value = load(text)
    if isinstance(value, dict):
        return key in value
    elements = value if isinstance(value, list) else [value]
    return any(isinstance(v, str) and v == key for v in elements)


@udf("jsonb", "text[]", to="bool")
def jsonb_exists_any(text: str, keys: list[str | None]) -> bool:
    return any(jsonb_exists(text, key) for key in keys if key is not None)


@udf("jsonb", "text[]", to="bool")
def jsonb_exists_all(text: str, keys: list[str | None]) -> bool:
    return all(jsonb_exists(text, key) for key in keys if key is not None)


# --- types and casts -----------------------------------------------------------------------------


@udf("jsonb", to="text")
def jsonb_typeof(text: str) -> str:
    return _type_name(load(text))


def _type_name(value: Json) -> str:
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


@udf("jsonb", to="int4")
def jsonb_array_length(text: str) -> int:
    value = load(text)
    if isinstance(value, list):
        return len(value)
    kind = "a non-array" if isinstance(value, dict) else "a scalar"
    raise InvalidParameterValue(f"cannot get array length of {kind}")


def _no_cast(value: Json, type: str) -> TailgateError:
    kind = "numeric" if isinstance(value, Decimal) else _type_name(value)
    return InvalidParameterValue(f"cannot cast jsonb {kind} to type {type}")


def _number(text: str, type: str) -> Decimal:
    value = load(text)
    if not isinstance(value, Decimal):
        raise _no_cast(value, type)
    return value


def _integer(text: str, type: str) -> int:
    name = Type(type).facts.sql
    value = int(_number(text, name).quantize(Decimal(1), rounding=ROUND_HALF_UP, context=EXACT))
    low, high = RANGES[type]
    if not low <= value <= high:
        raise NumericValueOutOfRange(f"{name} out of range")
    return value


@udf("jsonb", to="int2")
def jsonb_int2(text: str) -> int:
    return _integer(text, "int2")


@udf("jsonb", to="int4")
def jsonb_int4(text: str) -> int:
    return _integer(text, "int4")


@udf("jsonb", to="int8")
def jsonb_int8(text: str) -> int:
    return _integer(text, "int8")


@udf("jsonb", to="float4")
def jsonb_float4(text: str) -> float:
    return floats.read(str(_number(text, "real")), FLOAT4, DEFAULT)


@udf("jsonb", to="float8")
def jsonb_float8(text: str) -> float:
    return floats.read(str(_number(text, "double precision")), FLOAT8, DEFAULT)


@udf("jsonb", to="general")
def jsonb_general(text: str) -> Decimal:
    return _number(text, "numeric")


@udf("jsonb", "int4", "int4", to="numeric")
def jsonb_numeric(text: str, precision: int, scale: int) -> Decimal:
    return scaled(_number(text, "numeric"), precision, scale)


@udf("jsonb", to="bool")
def jsonb_bool(text: str) -> bool:
    value = load(text)
    if not isinstance(value, bool):
        raise _no_cast(value, "boolean")
    return value


# --- sets of rows --------------------------------------------------------------------------------


def _elements(text: str) -> list[Json]:
    value = load(text)
    if not isinstance(value, list):
        kind = "an object" if isinstance(value, dict) else "a scalar"
        raise InvalidParameterValue(f"cannot extract elements from {kind}")
    return value


def _members(text: str, function: str) -> dict[str, Json]:
    value = load(text)
    if isinstance(value, dict):
        return value
    if function != "jsonb_object_keys":
        raise InvalidParameterValue(f"cannot call {function} on a non-object")
    kind = "an array" if isinstance(value, list) else "a scalar"
    raise InvalidParameterValue(f"cannot call {function} on {kind}")


@udf("jsonb", to="jsonb[]")
def jsonb_elements(text: str) -> list[str | None]:
    return [_json(v) for v in _elements(text)]


@udf("jsonb", to="text[]")
def jsonb_elements_text(text: str) -> list[str | None]:
    return [_text(v) for v in _elements(text)]


@udf("jsonb", to="text[]")
def jsonb_keys(text: str) -> list[str]:
    return list(_members(text, "jsonb_object_keys"))


@udf("jsonb", to="pairs")
def jsonb_each(text: str) -> list[dict[str, str | None]]:
    return [{"key": k, "value": _json(v)} for k, v in _members(text, "jsonb_each").items()]


@udf("jsonb", to="pairs")
def jsonb_each_text(text: str) -> list[dict[str, str | None]]:
    return [{"key": k, "value": _text(v)} for k, v in _members(text, "jsonb_each_text").items()]
