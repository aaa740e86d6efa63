"""ALTER SOURCE … REFRESH SCHEMA: adds the columns of the newest schema in the registry to a source.

    the reader's schema, the newest one ──► the reader's with the new fields
                                        ──► columns: the old ones, then the new ones

Items that read the source record the old number of its columns (`known_columns`), so their texts keep
their meaning.

Rows that were decoded earlier, and messages with older schemas, have NULL in the new columns. A
column that the newest schema lacks is kept and is NULL. A column with another type in the newest
schema keeps its type; values are converted to it if possible.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from tailgate.engine.ddl.kafka.known_columns import check_no_backfill, readers_with_width
from tailgate.engine.ddl.kafka.registry import SchemaLookup
from tailgate.engine.ddl.kafka.source_item import value_format
from tailgate.engine.plan.sources import avro, protobuf
from tailgate.engine.plan.sources.envelopes import source_layout
from tailgate.lake.catalog import Catalog, Change, Item, Source, formats
from tailgate.lake.catalog.formats import MessageFormat
from tailgate.lake.errors import FeatureNotSupported, InvalidObjectDefinition, ObjectNotInPrerequisiteState, WrongObjectType
from tailgate.lake.types import Field
from tailgate.sql.drop import Notice, find_of_kind, notice
from tailgate.sql.new_items import check_columns
from tailgate.sql.statements import Avro, CreateSource, Protobuf, RefreshSchema, parse


def refresh_schema(statement: RefreshSchema, catalog: Catalog, registry: SchemaLookup) -> tuple[Change, list[Notice]]:
    """Returns the change of the catalog, and notices.

    Raises 55000 if the schema is part of the source's statement, 42P17 if the newest schema would
    change existing columns or the key.
    """
    item = find_of_kind("source", statement.name, catalog, if_exists=statement.if_exists, word="relation")
    if item is None:
        return Change(), [notice(f'relation "{statement.name.name}" does not exist, skipping')]
    if not isinstance(item, Source):
        raise WrongObjectType(f'"{item.name}" is not a source', position=statement.name.position)
    check_no_backfill(item, catalog)
    newest = value_format(_statement_with_registry(item), catalog.stored, registry)
    merged = replace(item, value_format=_merged_format(item, newest))
    added = [c.name for c in source_layout(merged).columns if c.name not in {old.name for old in item.columns}]
    first = len(item.columns) if item.first_columns is None else item.first_columns
    refreshed = replace(merged, added=(*item.added, *added), first_columns=first)
    layout = source_layout(refreshed)
    check_columns(layout.columns)
    existing = layout.columns[: len(item.columns)]
    if layout.key != item.key or [(c.name, c.type) for c in existing] != [(c.name, c.type) for c in item.columns]:
        raise _incompatible(item)
    notices = _column_notices(item, replace(item, value_format=newest), layout.columns)
    if layout.columns == item.columns:
        return Change(), [*notices, notice(f'source "{item.name}" has all columns of its schema')]
    readers = readers_with_width(item, catalog) if added else ()
    return Change(put=(replace(refreshed, columns=layout.columns), *readers)), notices


def _statement_with_registry(item: Source) -> CreateSource:
    """Returns the source's CREATE statement. Raises if its schema is not the registry's newest."""
    statement = parse(item.sql)
    assert isinstance(statement, CreateSource)
    format = statement.value_format
    if not isinstance(format, Avro | Protobuf):
        raise FeatureNotSupported(
            f"REFRESH SCHEMA of a source with FORMAT {type(format).__name__.upper()} is not supported",
            hint="It has no schema in a registry. Create another source to have other columns.",
        )
    if format.schema is not None or (isinstance(format, Avro) and format.value_strategy is not None):
        raise ObjectNotInPrerequisiteState(
            f'the schema of source "{item.name}" is what its statement says, so there is no newer one',
            hint="Create another source, with another schema or with the registry's newest.",
        )
    return statement


def _merged_format(item: Source, newest: MessageFormat) -> MessageFormat:
    """Returns the source's format with the fields of the newest schema added."""
    format = item.value_format
    if isinstance(format, formats.Protobuf) and isinstance(newest, formats.Protobuf):
        return replace(format, schema=protobuf.merged(format.schema, newest.schema))
    if not isinstance(format, formats.Avro) or not isinstance(newest, formats.Avro):
        raise _incompatible(item)
    old, new = avro.parse(format.schema), avro.parse(newest.schema)
    if item.envelope == "debezium":
        return replace(format, schema=avro.written({**old, "fields": [_image(field, new) for field in old["fields"]]}))
    if avro.is_record(old) != avro.is_record(new):
        raise _incompatible(item)
    return replace(format, schema=avro.written(avro.merged(old, new) if avro.is_record(old) else old))


def _image(field: dict[str, Any], envelope: avro.Schema) -> dict[str, Any]:
    """Returns a field of an envelope; the images of a row get the fields of the newest row."""
    if field["name"] not in ("before", "after"):
        return field
    type = field["type"]
    record = avro.merged(type, avro.fields(envelope)["after"])
    return {**field, "type": [s if s["type"] == "null" else record for s in type] if isinstance(type, list) else record}


def _incompatible(item: Item) -> InvalidObjectDefinition:
    """Returns the error for a schema with which a source cannot keep its columns and key."""
    return InvalidObjectDefinition(
        f'by its newest schema source "{item.name}" cannot keep its columns and its key', hint="Drop the source and create it again."
    )


def _column_notices(item: Source, newest: Source, columns: tuple[Field, ...]) -> list[Notice]:
    """Returns a notice for each added, missing or changed column.

    `newest`: the source with the newest schema.
    """
    notices = [notice(f'column "{c.name}" of type {c.type} was added') for c in columns[len(item.columns) :]]
    # raised for a column whose new type is not supported; the column does not change
    with suppress(FeatureNotSupported):
        now = {c.name: c.type for c in source_layout(newest).columns}
        for column in item.columns:
            if column.name not in now:
                notices.append(notice(f'column "{column.name}" is no longer in the schema, and is NULL in later rows'))
            elif now[column.name] != column.type:
                notices.append(notice(f'column "{column.name}" is of type {now[column.name]} in the schema, and stays {column.type}'))
    return notices
