"""The `.proto` text for the Protobuf events of a sink (`sinks.formats.protobuf` encodes them).

    DEBEZIUM   message envelope { row before = 1; row after = 2; message row { columns } }
    UPSERT     message envelope { columns }
    both       key, if the sink has one: message row { its columns }

Columns are fields 1, 2, … in their order; a nullable column is `optional`.

    bool, bytea, real, double precision      bool, bytes, float, double
    smallint and integer, bigint             int32, int64
    timestamp[tz]                            google.protobuf.Timestamp
    arrays, records                          repeated fields, messages
    all others                               string, as in JSON: the digits of a numeric, a date in ISO 8601
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tailgate.formats.events.avro import KEY_NAME, ROW_NAME, VALUE_NAME, field_names
from tailgate.lake.types import Field

TIMESTAMP = "google.protobuf.Timestamp"
SCALARS = {
    "bool": "bool",
    "bytea": "bytes",
    "int2": "int32",
    "int4": "int32",
    "int8": "int64",
    "oid": "int64",
    "float4": "float",
    "float8": "double",
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMP,
}


def debezium(columns: Sequence[Field], name: str = VALUE_NAME) -> str:
    """Returns the schema of values with ENVELOPE DEBEZIUM."""
    row = _message(columns, ROW_NAME, "  ")
    return _file(name, lambda last: f"message {last} {{\n{row}  {ROW_NAME} before = 1;\n  {ROW_NAME} after = 2;\n}}\n")


def upsert(columns: Sequence[Field], name: str = VALUE_NAME) -> str:
    """Returns the schema of values with ENVELOPE UPSERT."""
    return _file(name, lambda last: _message(columns, last))


def key(columns: Sequence[Field], name: str = KEY_NAME) -> str:
    """Returns the schema of keys."""
    return _file(name, lambda last: _message(columns, last))


def _file(name: str, message: Callable[[str], str]) -> str:
    """Returns a `.proto` file. A full name `a.b.c` is message c of package a.b."""
    package, _, last = name.rpartition(".")
    text = message(last)
    imports = 'import "google/protobuf/timestamp.proto";\n' * (TIMESTAMP in text)
    return 'syntax = "proto3";\n' + f"package {package};\n" * bool(package) + imports + text


def _message(columns: Sequence[Field], name: str, indent: str = "") -> str:
    inner: list[str] = []
    lines: list[str] = []
    for number, (column, field) in enumerate(zip(columns, field_names([c.name for c in columns]), strict=True), 1):
        if column.type.name == "record":
            type = f"record{number}"
            inner.append(_message(column.type.fields, type, indent + "  "))
        else:
            type = SCALARS.get(column.type.name, "string")
        label = "repeated " if column.type.is_array else "optional " if column.nullable else ""
        lines.append(f"{indent}  {label}{type} {field} = {number};\n")
    return f"{indent}message {name} {{\n{''.join(inner)}{''.join(lines)}{indent}}}\n"
