"""The formats of keys and values: the columns that each can hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import InvalidTableDefinition
from tailgate.lake.keywords import quoted_text
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import ksqldb_name

FORMATS = ("KAFKA", "JSON", "JSON_SR", "AVRO", "PROTOBUF", "PROTOBUF_NOSR", "DELIMITED", "NONE")
WITH_SCHEMA = ("AVRO", "JSON_SR", "PROTOBUF")  # formats whose messages contain the id of a schema in the registry
DELIMITER = ","
OF_PROTOBUF = ("PROTOBUF", "PROTOBUF_NOSR")
UNWRAPPING = ("JSON", "JSON_SR", "AVRO")  # formats in which a single value column may stand alone
ALONE = (*UNWRAPPING, "DELIMITED", "KAFKA")  # formats that allow WRAP_SINGLE_VALUE = false
WRAPPING = (*UNWRAPPING, *OF_PROTOBUF)  # formats in which it may be in an object or a record
NAMED = ("AVRO", "PROTOBUF")  # formats whose schemas have a name
AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OF_KAFKA = ("int", "bigint", "double", "varchar", "bytes")


@dataclass(frozen=True, slots=True)
class ItemFormat:
    """The format of keys or values.

    - `delimiter`: of DELIMITED. `wrapped`: whether a single column is in a record.
    - `schema_name`: the full name of the record or message in the schema, empty for the default.
    - `nullable`: how PROTOBUF represents NULL: OPTIONAL, WRAPPER or empty.
    - `schema`: the text of a schema of the registry with which a query writes, empty for that of the columns.
    """

    name: str
    delimiter: str = DELIMITER
    wrapped: bool = True
    schema_name: str = ""
    nullable: str = ""
    schema: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """The window in the key of a topic's messages. `form`: whether its start follows the key, or as for sessions both bounds.

    `size`: that of a time window, in ms.
    """

    form: Literal["time", "session"]
    size: int = 0


def check_columns(format: str, columns: Sequence[tuple[str, TypeName]], position: int, *, is_key: bool = False) -> None:
    """Raises 42P16 if a format cannot hold these columns of a key or a value."""
    if format == "NONE" and columns:
        raise InvalidTableDefinition(
            f"The 'NONE' format can only be used when no columns are defined. Got: [{_listed(columns)}]", position=position
        )
    if format == "KAFKA" and len(columns) > 1:
        raise InvalidTableDefinition(f"The 'KAFKA' format only supports a single field. Got: [{_listed(columns)}]", position=position)
    if format == "AVRO":
        _check_avro_names(columns, position, is_alone=is_key and len(columns) == 1)
    for name, type in columns:
        if is_key and any(inner.name == "map" for inner in _types_in(type)):
            raise InvalidTableDefinition(
                "Map keys, including types that contain maps, are not supported as they may lead to unexpected behavior due to inconsistent"
                f" serialization. Key column name: `{ksqldb_name(name)}`. Column type: {types.in_schema(type)}.",
                position=position,
            )
        if format in OF_PROTOBUF and any(inner.name == "array" and inner.arguments[0].name == "array" for inner in _types_in(type)):
            raise InvalidTableDefinition(
                f"Schema is not compatible with Protobuf: an array cannot contain arrays, column: `{ksqldb_name(name)}`", position=position
            )
        if (format == "KAFKA" and type.name not in OF_KAFKA) or (format == "DELIMITED" and type.name in types.STRUCTURES):
            raise InvalidTableDefinition(
                f"The '{format}' format does not support type '{type.name.upper()}', column: `{ksqldb_name(name)}`", position=position
            )


def _check_avro_names(columns: Sequence[tuple[str, TypeName]], position: int, *, is_alone: bool) -> None:
    """Raises 42P16 for a column or a field with a name that Avro does not allow. `is_alone`: the only column has no name in the schema."""
    fields = [name for _, type in columns for inner in _types_in(type) for name in inner.fields]
    for name in map(ksqldb_name, (*(() if is_alone else (name for name, _ in columns)), *fields)):
        if not AVRO_NAME.fullmatch(name):
            raise InvalidTableDefinition(f"Schema is not compatible with Avro: Illegal character in: {name}", position=position)


def _types_in(type: TypeName) -> Iterator[TypeName]:
    """Yields a type and the types inside it."""
    yield type
    for argument in type.arguments:
        yield from _types_in(argument)


def _listed(columns: Sequence[tuple[str, TypeName]]) -> str:
    return ", ".join(f"`{ksqldb_name(name)}` {_type(type)}" for name, type in columns)


def _type(type: TypeName) -> str:
    return "STRING" if type == types.VARCHAR else types.shown(type)


def clause(format: ItemFormat, columns: Sequence[str], *, registry: str = "", schema: str = "", window: Window | None = None) -> str:
    """Returns a format as CREATE SOURCE has it. `columns`: those of the key or the value.

    `registry`: that of AVRO, as the statement has it. `schema`: the message of PROTOBUF. `window`: that of a key.
    """
    text = f"KSQLDB {format.name} ({', '.join(map(quoted, columns))})"
    if format.name == "DELIMITED" and format.delimiter != DELIMITER:
        text += f" DELIMITED BY {quoted_text(format.delimiter)}"
    text += " UNWRAPPED" if format.name in UNWRAPPING and not format.wrapped else ""
    text += f" USING {registry}" if format.name == "AVRO" else ""
    text += f" USING SCHEMA {quoted_text(schema)}" if schema else ""
    if window is not None:
        text += " WINDOW SESSION" if window.form == "session" else f" WINDOW {window.size}"
    return text
