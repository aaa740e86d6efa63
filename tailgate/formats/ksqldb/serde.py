"""The choice of a format by ksqlDB's name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tailgate.formats.ksqldb import avro, avro_schemas, delimited, json_schema, jsons, kafka, protobuf, protobuf_schemas
from tailgate.formats.ksqldb.values import Column, values
from tailgate.formats.registry import JsonSchema, Schema
from tailgate.formats.wire import FIRST_MESSAGE, header
from tailgate.lake.errors import FeatureNotSupported

WITH_SCHEMA = ("AVRO", "JSON_SR", "PROTOBUF")  # formats whose bytes begin with the id of a schema


@dataclass(frozen=True, slots=True)
class Serde:
    """A format of keys or values.

    - `delimiter`: of DELIMITED. `wrapped`: whether a single column is in an object or a record.
    - `schema_name`: the full name of the record of AVRO and the message of PROTOBUF, empty for ksqlDB's.
    - `nullable`: how PROTOBUF represents NULL: OPTIONAL, WRAPPER or empty.
    - `schema`: the text of a schema of the registry with which AVRO, JSON_SR and PROTOBUF write, empty for ksqlDB's.
    """

    name: str
    delimiter: str = ","
    wrapped: bool = True
    schema_name: str = ""
    nullable: str = ""
    schema: str = ""

    @property
    def alone(self) -> bool:
        """Returns whether a single column is a value without an object or a record."""
        return not self.wrapped and not self.name.startswith("PROTOBUF")


def schema(serde: Serde, columns: Sequence[Column]) -> Schema | None:
    """Returns the schema of a key or a value in a registry, None for a format without one. `columns`: those of the message."""
    alone = serde.alone and len(columns) == 1
    if serde.schema and serde.name == "PROTOBUF":
        return serde.schema
    if serde.schema:
        content: dict[str, Any] | list[Any] | str = json.loads(serde.schema)
        return JsonSchema(content) if serde.name == "JSON_SR" and isinstance(content, dict) else content
    match serde.name:
        case "AVRO":
            of_avro: dict[str, Any] | list[Any] = avro.schema(columns, serde.schema_name or avro.NAME, wrapped=not alone)
            return of_avro
        case "JSON_SR":
            return JsonSchema(json_schema.schema(columns, wrapped=not alone))
        case "PROTOBUF":
            return protobuf.schema(columns, serde.schema_name or protobuf.NAME, serde.nullable)
    return None


def encoded(
    serde: Serde, columns: Sequence[Column], arrays: Sequence[pa.Array], length: int, schema_id: int | None = None
) -> list[bytes | None]:
    """Returns the bytes of these columns for each row, None for NULL. `schema_id`: that of the schema in the registry."""
    rows = _encoded(serde, columns, [values(c, array) for c, array in zip(columns, arrays, strict=True)], length)
    if schema_id is None:
        return rows
    prefix = header(schema_id)
    if serde.name == "PROTOBUF":
        prefix += protobuf_schemas.index(serde.schema, serde.schema_name) if serde.schema else FIRST_MESSAGE
    return [None if row is None else prefix + row for row in rows]


def _encoded(serde: Serde, columns: Sequence[Column], rows: Sequence[list[Any]], length: int) -> list[bytes | None]:
    alone = serde.alone and len(columns) == 1
    entries = serde.name == "JSON_SR" and (not serde.schema or json_schema.has_entries(serde.schema))
    match serde.name:
        case "KAFKA":
            return kafka.encoded(columns[0], rows[0])
        case "JSON" | "JSON_SR" if alone:
            return jsons.encoded_alone(columns[0], rows[0], entries=entries)
        case "JSON" | "JSON_SR":
            return jsons.encoded(columns, rows, length, entries=entries)
        case "DELIMITED":
            return delimited.encoded(columns, rows, length, serde.delimiter)
        case "AVRO" if serde.schema:
            return avro_schemas.encoded(serde.schema, columns, rows, length, wrapped=not alone)
        case "AVRO":
            return avro.encoded(columns, rows, length, wrapped=not alone)
        case "PROTOBUF" if serde.schema:
            return protobuf_schemas.encoded(serde.schema, serde.schema_name, columns, rows, length)
        case "PROTOBUF" | "PROTOBUF_NOSR":
            return protobuf.encoded(columns, rows, length, serde.nullable)
    raise FeatureNotSupported(f"the format {serde.name} is not supported here")
