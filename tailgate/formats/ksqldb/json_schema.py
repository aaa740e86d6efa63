"""The JSON schema of the format JSON_SR, with the annotations of Kafka Connect: every value may be null.

Source: ksqlDB 0.29, documentation, "Serialization formats", "JSON"; Confluent Schema Registry, "JSON Schema Serializer".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tailgate.formats.ksqldb.values import Column, Type

NULL = {"type": "null"}
CACHE_MAX = 64  # schemas
DATA = "org.apache.kafka.connect.data"

SCALARS: dict[str, dict[str, Any]] = {
    "boolean": {"type": "boolean"},
    "int": {"type": "integer", "connect.type": "int32"},
    "bigint": {"type": "integer", "connect.type": "int64"},
    "double": {"type": "number", "connect.type": "float64"},
    "varchar": {"type": "string"},
    "bytes": {"type": "string", "connect.type": "bytes"},
    "date": {"type": "integer", "title": f"{DATA}.Date", "connect.version": 1, "connect.type": "int32"},
    "time": {"type": "integer", "title": f"{DATA}.Time", "connect.version": 1, "connect.type": "int32"},
    "timestamp": {"type": "integer", "title": f"{DATA}.Timestamp", "connect.version": 1, "connect.type": "int64"},
}


def schema(columns: Sequence[Column], *, wrapped: bool = True) -> dict[str, Any]:
    """Returns the schema of an object, or of the only column if it is not `wrapped`."""
    return _object([(c.name, c.type) for c in columns]) if wrapped else _nullable(_type(columns[0].type))


def _object(fields: Sequence[tuple[str, Type]]) -> dict[str, Any]:
    members = {name: {"connect.index": index, **_nullable(_type(type))} for index, (name, type) in enumerate(fields)}
    return {"type": "object", "properties": members}


def _nullable(type: dict[str, Any]) -> dict[str, Any]:
    return {"oneOf": [NULL, type]}


def _type(type: Type) -> dict[str, Any]:
    match type:
        case ["decimal", precision, scale]:
            digits = {"scale": str(scale), "connect.decimal.precision": str(precision)}
            return {
                "type": "number",
                "title": f"{DATA}.Decimal",
                "connect.version": 1,
                "connect.type": "bytes",
                "connect.parameters": digits,
            }
        case ["array", inner]:
            return {"type": "array", "items": _nullable(_type(inner))}
        case ["map", inner]:
            return {"type": "array", "connect.type": "map", "items": _object([("key", "varchar"), ("value", inner)])}
        case ["struct", *fields]:
            return _object([(n, t) for n, t in fields])
    return SCALARS[type]


@lru_cache(maxsize=CACHE_MAX)
def has_entries(text: str) -> bool:
    """Returns whether maps are arrays of entries in a schema; otherwise they are objects."""
    return _has_entries(json.loads(text))


def _has_entries(schema: Any) -> bool:
    if isinstance(schema, dict):
        return (schema.get("type"), schema.get("connect.type")) == ("array", "map") or any(map(_has_entries, schema.values()))
    return isinstance(schema, list) and any(map(_has_entries, schema))
