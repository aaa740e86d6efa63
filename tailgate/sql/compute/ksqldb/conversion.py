"""Conversion of JSON to the form of one of ksqlDB's types: of messages, and of values that are cast implicitly.

A type is JSON: "int", ["decimal", 4, 2], ["array", type], ["map", type of the values], ["struct", [name, type], …].

    boolean                true, false, or a string
    int, bigint            a number, whose fraction is left out, or a string
    double, decimal        a number or a string
    varchar                a string, or the text of another value: [a, 1] of an array, JSON of an object, sorted by name
    bytes                  a string
    date, time, timestamp  a whole number
    map                    an object, or an array of objects with key and value
    struct                 an object; names match regardless of case

Source: ksqlDB 0.29, documentation, "Serialization formats", section "JSON".
"""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from tailgate.lake.errors import InvalidParameterValue, InvalidTextRepresentation, NumericValueOutOfRange, TailgateError
from tailgate.sql.compute.jsonb.construction import jsonb_of_float8
from tailgate.sql.compute.ksqldb.json_texts import ksqldb_json_text
from tailgate.sql.compute.registry import udf
from tailgate.values.strings.jsonb import Json, dump, load

BITS = {"int": 31, "bigint": 63, "date": 31, "time": 63, "timestamp": 63}
SCALARS = frozenset(("boolean", "double", "varchar", "bytes", *BITS))
PRECISION_MAX = 1000  # of a decimal
EXACT = Context(prec=PRECISION_MAX + 1)  # rounding may add a digit
CACHE_MAX = 256  # types


@udf("jsonb", "text", to="jsonb")
def ksqldb_convert(value: str, type: str) -> str | None:
    """Returns a value in the form of a type; NULL for null. Raises 22P02, 22003, or 22023 for an invalid type."""
    result = converted(load(value), type_of(type))
    return None if result is None else dump(result)


@lru_cache(maxsize=CACHE_MAX)
def type_of(text: str) -> Any:
    """Returns a type from its text. Raises 22023."""
    return _checked(load(text))


def _checked(type: Json) -> Any:
    """Returns a type whose digits are integers. Raises 22023."""
    match type:
        case str() if type in SCALARS:
            return type
        case ["decimal", precision, scale] if _is_count(precision) and _is_count(scale) and precision >= 1 and scale <= precision:
            return ["decimal", int(precision), int(scale)]
        case ["array" | "map" as kind, inner]:
            return [kind, _checked(inner)]
        case ["struct", *fields] if all(isinstance(f, list) and len(f) == 2 and isinstance(f[0], str) for f in fields):
            return ["struct", *([name, _checked(inner)] for name, inner in fields)]
    raise InvalidParameterValue(f"{dump(type)} is not a type of ksqlDB")


def _is_count(value: Json) -> bool:
    return isinstance(value, Decimal) and 0 <= value <= PRECISION_MAX and value == value.to_integral_value()


def converted(value: Json, type: Any) -> Json:
    """Returns a value in the form of a type. Raises 22P02 or 22003."""
    if value is None:
        return None
    match type:
        case ["array", element] if isinstance(value, list):
            return [converted(item, element) for item in value]
        case ["map", inner] if isinstance(value, dict):
            return {key: converted(item, inner) for key, item in value.items()}
        case ["map", inner] if isinstance(value, list) and all(map(_is_entry, value)):
            return {entry["key"]: converted(entry["value"], inner) for entry in value}
        case ["struct", *fields] if isinstance(value, dict):
            folded = {key.lower(): item for key, item in value.items()}
            return {name: converted(value.get(name, folded.get(name.lower())), inner) for name, inner in fields}
        case "varchar":
            return _text(value)
        case "bytes" if isinstance(value, str):
            return value
        case "boolean" if isinstance(value, bool):
            return value
        case "boolean" if isinstance(value, str):
            return value.lower() == "true"
        case "double" | ["decimal", *_] | "int" | "bigint" | "date" | "time" | "timestamp":
            return _number(value, type)
    raise mismatch(value, type)


def _text(value: Json) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return value if isinstance(value, str) else _json(value)


def _json(value: Json) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_json, value))}]"
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))  # as Java sorts
        return f"{{{','.join(f'{dump(name)}:{_json(value[name])}' for name in names)}}}"
    return ksqldb_json_text(dump(value))


def _is_entry(value: Json) -> bool:
    return isinstance(value, dict) and value.keys() == {"key", "value"} and isinstance(value["key"], str)


def mismatch(value: Json, type: Any) -> TailgateError:
    """Returns the error of a value that is not one of a type."""
    return InvalidTextRepresentation(f"{dump(value)} is not a value of type {type if isinstance(type, str) else type[0]}")


def _number(value: Json, type: Any) -> Json:
    """Returns a number or the number in a string. Raises 22P02 or 22003."""
    if isinstance(value, bool) or not isinstance(value, str | Decimal):
        raise mismatch(value, type)
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise mismatch(value, type) from None
    if not number.is_finite():
        raise mismatch(value, type)
    if type == "double":
        return load(jsonb_of_float8(float(number)))
    if isinstance(type, str):
        whole = number.to_integral_value(ROUND_DOWN)
        if not -(2 ** BITS[type]) <= whole < 2 ** BITS[type]:
            raise NumericValueOutOfRange(f"{type} out of range")
        return whole
    _, precision, scale = type
    if number.adjusted() >= precision - scale and number != 0:
        raise NumericValueOutOfRange("numeric field overflow")
    rounded = number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT)
    if abs(rounded) >= Decimal(1).scaleb(precision - scale):
        raise NumericValueOutOfRange("numeric field overflow")
    return rounded
