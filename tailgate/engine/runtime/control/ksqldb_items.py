"""Streams and tables of ksqlDB in the running engine: their items, topics and messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from tailgate.engine.ddl import ksqldb as ddl
from tailgate.engine.ddl.kafka.registry import SchemaLookup
from tailgate.engine.runtime.kafka import producing
from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.lake.catalog import Catalog, DeadLetters, MaterializedView, Sink, Source, ksqldb_of
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import TailgateError
from tailgate.sql.ksqldb.statements import CreateAs, CreateItem, InsertValues

NO_ACCESS: Mapping[str, str] = {}


class KsqldbItems:
    """Makes the items of statements of ksqlDB, and writes their topics. Thread safe."""

    def __init__(self, engine: Engine, endpoints: ddl.Endpoints) -> None:
        self._engine, self._endpoints = engine, endpoints
        self._producers = producing.Producers()

    def declared(self, statement: CreateItem, text: str, catalog: Catalog, registry: SchemaLookup) -> tuple[Source, DeadLetters]:
        """Returns the items of a declared stream or table, without its channel."""
        return ddl.declared_source(statement, text, catalog, registry, self._endpoints)

    @contextmanager
    def topic(self, statement: CreateItem) -> Iterator[None]:
        """Creates the topic of a declaration with PARTITIONS if it does not exist, and deletes it again after an error."""
        topic, brokers = ddl.topic_of(statement), self._endpoints.brokers()
        is_new = topic.partitions is not None and producing.create_topic(brokers, topic.topic, topic.partitions, topic.replicas, NO_ACCESS)
        try:
            yield
        except TailgateError:
            if is_new:
                producing.delete_topic(brokers, topic.topic, NO_ACCESS)
            raise

    def derived(self, statement: CreateAs, text: str, catalog: Catalog, reset: Literal["earliest", "latest"]) -> MaterializedView:
        """Returns the view of CREATE TABLE … AS."""
        return ddl.derived_view(statement, text, catalog, reset, self._endpoints)

    def sink(self, statement: CreateAs, view: MaterializedView, catalog: Catalog) -> Sink:
        """Returns the sink of a derived table, whose topic has the partitions of its source's topic."""
        return ddl.derived_sink(statement, view, catalog, self._partitions(statement, catalog), self._endpoints)

    def insert(self, statement: InsertValues, catalog: Catalog) -> None:
        """Writes the message of INSERT INTO … VALUES. Returns when the broker has it."""
        source, message = ddl.message_of(statement, catalog)
        brokers, topic, access = self._engine.place(source)
        self._producers.produce(brokers, topic, message.key, message.value, message.timestamp, access)

    def _partitions(self, statement: CreateAs, catalog: Catalog) -> int:
        """Returns the number of partitions of the source's topic; 1 if it has none."""
        item = catalog.relation(Name(statement.query.source.name))
        properties = ksqldb_of(item)
        if isinstance(item, Source):
            place = self._engine.place(item)
        elif properties is not None:
            place = self._endpoints.brokers(), properties.topic, dict(NO_ACCESS)
        else:
            return 1
        try:
            return len(kafka.topic(*place).bounds)
        except TailgateError:
            return 1
