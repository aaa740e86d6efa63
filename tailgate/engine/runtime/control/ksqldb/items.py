"""Streams and tables of ksqlDB in the running engine: their items, topics and messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic, sleep, time_ns
from typing import Any, Literal

import pyarrow as pa

from tailgate.engine.ddl import ksqldb as ddl
from tailgate.engine.ddl.kafka.registry import SchemaLookup
from tailgate.engine.ddl.view import with_errors
from tailgate.engine.plan.views.inserts import target_of
from tailgate.engine.runtime.control.channels import on_channel
from tailgate.engine.runtime.kafka import producing
from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.engine.runtime.spark.constants import evaluated
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.formats import registry
from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView, Sink, Source, ksqldb_of
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.secrets import settings
from tailgate.lake.errors import ProgramLimitExceeded, TailgateError, UndefinedObject
from tailgate.lake.readers import holds
from tailgate.sql.ksqldb.custom_types import with_types
from tailgate.sql.ksqldb.declared.properties import check_names_topic
from tailgate.sql.ksqldb.declared.texts import text_of
from tailgate.sql.ksqldb.statements import AddColumns, CreateAs, CreateItem, InsertQuery, InsertValues, PushQuery
from tailgate.sql.statements import CreateKsqldbItem, Drop, InsertStream

PULLED_RECORDS_MAX = 1_000_000  # of a topic that a pull query reads: their rows are in the log until it ends
SCHEMA_IDS_MAX = 1000  # ids of schemas that INSERT has registered
ENDED_S = 5.0  # longest wait for the sink of a dropped item, which ends within ms while the sinks process runs
ENDED_LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class DroppedTopic:
    """A topic to delete with its subjects in the registry, and the ids of the sinks that wrote it."""

    brokers: str
    name: str
    access: Mapping[str, str]
    sinks: tuple[int, ...]
    subjects: tuple[str, ...]
    registry: tuple[str, Mapping[str, str]]  # its URL and the settings for access


class KsqldbItems:
    """Makes the items of statements of ksqlDB, and writes their topics. Thread safe."""

    def __init__(self, engine: Engine, endpoints: ddl.Endpoints, schemas: SchemaLookup) -> None:
        self._engine, self._endpoints, self._schemas = engine, endpoints, schemas
        self._producers = producing.Producers()
        self._schema_ids: dict[tuple[str, str, str], int] = {}
        self._position = 0  # of the last row that was inserted into a derived stream, in ns

    def items(self, statement: CreateKsqldbItem, text: str, catalog: Catalog) -> tuple[Item, ...]:
        """Returns the items of CREATE STREAM or TABLE."""
        endpoints = self._endpoints.within(catalog)
        if isinstance(statement.statement, CreateItem):
            source, letters = ddl.declared_source(statement.statement, text, catalog, self._schemas, endpoints)
            with self._topic(statement.statement, endpoints):
                source = on_channel(self._engine, source, None, catalog)
                self._register_declared(statement.statement, source, catalog)
                return source, letters
        query = statement.statement.query
        view, errors = with_errors(ddl.derived_view(statement.statement, text, catalog, statement.reset, self._schemas, endpoints))
        ddl.check_partitions(query, catalog, self._partitions)
        after = catalog.apply(Change(put=(view, errors)))
        partitions = self._partitions(catalog.relation(Name(query.source.name))) or 1
        return view, errors, ddl.derived_sink(statement.statement, view, after, partitions, endpoints)

    def upgraded(self, statement: CreateKsqldbItem, text: str, catalog: Catalog, old: Item) -> tuple[Item, ...]:
        """Returns the items that CREATE OR REPLACE of an item that exists changes."""
        endpoints = self._endpoints_of(old, catalog)
        if isinstance(statement.statement, CreateAs):
            return ddl.upgraded_view(statement.statement, text, old, catalog, self._schemas, endpoints)
        with self._topic(statement.statement, endpoints):
            return ddl.upgraded(statement.statement, text, old, catalog, self._schemas, endpoints)

    def with_columns(self, statement: AddColumns, catalog: Catalog) -> tuple[Item, ...]:
        """Returns the items that ALTER … ADD COLUMN changes."""
        item, extended, text = ddl.with_columns(statement, catalog)
        return ddl.upgraded(extended, text, item, catalog, self._schemas, self._endpoints.within(catalog))

    def inserting(self, statement: InsertStream, text: str, catalog: Catalog) -> tuple[Item, ...]:
        """Returns the items of INSERT INTO … SELECT."""
        endpoints = self._endpoints.within(catalog)
        view, errors = with_errors(ddl.inserting_view(statement.statement, text, catalog, statement.reset, endpoints))
        ddl.check_partitions(statement.statement.query, catalog, self._partitions)
        if target_of(view, catalog) is not None:  # its sink writes the rows
            return view, errors
        return view, errors, ddl.inserting_sink(view, catalog.apply(Change(put=(view, errors))), endpoints)

    def explained(self, statement: CreateAs | InsertQuery | PushQuery, text: str, catalog: Catalog) -> MaterializedView:
        """Returns the view that a statement with a query would create, without its topic."""
        endpoints = self._endpoints.within(catalog)
        match with_types(statement, catalog):
            case CreateAs() as creation:
                return ddl.derived_view(creation, text, catalog, "latest", self._schemas, endpoints)
            case InsertQuery() as insertion:
                return ddl.inserting_view(insertion, text, catalog, "latest", endpoints)
            case pushed:
                return ddl.transient_view(pushed, text, catalog, "latest", "")

    def transient(
        self, statement: PushQuery, text: str, catalog: Catalog, reset: Literal["earliest", "latest"], name: str
    ) -> tuple[Item, ...]:
        """Returns the view of a push or pull query, and its errors. `name`: of the view.

        Raises 54000 for a pull query of too many records.
        """
        if not statement.query.emit and self._records(catalog.relation(Name(statement.query.source.name))) > PULLED_RECORDS_MAX:
            raise ProgramLimitExceeded(
                f"a pull query of a stream can read at most {PULLED_RECORDS_MAX} records",
                hint="Use EMIT CHANGES, or pull from a stream or table that a query derives.",
            )
        items = with_errors(ddl.transient_view(statement, text, catalog, reset, name))
        ddl.check_partitions(statement.query, catalog, self._partitions)
        return items

    def _endpoints_of(self, item: Item | None, catalog: Catalog) -> ddl.Endpoints:
        """Returns the endpoints of a declared stream or table, or of new items."""
        endpoints = self._endpoints.within(catalog)
        return endpoints.of(item, catalog) if isinstance(item, Source) else endpoints

    def _kafka(self, endpoints: ddl.Endpoints) -> tuple[str, Mapping[str, str]]:
        """Returns the brokers and the settings for access to them. Raises 55000."""
        return endpoints.brokers(), self._engine.opened(endpoints.kafka_settings) if endpoints.kafka_settings else {}

    def _place(self, item: Item, topic: str, catalog: Catalog) -> tuple[str, str, Mapping[str, str]]:
        """Returns the brokers and the topic of an item, and the settings for access. A terminated query has no sink that knows them."""
        sinks = _sinks_of(item, catalog)
        if isinstance(item, Source) or sinks:
            return self._engine.place(item if isinstance(item, Source) else sinks[0])
        brokers, access = self._kafka(self._endpoints.within(catalog))
        return brokers, topic, access

    def _schema_registry(self, endpoints: ddl.Endpoints) -> tuple[str, Mapping[str, str]]:
        """Returns the URL of the registry and the settings for access to it; an empty URL if there is none."""
        return endpoints.registry, self._engine.opened(endpoints.registry_settings) if endpoints.registry_settings else {}

    @contextmanager
    def _topic(self, statement: CreateItem, endpoints: ddl.Endpoints) -> Iterator[None]:
        """Creates the topic of a declaration with PARTITIONS if it does not exist, and deletes it again after an error.

        Raises 22023 for a declaration without KAFKA_TOPIC.
        """
        check_names_topic(statement)
        topic, (brokers, access), is_new = ddl.topic_of(statement), self._kafka(endpoints), False
        if topic.partitions is None:
            _check_topic(statement, brokers, topic.topic, access)
        else:
            config = {} if topic.retention_ms is None else {"retention.ms": str(topic.retention_ms)}
            is_new = producing.create_topic(brokers, topic.topic, topic.partitions, topic.replicas, access, config)
        try:
            yield
        except TailgateError:
            if is_new:
                producing.delete_topic(brokers, topic.topic, access)
            raise

    @contextmanager
    def topics_of(self, change: Change) -> Iterator[None]:
        """Creates the topics of new derived items, so that later statements can name them. Deletes them again after an error.

        Raises 22023 if a topic exists with another number of partitions.
        """
        items, created = self._engine.catalog.items, list[Sink]()
        try:
            for sink in change.put:
                if isinstance(sink, Sink) and sink.of_view and sink.id not in items and (topic := ddl.topic_of_sink(sink)) is not None:
                    brokers, name, access = self._engine.place(sink)
                    if producing.create_topic(brokers, name, topic.partitions, topic.replicas, access, topic.config):
                        created.append(sink)
            yield
        except TailgateError:
            for sink in created:
                with suppress(TailgateError):
                    producing.delete_topic(*self._engine.place(sink))
            raise

    def dropped_topics(self, statement: Drop, catalog: Catalog) -> list[DroppedTopic]:
        """Returns the topics that DROP … DELETE TOPIC deletes after the items. Raises 55006 for one that other items use."""
        items = [item for name in statement.names if statement.delete_topic and (item := catalog.find(name)) is not None]
        topics = []
        for item in items:
            topic = ddl.check_unused(item, catalog)
            sinks = _sinks_of(item, catalog)
            brokers, _, access = self._place(item, topic, catalog)
            registry = self._schema_registry(self._endpoints_of(item, catalog))
            for format in (form for sink in sinks for form in (sink.key_format, sink.value_format)):
                if format is not None and format.registry:
                    registry = format.registry, self._engine.opened(format.access) if format.access else {}
            subjects = ddl.subjects_of(item) if registry[0] else ()
            topics.append(DroppedTopic(brokers, topic, access, tuple(sink.id for sink in sinks), subjects, registry))
        return topics

    def delete(self, topics: list[DroppedTopic]) -> list[str]:
        """Deletes topics and their subjects when the sinks that wrote them have ended. Returns the messages of failures."""
        failures = []
        for topic in topics:
            deadline = monotonic() + ENDED_S
            copies = {holds.sink(id) for id in topic.sinks}
            while copies.intersection(holds.readers(self._engine.lake)) and monotonic() < deadline:
                sleep(ENDED_LOOK_S)
            try:
                producing.delete_topic(topic.brokers, topic.name, topic.access)
                for subject in topic.subjects:
                    registry.delete(*topic.registry, subject)
            except TailgateError as error:
                failures.append(error.message)
            self._schema_ids = {key: id for key, id in self._schema_ids.items() if key[1] not in topic.subjects}
        return failures

    def _evaluate(self, text: str) -> Any:
        return evaluated(text, self._engine.session)

    def insert(self, statement: InsertValues, catalog: Catalog) -> None:
        """Writes the message of INSERT INTO … VALUES. Returns when the broker has it."""
        endpoints = self._endpoints_of(catalog.find(Name(statement.name)), catalog)
        source, message = ddl.message_of(statement, catalog, partial(self._register, endpoints), self._evaluate)
        brokers, topic, access = self._engine.place(source)
        self._producers.produce(brokers, topic, message.key, message.value, message.timestamp, access)

    def row(self, statement: InsertValues, stream: MaterializedView) -> pa.Table:
        """Returns the row of INSERT INTO … VALUES into a derived stream. Rows of later statements have greater positions."""
        self._position = max(time_ns(), self._position + 1)
        return ddl.inserted_row(statement, stream, self._position, self._evaluate)

    def _register(self, endpoints: ddl.Endpoints, subject: str, schema: registry.Schema) -> int:
        """Returns the id of a schema in the registry, where it is registered if it is new. Raises 08006 or 22023."""
        identity = (endpoints.schemas(), subject, repr(schema))
        if identity not in self._schema_ids:
            if len(self._schema_ids) >= SCHEMA_IDS_MAX:
                self._schema_ids.clear()
            self._schema_ids[identity] = registry.register(*self._schema_registry(endpoints), subject, schema)
        return self._schema_ids[identity]

    def _register_declared(self, statement: CreateItem, source: Source, catalog: Catalog) -> None:
        """Registers the schemas of the columns of a declaration under subjects that do not exist. Raises 08006 or 22023."""
        endpoints = self._endpoints.within(catalog)
        url, sealed = endpoints.registry, settings(endpoints.registry_settings, catalog)
        if not url:
            return
        schemas = ddl.declared_schemas(statement, source, catalog)
        new = {subject: schema for subject, schema in schemas.items() if self._schemas.registered(url, subject, sealed) is None}
        registry.register_all(*self._schema_registry(endpoints), new)

    def _records(self, source: Item) -> int:
        """Returns the number of records in the topic of a declared stream. Raises 08006."""
        assert isinstance(source, Source)
        return sum(high - low for low, high in kafka.topic(*self._engine.place(source)).bounds.values())

    def _partitions(self, item: Item) -> int | None:
        """Returns the number of partitions of the topic of a relation, or None if it has none."""
        properties = ksqldb_of(item)
        if properties is None and not isinstance(item, Source):
            return None
        place = self._place(item, "" if properties is None else properties.topic, self._engine.catalog)
        try:
            return len(kafka.topic(*place).bounds)
        except TailgateError:
            return None


def _sinks_of(item: Item, catalog: Catalog) -> list[Sink]:
    """Returns the sink that writes the topic of a derived item, or none."""
    return [sink for sink in catalog.each(Sink) if sink.of_view and item.id in sink.depends]


def _check_topic(statement: CreateItem, brokers: str, name: str, access: Mapping[str, str]) -> None:
    """Raises 42704 if the topic of a declaration without PARTITIONS does not exist."""
    try:
        kafka.topic(brokers, name, access)
    except UndefinedObject:
        properties = {**dict(statement.properties), "PARTITIONS": 2, "REPLICAS": 1}
        example = text_of(replace(statement, properties=tuple(properties.items())))
        raise UndefinedObject(
            f"Topic '{name}' does not exist. If you want to create a new topic for the stream/table please re-run the statement"
            " providing the required 'PARTITIONS' configuration in the WITH clause (and optionally 'REPLICAS')."
            f" For example: {example}",
            position=statement.position,
        ) from None
