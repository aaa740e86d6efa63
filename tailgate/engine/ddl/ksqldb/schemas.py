"""The schemas of a declared item's topic in the registry: the columns that the statement does not declare, and messages of PROTOBUF."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from tailgate.engine.ddl.kafka.registry import RegisteredSchema, SchemaLookup
from tailgate.engine.ddl.ksqldb.endpoints import Endpoints
from tailgate.engine.ddl.ksqldb.inference import naming
from tailgate.engine.ddl.ksqldb.inference.avro import required
from tailgate.engine.ddl.ksqldb.inference.columns import inferred, with_names
from tailgate.engine.ddl.ksqldb.inference.naming import Columns
from tailgate.engine.ddl.ksqldb.own_topics import written_schema
from tailgate.engine.ddl.ksqldb.serdes import Part
from tailgate.engine.plan.sources import avro
from tailgate.engine.plan.sources import protobuf as messages
from tailgate.formats.ksqldb import protobuf
from tailgate.formats.ksqldb.values import Column
from tailgate.formats.protobuf.text import parsed
from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.secrets import settings
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, InvalidTableDefinition, UndefinedObject
from tailgate.sql.ksqldb.declared import sources
from tailgate.sql.ksqldb.declared.formats import UNWRAPPING, WITH_SCHEMA, ItemFormat
from tailgate.sql.ksqldb.declared.properties import TopicProperties
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.statements import ColumnElement, CreateItem
from tailgate.sql.ksqldb.types import UNKNOWN, column_in_schema, described

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
        of_key = self._columns(statement, "key", self._content(statement, "key", topic.key, keys, topic.key_schema_id))
        content = self._content(statement, "value", topic.value, values, topic.value_schema_id)
        of_value = self._columns(statement, "value", content)
        names = {column.name for column in statement.columns}
        added = (*of_key, *(column for column in of_value if column.name not in {*names, *(c.name for c in of_key)}))
        if isinstance(content, TypeName):
            topic = replace(topic, value=replace(topic.value, wrapped=False))
        topic = replace(
            topic,
            key=self._with_text("key", topic.key, topic.key_schema_id, statement.position),
            value=self._with_text("value", topic.value, topic.value_schema_id, statement.position),
        )
        return replace(statement, columns=(*statement.columns, *added)), topic

    def _with_text(self, part: Part, format: ItemFormat, id: int | None, position: int) -> ItemFormat:
        """Returns a format with the schema of an id, with which INSERT writes."""
        schema = self._schema(part, format, id, position) if id is not None and format.name in KINDS else None
        return format if schema is None or _is_split(schema) else replace(format, schema=_text(schema))

    def written(self, keys: Columns, values: Columns, position: int) -> TopicProperties:
        """Returns the properties of a derived item with the schemas that have the ids of its properties.

        Raises 42704 if the registry does not have one, 22023 for one of another format, and 42P16 if its fields are not the columns.
        """
        topic = self._topic
        of_key = self._written("key", sources.key_format(topic.key, len(keys)), keys, topic.key_schema_id, position)
        of_value = self._written("value", topic.value, values, topic.value_schema_id, position)
        return replace(topic, key=replace(topic.key, schema=of_key.schema), value=of_value)

    def _written(self, part: Part, format: ItemFormat, columns: Columns, id: int | None, position: int) -> ItemFormat:
        """Returns a format with the schema of an id, or without a schema. With one that is not a record, the column is not wrapped."""
        if id is None:
            return replace(format, schema="")
        schema = self._schema(part, format, id, position)
        if _is_split(schema):
            raise FeatureNotSupported("a Protobuf schema with references to other schemas is not supported here", position=position)
        content = with_names(schema, format.schema_name)
        if format.wrapped or len(columns) != 1 or format.name == "PROTOBUF":
            fields = content if isinstance(content, tuple) else ((ALONE[part], content),)
            rest = iter(fields)
            fits = all(column in rest for column in columns)  # in the order of the schema
        else:
            fields = ((columns[0][0], naming.struct(content) or UNKNOWN if isinstance(content, tuple) else content),)
            fits = fields == tuple(columns)
        if not fits:
            raise InvalidTableDefinition(
                f"The following {part} columns are changed, missing or reordered: [{_listed(columns)}]."
                f" Schema from schema registry is [{_listed(fields)}]",
                position=position,
            )
        names = {ksqldb_name(name) for name, _ in columns}
        missing = [name for name in required(schema.texts) if name not in names] if schema.kind == "AVRO" and format.wrapped else []
        if missing:
            message = f"field {missing[0]} of the schema in the registry has no default, and the {part} has no column {missing[0]}"
            raise InvalidTableDefinition(message, position=position)
        return replace(format, schema=_text(schema), wrapped=format.wrapped and isinstance(content, tuple))

    def value_names(self, statement: CreateItem) -> set[str]:
        """Returns the names of the columns of the value: those that are declared, otherwise those of its schema."""
        declared = sources.value_columns(statement)
        content = self._content(statement, "value", self._topic.value, declared, self._topic.value_schema_id)
        return {c.name for c in declared or self._columns(statement, "value", content)}

    def _content(
        self, statement: CreateItem, part: Part, format: ItemFormat, declared: Sequence[ColumnElement], id: int | None
    ) -> Columns | TypeName:
        """Returns the columns of a record, or the type of another schema; no columns if they are declared or the format has no schema."""
        if id is not None and declared:
            raise InvalidParameterValue(
                f"Table elements and {part.upper()}_SCHEMA_ID cannot both exist for create statement.", position=statement.position
            )
        if declared or format.name not in WITH_SCHEMA:
            return ()
        schema = self._schema(part, format, id, statement.position)
        columns = (inferred if id is None else with_names)(schema, format.schema_name)
        if (part == "key" or not format.wrapped) and format.name in UNWRAPPING and isinstance(columns, tuple):  # one column
            return TypeName("struct", arguments=tuple(type for _, type in columns), fields=tuple(name for name, _ in columns))
        return columns

    def _columns(self, statement: CreateItem, part: Part, content: Columns | TypeName) -> tuple[ColumnElement, ...]:
        """Returns the columns of a schema with this content."""
        key: Literal["key", "primary key"] = "key" if statement.type == "stream" else "primary key"
        role: Literal["", "key", "primary key"] = key if part == "key" else ""
        columns = content if isinstance(content, tuple) else ((ALONE[part], content),)
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
        url, access = self._endpoints.schemas(), settings(self._endpoints.registry_settings, self._catalog)
        written = written_schema(part, self._topic.topic, self._catalog) if id is None else None
        return written or self._registry.registered(url, f"{self._topic.topic}-{part}" if id is None else id, access)

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


def _listed(columns: Columns) -> str:
    return ", ".join(column_in_schema(name, type) for name, type in columns)


def _is_split(schema: RegisteredSchema) -> bool:
    """Returns whether a schema of PROTOBUF has several texts."""
    return schema.kind == "PROTOBUF" and len(schema.texts) > 1


def _text(schema: RegisteredSchema) -> str:
    """Returns one text of a schema and those that it references."""
    return schema.texts[-1] if len(schema.texts) == 1 else avro.written(avro.parse(*schema.texts))
