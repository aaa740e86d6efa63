"""The text of a declaration of ksqlDB, from its value."""

from __future__ import annotations

from tailgate.lake.keywords import quoted_text
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.names import quoted
from tailgate.sql.ksqldb.statements import ColumnElement, CreateItem, PropertyValue


def text_of(statement: CreateItem) -> str:
    """Returns the text of CREATE {STREAM | TABLE} with columns and properties.

    >>> from tailgate.sql.ksqldb.parser import parse
    >>> text_of(parse("create stream s (a varchar key, n int) with (kafka_topic = 't', format = 'json')"))
    "CREATE STREAM S (A VARCHAR KEY, N INT) WITH (KAFKA_TOPIC='t', FORMAT='json');"
    """
    words = f"CREATE {'OR REPLACE ' if statement.replace else ''}{'SOURCE ' if statement.source else ''}{statement.type.upper()}"
    columns = f" ({', '.join(map(_column, statement.columns))})" if statement.columns else ""
    properties = ", ".join(f"{name}={_value(value)}" for name, value in statement.properties)
    return f"{words} {quoted(statement.name)}{columns}{f' WITH ({properties})' if properties else ''};"


def _column(column: ColumnElement) -> str:
    role = f"HEADER({_value(column.header)})" if column.role == "header" else column.role.upper()
    return f"{quoted(column.name)} {types.text(column.type)} {role}".rstrip()


def _value(value: PropertyValue) -> str:
    if isinstance(value, str):
        return quoted_text(value)
    return "NULL" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
