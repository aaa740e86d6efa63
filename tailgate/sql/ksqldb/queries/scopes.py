"""The columns that a query of ksqlDB sees in a relation of the catalog, with ksqlDB's types."""

from __future__ import annotations

import json

from tailgate.lake.catalog import Item, Source, Table, ksqldb_of
from tailgate.lake.catalog.formats import Avro
from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import SourceName
from tailgate.sql.ksqldb.translation import PSEUDO_COLUMNS, Scope


def is_stream(item: Item) -> bool:
    """Returns whether a relation is a stream of ksqlDB, declared or derived. Its rows have a position."""
    ksqldb = ksqldb_of(item)
    return ksqldb is not None and ksqldb.type == "stream"


def scope_of(item: Item, source: SourceName) -> Scope:
    """Returns the columns of a relation. Fields of Avro records are those of the schema. `source`: its place in FROM.

    Raises 0A000 for a table without a key.
    """
    if isinstance(item, Table) and item.key is None:
        raise FeatureNotSupported("a table without a key is not supported here", position=source.position)
    structures = (
        types.column_types(json.loads(item.value_format.schema)) if isinstance(item, Source) and isinstance(item.value_format, Avro) else {}
    )
    columns = {
        c.name: structures[c.name] if structures.get(c.name, types.UNKNOWN).name in types.STRUCTURES else types.of_catalog(c.type)
        for c in item.columns
        if c.name not in PSEUDO_COLUMNS
    }
    return Scope(columns, (source.alias,) if source.alias else (source.name,), has_position=is_stream(item))


def key_names(item: Item) -> tuple[str, ...]:
    """Returns the names of the columns in the key of a relation's messages; for a relation of PostgreSQL's dialect, its key."""
    ksqldb = ksqldb_of(item)
    return tuple(item.columns[i].name for i in item.key or ()) if ksqldb is None else ksqldb.message_key
