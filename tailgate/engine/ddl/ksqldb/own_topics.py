"""The topics that streams and tables of the catalog read or write, and the schemas of those that queries write.

A declaration over the topic of a derived stream or table can follow its CREATE statement at once: its columns come from the catalog, not
from the registry, where the sink registers the schema later.
"""

from __future__ import annotations

from tailgate.engine.ddl.kafka.registry import RegisteredSchema
from tailgate.engine.ddl.ksqldb.serdes import Part, schema_of
from tailgate.formats.registry import request_body
from tailgate.lake.catalog import Catalog, Item, ksqldb_of
from tailgate.lake.catalog.formats import KsqldbItem


def of_topic(topic: str, catalog: Catalog) -> list[tuple[Item, KsqldbItem]]:
    """Returns the streams and tables over a topic, those that queries write first."""
    items = [(item, ksqldb) for item in catalog.items.values() if (ksqldb := ksqldb_of(item)) is not None]
    return sorted(((i, k) for i, k in items if k.topic == topic and not k.into), key=lambda pair: not pair[1].query)


def written_schema(part: Part, topic: str, catalog: Catalog) -> RegisteredSchema | None:
    """Returns the schema of the keys or values that a query of the catalog writes to a topic, None if none does."""
    for item, ksqldb in of_topic(topic, catalog):
        if ksqldb.query and (schema := schema_of(part, item, ksqldb)) is not None:
            body = request_body(schema)
            return RegisteredSchema(body["schemaType"], (body["schema"],))
    return None
