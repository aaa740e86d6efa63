"""Checks of the new definition of a stream or table against the old one.

    the same type, topic, formats and key; the same columns in the same order, then new ones

Source: ksqlDB 0.29, documentation, "Update a running persistent query".
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.engine.ddl.ksqldb.names_in_use import name_in_use
from tailgate.lake.catalog import Item, ksqldb_of
from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.lake.errors import InvalidTableDefinition
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.queries.scopes import column_types, hidden_columns
from tailgate.sql.ksqldb.statements import ItemType


def check_type(type: ItemType, old: Item, ksqldb: KsqldbItem, position: int) -> None:
    """Raises 42P07 if a stream is to replace a table, or a table a stream."""
    if ksqldb.type != type:
        raise name_in_use(type, old.name, ksqldb, position)


def check_same_topic(old: Item, before: KsqldbItem, after: KsqldbItem | None) -> None:
    """Raises 42P16 unless both have the same topic, formats and window."""
    assert after is not None

    def compared(ksqldb: KsqldbItem) -> KsqldbItem:
        """Returns the properties of the topic."""
        of_topic = replace(ksqldb, statement="", types={}, message_key=(), query="", number=-1, reset="earliest", read_only=False)
        return of_topic if ksqldb.query else replace(of_topic, key_schema="", value_schema="")  # those of INSERT

    if compared(before) != compared(after):
        raise InvalidTableDefinition(
            f"Cannot upgrade data source: DataSource '`{ksqldb_name(old.name)}`' has topic = {_topic(before)} which is not upgradeable"
            f" to {_topic(after)}"
        )


def _topic(ksqldb: KsqldbItem) -> str:
    window = f", window {ksqldb.window.upper()}" if ksqldb.window else ""
    return f"{ksqldb.topic} (key format {ksqldb.key_format}, value format {ksqldb.value_format}{window})"


def check_schema(old: Item, new: Item, position: int) -> tuple[str, ...]:
    """Returns the names of the columns that an item gets.

    Raises 42P16 unless it has the old ones in their order, those of the key first, and then others in the value.
    """
    before, after = _columns(old), _columns(new)
    first = after[: len(before)]
    changed = [column for place, column in enumerate(before) if place >= len(first) or first[place] != column]
    if changed or any(column.endswith(types.KEY) for column in after[len(before) :]):
        listed = f". (The following columns are changed, missing or reordered: [{', '.join(changed)}])" if changed else ""
        raise InvalidTableDefinition(
            f"Cannot upgrade data source: DataSource '`{ksqldb_name(old.name)}`' has schema = {', '.join(before)} which is not"
            f" upgradeable to {', '.join(after)}{listed}",
            position=position,
        )
    names = {column.name for column in old.columns}
    return tuple(column.name for column in new.columns if column.name not in names)


def _columns(item: Item) -> list[str]:
    """Returns the columns as schemas have them: those of the key, then the others, in their order."""
    ksqldb, hidden = ksqldb_of(item), hidden_columns(item)
    assert ksqldb is not None
    columns = {name: type for name, type in column_types(item).items() if name not in hidden}
    keys = [name for name in ksqldb.message_key if name in columns]
    names = [*keys, *(name for name in columns if name not in keys)]
    return [types.column_in_schema(n, columns[n]) + (types.KEY if n in keys else "") for n in names]
