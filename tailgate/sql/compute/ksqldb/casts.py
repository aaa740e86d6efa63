"""CAST of arrays, maps and structures of ksqlDB: each value inside is cast as it is alone.

    whole numbers          lowest bits, as in Java; of a DOUBLE the nearest one
    date, time, timestamp  text in ISO 8601; a DATE is the TIMESTAMP of its midnight
    struct                 fields by name, whose case counts; a field that the source lacks is NULL

Types are those of `conversion`, and so are the casts that are not listed here.

Source: ksqlDB 0.29, documentation, "Scalar functions", section "CAST".
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from decimal import ROUND_DOWN, Decimal
from typing import Any

from tailgate.lake.errors import DatetimeFieldOverflow, InvalidDatetimeFormat
from tailgate.sql.compute.ksqldb.conversion import converted, mismatch, type_of
from tailgate.sql.compute.ksqldb.numbers import ksqldb_bigint_of_double, ksqldb_bigint_of_numeric, ksqldb_int_of_double
from tailgate.sql.compute.ksqldb.texts import ksqldb_double_text
from tailgate.sql.compute.ksqldb.times import offset_minutes
from tailgate.sql.compute.registry import udf
from tailgate.values.strings.jsonb import Json, dump, load, member_order

DAY_MS = 86_400_000
EPOCH = datetime(1970, 1, 1)
WHOLE = ("int", "bigint")
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
TIME = re.compile(r"\d\d:\d\d(:\d\d(\.\d{1,3})?)?", re.ASCII)
TIMESTAMP = re.compile(rf"({DATE.pattern})(?:T({TIME.pattern})(Z|[+-]\d\d:\d\d)?)?", re.ASCII)
DAY, MIDNIGHT = "0000-01-01", "00:00"  # the end of a date and of a time whose end may be missing
PARTIAL = re.compile(
    r"(\d{4}(?:-\d\d(?:-\d\d)?)?)(?:(?<=-\d\d-\d\d)T(\d\d(?::\d\d(?::\d\d(?:\.\d{1,3})?)?)?)(Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
ZONE = re.compile(r"([+-]\d\d)(\d\d)", re.ASCII)


@udf("jsonb", "text", "text", to="jsonb")
def ksqldb_cast(value: str, source: str, target: str) -> str | None:
    """Returns an array, map or structure of a type as another type. Raises 22P02, 22003, 22007, 22008, or 22023 for an invalid type."""
    result = _cast(load(value), type_of(source), type_of(target))
    return None if result is None else dump(result)


@udf("text", to="text")
def ksqldb_whole_timestamp(text: str) -> str:
    """Returns the text of a TIMESTAMP with the end of its date and of its time, which it may lack; another text as it is."""
    match = PARTIAL.fullmatch(text)
    if match is None:
        return text
    day, time, zone = match[1], match[2] or MIDNIGHT, ZONE.sub(r"\1:\2", match[3] or "")
    return f"{day}{DAY[len(day) :]}T{time}{MIDNIGHT[len(time) :]}{zone}"


@udf("jsonb", "text", to="text")
def ksqldb_nested_text(value: str, type: str) -> str:
    """Returns an array, map or structure as text, as Java writes it: [a, b], {k=v}, Struct{F=v}. Fields that are NULL are left out."""
    return _text(load(value), type_of(type))


@udf("jsonb", "text", to="text")
def ksqldb_typed_json(value: str, type: str) -> str:
    """Returns a value as JSON without blanks: the fields of structures are in the order of the type, and a DOUBLE is as in Java."""
    parsed = load(value)
    return "null" if parsed is None else _json(parsed, type_of(type))


def _json(value: Json, type: Any) -> str:
    if value is None:
        return "null"
    match type:
        case ["array", element] if isinstance(value, list):
            return "[" + ",".join(_json(item, element) for item in value) + "]"
        case ["map", inner] if isinstance(value, dict):
            return "{" + ",".join(f"{dump(key)}:{_json(value[key], inner)}" for key in sorted(value, key=member_order)) + "}"
        case ["struct", *fields] if isinstance(value, dict):
            return "{" + ",".join(f"{dump(name)}:{_json(value.get(name), of_field)}" for name, of_field in fields) + "}"
        case "double" if isinstance(value, Decimal):
            return ksqldb_double_text(float(value))
    return dump(value)


def _cast(value: Json, source: Any, target: Any) -> Json:
    if value is None or source == target:
        return value
    match source, target:
        case ["array", of_source], ["array", of_target] if isinstance(value, list):
            return [_cast(item, of_source, of_target) for item in value]
        case ["map", of_source], ["map", of_target] if isinstance(value, dict):
            return {key: _cast(item, of_source, of_target) for key, item in value.items()}
        case ["struct", *of_source], ["struct", *of_target] if isinstance(value, dict):
            fields = {name: (name, type) for name, type in of_source}
            return {name: _field(value, fields.get(name), type) for name, type in of_target}
        case _, "varchar":
            return _text(value, source)
        case "varchar", "date" | "time" | "timestamp" if isinstance(value, str):
            return Decimal(_moment(value, target))
        case "date", "timestamp":
            return _number(value) * DAY_MS
        case "timestamp", "date":
            return Decimal(int(_number(value)) // DAY_MS)
        case "timestamp", "time":
            return Decimal(int(_number(value)) % DAY_MS)
        case "double", "int":
            return Decimal(ksqldb_int_of_double(float(_number(value))))
        case "double", "bigint":
            return Decimal(ksqldb_bigint_of_double(float(_number(value))))
        case ["decimal", *_] | "bigint", "int" | "bigint":
            return Decimal(_whole(_number(value), target))
    return converted(value, target)


def _field(structure: dict[str, Json], field: tuple[str, Any] | None, target: Any) -> Json:
    """Returns the value of a field, which is None if the structure's type lacks it."""
    return None if field is None else _cast(structure.get(field[0]), field[1], target)


def _number(value: Json) -> Decimal:
    """Returns a number, or the number in a string such as "NaN". Raises 22P02."""
    number = converted(value, "double") if isinstance(value, str) else value
    if not isinstance(number, Decimal):
        raise mismatch(value, "double")
    return number


def _whole(number: Decimal, type: str) -> int:
    whole = ksqldb_bigint_of_numeric(number.to_integral_value(ROUND_DOWN))
    return whole if type == "bigint" else (whole + 2**31) % 2**32 - 2**31


def _text(value: Json, type: Any) -> str:
    if value is None:
        return "null"
    match type:
        case ["array", element] if isinstance(value, list):
            return "[" + ", ".join(_text(item, element) for item in value) + "]"
        case ["map", inner] if isinstance(value, dict):
            keys = sorted(value, key=member_order)
            return "{" + ", ".join(f"{key}={_text(value[key], inner)}" for key in keys) + "}"
        case ["struct", *fields] if isinstance(value, dict):
            return "Struct{" + ",".join(f"{n}={_text(value[n], t)}" for n, t in fields if value.get(n) is not None) + "}"
        case "double":
            if isinstance(value, bool) or not isinstance(value, str | Decimal):
                raise mismatch(value, type)
            try:
                return ksqldb_double_text(float(value))
            except ValueError:
                raise mismatch(value, type) from None
        case "date" | "time" | "timestamp":
            return _moment_text(int(_number(value)), type)
    return value if isinstance(value, str) else dump(value)


def _moment_text(number: int, type: str) -> str:
    """Returns days or milliseconds as the text of a DATE, TIME or TIMESTAMP. Raises 22008."""
    try:
        moment = EPOCH + timedelta(milliseconds=number * DAY_MS if type == "date" else number)
    except OverflowError:
        raise DatetimeFieldOverflow(f"{type} out of range") from None
    if type == "date":
        return moment.date().isoformat()
    if type == "timestamp":
        return moment.isoformat(timespec="milliseconds")
    precision = "milliseconds" if moment.microsecond else "seconds" if moment.second else "minutes"
    return moment.time().isoformat(timespec=precision)


def _moment(text: str, type: str) -> int:
    """Returns the days or milliseconds of the text of a DATE, TIME or TIMESTAMP. Raises 22007."""
    try:
        if type == "date" and DATE.fullmatch(text):
            return date.fromisoformat(text).toordinal() - EPOCH.toordinal()
        if type == "time" and TIME.fullmatch(text):
            return (_time(text) - datetime.min) // timedelta(milliseconds=1)
        if type == "timestamp" and (match := TIMESTAMP.fullmatch(text)):
            day = datetime.fromisoformat(match[1])
            zone = timedelta(minutes=offset_minutes(match[5] or "Z"))
            return (day - EPOCH + (_time(match[2] or "00:00") - datetime.min) - zone) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        pass
    raise InvalidDatetimeFormat(f'invalid input syntax for type {type.upper()}: "{text}"')


def _time(text: str) -> datetime:
    """Returns a time of the first day. Raises ValueError."""
    whole, _, fraction = text.partition(".")
    return datetime.combine(date.min, time.fromisoformat(whole).replace(microsecond=int(fraction.ljust(6, "0") or 0)))
