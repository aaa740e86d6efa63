"""The properties of WITH in CREATE STREAM and CREATE TABLE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue
from tailgate.sql.ksqldb import statements as s
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.declared.formats import FORMATS, KEY_FORMATS, UNWRAPPING, VALUE_FORMATS, ItemFormat
from tailgate.sql.ksqldb.names import catalog_name

SUPPORTED = frozenset(
    """KAFKA_TOPIC FORMAT KEY_FORMAT VALUE_FORMAT PARTITIONS REPLICAS RETENTION_MS KEY_DELIMITER VALUE_DELIMITER
    WRAP_SINGLE_VALUE TIMESTAMP""".split()
)
KNOWN = SUPPORTED | frozenset(
    """TIMESTAMP_FORMAT KEY_SCHEMA_ID VALUE_SCHEMA_ID KEY_SCHEMA_FULL_NAME VALUE_SCHEMA_FULL_NAME
    VALUE_AVRO_SCHEMA_FULL_NAME KEY_PROTOBUF_NULLABLE_REPRESENTATION VALUE_PROTOBUF_NULLABLE_REPRESENTATION WINDOW_TYPE WINDOW_SIZE
    KEY""".split()
)
NUMBERS = {"PARTITIONS": 10_000, "REPLICAS": 10_000, "RETENTION_MS": (1 << 63) - 1}  # properties that are numbers, with their maximum


@dataclass(frozen=True, slots=True)
class TopicProperties:
    """The properties of a topic. `partitions`, `replicas`, `retention_ms`: None if the statement does not name them.

    `timestamp`: the column with the ROWTIME of the rows.
    """

    topic: str
    key: ItemFormat
    value: ItemFormat
    partitions: int | None
    replicas: int | None
    retention_ms: int | None
    timestamp: str = ""


def topic_properties(
    statement: s.CreateItem | s.CreateAs, *, topic: str | None, formats: tuple[ItemFormat, ItemFormat] | None = None
) -> TopicProperties:
    """Returns the properties of WITH. `topic`, `formats` (of key and value): the defaults, None if the property is required.

    Raises 22023 for an unknown property or value, and 0A000 for one that is not supported.
    """
    properties, position = dict(statement.properties), statement.position
    for property_name in properties:
        if property_name not in KNOWN:
            raise InvalidParameterValue(f"Invalid config variable(s) in the WITH clause: {property_name}", position=position)
        if property_name not in SUPPORTED and not (property_name == "KEY" and isinstance(statement, s.CreateItem)):
            raise FeatureNotSupported(f"property {property_name} is not supported", position=position)
    if "FORMAT" in properties and ("KEY_FORMAT" in properties or "VALUE_FORMAT" in properties):
        raise InvalidParameterValue("Cannot supply both 'VALUE_FORMAT' and 'FORMAT' properties.", position=position)
    name = properties.get("KAFKA_TOPIC", topic)
    if not isinstance(name, str) or not name:
        raise InvalidParameterValue('Missing required property "KAFKA_TOPIC" which has no default value.', position=position)
    return TopicProperties(
        name,
        _format(properties, "KEY", formats[0] if formats else ItemFormat("KAFKA"), position),
        _format(properties, "VALUE", formats[1] if formats else None, position),
        _number(properties, "PARTITIONS", position),
        _number(properties, "REPLICAS", position),
        _number(properties, "RETENTION_MS", position),
        _timestamp(properties, statement),
    )


def _timestamp(properties: dict[str, s.PropertyValue], statement: s.CreateItem | s.CreateAs) -> str:
    """Returns the column with ROWTIME, or an empty text. Raises 22023 for one that cannot have it, 0A000 where it has no effect."""
    if "TIMESTAMP" not in properties:
        return ""
    if isinstance(statement, s.CreateAs) or statement.type == "table":
        raise FeatureNotSupported(
            "property TIMESTAMP is only supported for declared streams", hint="Declare it for the stream.", position=statement.position
        )
    spelling = str(properties["TIMESTAMP"])
    name = catalog_name(spelling.strip("`") if spelling.startswith("`") else spelling.upper())
    column = next((c for c in statement.columns if c.name == name), None)
    if column is None and statement.columns:
        message = f"The TIMESTAMP column set in the WITH clause does not exist in the schema: '{spelling}'"
        raise InvalidParameterValue(message, position=statement.position)
    if column is not None and column.type not in (types.BIGINT, types.TIMESTAMP):
        hint = "TIMESTAMP_FORMAT is not supported." if column.type == types.VARCHAR else None
        raise InvalidParameterValue(f"Timestamp column, {spelling}, should be BIGINT or TIMESTAMP", hint=hint, position=column.position)
    return name


def _format(properties: dict[str, s.PropertyValue], part: Literal["KEY", "VALUE"], default: ItemFormat | None, position: int) -> ItemFormat:
    """Returns the format of the key or the value. `default`: None if it is required."""
    typed = properties.get(f"{part}_FORMAT", properties.get("FORMAT"))
    if typed is None and default is None:
        raise InvalidParameterValue('Missing required property "VALUE_FORMAT" which has no default value.', position=position)
    format = default if typed is None and default is not None else ItemFormat(str(typed).upper())
    if format.name not in FORMATS:
        raise InvalidParameterValue(f"Unknown format: {format.name}", position=position)
    supported = KEY_FORMATS if part == "KEY" else VALUE_FORMATS
    if format.name not in supported:
        raise FeatureNotSupported(f"{part}_FORMAT {format.name} is not supported", hint=f"Use {', '.join(supported)}.", position=position)
    delimiter = properties.get(f"{part}_DELIMITER")
    if delimiter is not None and format.name != "DELIMITED":
        raise InvalidParameterValue(f"{format.name} does not support the following configs: [delimiter]", position=position)
    wrapped = properties.get("WRAP_SINGLE_VALUE", True) if part == "VALUE" else format.wrapped
    if wrapped not in (True, False):
        raise InvalidParameterValue(f"Invalid value {wrapped} for property WRAP_SINGLE_VALUE", hint="Use true or false.", position=position)
    if part == "VALUE" and "WRAP_SINGLE_VALUE" in properties and format.name not in UNWRAPPING:
        raise InvalidParameterValue(
            f"Format '{format.name}' does not support 'WRAP_SINGLE_VALUE' set to '{str(wrapped).lower()}'.", position=position
        )
    return ItemFormat(format.name, format.delimiter if delimiter is None else _delimiter(delimiter, position), bool(wrapped))


def _number(properties: dict[str, s.PropertyValue], name: str, position: int) -> int | None:
    value = properties.get(name)
    if value is None:
        return None
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= NUMBERS[name]:
        raise InvalidParameterValue(
            f"Invalid value {value} for property {name}", hint=f"Use a number from 1 to {NUMBERS[name]}.", position=position
        )
    return value


def _delimiter(value: s.PropertyValue, position: int) -> str:
    words: dict[str, str] = {"SPACE": " ", "TAB": "\t"}
    text = words.get(str(value).upper(), str(value))
    if len(text) != 1 or text in '"\r\n':
        raise InvalidParameterValue(f"Invalid delimiter value: '{value}'", hint="Use one character, SPACE or TAB.", position=position)
    return text
