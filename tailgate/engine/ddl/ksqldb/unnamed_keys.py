"""KEY = 'column' of KSQL 4 and 5: the message's key has no name, and identifies rows as it is.

    the value has the column      ROWKEY is the key's bytes, hidden
    the value lacks the column    it is read from the key, with the type that it has in another stream or table over the topic

The value can lack the column after PARTITION BY, which moves it to the key.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

from tailgate.engine.ddl.ksqldb.own_topics import of_topic
from tailgate.lake.catalog import Catalog, Item, ksqldb_of
from tailgate.lake.errors import InvalidParameterValue
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.declared.properties import KEY_PROPERTY, named_column
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.queries.scope import ROWKEY
from tailgate.sql.ksqldb.queries.scopes import column_types, unnamed_key_column
from tailgate.sql.ksqldb.statements import ColumnElement, CreateItem, Properties


def has_unnamed_key(statement: CreateItem) -> bool:
    """Returns whether a declaration has the property KEY."""
    return any(name == KEY_PROPERTY for name, _ in statement.properties)


def with_key(statement: CreateItem, topic: str, value_names: Set[str], catalog: Catalog) -> CreateItem:
    """Returns the declaration with a column for the key instead of the property KEY. `value_names`: the columns of the value.

    Raises 22023 for KEY together with key columns, and for a column that neither the value nor the key has.
    """
    name = named_column(str(dict(statement.properties)[KEY_PROPERTY]))
    role = "key" if statement.type == "stream" else "primary key"
    if any(column.role in ("key", "primary key") for column in statement.columns):
        raise InvalidParameterValue(
            f"the property KEY and a {role.upper()} column exclude each other", hint="Omit KEY.", position=statement.position
        )
    if name in value_names:
        column = ColumnElement(ROWKEY, types.BYTES, "key" if statement.type == "stream" else "primary key", position=statement.position)
        return _with(statement, column, "KAFKA")
    for item, ksqldb in of_topic(topic, catalog):
        if ksqldb.message_key == (name,):
            type = column_types(item)[name]
            column = ColumnElement(name, type, "key" if statement.type == "stream" else "primary key", position=statement.position)
            return _with(statement, column, ksqldb.key_format)
    raise InvalidParameterValue(
        f"The KEY column set in the WITH clause does not exist in the schema: '{ksqldb_name(name)}'", position=statement.position
    )


def key_bytes(item: Item, values: Mapping[str, Any]) -> bytes | None:
    """Returns the key of a message with these values into a declared item with an unnamed key: the text of the column of KEY."""
    ksqldb = ksqldb_of(item)
    assert ksqldb is not None
    value = values[unnamed_key_column(ksqldb)]
    return None if value is None else (str(value).lower() if isinstance(value, bool) else str(value)).encode()


def _with(statement: CreateItem, column: ColumnElement, key_format: str) -> CreateItem:
    """Returns the declaration with a column of the key in this format."""
    renamed = (("VALUE_FORMAT" if name == "FORMAT" else name, value) for name, value in statement.properties)
    properties: Properties = (
        *((n, v) for n, v in renamed if n not in (KEY_PROPERTY, "KEY_FORMAT", "KEY_DELIMITER")),
        ("KEY_FORMAT", key_format),
    )
    return replace(statement, columns=(column, *statement.columns), properties=properties)
