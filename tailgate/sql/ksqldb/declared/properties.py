"""The properties of WITH in CREATE STREAM and CREATE TABLE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, TailgateError
from tailgate.sql.compute.ksqldb.time_patterns import check_parses, parts_of
from tailgate.sql.ksqldb import statements as s
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.declared.formats import ALONE, AVRO_NAME, FORMATS, NAMED, WITH_SCHEMA, WRAPPING, ItemFormat, Window
from tailgate.sql.ksqldb.expression_parser import KsqldbCursor
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import catalog_name, ksqldb_name
from tailgate.sql.ksqldb.query_parser import duration
from tailgate.sql.lexer.tokens import INTEGER_DIGITS_MAX

SUPPORTED = frozenset(
    """KAFKA_TOPIC FORMAT KEY_FORMAT VALUE_FORMAT PARTITIONS REPLICAS RETENTION_MS KEY_DELIMITER VALUE_DELIMITER
    WRAP_SINGLE_VALUE TIMESTAMP TIMESTAMP_FORMAT KEY_SCHEMA_ID VALUE_SCHEMA_ID KEY_SCHEMA_FULL_NAME VALUE_SCHEMA_FULL_NAME
    VALUE_AVRO_SCHEMA_FULL_NAME KEY_PROTOBUF_NULLABLE_REPRESENTATION VALUE_PROTOBUF_NULLABLE_REPRESENTATION WINDOW_TYPE
    WINDOW_SIZE""".split()
)
KNOWN = SUPPORTED | {"KEY"}
ID_MAX = (1 << 31) - 1
# properties that are numbers, with their maximum
NUMBERS = {"PARTITIONS": 10_000, "REPLICAS": 10_000, "RETENTION_MS": (1 << 63) - 1, "KEY_SCHEMA_ID": ID_MAX, "VALUE_SCHEMA_ID": ID_MAX}
WINDOW_TYPES = ("TUMBLING", "HOPPING", "SESSION")
BOOLEANS = {"true": True, "false": False}
REPRESENTATIONS = ("OPTIONAL", "WRAPPER")


@dataclass(frozen=True, slots=True)
class TopicProperties:
    """The properties of a topic. `partitions`, `replicas`, `retention_ms`: None if the statement does not name them.

    - `timestamp`: the column with the ROWTIME of the rows. `timestamp_format`: the pattern of its text.
    - `key_schema_id`, `value_schema_id`: the ids of schemas in the registry, or None.
    - `window`: that of the keys, or None.
    """

    topic: str
    key: ItemFormat
    value: ItemFormat
    partitions: int | None
    replicas: int | None
    retention_ms: int | None
    timestamp: str = ""
    timestamp_format: str = ""
    key_schema_id: int | None = None
    value_schema_id: int | None = None
    window: Window | None = None


def topic_properties(
    statement: s.CreateItem | s.CreateAs, *, topic: str | None, formats: tuple[ItemFormat, ItemFormat] | None = None
) -> TopicProperties:
    """Returns the properties of WITH. `topic`, `formats` (of key and value): the defaults, None if the property is required.

    Raises 22023 for an unknown property or value, and 0A000 for one that is not supported.
    """
    properties, position = dict(statement.properties), statement.position
    if unknown := [name for name in properties if name not in KNOWN]:
        raise InvalidParameterValue(f"Invalid config variable(s) in the WITH clause: {','.join(unknown)}", position=position)
    for property_name in properties:
        if property_name not in SUPPORTED and not (property_name == "KEY" and isinstance(statement, s.CreateItem)):
            raise FeatureNotSupported(f"property {property_name} is not supported", position=position)
    for part in ("KEY_FORMAT", "VALUE_FORMAT"):
        if "FORMAT" in properties and part in properties:
            raise InvalidParameterValue(
                f"Cannot supply both '{part}' and 'FORMAT' properties, as 'FORMAT' sets both key and value formats.", position=position
            )
    name = properties.get("KAFKA_TOPIC", topic)
    if not isinstance(name, str) or not name:
        raise _no_topic(position)
    key = _format(properties, "KEY", formats[0] if formats else ItemFormat("KAFKA"), position)
    value = _format(properties, "VALUE", formats[1] if formats else None, position)
    return TopicProperties(
        name,
        key,
        value,
        _number(properties, "PARTITIONS", position),
        _number(properties, "REPLICAS", position),
        _number(properties, "RETENTION_MS", position),
        _timestamp(properties, statement),
        _timestamp_format(properties, position),
        _schema_id(properties, "KEY", key.name, statement.position),
        _schema_id(properties, "VALUE", value.name, statement.position),
        _window(properties, statement),
    )


def check_names_topic(statement: s.CreateItem) -> None:
    """Raises 22023 for a new declaration without KAFKA_TOPIC. Those of earlier versions may lack it."""
    if "KAFKA_TOPIC" not in dict(statement.properties):
        raise _no_topic(statement.position)


def _no_topic(position: int) -> InvalidParameterValue:
    return InvalidParameterValue('Missing required property "KAFKA_TOPIC" which has no default value.', position=position)


def _timestamp(properties: dict[str, s.PropertyValue], statement: s.CreateItem | s.CreateAs) -> str:
    """Returns the column with ROWTIME, or an empty text. Raises 22023 for a column that cannot have it."""
    if "TIMESTAMP" not in properties:
        return ""
    spelling = str(properties["TIMESTAMP"])
    name = named_column(spelling)
    if isinstance(statement, s.CreateItem) and statement.columns:
        column = next((c for c in statement.columns if c.name == name), None)
        check_timestamp(spelling, None if column is None else column.type, "TIMESTAMP_FORMAT" in properties, statement.position)
    return name


KEY_PROPERTY = "KEY"  # names the column that an unnamed key has


def named_column(spelling: str) -> str:
    """Returns the catalog's name of the column that TIMESTAMP or KEY names."""
    return catalog_name(spelling.strip("`") if spelling.startswith("`") else spelling.upper())


def check_timestamp(spelling: str, type: TypeName | None, has_format: bool, position: int) -> None:
    """Raises 22023 for a column that cannot have ROWTIME. `type`: None if it does not exist. `has_format`: whether a pattern is given."""
    if type is None:
        message = f"The TIMESTAMP column set in the WITH clause does not exist in the schema: '{spelling}'"
        raise InvalidParameterValue(message, position=position)
    if type not in (types.BIGINT, types.TIMESTAMP, types.VARCHAR):
        raise InvalidParameterValue(
            f"Timestamp column, `{ksqldb_name(named_column(spelling))}`, should be LONG(INT64), TIMESTAMP,"
            " or a String with a timestamp format specified.",
            position=position,
        )
    if (type == types.VARCHAR) != has_format:
        raise InvalidParameterValue(
            "A String timestamp field has been specified without also specifying the timestamp_format"
            if type == types.VARCHAR
            else "'TIMESTAMP_FORMAT' set in the WITH clause can only be used when the timestamp column is of type STRING.",
            position=position,
        )


def _timestamp_format(properties: dict[str, s.PropertyValue], position: int) -> str:
    """Returns the pattern of TIMESTAMP_FORMAT, or an empty text. Raises 22023 without TIMESTAMP."""
    if "TIMESTAMP_FORMAT" in properties and "TIMESTAMP" not in properties:
        raise InvalidParameterValue("TIMESTAMP_FORMAT needs the property TIMESTAMP", position=position)
    pattern = str(properties.get("TIMESTAMP_FORMAT", ""))
    try:
        check_parses(parts_of(pattern))
    except TailgateError as error:
        raise InvalidParameterValue(
            f"Invalid datetime format for config:TIMESTAMP_FORMAT, reason:{error.message}", position=position
        ) from None
    return pattern


def _window(properties: dict[str, s.PropertyValue], statement: s.CreateItem | s.CreateAs) -> Window | None:
    """Returns the window of the keys of a declared item. Raises 22023."""
    position, type = statement.position, properties.get("WINDOW_TYPE")
    if isinstance(statement, s.CreateAs) and ("WINDOW_TYPE" in properties or "WINDOW_SIZE" in properties):
        unknown = "WINDOW_TYPE" if "WINDOW_TYPE" in properties else "WINDOW_SIZE"
        raise InvalidParameterValue(f"Invalid config variable(s) in the WITH clause: {unknown}", position=position)
    if type is None:
        if "WINDOW_SIZE" in properties:
            raise InvalidParameterValue("'WINDOW_SIZE' needs the property 'WINDOW_TYPE'", position=position)
        return None
    name = str(type).upper()
    if name not in WINDOW_TYPES:
        raise InvalidParameterValue(
            f"Invalid value {type} for property WINDOW_TYPE", hint=f"Use {', '.join(WINDOW_TYPES)}.", position=position
        )
    if name == "SESSION":
        if "WINDOW_SIZE" in properties:
            raise InvalidParameterValue("'WINDOW_SIZE' should not be set for SESSION windows.", position=position)
        return Window("session")
    if "WINDOW_SIZE" not in properties:
        raise InvalidParameterValue(
            f"{name} windows require 'WINDOW_SIZE' to be provided in the WITH clause. For example: 'WINDOW_SIZE'='10 SECONDS'",
            position=position,
        )
    try:
        cursor = KsqldbCursor(str(properties["WINDOW_SIZE"]))
        size = duration(cursor)
        cursor.finish()
    except TailgateError:
        raise InvalidParameterValue(
            f"Invalid value {properties['WINDOW_SIZE']} for property WINDOW_SIZE", hint="Use for example 10 SECONDS.", position=position
        ) from None
    return Window("time", size)


def _schema_id(properties: dict[str, s.PropertyValue], part: Literal["KEY", "VALUE"], format: str, position: int) -> int | None:
    """Returns the id of a schema in the registry, or None. Raises 22023 for a format without schemas."""
    name = f"{part}_SCHEMA_ID"
    if name in properties and format not in WITH_SCHEMA:
        raise InvalidParameterValue(
            f"{name} is provided but format {format} doesn't support registering in Schema Registry", position=position
        )
    return _number(properties, name, position)


def _schema_name(properties: dict[str, s.PropertyValue], part: Literal["KEY", "VALUE"], format: str, position: int) -> str:
    """Returns the full name of the record or message in a schema, or an empty text. Raises 22023 for a format without it."""
    name = next((n for n in (f"{part}_SCHEMA_FULL_NAME", f"{part}_AVRO_SCHEMA_FULL_NAME") if n in properties), None)
    if name is None:
        return ""
    if format not in NAMED:
        raise InvalidParameterValue(f"{format} does not support the following configs: [fullSchemaName]", position=position)
    text = str(properties[name]).strip()
    if not text:
        raise InvalidParameterValue("fullSchemaName cannot be empty.", position=position)
    if format == "AVRO" and not all(map(AVRO_NAME.fullmatch, text.split("."))):
        raise InvalidParameterValue(f"Schema is not compatible with Avro: Illegal character in: {text}", position=position)
    return text


def _nullable(properties: dict[str, s.PropertyValue], part: Literal["KEY", "VALUE"], format: str, position: int) -> str:
    """Returns how PROTOBUF represents NULL, or an empty text. Raises 22023."""
    name = f"{part}_PROTOBUF_NULLABLE_REPRESENTATION"
    if name not in properties:
        return ""
    if not format.startswith("PROTOBUF"):
        raise InvalidParameterValue(f"{format} does not support the following configs: [nullableRepresentation]", position=position)
    value = str(properties[name]).upper()
    if value not in REPRESENTATIONS:
        raise InvalidParameterValue(
            f"Invalid value {value} for property {name}", hint=f"Use {', '.join(REPRESENTATIONS)}.", position=position
        )
    return value


def _format(properties: dict[str, s.PropertyValue], part: Literal["KEY", "VALUE"], default: ItemFormat | None, position: int) -> ItemFormat:
    """Returns the format of the key or the value. `default`: None if it is required."""
    typed = properties.get(f"{part}_FORMAT", properties.get("FORMAT"))
    if typed is None and default is None:
        raise InvalidParameterValue(
            "Statement is missing the 'VALUE_FORMAT' property from the WITH clause. Either provide one or set a default via the"
            " 'ksql.persistence.default.format.value' config.",
            position=position,
        )
    format = default if typed is None and default is not None else ItemFormat(str(typed).upper())
    if format.name not in FORMATS:
        raise InvalidParameterValue(f"Unknown format: {format.name}", position=position)
    if part == "VALUE" and format.name == "NONE":
        raise InvalidParameterValue("The 'NONE' format is not supported for values", position=position)
    delimiter = properties.get(f"{part}_DELIMITER")
    if delimiter is not None and format.name != "DELIMITED":
        raise InvalidParameterValue(f"{format.name} does not support the following configs: [delimiter]", position=position)
    wrapped = properties.get("WRAP_SINGLE_VALUE", True) if part == "VALUE" else format.wrapped
    if isinstance(wrapped, str) and wrapped.lower() in BOOLEANS:
        wrapped = BOOLEANS[wrapped.lower()]
    if wrapped not in (True, False):
        raise InvalidParameterValue(f"Invalid value {wrapped} for property WRAP_SINGLE_VALUE", hint="Use true or false.", position=position)
    if part == "VALUE" and "WRAP_SINGLE_VALUE" in properties and format.name not in (WRAPPING if wrapped else ALONE):
        raise InvalidParameterValue(
            f"Format '{format.name}' does not support 'WRAP_SINGLE_VALUE' set to '{str(wrapped).lower()}'.", position=position
        )
    return ItemFormat(
        format.name,
        format.delimiter if delimiter is None else _delimiter(delimiter, position),
        bool(wrapped),
        _schema_name(properties, part, format.name, position),
        _nullable(properties, part, format.name, position) or format.nullable,
    )


def _number(properties: dict[str, s.PropertyValue], name: str, position: int) -> int | None:
    value = properties.get(name)
    if value is None:
        return None
    if isinstance(value, str) and value.isdecimal() and len(value) <= INTEGER_DIGITS_MAX:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= NUMBERS[name]:
        raise InvalidParameterValue(
            f"Invalid value {value} for property {name}", hint=f"Use a number from 1 to {NUMBERS[name]}.", position=position
        )
    return value


def _delimiter(value: s.PropertyValue, position: int) -> str:
    words: dict[str, str] = {"SPACE": " ", "TAB": "\t"}
    text = words.get(str(value).upper(), str(value))
    if not text:
        raise InvalidParameterValue(
            "Delimiter cannot be empty, if you meant to have tab or space for delimiter, please use the special values 'TAB' or 'SPACE'",
            position=position,
        )
    if len(text) != 1 or text in '"\r\n':
        raise InvalidParameterValue(
            f"Invalid delimiter value: '{value}'. Delimiter must be a single character or TAB,SPACE", position=position
        )
    return text
