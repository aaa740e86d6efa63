"""Encoding of Arrow columns (in their stored form) as JSON, as Materialize writes it.

    numbers           as numbers; NaN and infinities as strings
    numeric           as a string, exact: "1.10", "NaN", "Infinity"
    timestamp[tz]     a string of milliseconds since the epoch with three decimals: "1321009871123.450", or "infinity"
    date, time, uuid  a string; an interval in ISO 8601: "P1Y2M3DT4.5S"
    bytea             an array of numbers
    json, jsonb       unchanged
    arrays, records   arrays, objects
    enums             the label as a string
    all others        a string with PostgreSQL's text

Source: Materialize, src/interchange/src/json.rs; the form of intervals is our own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from datetime import time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tailgate.lake import sortable
from tailgate.lake.tables import moments
from tailgate.lake.types import Field, Type
from tailgate.values.registry import text_writer
from tailgate.values.strings.single_bytes import shown
from tailgate.values.times.calendar import INFINITIES_TIME
from tailgate.values.times.dates import write_date

MICROS = 1_000_000
JSON_TYPES = frozenset({"json", "jsonb"})
QUOTED = json.encoder.encode_basestring  # leaves non-ASCII characters unescaped


def rows(columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]:
    """Returns a JSON object of these columns for each row."""
    if not columns:
        return [b"{}"] * length
    parts = []
    for field, array in zip(columns, arrays, strict=True):
        name = QUOTED(field.name) + ":"
        parts.append([name + text for text in _column(array, field.type)])
    return [("{" + ",".join(row) + "}").encode() for row in zip(*parts, strict=True)]


def texts(field: Field, array: pa.Array) -> list[bytes]:
    """Returns a column as text; JSON strings lose their quotes."""
    out, is_json = [], field.type.name in JSON_TYPES
    for text in _column(array, field.type):
        if text == "null" and not is_json:
            raise ValueError(f'null in column "{field.name}"')
        plain = json.loads(text) if text.startswith('"') and not is_json else {"true": "t", "false": "f"}.get(text, text)
        out.append(str(plain).encode())
    return out


def _column(array: pa.Array, type: Type) -> list[str]:
    write = writer(type)
    return ["null" if value is None else write(value) for value in moments.numbers(array).to_pylist()]


def writer(type: Type) -> Callable[[Any], str]:
    """Returns the function that writes one value that is not NULL."""
    if type.is_array:
        element = writer(type.element)
        return lambda values: "[" + ",".join("null" if v is None else element(v) for v in values) + "]"
    if type.name == "record":
        fields = [(QUOTED(f.name) + ":", writer(f.type)) for f in type.fields]
        return lambda row: (
            "{" + ",".join(name + ("null" if v is None else write(v)) for v, (name, write) in zip(row.values(), fields, strict=True)) + "}"
        )
    if type.enum is not None:
        labels = {number: QUOTED(text) for number, text in type.labels}
        return labels.__getitem__
    return WRITERS.get("general" if type.general else type.name) or _printed(type)


def _printed(type: Type) -> Callable[[Any], str]:
    """Returns the writer of values as strings with PostgreSQL's text."""
    write = text_writer(type)
    return lambda value: QUOTED(write(value).decode())


def _float(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'


def _numeric(value: Decimal) -> str:
    return f'"{value:f}"'


def _general(value: dict[str, Any]) -> str:
    return _numeric(sortable.loaded(**value))


def _timestamp(value: int) -> str:
    if value in INFINITIES_TIME:
        return f'"{INFINITIES_TIME[value].decode()}"'
    sign, value = ("-", -value) if value < 0 else ("", value)
    return f'"{sign}{value // 1000}.{value % 1000:03}"'


def _time(value: int) -> str:
    seconds, micros = divmod(value, MICROS)
    if seconds == 86_400:
        return '"24:00:00"'
    return f'"{time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros).isoformat()}"'


def _interval(value: dict[str, int]) -> str:
    years, months = divmod(abs(value["months"]), 12)
    sign = -1 if value["months"] < 0 else 1
    seconds = Decimal(value["micros"]).scaleb(-6).normalize()
    text = f"{sign * years}Y" * bool(years) + f"{sign * months}M" * bool(months) + f"{value['days']}D" * bool(value["days"])
    return f'"P{text or ""}T{seconds:f}S"' if seconds or not text else f'"P{text}"'


def _plain(value: Any) -> str:
    return str(value)


def _date(value: int) -> str:
    return f'"{write_date(value).decode()}"'


WRITERS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("int2", "int4", "int8", "oid"), _plain),
    **dict.fromkeys(("float4", "float8"), _float),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid", "macaddr", "macaddr8", "bit", "varbit", "unknown"), QUOTED),
    **dict.fromkeys(("timestamp", "timestamptz"), _timestamp),
    "char": lambda value: QUOTED(shown(value)),
    "bool": lambda value: "true" if value else "false",
    "bytea": lambda value: "[" + ",".join(map(str, value)) + "]",
    "numeric": _numeric,
    "general": _general,  # a numeric with a display scale per value
    "date": _date,
    "time": _time,
    "interval": _interval,
    "json": str,
    "jsonb": str,
}
