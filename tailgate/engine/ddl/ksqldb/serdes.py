"""The formats of a stream's or table's keys and values, and the schemas that they have in the registry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from tailgate.formats.ksqldb import serde
from tailgate.formats.ksqldb.serde import Serde
from tailgate.formats.ksqldb.values import Column
from tailgate.formats.registry import Schema
from tailgate.lake.catalog import Item
from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.sql.ksqldb.declared.formats import ItemFormat
from tailgate.sql.ksqldb.declared.sources import key_format
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.pseudo_columns import WINDOW_BOUNDS
from tailgate.sql.ksqldb.queries.scopes import column_types, value_positions
from tailgate.sql.ksqldb.types import described

Part = Literal["key", "value"]

AVRO_NAMESPACE = "io.confluent.ksql.avro_schemas"


def formats_of(ksqldb: KsqldbItem) -> tuple[ItemFormat, ItemFormat]:
    """Returns the formats of the key and the value of an item."""
    return (
        ItemFormat(ksqldb.key_format, ksqldb.key_delimiter, True, ksqldb.key_schema_name, ksqldb.key_nullable, ksqldb.key_schema),
        ItemFormat(
            ksqldb.value_format,
            ksqldb.value_delimiter,
            ksqldb.wrapped,
            ksqldb.value_schema_name,
            ksqldb.value_nullable,
            ksqldb.value_schema,
        ),
    )


def with_key_name(format: ItemFormat, item: str) -> ItemFormat:
    """Returns the format of an item's keys with the name of the record of AVRO.

    >>> with_key_name(ItemFormat("AVRO"), "page_views").schema_name
    'io.confluent.ksql.avro_schemas.PageViewsKey'
    """
    if format.name != "AVRO" or format.schema_name:
        return format
    return replace(format, schema_name=f"{AVRO_NAMESPACE}.{''.join(word.capitalize() for word in ksqldb_name(item).split('_'))}Key")


def serde_of(part: Part, item: Item, ksqldb: KsqldbItem) -> Serde:
    """Returns the format of an item's keys or values."""
    key, value = formats_of(ksqldb)
    columns = sum(name not in WINDOW_BOUNDS for name in ksqldb.message_key)
    format = with_key_name(key_format(key, columns), item.name) if part == "key" else value
    return Serde(format.name, format.delimiter, format.wrapped, format.schema_name, format.nullable, format.schema)


def named(item: Item, names: Sequence[str]) -> list[Column]:
    """Returns columns of an item with their names and types in ksqlDB."""
    types = column_types(item)
    return [Column(ksqldb_name(name), described(types[name])) for name in names]


def schema_of(part: Part, item: Item, ksqldb: KsqldbItem) -> Schema | None:
    """Returns the schema of the keys or the values that a query writes, None for a format without one."""
    if part == "key":
        names = [name for name in ksqldb.message_key if name not in WINDOW_BOUNDS]
    else:
        key = [i for i, column in enumerate(item.columns) if column.name in ksqldb.message_key]
        names = [item.columns[i].name for i in value_positions(item.columns, key)]
    return serde.schema(serde_of(part, item, ksqldb), named(item, names)) if names else None
