"""Declared streams and tables as CREATE SOURCE of PostgreSQL's dialect.

CreateItem ──► columns of the key and of the value, topic, formats ──► text of CREATE SOURCE
"""

from __future__ import annotations

from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, InvalidTableDefinition
from tailgate.sql.ksqldb import statements as s
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.declared.formats import ItemFormat, check_columns, clause
from tailgate.sql.ksqldb.declared.properties import TopicProperties
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.queries.translation import PSEUDO_COLUMNS, WINDOW_BOUNDS


def message_key(statement: s.CreateItem) -> tuple[s.ColumnElement, ...]:
    """Returns the columns that are in the message's key. Raises 42P16 or 0A000."""
    role = "key" if statement.type == "stream" else "primary key"
    for column in statement.columns:
        if column.role in ("key", "primary key") and column.role != role:
            what = "PRIMARY KEY" if column.role == "primary key" else "KEY"
            other = "KEY" if column.role == "primary key" else "PRIMARY KEY"
            raise InvalidTableDefinition(
                f"Column {ksqldb_name(column.name)} is a '{what}' column: please use '{other}' for {statement.type}s.",
                position=column.position,
            )
        if column.role == "headers":
            raise FeatureNotSupported("HEADERS columns are not supported", hint="Use HEADER('name') columns.", position=column.position)
    keys = tuple(column for column in statement.columns if column.role == role)
    if statement.type == "table" and not keys:
        raise InvalidTableDefinition("Tables require a PRIMARY KEY. Please define the PRIMARY KEY.", position=statement.position)
    return keys


def key_format(format: ItemFormat, columns: int) -> ItemFormat:
    """Returns the format of a key with this number of columns: the only column of a key stands alone."""
    return ItemFormat(format.name, format.delimiter, wrapped=columns > 1)


def value_columns(statement: s.CreateItem) -> tuple[s.ColumnElement, ...]:
    """Returns the columns that are in the message's value."""
    return tuple(column for column in statement.columns if not column.role)


def source_text(statement: s.CreateItem, topic: TopicProperties, brokers: str, registry: str, schema: str) -> str:
    """Returns the text of CREATE SOURCE for a declared stream or table. Raises 0A000, 42P16 or 22023.

    `schema`: the Avro schema for the columns of the value, empty if none are declared. Then they are those of the newest schema.
    """
    keys, headers, values = message_key(statement), _headers(statement), value_columns(statement)
    declared = statement.columns
    for column in statement.columns:
        if column.name in PSEUDO_COLUMNS or column.name in WINDOW_BOUNDS:
            raise InvalidTableDefinition(f"'{ksqldb_name(column.name)}' is a reserved column name.", position=column.position)
        types.check(column.type)
    check_columns(topic.key.name, [(c.name, c.type) for c in keys], keys[0].position if keys else statement.position, is_key=True)
    if topic.value.name == "AVRO":
        declared = tuple(c for c in declared if c not in values)  # the others are those of the schema
        value_format = f"AVRO USING CONFLUENT SCHEMA REGISTRY {_string(registry)}"
        value_format += f" VALUE STRATEGY INLINE {_string(schema)}" if schema else ""
    elif not values:
        raise InvalidTableDefinition("The statement does not define any columns.", position=statement.position)
    else:
        check_columns(topic.value.name, [(c.name, c.type) for c in values], values[0].position)
        if not topic.value.wrapped and len(values) > 1:
            raise InvalidParameterValue("'WRAP_SINGLE_VALUE' is only valid for single-field value schemas", position=statement.position)
        value_format = clause(topic.value, [c.name for c in values])
    columns = ", ".join(f"{quoted(c.name)} {types.postgresql(c.type)}" for c in declared)
    form = f"VALUE FORMAT {value_format}" if keys else f"FORMAT {value_format}"
    if keys:
        form = f"KEY FORMAT {clause(key_format(topic.key, len(keys)), [c.name for c in keys])} {form}"
    if statement.type == "stream":
        time = f" FROM {quoted(topic.timestamp)}" if topic.timestamp else ""
        position = f"PARTITION AS rowpartition, OFFSET AS rowoffset, TIMESTAMP{time} AS rowtime"
        form += f" INCLUDE {', '.join([*(('KEY',) if keys else ()), *map(_header, headers), position])}"
    else:
        form += (f" INCLUDE {', '.join(map(_header, headers))}" if headers else "") + " ENVELOPE UPSERT"
    place = f"FROM KAFKA BROKER {_string(brokers)} TOPIC {_string(topic.topic)}"
    return f"CREATE SOURCE {quoted(statement.name)}{f' ({columns})' if columns else ''} {place} {form}"


def _headers(statement: s.CreateItem) -> tuple[s.ColumnElement, ...]:
    """Returns the columns of headers. Raises 42P16 for one with another type than BYTES."""
    headers = tuple(c for c in statement.columns if c.role == "header")
    for column in headers:
        if column.type != types.BYTES:
            raise InvalidTableDefinition(
                f"Invalid type for HEADER('{column.header}') column: expected BYTES, got {types.shown(column.type)}",
                position=column.position,
            )
    return headers


def _header(column: s.ColumnElement) -> str:
    return f"HEADER {_string(column.header)} AS {quoted(column.name)} BYTES"


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
