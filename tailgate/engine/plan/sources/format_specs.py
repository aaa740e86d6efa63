"""The decoders of a source's key and value, from the formats of the source."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from typing_extensions import assert_never

from tailgate.engine.plan.circuit.decoders import FormatSpec
from tailgate.engine.plan.sources.accessors import connect_type, native
from tailgate.engine.plan.sources.spark_sql import name
from tailgate.lake.catalog import Source
from tailgate.lake.catalog.codec import encode_settings
from tailgate.lake.catalog.formats import (
    Avro,
    Bytes,
    ConnectionSettings,
    Csv,
    DeclaredColumn,
    Json,
    Ksqldb,
    MessageFormat,
    Protobuf,
    Regex,
    Text,
)
from tailgate.lake.types import Field
from tailgate.sql.ksqldb.expression_parser import KsqldbCursor, type_name
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.types import descriptor


def format_spec(format: MessageFormat | None, types: Mapping[str, str] = MappingProxyType({})) -> FormatSpec:
    """Returns the decoder of a format, `none` without one. `types`: those of ksqlDB's columns that are arrays, maps or structures."""
    match format:
        case None:
            return FormatSpec("none")
        case Avro(schema=schema, registry=registry, wire=wire, access=settings):
            return FormatSpec("avro", "", schema, registry, wire, _access(settings))
        case Csv(names=names, header=header, delimiter=delimiter, nulls=nulls):
            of = {"columns": len(names), "delimiter": delimiter, "header": header, "nulls": nulls}
            return FormatSpec("csv", schema=json.dumps(of))
        case Regex(pattern=pattern):
            return FormatSpec("regex", schema=pattern)
        case Protobuf(schema=schema):
            return FormatSpec("protobuf", schema=schema)
        case Ksqldb():
            return _ksqldb(format, types)
        case Bytes() | Text() | Json():
            return FormatSpec(format.type)
        case _:
            assert_never(format)


def key_format_spec(source: Source) -> FormatSpec:
    """Returns the decoder of the key."""
    return format_spec(source.key_format, source.ksqldb.types if source.ksqldb is not None else {})


def value_format_spec(source: Source) -> FormatSpec:
    """Returns the decoder of the value; it reads declared JSON columns directly if it can."""
    declared = declared_columns(source)
    if isinstance(source.value_format, Json) and source.declared is not None and native(declared):
        return FormatSpec("json_columns", columns=_ddl(declared, " "))
    return format_spec(source.value_format, source.ksqldb.types if source.ksqldb is not None else {})


def _access(settings: ConnectionSettings) -> str:
    return json.dumps(encode_settings(settings), sort_keys=True) if settings else ""


def _ksqldb(format: Ksqldb, types: Mapping[str, str]) -> FormatSpec:
    """Returns the decoder of a format of ksqlDB. It adds the bounds of a window to the columns of a key."""
    columns = format.columns[:-2] if format.window else format.columns
    of: dict[str, Any] = {"format": format.name, "delimiter": format.delimiter, "wrapped": format.wrapped}
    of["columns"] = [_ksqldb_column(c, types.get(c.name)) for c in columns]
    if format.schema:
        of["schema"] = format.schema
    if format.window:
        of |= {"window": format.window, "window_size": format.window_size}
    return FormatSpec("ksqldb", schema=json.dumps(of), registry=format.registry, access=_access(format.access))


def _ksqldb_column(column: Field, type: str | None) -> dict[str, Any]:
    """Returns a column of ksqlDB for the decoder. `type`: that of an array, map or structure."""
    of = {"name": ksqldb_name(column.name), "type": column.type.name, "spark": column.type.spark}
    return of if type is None else {**of, "nested": descriptor(type_name(KsqldbCursor(type)))}


def declared_columns(source: Source) -> tuple[Field, ...]:
    return tuple(column.field for column in source.declared or ())


def connect_json_spec(source: Source, columns: Sequence[DeclaredColumn], *, envelope: bool, before: bool) -> FormatSpec:
    """Returns the format of Debezium's JSON.

    The declared columns define the meaning of values if the message has no schema (tailgate/engine/java,
    ConnectColumn).
    """
    spec = {
        "columns": [_connect_column(c) for c in columns],
        "envelope": envelope,
        "before": before,
        "decimals": source.decimals,
    }
    return FormatSpec("connect_json", schema=json.dumps(spec))


def _connect_column(column: DeclaredColumn) -> dict[str, Any]:
    """Returns a column for the decoder.

    `precision` has the declared digits of a time or the scale of a numeric; it is absent if none
    was declared.
    """
    type = connect_type(column.field.type)
    out: dict[str, Any] = {"name": column.field.name, "type": type.name, "spark": type.spark, "array": type.is_array}
    precision = type.modifiers[1] if type.name == "numeric" and type.modifiers else column.precision
    return out if precision is None else {**out, "precision": precision}


def _ddl(columns: tuple[Field, ...], between: str) -> str:
    return ", ".join(f"{name(f.name)}{between}{f.type.spark}" for f in columns)
