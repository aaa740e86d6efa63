"""The topics that streams and tables of the catalog read or write, and their schemas.

A declaration over the topic of a derived stream or table can follow its CREATE statement at once: its columns come from the catalog, not
from the registry, where the sink registers the schema later.
"""

from __future__ import annotations

from tailgate.engine.ddl.kafka.registry import RegisteredSchema
from tailgate.engine.ddl.ksqldb.serdes import Part, named, schema_of, serde_of
from tailgate.formats.ksqldb import serde
from tailgate.formats.registry import Schema, request_body
from tailgate.lake.catalog import Catalog, Item, Source, ksqldb_of
from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.lake.errors import ObjectInUse, WrongObjectType
from tailgate.sql.ksqldb.declared import sources
from tailgate.sql.ksqldb.declared.formats import WITH_SCHEMA
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.statements import ColumnElement, CreateItem


def of_topic(topic: str, catalog: Catalog) -> list[tuple[Item, KsqldbItem]]:
    """Returns the streams and tables over a topic, those that queries write first."""
    items = [(item, ksqldb) for item in catalog.items.values() if (ksqldb := ksqldb_of(item)) is not None]
    return sorted(((i, k) for i, k in items if k.topic == topic and not k.into), key=lambda pair: not pair[1].query)


def check_unused(item: Item, catalog: Catalog) -> str:
    """Returns the topic of a stream or table that is dropped with it. Raises 42809 without one, 55006 if others use it."""
    ksqldb = ksqldb_of(item)
    if ksqldb is None:
        raise WrongObjectType(f'"{item.name}" is not a stream or table of ksqlDB')
    others = sorted(ksqldb_name(other.name) for other, _ in of_topic(ksqldb.topic, catalog) if other.id != item.id)
    if others:
        raise ObjectInUse(f"Refusing to delete topic. Found other data sources ({', '.join(others)}) using topic {ksqldb.topic}")
    return ksqldb.topic


def subjects_of(item: Item) -> tuple[str, ...]:
    """Returns the subjects of the registry with the schemas of a stream's or table's topic."""
    ksqldb = ksqldb_of(item)
    if ksqldb is None:
        return ()
    formats = {"key": ksqldb.key_format, "value": ksqldb.value_format}
    return tuple(f"{ksqldb.topic}-{part}" for part, format in formats.items() if format in WITH_SCHEMA)


def written_schema(part: Part, topic: str, catalog: Catalog) -> RegisteredSchema | None:
    """Returns the schema of the keys or values that a query of the catalog writes to a topic, None if none does."""
    for item, ksqldb in of_topic(topic, catalog):
        if ksqldb.query and (schema := schema_of(part, item, ksqldb)) is not None:
            body = request_body(schema)
            return RegisteredSchema(body["schemaType"], (body["schema"],))
    return None


def declared_schemas(statement: CreateItem, source: Source, catalog: Catalog) -> dict[str, Schema]:
    """Returns the schemas of the columns that a statement declares, by the subjects of its topic, without those that queries write."""
    ksqldb = ksqldb_of(source)
    assert ksqldb is not None
    columns: dict[Part, tuple[ColumnElement, ...]] = {
        "key": () if ksqldb.unnamed_key else sources.message_key(statement, required=False),
        "value": sources.value_columns(statement),
    }
    schemas: dict[str, Schema] = {}
    for part, declared in columns.items():
        schema = serde.schema(serde_of(part, source, ksqldb), named(source, [c.name for c in declared])) if declared else None
        if schema is not None and written_schema(part, ksqldb.topic, catalog) is None:
            schemas[f"{ksqldb.topic}-{part}"] = schema
    return schemas
