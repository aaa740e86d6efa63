"""The schemas of a declared item's topic in the registry: the columns that the statement does not declare, and messages of PROTOBUF."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from tailgate.engine.ddl.kafka.registry import RegisteredSchema, SchemaLookup
from tailgate.engine.ddl.ksqldb.endpoints import Endpoints
from tailgate.engine.ddl.ksqldb.inference.columns import inferred, with_names
from tailgate.engine.ddl.ksqldb.own_topics import written_schema
from tailgate.engine.ddl.ksqldb.serdes import Part
from tailgate.engine.plan.sources import protobuf as messages
from tailgate.formats.ksqldb import protobuf
from tailgate.formats.ksqldb.values import Column
from tailgate.formats.protobuf.text import parsed
from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import InvalidParameterValue, UndefinedObject
from tailgate.sql.ksqldb.declared import sources
from tailgate.sql.ksqldb.declared.formats import UNWRAPPING, WITH_SCHEMA, ItemFormat
from tailgate.sql.ksqldb.declared.properties import TopicProperties
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.statements import ColumnElement, CreateItem
from tailgate.sql.ksqldb.types import described

KINDS = {"AVRO": "AVRO", "JSON_SR": "JSON", "PROTOBUF": "PROTOBUF"}  # the kind of schema of each format
ALONE: dict[Part, str] = {"key": "rowkey", "value": "rowval"}  # the column of a schema that is not a record
PLURALS = {"key": "keys", "value": "values"}


class TopicSchemas:
    """The schemas of the keys and values of a topic."""

    def __init__(self, topic: TopicProperties, registry: SchemaLookup, endpoints: Endpoints, catalog: Catalog) -> None:
        self._topic, self._registry, self._endpoints, self._catalog = topic, registry, endpoints, catalog

    def completed(self, statement: CreateItem) -> tuple[CreateItem, TopicProperties]:
        """Returns the statement with the columns of the schemas, and the properties with their forms.

        Raises 42704 if the registry does not have a schema, and 22023 if it has another format.
        """
        keys = sources.message_key(statement, required=self._topic.key.name not in WITH_SCHEMA)
        values = sources.value_columns(statement)
        topic = self._topic
        of_key = self._columns(statement, "key", topic.key, keys, topic.key_schema_id)
        of_value = self._columns(statement, "value", topic.value, values, topic.value_schema_id)
        names = {column.name for column in statement.columns}
        added = (*of_key, *(column for column in of_value if column.name not in {*names, *(c.name for c in of_key)}))
        if any(column.name == ALONE["value"] for column in of_value) and len(of_value) == 1:
            topic = replace(topic, value=replace(topic.value, wrapped=False))
        return replace(statement, columns=(*statement.columns, *added)), topic

    def value_names(self, statement: CreateItem) -> set[str]:
        """Returns the names of the columns of the value: those that are declared, otherwise those of its schema."""
        declared = sources.value_columns(statement)
        return {c.name for c in declared or self._columns(statement, "value", self._topic.value, (), self._topic.value_schema_id)}

    def _columns(
        self, statement: CreateItem, part: Part, format: ItemFormat, declared: Sequence[ColumnElement], id: int | None
    ) -> tuple[ColumnElement, ...]:
        """Returns the columns of a schema; none if the columns are declared, or if the format has no schema."""
        if id is not None and declared:
            raise InvalidParameterValue(
                f"Table elements and {part.upper()}_SCHEMA_ID cannot both exist for create statement.", position=statement.position
            )
        if declared or format.name not in WITH_SCHEMA:
            return ()
        schema = self._schema(part, format, id, statement.position)
        columns = (inferred if id is None else with_names)(schema, format.schema_name)
        key: Literal["key", "primary key"] = "key" if statement.type == "stream" else "primary key"
        role: Literal["", "key", "primary key"] = key if part == "key" else ""
        if part == "key" and format.name in UNWRAPPING and isinstance(columns, tuple):  # a key of these formats is one column
            columns = TypeName("struct", arguments=tuple(type for _, type in columns), fields=tuple(name for name, _ in columns))
        if not isinstance(columns, tuple):
            return (ColumnElement(ALONE[part], columns, role, position=statement.position),)
        return tuple(ColumnElement(name, type, role, position=statement.position) for name, type in columns)

    def _schema(self, part: Part, format: ItemFormat, id: int | None, position: int) -> RegisteredSchema:
        schema = self._found(part, id)
        if schema is None:
            which = f"Subject: {self._topic.topic}-{part}" if id is None else f"Schema Id: {id}"
            raise UndefinedObject(
                f"Schema for message {PLURALS[part]} on topic '{self._topic.topic}' does not exist in the Schema Registry.",
                detail=f"{which}.",
                hint="Register the schema first, or declare the columns.",
                position=position,
            )
        if schema.kind != KINDS[format.name]:
            raise InvalidParameterValue(
                f"{part.capitalize()} schema is {schema.kind}, and the statement has {part.upper()}_FORMAT {format.name}.",
                position=position,
            )
        return schema

    def _found(self, part: Part, id: int | None) -> RegisteredSchema | None:
        """Returns the schema that a query of the catalog writes, or that of the registry."""
        url = self._endpoints.schemas()
        written = written_schema(part, self._topic.topic, self._catalog) if id is None else None
        return written or self._registry.registered(url, f"{self._topic.topic}-{part}" if id is None else id)

    def message(self, part: Part, format: ItemFormat, columns: Sequence[ColumnElement], id: int | None) -> str:
        """Returns the message of PROTOBUF as the decoder takes it, an empty text for another format or without columns.

        It is the message in the registry, or without one that of the columns.
        """
        if not format.name.startswith("PROTOBUF") or not columns:
            return ""
        registered: RegisteredSchema | None = None
        if format.name == "PROTOBUF":
            registered = self._found(part, id)
        if registered is not None and registered.kind == "PROTOBUF":
            files = tuple(map(parsed, registered.texts))
            name, indexes = messages.chosen(files, format.schema_name or None)
            return messages.spec(files, name, indexes)
        of_columns = [Column(ksqldb_name(c.name), described(c.type)) for c in columns]
        file = parsed(protobuf.schema(of_columns, format.schema_name or protobuf.NAME, format.nullable))
        return messages.spec((file,), format.schema_name or protobuf.NAME, [0] if format.name == "PROTOBUF" else None)
