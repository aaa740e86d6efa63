"""The formats of keys and values: the columns that each can hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import FeatureNotSupported, InvalidTableDefinition
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import ksqldb_name

FORMATS = ("KAFKA", "JSON", "JSON_SR", "AVRO", "PROTOBUF", "PROTOBUF_NOSR", "DELIMITED", "NONE")
KEY_FORMATS = ("KAFKA", "JSON", "DELIMITED", "NONE")
VALUE_FORMATS = ("JSON", "DELIMITED", "AVRO", "KAFKA")
DELIMITER = ","
UNWRAPPING = ("JSON", "JSON_SR", "AVRO")  # formats in which a single value column may stand alone
OF_KAFKA = ("int", "bigint", "double", "varchar", "bytes")


@dataclass(frozen=True, slots=True)
class ItemFormat:
    """The format of keys or values. `delimiter`: of DELIMITED. `wrapped`: whether a single column is in a record."""

    name: str
    delimiter: str = DELIMITER
    wrapped: bool = True


def check_columns(format: str, columns: Sequence[tuple[str, TypeName]], position: int, *, is_key: bool = False) -> None:
    """Raises 42P16 if a format cannot hold these columns of a key or a value."""
    if format == "NONE" and columns:
        raise InvalidTableDefinition(
            f"The 'NONE' format can only be used when no columns are defined. Got: [{_listed(columns)}]", position=position
        )
    if format == "KAFKA" and len(columns) > 1:
        raise InvalidTableDefinition(f"The 'KAFKA' format only supports a single field. Got: [{_listed(columns)}]", position=position)
    for name, type in columns:
        if (format == "KAFKA" and type.name not in OF_KAFKA) or (format == "DELIMITED" and type.name in types.STRUCTURES):
            raise InvalidTableDefinition(
                f"The '{format}' format does not support type '{type.name.upper()}', column: `{ksqldb_name(name)}`", position=position
            )
        if format == "AVRO" and type.name in types.STRUCTURES:
            hint = "Use VALUE_FORMAT JSON, or leave the columns out."
            raise FeatureNotSupported(f"type {types.shown(type)} in AVRO is not supported", hint=hint, position=position)
        if is_key and type.name in types.STRUCTURES:
            raise FeatureNotSupported(f"a key of type {types.shown(type)} is not supported", position=position)


def _listed(columns: Sequence[tuple[str, TypeName]]) -> str:
    return ", ".join(f"`{ksqldb_name(name)}` {_type(type)}" for name, type in columns)


def _type(type: TypeName) -> str:
    return "STRING" if type == types.VARCHAR else types.shown(type)


def clause(format: ItemFormat, columns: Sequence[str]) -> str:
    """Returns a format as CREATE SOURCE has it. `columns`: those of the key or the value."""
    text = f"KSQLDB {format.name} ({', '.join(map(quoted, columns))})"
    if format.name == "DELIMITED" and format.delimiter != DELIMITER:
        text += " DELIMITED BY '" + format.delimiter.replace("'", "''") + "'"
    return text + (" UNWRAPPED" if format.name == "JSON" and not format.wrapped else "")
