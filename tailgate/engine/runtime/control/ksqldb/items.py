"""Streams and tables of ksqlDB in the running engine: their items, topics and messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
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
from tailgate.lake.errors import ProgramLimitExceeded, TailgateError, UndefinedObject
from tailgate.lake.readers import holds
from tailgate.sql.ksqldb.custom_types import with_types
from tailgate.sql.ksqldb.declared.properties import check_names_topic
from tailgate.sql.ksqldb.declared.texts import text_of
from tailgate.sql.ksqldb.statements import AddColumns, CreateAs, CreateItem, InsertQuery, InsertValues, PushQuery
from tailgate.sql.statements import CreateKsqldbItem, Drop, InsertStream

NO_ACCESS: Mapping[str, str] = {}
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
    subjects: tuple[str, ...] = ()


class KsqldbItems:
    """Makes the items of statements of ksqlDB, and writes their topics. Thread safe."""

    def __init__(self, engine: Engine, endpoints: ddl.Endpoints, schemas: SchemaLookup) -> None:
        self._engine, self._endpoints, self._schemas = engine, endpoints, schemas
        self._producers = producing.Producers()
        self._schema_ids: dict[tuple[str, str, str], int] = {}
        self._position = 0  # of the last row that was inserted into a derived stream, in ns

    def items(self, statement: CreateKsqldbItem, text: str, catalog: Catalog) -> tuple[Item, ...]:
        """Returns the items of CREATE STREAM or TABLE."""
        if isinstance(statement.statement, CreateItem):
            source, letters = ddl.declared_source(statement.statement, text, catalog, self._schemas, self._endpoints)
            with self._topic(statement.statement):
                source = on_channel(self._engine, source, None, catalog)
                self._register_declared(statement.statement, source, catalog)
                return source, letters
        query = statement.statement.query
        view, errors = with_errors(ddl.derived_view(statement.statement, text, catalog, statement.reset, self._schemas, self._endpoints))
        ddl.check_partitions(query, catalog, self._partitions)
        after = catalog.apply(Change(put=(view, errors)))
        partitions = self._partitions(catalog.relation(Name(query.source.name))) or 1
        return view, errors, ddl.derived_sink(statement.statement, view, after, partitions, self._endpoints)

    def upgraded(self, statement: CreateKsqldbItem, text: str, catalog: Catalog, old: Item) -> tuple[Item, ...]:
        """Returns the items that CREATE OR REPLACE of an item that exists changes."""
        if isinstance(statement.statement, CreateAs):
            return ddl.upgraded_view(statement.statement, text, old, catalog, self._schemas, self._endpoints)
        with self._topic(statement.statement):
            return ddl.upgraded(statement.statement, text, old, catalog, self._schemas, self._endpoints)

    def with_columns(self, statement: AddColumns, catalog: Catalog) -> tuple[Item, ...]:
        """Returns the items that ALTER … ADD COLUMN changes."""
        item, extended, text = ddl.with_columns(statement, catalog)
        return ddl.upgraded(extended, text, item, catalog, self._schemas, self._endpoints)

    def inserting(self, statement: InsertStream, text: str, catalog: Catalog) -> tuple[Item, ...]:
        """Returns the items of INSERT INTO … SELECT."""
        view, errors = with_errors(ddl.inserting_view(statement.statement, text, catalog, statement.reset, self._endpoints))
        ddl.check_partitions(statement.statement.query, catalog, self._partitions)
        if target_of(view, catalog) is not None:  # its sink writes the rows
            return view, errors
        return view, errors, ddl.inserting_sink(view, catalog.apply(Change(put=(view, errors))), self._endpoints)

    def explained(self, statement: CreateAs | InsertQuery | PushQuery, text: str, catalog: Catalog) -> MaterializedView:
        """Returns the view that a statement with a query would create, without its topic."""
        match with_types(statement, catalog):
            case CreateAs() as creation:
                return ddl.derived_view(creation, text, catalog, "latest", self._schemas, self._endpoints)
            case InsertQuery() as insertion:
                return ddl.inserting_view(insertion, text, catalog, "latest", self._endpoints)
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

    @contextmanager
    def _topic(self, statement: CreateItem) -> Iterator[None]:
        """Creates the topic of a declaration with PARTITIONS if it does not exist, and deletes it again after an error.

        Raises 22023 for a declaration without KAFKA_TOPIC.
        """
        check_names_topic(statement)
        topic, brokers, is_new = ddl.topic_of(statement), self._endpoints.brokers(), False
        if topic.partitions is None:
            _check_topic(statement, brokers, topic.topic)
        else:
            config = {} if topic.retention_ms is None else {"retention.ms": str(topic.retention_ms)}
            is_new = producing.create_topic(brokers, topic.topic, topic.partitions, topic.replicas, NO_ACCESS, config)
        try:
            yield
        except TailgateError:
            if is_new:
                producing.delete_topic(brokers, topic.topic, NO_ACCESS)
            raise

    @contextmanager
    def topics_of(self, change: Change) -> Iterator[None]:
        """Creates the topics of new derived items, so that later statements can name them. Deletes them again after an error.

        Raises 22023 if a topic exists with another number of partitions.
        """
        items, created = self._engine.catalog.items, list[ddl.SinkTopic]()
        try:
            for sink in change.put:
                if isinstance(sink, Sink) and sink.of_view and sink.id not in items and (topic := ddl.topic_of_sink(sink)) is not None:
                    brokers = self._endpoints.brokers()
                    if producing.create_topic(brokers, topic.name, topic.partitions, topic.replicas, NO_ACCESS, topic.config):
                        created.append(topic)
            yield
        except TailgateError:
            for topic in created:
                with suppress(TailgateError):
                    producing.delete_topic(self._endpoints.brokers(), topic.name, NO_ACCESS)
            raise

    def dropped_topics(self, statement: Drop, catalog: Catalog) -> list[DroppedTopic]:
        """Returns the topics that DROP … DELETE TOPIC deletes after the items. Raises 55006 for one that other items use."""
        items = [item for name in statement.names if statement.delete_topic and (item := catalog.find(name)) is not None]
        topics = []
        for item in items:
            topic = ddl.check_unused(item, catalog)
            brokers, _, access = (
                self._engine.place(item) if isinstance(item, Source) else (self._endpoints.brokers(), topic, dict(NO_ACCESS))
            )
            sinks = tuple(i.id for i in catalog.each(Sink) if i.of_view and item.id in i.depends)
            topics.append(DroppedTopic(brokers, topic, access, sinks, ddl.subjects_of(item) if self._endpoints.registry else ()))
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
                    registry.delete(self._endpoints.schemas(), NO_ACCESS, subject)
            except TailgateError as error:
                failures.append(error.message)
            self._schema_ids = {key: id for key, id in self._schema_ids.items() if key[1] not in topic.subjects}
        return failures

    def _evaluate(self, text: str) -> Any:
        return evaluated(text, self._engine.session)

    def insert(self, statement: InsertValues, catalog: Catalog) -> None:
        """Writes the message of INSERT INTO … VALUES. Returns when the broker has it."""
        source, message = ddl.message_of(statement, catalog, self._register, self._evaluate)
        brokers, topic, access = self._engine.place(source)
        self._producers.produce(brokers, topic, message.key, message.value, message.timestamp, access)

    def row(self, statement: InsertValues, stream: MaterializedView) -> pa.Table:
        """Returns the row of INSERT INTO … VALUES into a derived stream. Rows of later statements have greater positions."""
        self._position = max(time_ns(), self._position + 1)
        return ddl.inserted_row(statement, stream, self._position, self._evaluate)

    def _register(self, subject: str, schema: registry.Schema) -> int:
        """Returns the id of a schema in the registry, where it is registered if it is new. Raises 08006 or 22023."""
        url = self._endpoints.schemas()
        identity = (url, subject, repr(schema))
        if identity not in self._schema_ids:
            if len(self._schema_ids) >= SCHEMA_IDS_MAX:
                self._schema_ids.clear()
            self._schema_ids[identity] = registry.register(url, NO_ACCESS, subject, schema)
        return self._schema_ids[identity]

    def _register_declared(self, statement: CreateItem, source: Source, catalog: Catalog) -> None:
        """Registers the schemas of the columns of a declaration under subjects that do not exist. Raises 08006 or 22023."""
        url = self._endpoints.registry
        if not url:
            return
        schemas = ddl.declared_schemas(statement, source, catalog)
        new = {subject: schema for subject, schema in schemas.items() if self._schemas.registered(url, subject) is None}
        registry.register_all(url, NO_ACCESS, new)

    def _records(self, source: Item) -> int:
        """Returns the number of records in the topic of a declared stream. Raises 08006."""
        assert isinstance(source, Source)
        return sum(high - low for low, high in kafka.topic(*self._engine.place(source)).bounds.values())

    def _partitions(self, item: Item) -> int | None:
        """Returns the number of partitions of the topic of a relation, or None if it has none."""
        properties = ksqldb_of(item)
        if isinstance(item, Source):
            place = self._engine.place(item)
        elif properties is not None:
            place = self._endpoints.brokers(), properties.topic, dict(NO_ACCESS)
        else:
            return None
        try:
            return len(kafka.topic(*place).bounds)
        except TailgateError:
            return None


def _check_topic(statement: CreateItem, brokers: str, name: str) -> None:
    """Raises 42704 if the topic of a declaration without PARTITIONS does not exist."""
    try:
        kafka.topic(brokers, name, NO_ACCESS)
    except UndefinedObject:
        properties = {**dict(statement.properties), "PARTITIONS": 2, "REPLICAS": 1}
        example = text_of(replace(statement, properties=tuple(properties.items())))
        raise UndefinedObject(
            f"Topic '{name}' does not exist. If you want to create a new topic for the stream/table please re-run the statement"
            " providing the required 'PARTITIONS' configuration in the WITH clause (and optionally 'REPLICAS')."
            f" For example: {example}",
            position=statement.position,
        ) from None
