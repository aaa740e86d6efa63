"""The formats JSON and JSON_SR: decimals are numbers, timestamps milliseconds, dates days, bytes base64, and nulls are written.

A map is an object in JSON, and a list of entries {"key": …, "value": …} in JSON_SR.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from tailgate.formats.ksqldb.values import Column, Type, Values

PLAIN_MIN, PLAIN_MAX = 1e-3, 1e7  # doubles outside of this range have an exponent

ENCODER = json.JSONEncoder(ensure_ascii=False)  # json.dumps makes one for each call

Writer: TypeAlias = Callable[[Any], str]


def quoted(value: Any) -> str:
    """Returns a text, a number or a boolean as JSON."""
    return str(value) if type(value) is int else ENCODER.encode(value)


def double(value: float) -> str:
    """Returns a DOUBLE as Java writes it.

    >>> double(68.5), double(1.0), double(12345678.0), double(0.0001), double(float("inf"))
    ('68.5', '1.0', '1.2345678E7', '1.0E-4', '"Infinity"')
    """
    if not math.isfinite(value):
        return quoted("NaN" if value != value else "Infinity" if value > 0 else "-Infinity")
    if value == 0 or PLAIN_MIN <= abs(value) < PLAIN_MAX:
        return repr(value)
    sign, digits, _ = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    return f"{'-' * sign}{text[0]}.{text[1:] or '0'}E{Decimal(repr(value)).adjusted()}"


SCALARS: dict[str, Writer] = {
    "double": double,
    "bytes": lambda value: quoted(base64.b64encode(value).decode()),
    "json": str,
}


def writer(type: Type, *, entries: bool = False) -> Writer:
    """Returns a function that writes a value of a type. `entries`: whether a map is a list of entries."""
    write = _writer(type, entries)
    return lambda value: "null" if value is None else write(value)


def _writer(type: Type, entries: bool) -> Writer:
    match type:
        case ["array", inner]:
            element = writer(inner, entries=entries)
            return lambda value: f"[{','.join(map(element, value))}]"
        case ["map", inner]:
            member = writer(inner, entries=entries)
            if entries:
                entry = '{"key":%s,"value":%s}'
                return lambda value: f"[{','.join(entry % (quoted(k), member(v)) for k, v in value.items())}]"
            return lambda value: f"{{{','.join(f'{quoted(k)}:{member(v)}' for k, v in value.items())}}}"
        case ["struct", *fields]:
            members = [(name, quoted(name), writer(inner, entries=entries)) for name, inner in fields]
            return lambda value: f"{{{','.join(f'{key}:{write(value[name])}' for name, key, write in members)}}}"
        case ["decimal", *_]:
            return lambda value: f"{value:f}"
    return SCALARS.get(type, quoted)


def texts(column: Column, values: Values, *, entries: bool = False) -> list[str]:
    """Returns the JSON of a column's values."""
    write = _writer(column.type, entries)
    return ["null" if value is None else write(value) for value in values]


def encoded(columns: Sequence[Column], values: Sequence[Values], length: int, *, entries: bool = False) -> list[bytes | None]:
    """Returns a JSON object with a member for each column, for each row."""
    if not columns:
        return [b"{}"] * length
    members = ",".join(f"{quoted(c.name).replace('%', '%%')}:%s" for c in columns)
    form = f"{{{members}}}"
    parts = [texts(c, of_column, entries=entries) for c, of_column in zip(columns, values, strict=True)]
    return [(form % row).encode() for row in zip(*parts, strict=True)]


def encoded_alone(column: Column, values: Values, *, entries: bool = False) -> list[bytes | None]:
    """Returns the JSON of a column's values; NULL has no bytes."""
    return [None if text == "null" else text.encode() for text in texts(column, values, entries=entries)]
