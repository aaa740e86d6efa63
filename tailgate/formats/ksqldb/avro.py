"""The format AVRO: a record whose fields are all nullable, or the nullable value of the only column.

    DECIMAL; DATE, TIME, TIMESTAMP   bytes; int, int, long, with logical types and the names of Kafka Connect
    ARRAY                            array of nullable elements
    MAP                              array of records with key and value, as Kafka Connect writes nullable keys
    STRUCT                           record, with the name of the record around it and its field

Source: ksqlDB 0.29, documentation, "Serialization formats", "AVRO"; Apache Avro 1.11, "Binary encoding".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from typing import Any, TypeAlias

from tailgate.formats.events.avro import field_names
from tailgate.formats.ksqldb.values import Column, Type, Values
from tailgate.formats.varint import long

NAME = "io.confluent.ksql.avro_schemas.KsqlDataSourceSchema"
NULL, PRESENT = b"\x00", b"\x02"  # the branches of ["null", t]
END = b"\x00"  # of the blocks of an array
EXACT = Context(prec=100)  # more digits than a decimal has

Encode: TypeAlias = Callable[[Any], bytes]


def _connect(avro: str, logical: str, name: str) -> dict[str, Any]:
    return {"type": avro, "connect.version": 1, "connect.name": f"org.apache.kafka.connect.data.{name}", "logicalType": logical}


SCALARS: dict[str, Any] = {
    "boolean": "boolean",
    "int": "int",
    "bigint": "long",
    "double": "double",
    "varchar": "string",
    "bytes": "bytes",
    "date": _connect("int", "date", "Date"),
    "time": _connect("int", "time-millis", "Time"),
    "timestamp": _connect("long", "timestamp-millis", "Timestamp"),
}


def schema(columns: Sequence[Column], name: str = NAME, *, wrapped: bool = True) -> Any:
    """Returns the schema of a record, or of the only column if it is not `wrapped`."""
    return _record([(c.name, c.type) for c in columns], name) if wrapped else ["null", _type(columns[0].type, name)]


def _record(fields: Sequence[tuple[str, Type]], name: str) -> dict[str, Any]:
    space, _, last = name.rpartition(".")
    return {
        "type": "record",
        "name": last,
        **({"namespace": space} if space else {}),
        "fields": [
            {"name": field, "type": ["null", _type(type, f"{name}_{field}")], "default": None}
            for field, (_, type) in zip(field_names([n for n, _ in fields]), fields, strict=True)
        ],
    }


def _type(type: Type, name: str) -> Any:
    """Returns the schema of a type. `name`: of a record in it."""
    match type:
        case ["decimal", precision, scale]:
            digits = {"scale": str(scale), "connect.decimal.precision": str(precision)}
            connect = _connect("bytes", "decimal", "Decimal")
            return {**connect, "scale": scale, "precision": precision, "connect.parameters": digits}
        case ["array", inner]:
            return {"type": "array", "items": ["null", _type(inner, name)]}
        case ["map", inner]:
            entry = _record([("key", "varchar")], name)
            value = {"name": "value", "type": ["null", _type(inner, f"{name}_value")], "default": None}
            return {"type": "array", "items": {**entry, "fields": [*entry["fields"], value], "connect.internal.type": "MapEntry"}}
        case ["struct", *fields]:
            return _record([(n, t) for n, t in fields], name)
    return SCALARS[type]


def encoded(columns: Sequence[Column], values: Sequence[Values], length: int, *, wrapped: bool = True) -> list[bytes | None]:
    """Returns the record of each row, or the value of the only column; a NULL of that has no bytes."""
    parts = [list(map(_nullable(c.type), of_column)) for c, of_column in zip(columns, values, strict=True)]
    if not wrapped:
        return [None if part == NULL else part for part in parts[0]]
    return [b"".join(row) for row in zip(*parts, strict=True)] if parts else [b""] * length


def _nullable(type: Type) -> Encode:
    encode = _encoder(type)
    return lambda value: NULL if value is None else PRESENT + encode(value)


def _encoder(type: Type) -> Encode:
    match type:
        case ["decimal", _, scale]:
            return lambda value: _sized(unscaled(value, scale))
        case ["array", inner]:
            element = _nullable(inner)
            return lambda value: _block([element(item) for item in value])
        case ["map", inner]:
            member = _nullable(inner)
            return lambda value: _block([PRESENT + _sized(key.encode()) + member(item) for key, item in value.items()])
        case ["struct", *fields]:
            members = [(name, _nullable(inner)) for name, inner in fields]
            return lambda value: b"".join(encode(value[name]) for name, encode in members)
        case "boolean":
            return lambda value: b"\x01" if value else b"\x00"
        case "double":
            return struct.Struct("<d").pack
        case "varchar":
            return lambda value: _sized(value.encode())
        case "bytes":
            return _sized
    return long


def _sized(data: bytes) -> bytes:
    return long(len(data)) + data


def _block(items: list[bytes]) -> bytes:
    return (long(len(items)) + b"".join(items) if items else b"") + END


def unscaled(value: Decimal, scale: int) -> bytes:
    """Returns the unscaled number in the fewest bytes, big-endian."""
    unscaled = int(value.scaleb(scale, EXACT))
    return unscaled.to_bytes(((unscaled if unscaled >= 0 else ~unscaled).bit_length() + 8) // 8, "big", signed=True)
