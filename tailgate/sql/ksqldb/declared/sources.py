"""Declared streams and tables as CREATE SOURCE of PostgreSQL's dialect.

CreateItem ──► columns of the key and of the value, topic, formats ──► text of CREATE SOURCE
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import DuplicateColumn, InvalidParameterValue, InvalidTableDefinition
from tailgate.lake.keywords import quoted_text
from tailgate.sql.ksqldb import statements as s
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.declared.formats import ItemFormat, check_columns, clause
from tailgate.sql.ksqldb.declared.properties import TopicProperties
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.pseudo_columns import ARRIVAL, HIDDEN_COLUMNS, WINDOW_BOUNDS

HEADERS = TypeName("array", arguments=(TypeName("struct", arguments=(types.VARCHAR, types.BYTES), fields=("key", "value")),))


def message_key(statement: s.CreateItem, *, required: bool = True) -> tuple[s.ColumnElement, ...]:
    """Returns the columns that are in the message's key. `required`: whether a table must have one. Raises 42P16."""
    role = "key" if statement.type == "stream" else "primary key"
    for column in statement.columns:
        if column.role in ("key", "primary key") and column.role != role:
            what = "PRIMARY KEY" if column.role == "primary key" else "KEY"
            other = "KEY" if column.role == "primary key" else "PRIMARY KEY"
            raise InvalidTableDefinition(
                f"Column `{ksqldb_name(column.name)}` is a '{what}' column: please use '{other}' for {statement.type}s.",
                position=column.position,
            )
    keys = tuple(column for column in statement.columns if column.role == role)
    if statement.type == "table" and not keys and required:
        raise InvalidTableDefinition("Tables require a PRIMARY KEY. Please define the PRIMARY KEY.", position=statement.position)
    return keys


def key_format(format: ItemFormat, columns: int) -> ItemFormat:
    """Returns the format of a key with this number of columns: the only column of a key stands alone."""
    return replace(format, wrapped=columns > 1)


def value_columns(statement: s.CreateItem) -> tuple[s.ColumnElement, ...]:
    """Returns the columns that are in the message's value."""
    return tuple(column for column in statement.columns if not column.role)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The topic and the registry as CREATE SOURCE has them, and the messages of PROTOBUF as the decoder takes them."""

    topic: str
    registry: str = ""
    key_message: str = ""
    value_message: str = ""


def check_wrapping(statement: s.CreateItem | s.CreateAs, columns: int) -> None:
    """Raises 22023 for the property WRAP_SINGLE_VALUE of a value of several columns."""
    if "WRAP_SINGLE_VALUE" in dict(statement.properties) and columns > 1:
        raise InvalidParameterValue("'WRAP_SINGLE_VALUE' is only valid for single-field value schemas", position=statement.position)


def check_item(statement: s.CreateItem, topic: TopicProperties) -> None:
    """Raises 42P16, 42701 or 22023 for columns of a declared stream or table that do not exist or that a format cannot hold."""
    keys, values = message_key(statement), value_columns(statement)
    _check_headers(statement)
    for n, column in enumerate(statement.columns):
        if column.name in HIDDEN_COLUMNS or column.name in WINDOW_BOUNDS:
            raise InvalidTableDefinition(
                f"'{ksqldb_name(column.name)}' is a reserved column name. You cannot use it as a name for a column.",
                position=column.position,
            )
        if column.name in (c.name for c in statement.columns[:n]):
            raise DuplicateColumn(f"Duplicate column names: `{ksqldb_name(column.name)}`", position=column.position)
        types.check(column.type)
    if not values:
        raise InvalidTableDefinition("The statement does not define any columns.", position=statement.position)
    check_columns(topic.key.name, [(c.name, c.type) for c in keys], keys[0].position if keys else statement.position, is_key=True)
    check_columns(topic.value.name, [(c.name, c.type) for c in values], values[0].position)
    check_wrapping(statement, len(values))
    if topic.window is not None and not keys:
        raise InvalidTableDefinition("Windowed sources require a key column.", position=statement.position)


def source_text(statement: s.CreateItem, topic: TopicProperties, endpoint: Endpoint) -> str:
    """Returns the text of CREATE SOURCE for a declared stream or table that `check_item` accepts."""
    keys, headers, values = message_key(statement), _headers(statement), value_columns(statement)
    value_format = clause(topic.value, [c.name for c in values], registry=endpoint.registry, schema=endpoint.value_message)
    columns = ", ".join(f"{quoted(c.name)} {types.postgresql(c.type)}" for c in statement.columns)
    form = f"VALUE FORMAT {value_format}" if keys else f"FORMAT {value_format}"
    if keys:
        of_key = key_format(topic.key, len(keys))
        names = [c.name for c in keys]
        key_clause = clause(of_key, names, registry=endpoint.registry, schema=endpoint.key_message, window=topic.window)
        form = f"KEY FORMAT {key_clause} {form}"
    time = f" FROM {quoted(topic.timestamp)}" if topic.timestamp else ""
    time += f" FORMAT {quoted_text(topic.timestamp_format)}" if topic.timestamp_format else ""
    is_stream = statement.type == "stream"
    position = ("PARTITION AS rowpartition", "OFFSET AS rowoffset", f"TIMESTAMP{time} AS rowtime")
    arrival = (f"ARRIVAL AS {ARRIVAL}",) if is_stream else ()
    included = [*(("KEY",) if keys and is_stream else ()), *map(_header, headers), *position, *arrival]
    form += f" INCLUDE {', '.join(included)}{'' if is_stream else ' ENVELOPE UPSERT'}"
    return f"CREATE SOURCE {quoted(statement.name)}{f' ({columns})' if columns else ''} FROM {endpoint.topic} {form}"


def _headers(statement: s.CreateItem) -> tuple[s.ColumnElement, ...]:
    return tuple(c for c in statement.columns if c.role in ("header", "headers"))


def _check_headers(statement: s.CreateItem) -> None:
    """Raises 42P16 for a column of headers with another type than its own, and for two of all headers."""
    headers = _headers(statement)
    for column in headers:
        expected = types.BYTES if column.role == "header" else HEADERS
        if column.type != expected:
            what = f"HEADER('{column.header}')" if column.role == "header" else "HEADERS"
            raise InvalidTableDefinition(
                f"Invalid type for {what} column: expected {types.in_schema(expected)}, got {types.in_schema(column.type)}",
                position=column.position,
            )
    for n, column in enumerate(headers):
        if column.role == "header" and column.header in (c.header for c in headers[:n]):
            raise InvalidTableDefinition(f"Schema already contains a HEADER('{column.header}') column.", position=column.position)
    if sum(c.role == "headers" for c in headers) and len(headers) > 1:
        raise InvalidTableDefinition(
            "Schema already contains a HEADERS column."
            if all(c.role == "headers" for c in headers)
            else "Schema may contain either HEADERS or HEADER('key') columns, not both.",
            position=headers[1].position,
        )


def _header(column: s.ColumnElement) -> str:
    if column.role == "headers":
        return f"HEADERS AS {quoted(column.name)} BYTES"
    return f"HEADER {quoted_text(column.header)} AS {quoted(column.name)} BYTES"
