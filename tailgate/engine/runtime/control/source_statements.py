"""Statements about running sources: PAUSE, RESUME, PRINT, SHOW TOPICS, dead letters."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import replace
from typing import Any

from tailgate.engine.ddl import find_item, matching_letters
from tailgate.engine.ddl.ksqldb import Endpoints
from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.backfill.letters import of_source
from tailgate.engine.runtime.control.control import Client
from tailgate.engine.runtime.control.turns import turn
from tailgate.engine.runtime.kafka import printing
from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.engine.runtime.kafka.consumer_groups import consumers
from tailgate.engine.runtime.kafka.readers import beginning, reader_name
from tailgate.lake.catalog import Catalog, Change, Connection, Sink, Source
from tailgate.lake.catalog.codec import encode_settings
from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.catalog.roles import OPERATOR
from tailgate.lake.errors import (
    ConfigurationLimitExceeded,
    InvalidParameterValue,
    ObjectNotInPrerequisiteState,
    TailgateError,
    WrongObjectType,
)
from tailgate.sql.statements import DeleteDeadLetters, Name, Pause, Print, ResumeSource

log = logging.getLogger("tailgate.engine")

# option of a source: the losses that RESUME AT EARLIEST has accepted, newest last
LOST_MAX = 100  # descriptions of losses that a source keeps
FOLLOWING_MAX = 50  # PRINTs that continue: each holds a consumer and a thread of the control interface

Place = tuple[str, str, dict[str, str]]  # result of Engine.place: brokers, topic, client settings


class Attending:
    """Executes these statements. Holds the installation's lock while the catalog changes. `endpoints`: of ksqlDB's statements."""

    def __init__(self, installation: Installation, endpoints: Endpoints) -> None:
        self._installation, self._engine, self._endpoints = installation, installation.engine, endpoints
        self._following = threading.BoundedSemaphore(FOLLOWING_MAX)

    # ---- pause and resume ------------------------------------------------------------------------

    def pause(self, statement: Pause, names: Resolution, client: Client) -> None:
        """Pauses or resumes sources.

        Sources that share a reader have one position in their topic, so they are paused and resumed
        together: raises 55000 if the statement omits one of them.
        """
        with turn(self._installation, client):
            catalog = self._engine.catalog.with_resolution(names)
            sources = {i.id: i for i in (_source(n, catalog) for n in statement.names)}
            channels = {i.channel for i in sources.values()}
            for other in catalog.each(Source):
                if other.channel in channels and other.id not in sources:
                    raise ObjectNotInPrerequisiteState(
                        f'source "{other.name}" reads its topic together with what is named', hint="Name them all in one statement."
                    )
            put = tuple(replace(i, paused=not statement.resume) for i in sources.values())
            self._engine.health.resume(channels if statement.resume else set())
            self._installation.install(Change(put=put))

    # ---- dead letters ----------------------------------------------------------------------------

    def retry(self, name: Name, names: Resolution) -> str:
        """Retries each dead letter of a source once. Returns a command tag with their number."""
        source = _source(name, self._engine.catalog.with_resolution(names))
        return f"RETRY {self._installation.letters.retry(source)}"

    def delete(self, statement: DeleteDeadLetters, role: str | None, names: Resolution) -> str:
        """Deletes dead letters of a source. Returns a command tag with their number.

        The condition is evaluated with the privileges of `role`; None is the operator.
        """
        catalog = self._engine.catalog.with_resolution(names)
        source = _source(statement.name, catalog)
        letters = of_source(source, catalog)
        asker = catalog.role(role) if role else OPERATOR
        return (
            f"DELETE {self._installation.letters.delete(source, lambda t: matching_letters(t, letters, statement.where, asker, catalog))}"
        )

    # ---- lost records ----------------------------------------------------------------------------

    def accept_loss(self, statement: ResumeSource, names: Resolution, client: Client) -> list[str]:
        """Moves a source to the earliest records that its topic still has. Returns the notices.

        The loss is logged and recorded in the item of the source.
        """
        with turn(self._installation, client):
            catalog = self._engine.catalog.with_resolution(names)
            if statement.if_exists and catalog.find(statement.name) is None:
                return [f'relation "{statement.name.name}" does not exist, skipping']
            source = _source(statement.name, catalog)
            reader, topic = reader_name(source), source.topic
            kafka_topic = kafka.topic(*self._engine.place(source))
            if (error := kafka.other(topic, kafka_topic.id, source.topic_id)) is not None:
                raise ObjectNotInPrerequisiteState(error)
            positions = self._engine.newest.offsets.get(reader, {}).get(topic, {})
            bounds = {p: kafka_topic.bounds.get(p, (0, 0)) for p in positions}
            lost = {
                p: (at, min(max(at, bounds[p][0]), bounds[p][1])) for p, at in positions.items() if not bounds[p][0] <= at <= bounds[p][1]
            }
            if not lost:
                return [f'source "{source.name}" has lost no records']
            notices = [_loss(topic, p, at, next_) for p, (at, next_) in sorted(lost.items())]
            together = [i for i in catalog.each(Source) if i.channel == source.channel]
            for line in notices:
                log.warning("%s: %s", ", ".join(f'source "{i.name}"' for i in together), line)
            self._engine.health.resume([source.channel])
            put = tuple(replace(i, lost=(*i.lost, *notices)[-LOST_MAX:]) for i in together)
            offsets = {reader: {topic: {**positions, **{p: next_ for p, (_, next_) in lost.items()}}}}
            self._installation.install(Change(put=put), offsets=offsets)
        return notices

    # ---- topics ----------------------------------------------------------------------------------

    def topics(self) -> list[list[Any]]:
        """Returns name, partitions, replicas and record count of all topics on known brokers."""
        out = []
        for brokers, settings in self._brokers():
            for name, partitions, replicas in kafka.listed(brokers, settings):
                bounds = kafka.topic(brokers, name, settings).bounds
                out.append([name, partitions, replicas, sum(high - low for low, high in bounds.values())])
        return sorted(out)

    def consumed_topics(self) -> list[list[Any]]:
        """Returns name, partitions, replicas, consumers and consumer groups of all topics on known brokers."""
        out = []
        for brokers, settings in self._brokers():
            counts = consumers(brokers, settings)
            out += [
                [name, partitions, replicas, *counts.get(name, (0, 0))] for name, partitions, replicas in kafka.listed(brokers, settings)
            ]
        return sorted(out)

    def print(self, statement: Print, names: Resolution) -> list[str]:
        """Returns the first or the last records of a topic, as lines of text."""
        return printing.present(*self._place(statement, names), statement)

    def follow(self, statement: Print, names: Resolution) -> Generator[list[str]]:
        """Yields the records of a topic as they arrive. Raises 53400 at the call if too many PRINTs continue."""
        place = self._place(statement, names)
        if not self._following.acquire(blocking=False):
            raise ConfigurationLimitExceeded("too many PRINT statements", detail=f"At most {FOLLOWING_MAX} can continue at a time.")
        try:
            lines = printing.arriving(*place, statement)
        except BaseException:
            self._following.release()
            raise
        return self._released(lines)

    def _released(self, lines: Generator[list[str]]) -> Generator[list[str]]:
        try:
            yield from lines
        finally:
            self._following.release()

    def _place(self, statement: Print, names: Resolution) -> tuple[str, dict[str, str]]:
        """Returns the brokers of a PRINT and the client settings. Raises 22023 if it is not clear which brokers have the topic."""
        if statement.connection is not None:
            return self._reached(find_item(Connection, statement.connection, self._engine.catalog.with_resolution(names)))
        if statement.brokers:
            return statement.brokers, {}
        own = self._endpoints.within(self._engine.catalog).kafka_connection
        brokers = self._brokers() if own is None else [self._reached(own)]
        if len(brokers) != 1:
            raise InvalidParameterValue(
                "it is not clear which broker has the topic", hint="Write PRINT 'topic' FROM BROKER 'host:port', or FROM CONNECTION c."
            )
        return brokers[0]

    def _brokers(self) -> list[tuple[str, dict[str, str]]]:
        """Returns all brokers of sources, sinks, connections and ksqlDB's statements, each with client settings."""
        items = sorted(self._engine.catalog.items.values(), key=lambda i: i.id)
        items_by_brokers = {i.brokers: i for i in items if isinstance(i, Source | Sink | Connection) and i.brokers}
        reached = [self._reached(items_by_brokers[brokers]) for brokers in sorted(items_by_brokers)]
        kafka = self._endpoints.kafka
        return reached if not kafka or kafka in items_by_brokers else [*reached, (kafka, {})]

    def _reached(self, item: Source | Sink | Connection) -> tuple[str, dict[str, str]]:
        """Returns the brokers of an item and its client settings, with secrets decrypted."""
        if not item.brokers:
            raise WrongObjectType(f'connection "{item.name}" is not to Kafka')
        return item.brokers, self._engine.opened(item.settings if isinstance(item, Connection) else item.kafka)


def positions(
    items: Iterable[Source | Sink], offsets: Mapping[str, Any], place: Callable[[Source | Sink], Place]
) -> dict[int, dict[str, tuple[int, int, int]]]:
    """Returns the first offset, the end and the offset of the next record to read of each partition, by the id of a source or sink.

    Queries read the rows of a derived item in the tick that adds them, before its sink writes them. So the next record is at the end.
    Sends one request per broker. Omits items whose broker does not answer.
    """
    together: dict[str, list[Source | Sink]] = {}
    for item in items:
        together.setdefault(json.dumps([item.brokers, encode_settings(item.kafka)], sort_keys=True), []).append(item)
    result: dict[int, dict[str, tuple[int, int, int]]] = {}
    for group in together.values():
        try:
            brokers, _, settings = place(group[0])
            topics = kafka.look(brokers, sorted({i.topic for i in group}), settings)
        except TailgateError:
            continue
        for item in group:
            if (topic := topics.get(item.topic)) is None:
                continue
            if isinstance(item, Sink):
                at = {p: high for p, (_, high) in topic.bounds.items()}
            else:
                at = offsets.get(reader_name(item), {}).get(item.topic, beginning(item, topic.bounds))
            result[item.id] = {p: (low, high, max(low, at.get(p, low))) for p, (low, high) in topic.bounds.items()}
    return result


def _source(name: Name, catalog: Catalog) -> Source:
    """Returns the source with this name. Raises 42809 if it is not a source."""
    item = catalog.named(name)
    if not isinstance(item, Source):
        raise WrongObjectType(f'"{item.name}" is not a source', position=name.position)
    return item


def _loss(topic: str, partition: str, at: int, next_: int) -> str:
    """Returns a sentence on a partition's lost records; `next_` is the next offset to read."""
    if next_ > at:
        return f"topic {topic}, partition {partition}: the records from offset {at} to {next_ - 1} are lost"
    return f"topic {topic}, partition {partition}: the records from offset {next_} to {at - 1} were read and are no longer there"
