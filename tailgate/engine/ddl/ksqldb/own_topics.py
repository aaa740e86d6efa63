"""The topics that streams and tables of the catalog read or write, and the schemas of those that queries write.

A declaration over the topic of a derived stream or table can follow its CREATE statement at once: its columns come from the catalog, not
from the registry, where the sink registers the schema later.
"""

from __future__ import annotations

import json

from tailgate.formats.ksqldb import avro
from tailgate.lake.catalog import Catalog, Item, ksqldb_of
from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.lake.types import Field
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.queries.scopes import value_positions


def of_topic(topic: str, catalog: Catalog) -> list[tuple[Item, KsqldbItem]]:
    """Returns the streams and tables over a topic, those that queries write first."""
    items = [(item, ksqldb) for item in catalog.items.values() if (ksqldb := ksqldb_of(item)) is not None]
    return sorted(((i, k) for i, k in items if k.topic == topic and not k.into), key=lambda pair: not pair[1].query)


def written_schema(topic: str, catalog: Catalog) -> str:
    """Returns the Avro schema that a query of the catalog writes to a topic; empty if none does."""
    for item, ksqldb in of_topic(topic, catalog):
        if ksqldb.query and ksqldb.value_format == "AVRO":
            key = [i for i, column in enumerate(item.columns) if column.name in ksqldb.message_key]
            positions = value_positions(item.columns, key, is_stream=ksqldb.type == "stream")
            columns = [Field(ksqldb_name(item.columns[i].name), item.columns[i].type) for i in positions]
            return json.dumps(avro.schema(columns, any_case=True))
    return ""
