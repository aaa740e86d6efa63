"""Declared streams and tables as CREATE SOURCE, and the messages of INSERT INTO … VALUES.

CreateItem ──► Declaration: key and value columns, topic, formats ──► text of CREATE SOURCE
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal

from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import DatatypeMismatch, FeatureNotSupported, InvalidParameterValue, InvalidTableDefinition, UndefinedColumn
from tailgate.sql.ksqldb import statements as s
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import Constant, Expression, TypeName
from tailgate.sql.ksqldb.names import ksqldb_name

DELIMITER = ","
# properties that are supported, with the property that has the value if they are absent
PROPERTIES = frozenset({"KAFKA_TOPIC", "FORMAT", "KEY_FORMAT", "VALUE_FORMAT", "PARTITIONS", "REPLICAS", "VALUE_DELIMITER"})
KNOWN = PROPERTIES | frozenset(
    """RETENTION_MS TIMESTAMP TIMESTAMP_FORMAT WRAP_SINGLE_VALUE KEY_SCHEMA_ID VALUE_SCHEMA_ID KEY_SCHEMA_FULL_NAME VALUE_SCHEMA_FULL_NAME
    VALUE_AVRO_SCHEMA_FULL_NAME KEY_PROTOBUF_NULLABLE_REPRESENTATION VALUE_PROTOBUF_NULLABLE_REPRESENTATION WINDOW_TYPE WINDOW_SIZE KEY
    KEY_DELIMITER""".split()
)
FORMATS = ("KAFKA", "JSON", "JSON_SR", "AVRO", "PROTOBUF", "PROTOBUF_NOSR", "DELIMITED", "NONE")
VALUE_FORMATS = ("JSON", "DELIMITED", "AVRO")
KEY_FORMATS = ("KAFKA", "DELIMITED")
OF_JSON = ("boolean", "int", "bigint", "double", "decimal", "varchar", "bytes")  # types whose form in JSON is that of our decoder


@dataclass(frozen=True, slots=True)
class TopicProperties:
    """The properties of a topic. `partitions`, `replicas`: None if the statement does not name them."""

    topic: str
    key_format: str
    value_format: str
    partitions: int | None
    replicas: int | None
    delimiter: str


def topic_properties(statement: s.CreateItem | s.CreateAs, *, topic: str | None, formats: tuple[str, str] | None = None) -> TopicProperties:
    """Returns the properties of WITH. `topic`, `formats` (of key and value): the defaults, None if the property is required.

    Raises 22023 for an unknown property or value, and 0A000 for one that is not supported.
    """
    properties = dict(statement.properties)
    for property_name in properties:
        if property_name not in KNOWN:
            raise InvalidParameterValue(f"Invalid config variable(s) in the WITH clause: {property_name}", position=statement.position)
        if property_name not in PROPERTIES:
            raise FeatureNotSupported(f"property {property_name} is not supported", position=statement.position)
    if "FORMAT" in properties and ("KEY_FORMAT" in properties or "VALUE_FORMAT" in properties):
        raise InvalidParameterValue("Cannot supply both 'VALUE_FORMAT' and 'FORMAT' properties.", position=statement.position)
    both = properties.get("FORMAT")
    key_format = str(properties.get("KEY_FORMAT", both) or (formats[0] if formats else "KAFKA")).upper()
    value_format = str(properties.get("VALUE_FORMAT", both) or (formats[1] if formats else "")).upper()
    if not value_format:
        raise InvalidParameterValue('Missing required property "VALUE_FORMAT" which has no default value.', position=statement.position)
    for format, supported, part in ((key_format, KEY_FORMATS, "KEY"), (value_format, VALUE_FORMATS, "VALUE")):
        if format not in FORMATS:
            raise InvalidParameterValue(f"Unknown format: {format}", position=statement.position)
        if format not in supported:
            hint = f"Use {', '.join(supported)}."
            raise FeatureNotSupported(f"{part}_FORMAT {format} is not supported", hint=hint, position=statement.position)
    name = properties.get("KAFKA_TOPIC", topic)
    if not isinstance(name, str) or not name:
        raise InvalidParameterValue('Missing required property "KAFKA_TOPIC" which has no default value.', position=statement.position)
    return TopicProperties(
        name,
        key_format,
        value_format,
        _count(properties.get("PARTITIONS"), "PARTITIONS", statement.position),
        _count(properties.get("REPLICAS"), "REPLICAS", statement.position),
        _delimiter(properties.get("VALUE_DELIMITER"), statement.position),
    )


def _count(value: object, name: str, position: int) -> int | None:
    """Returns a number of partitions or replicas."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10_000:
        raise InvalidParameterValue(f"Invalid value {value} for property {name}", hint="Use a number from 1 to 10000.", position=position)
    return value


def _delimiter(value: object, position: int) -> str:
    if value is None:
        return DELIMITER
    words: dict[str, str] = {"SPACE": " ", "TAB": "\t"}
    text = words.get(str(value).upper(), str(value))
    if len(text) != 1:
        raise InvalidParameterValue(f"Invalid delimiter value: '{value}'", hint="Use one character, SPACE or TAB.", position=position)
    return text


def message_key(statement: s.CreateItem) -> tuple[str, ...]:
    """Returns the names of the columns that are in the message's key. Raises 42P16 or 0A000."""
    role = "key" if statement.type == "stream" else "primary key"
    for column in statement.columns:
        if column.role in ("key", "primary key") and column.role != role:
            what = "PRIMARY KEY" if column.role == "primary key" else "KEY"
            other = "KEY" if column.role == "primary key" else "PRIMARY KEY"
            raise InvalidTableDefinition(
                f"Column {ksqldb_name(column.name)} is a '{what}' column: please use '{other}' for {statement.type}s.",
                position=column.position,
            )
        if column.role in ("headers", "header"):
            raise FeatureNotSupported(
                "HEADERS columns are not supported", hint="Use CREATE SOURCE … INCLUDE HEADERS.", position=column.position
            )
    names = tuple(column.name for column in statement.columns if column.role == role)
    if statement.type == "table" and not names:
        raise InvalidTableDefinition("Tables require a PRIMARY KEY. Please define the PRIMARY KEY.", position=statement.position)
    if len(names) > 1:
        raise FeatureNotSupported("a key of several columns is not supported", hint="Declare one KEY column.", position=statement.position)
    return names


def source_text(statement: s.CreateItem, topic: TopicProperties, brokers: str, registry: str) -> str:
    """Returns the text of CREATE SOURCE for a declared stream or table. Raises 0A000 or 42P17."""
    keys = message_key(statement)
    values = [c for c in statement.columns if c.name not in keys]
    for column in statement.columns:
        if column.name in keys and column.type != types.VARCHAR:
            raise FeatureNotSupported(
                f"a key of type {types.shown(column.type)} is not supported", hint="Declare the key as VARCHAR.", position=column.position
            )
        if column.name not in keys and topic.value_format == "JSON" and column.type.name not in OF_JSON:
            raise FeatureNotSupported(
                f"type {types.shown(column.type)} in JSON is not supported",
                hint=f"Use {', '.join(OF_JSON).upper()}.",
                position=column.position,
            )
    if topic.value_format == "AVRO":
        if values:
            raise FeatureNotSupported(
                "declared columns of AVRO values are not supported",
                hint="Leave them out: they are those of the schema.",
                position=values[0].position,
            )
        if not registry:
            raise InvalidParameterValue("VALUE_FORMAT AVRO needs a schema registry", hint="Start Tailgate with --schema-registry.")
        if statement.type == "table":
            raise FeatureNotSupported("a table of AVRO values is not supported", hint="Declare a stream.", position=statement.position)
        value_format = f"AVRO USING CONFLUENT SCHEMA REGISTRY {_string(registry)}"
    elif not values:
        raise InvalidTableDefinition("The statement does not define any columns.", position=statement.position)
    else:
        delimiter = f" DELIMITED BY {_string(topic.delimiter)}" if topic.delimiter != DELIMITER else ""
        value_format = "JSON" if topic.value_format == "JSON" else f"CSV WITH {len(values)} COLUMNS{delimiter}"
    columns = "" if topic.value_format == "AVRO" else _columns(statement)
    form = f"KEY FORMAT TEXT VALUE FORMAT {value_format}" if keys else f"FORMAT {value_format}"
    position = "PARTITION AS rowpartition, OFFSET AS rowoffset, TIMESTAMP AS rowtime"
    if statement.type == "stream":
        form += f" INCLUDE {', '.join([*(f'KEY AS {quoted(k)}' for k in keys), position])}"
    else:
        form += " ENVELOPE UPSERT"
    place = f"FROM KAFKA BROKER {_string(brokers)} TOPIC {_string(topic.topic)}"
    return f"CREATE SOURCE {quoted(statement.name)}{columns} {place} {form}"


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _columns(statement: s.CreateItem) -> str:
    """Returns the declared columns in PostgreSQL's dialect."""
    texts = (f"{quoted(c.name)} {types.postgresql(c.type)}{' PRIMARY KEY' if c.role == 'primary key' else ''}" for c in statement.columns)
    return f" ({', '.join(texts)})"


# ---- INSERT INTO … VALUES ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Message:
    """A record for Kafka."""

    key: bytes | None
    value: bytes | None
    timestamp: int | None = None


def message(
    statement: s.InsertValues,
    columns: tuple[tuple[str, TypeName], ...],
    keys: tuple[str, ...],
    value_format: str,
    delimiter: str = DELIMITER,
) -> Message:
    """Returns the message of INSERT. `columns`: those of the stream or table, `keys` those of the message's key.

    Missing columns are NULL. Raises 42703, 42804, 22023, or 0A000 for a value that is not a literal.
    """
    column_types = dict(columns)
    names = statement.columns or tuple(column_types)
    if len(names) != len(statement.values):
        raise InvalidParameterValue("Expected number columns and values to match", position=statement.position)
    values: dict[str, object] = dict.fromkeys(column_types)
    timestamp: int | None = None
    for name, expression in zip(names, statement.values, strict=True):
        if name == "rowtime" and name not in column_types:
            timestamp = int(str(_value(expression, types.BIGINT, name)))
            continue
        if name not in column_types:
            raise UndefinedColumn(f"Column name {ksqldb_name(name)} does not exist.", position=statement.position)
        values[name] = _value(expression, column_types[name], name)
    key = None if not keys or values[keys[0]] is None else str(values[keys[0]]).encode()
    others = {name: value for name, value in values.items() if name not in keys}
    return Message(key, _encoded(others, value_format, delimiter), timestamp)


def _value(expression: Expression, type: TypeName, name: str) -> object:
    """Returns the value of a literal for a column."""
    if not isinstance(expression, Constant):
        raise FeatureNotSupported("INSERT of an expression is not supported", hint="Write literals.", position=expression.position)
    value = expression.value
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    match type.name:
        case _ if value is None:
            return None
        case "varchar" if isinstance(value, str):
            return value
        case "boolean" if isinstance(value, bool):
            return value
        case "int" if isinstance(value, int) and is_number and abs(value) <= 2**31 - 1:
            return value
        case "bigint" if isinstance(value, int) and is_number and abs(value) <= 2**63 - 1:
            return value
        case "double" if is_number and isinstance(value, int | float | Decimal):
            return float(value)
        case "decimal" if is_number and isinstance(value, int | Decimal):
            return Decimal(value)
    raise DatatypeMismatch(
        f"Expected type {types.shown(type)} for field `{ksqldb_name(name)}` but got {value!r}", position=expression.position
    )


def _encoded(values: dict[str, object], value_format: str, delimiter: str) -> bytes:
    """Returns the value of a message."""
    if value_format == "JSON":
        members = (f"{json.dumps(ksqldb_name(n), ensure_ascii=False)}:{_json(v)}" for n, v in values.items())
        return ("{" + ",".join(members) + "}").encode()
    if value_format == "DELIMITED":
        return delimiter.join(_field(v, delimiter) for v in values.values()).encode()
    raise FeatureNotSupported(f"INSERT in the format {value_format} is not supported", hint="Produce to the topic.")


def _json(value: object) -> str:
    return f"{value:f}" if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


def _field(value: object, delimiter: str) -> str:
    """Returns a field of a line, in double quotes if it needs them."""
    text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in (delimiter, '"', "\n", "\r")) else text
