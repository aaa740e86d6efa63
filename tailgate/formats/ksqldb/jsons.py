"""The format JSON: decimals are numbers, timestamps milliseconds, dates days, bytes base64, and nulls are written."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import Field

EPOCH = date(1970, 1, 1).toordinal()
MICROS_PER_MILLISECOND = 1000


def quoted(value: Any) -> str:
    """Returns a text, a number or a boolean as JSON."""
    return json.dumps(value, ensure_ascii=False)


def _float(value: float) -> str:
    return repr(value) if math.isfinite(value) else quoted("NaN" if value != value else "Infinity" if value > 0 else "-Infinity")


def _milliseconds(micros: int) -> str:
    return str(micros // MICROS_PER_MILLISECOND)


# by type: the JSON of a value
WRITERS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("int2", "int4", "int8", "bool", "text", "varchar", "bpchar", "uuid"), quoted),
    **dict.fromkeys(("float4", "float8"), _float),
    "numeric": lambda value: f"{value:f}",
    "bytea": lambda value: quoted(base64.b64encode(value).decode()),
    "date": lambda value: str(value.toordinal() - EPOCH),
    **dict.fromkeys(("time", "timestamp", "timestamptz"), _milliseconds),
    "jsonb": str,
    "json": str,
}


def texts(column: Field, array: pa.Array) -> list[str]:
    """Returns the JSON of a column's values. Raises 0A000 for a type that ksqlDB's formats lack."""
    write = WRITERS.get(column.type.name)
    if write is None or column.type.is_array:
        raise FeatureNotSupported(f'column "{column.name}" of type {column.type} is not supported in ksqlDB\'s formats')
    if column.type.name in ("timestamp", "timestamptz"):
        array = array.cast(pa.int64())
    return ["null" if value is None else write(value) for value in array.to_pylist()]


def encoded(columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes | None]:
    """Returns a JSON object with a member for each column, for each row."""
    if not columns:
        return [b"{}"] * length
    parts = [[f"{quoted(c.name)}:{text}" for text in texts(c, array)] for c, array in zip(columns, arrays, strict=True)]
    return [("{" + ",".join(row) + "}").encode() for row in zip(*parts, strict=True)]


def encoded_alone(column: Field, array: pa.Array) -> list[bytes | None]:
    """Returns the JSON of a column's values; NULL has no bytes."""
    return [None if text == "null" else text.encode() for text in texts(column, array)]
