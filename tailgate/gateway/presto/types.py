"""Presto's types for PostgreSQL's, and conversion of values to Presto's JSON."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from buenavista.core import BVType
from psycopg import Column
from psycopg.postgres import types as registry

Convert = Callable[[Any], Any]
VARCHAR_MAX = 2**31 - 1  # the length of Presto's varchar without a declared length
NUMERIC = (38, 16)  # precision and scale of an undeclared numeric, as Presto shows it


@dataclass(frozen=True, slots=True)
class PrestoType:
    """A Presto type.

    `name` is its name in DESCRIBE, `signature` its form for clients, `kind` buenavista's name.
    """

    name: str
    signature: dict[str, Any]
    convert: Convert
    kind: BVType


def _signature(raw: str, *arguments: dict[str, Any]) -> dict[str, Any]:
    return {"rawType": raw, "arguments": list(arguments)}


def _long(value: int) -> dict[str, Any]:
    return {"kind": "LONG", "value": value}


def _same(value: Any) -> Any:
    return value


def _number(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def _moment(value: datetime) -> str:
    return value.isoformat(sep=" ", timespec="microseconds")


def _utc(value: datetime) -> str:
    return _moment(value.astimezone(timezone.utc).replace(tzinfo=None)) + " UTC"


def _bytes(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _plain(name: str, convert: Convert, kind: BVType) -> PrestoType:
    return PrestoType(name, _signature(name), convert, kind)


VARCHAR = PrestoType("varchar", _signature("varchar", _long(VARCHAR_MAX)), str, BVType.TEXT)
TYPES: dict[str, PrestoType] = {
    "bool": _plain("boolean", _same, BVType.BOOL),
    "int2": _plain("smallint", _same, BVType.INTEGER),
    "int4": _plain("integer", _same, BVType.INTEGER),
    "int8": _plain("bigint", _same, BVType.BIGINT),
    "oid": _plain("bigint", _same, BVType.BIGINT),
    "float4": _plain("real", _number, BVType.FLOAT),
    "float8": _plain("double", _number, BVType.FLOAT),
    "date": _plain("date", str, BVType.DATE),
    "time": PrestoType("time(6)", _signature("time", _long(6)), lambda v: f"{v:%H:%M:%S.%f}", BVType.TIME),
    "timestamp": PrestoType("timestamp(6)", _signature("timestamp", _long(6)), _moment, BVType.TIMESTAMP),
    "timestamptz": PrestoType(
        "timestamp(6) with time zone", _signature("timestamp with time zone", _long(6)), _utc, BVType.TIMESTAMP
    ),
    "bytea": _plain("varbinary", _bytes, BVType.BYTES),
    "uuid": _plain("uuid", str, BVType.TEXT),
    "jsonb": _plain("json", str, BVType.JSON),
    "json": _plain("json", str, BVType.JSON),
}  # fmt: skip


def presto_type(column: Column) -> PrestoType:
    """Returns the Presto type of a result column."""
    info = registry.get(column.type_code)
    if info is None:
        return VARCHAR
    if info.array_oid == column.type_code:
        return _array(_scalar(info.name, column))
    return _scalar(info.name, column)


def _scalar(name: str, column: Column) -> PrestoType:
    if name != "numeric":
        return TYPES.get(name, VARCHAR)
    precision, scale = (column.precision or NUMERIC[0], column.scale or 0) if column.precision else NUMERIC
    return PrestoType(
        f"decimal({precision}, {scale})", _signature("decimal", _long(precision), _long(scale)), lambda v: f"{v:.{scale}f}", BVType.DECIMAL
    )


def _array(element: PrestoType) -> PrestoType:
    def convert(value: Any) -> Any:
        return [None if v is None else convert(v) if isinstance(v, list) else element.convert(v) for v in value]

    return PrestoType(
        f"array({element.name})", _signature("array", {"kind": "TYPE", "value": element.signature}), convert, BVType.ARRAY
    )  # fmt: skip
