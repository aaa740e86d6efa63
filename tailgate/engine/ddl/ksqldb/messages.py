"""The message of INSERT INTO … VALUES into a declared stream or table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tailgate.engine.ddl.ksqldb.items import formats_of
from tailgate.formats.ksqldb.serde import Serde, encoded
from tailgate.lake.catalog import Catalog, Source, ksqldb_of
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported, WrongObjectType
from tailgate.lake.types import Field
from tailgate.sql.ksqldb.declared.formats import ItemFormat
from tailgate.sql.ksqldb.declared.inserts import row
from tailgate.sql.ksqldb.declared.sources import key_format
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.queries.scopes import column_types
from tailgate.sql.ksqldb.queries.translation import PSEUDO_COLUMNS
from tailgate.sql.ksqldb.statements import InsertValues


@dataclass(frozen=True, slots=True)
class Message:
    """A record for Kafka. `timestamp`: in ms, None for the time at which it is written."""

    key: bytes | None
    value: bytes | None
    timestamp: int | None = None


def message_of(statement: InsertValues, catalog: Catalog) -> tuple[Source, Message]:
    """Returns the source and the message of INSERT INTO … VALUES. Raises 42809 or 0A000 for an item that cannot be written so."""
    item = catalog.relation(Name(statement.name, position=statement.position))
    ksqldb = ksqldb_of(item)
    if ksqldb is None:
        raise WrongObjectType(f'"{item.name}" is not a stream or table of ksqlDB', position=statement.position)
    if not isinstance(item, Source):
        raise FeatureNotSupported(
            f"INSERT into a derived {ksqldb.type} is not supported",
            hint="Insert into the stream that it is made of.",
            position=statement.position,
        )
    if ksqldb.read_only:
        raise WrongObjectType(f"Cannot insert into read-only {ksqldb.type}: {ksqldb_name(item.name)}", position=statement.position)
    if ksqldb.unnamed_key:
        raise FeatureNotSupported(
            f"INSERT into a {ksqldb.type} with an unnamed key is not supported",
            hint="Declare a KEY column in a stream over the same topic.",
            position=statement.position,
        )
    headers = {include.name for include in item.include if include.kind == "header"}
    if headers.intersection(statement.columns):
        raise WrongObjectType("Cannot insert into HEADER columns", position=statement.position)
    columns = [c for c in item.columns if c.name not in PSEUDO_COLUMNS and c.name not in headers]
    types = column_types(item)
    written = row(statement, {c.name: types[c.name] for c in columns})
    key, value = formats_of(ksqldb)
    keys = [next(c for c in columns if c.name == name) for name in ksqldb.message_key]
    others = [c for c in columns if c.name not in ksqldb.message_key]
    is_keyed = any(written.values[c.name] is not None for c in keys)
    return item, Message(
        _bytes(key_format(key, len(keys)), keys, written.values) if is_keyed else None,
        _bytes(value, others, written.values),
        written.timestamp,
    )


def _bytes(format: ItemFormat, columns: Iterable[Field], values: Mapping[str, Any]) -> bytes | None:
    """Returns the bytes of a key or a value."""
    fields = [Field(ksqldb_name(c.name), c.type) for c in columns]
    arrays = [pa.array([values[c.name]], c.type.arrow) for c in columns]
    (out,) = encoded(Serde(format.name, format.delimiter, format.wrapped), fields, arrays, 1)
    return out
