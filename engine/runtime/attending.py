"""What is done with sources that run: pause and resume them, retry and delete their dead letters (`letters`), look into topics."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from engine.ddl import chosen_letters, of_kind
from engine.runtime import kafka
from engine.runtime.installing import Installation
from engine.runtime.letters import of_source
from engine.runtime.readers import beginning, reader_name
from lake.catalog import CONNECTION, Catalog, Change, Item
from lake.errors import InvalidParameterValue, ObjectNotInPrerequisiteState, TailgateError, WrongObjectType
from lake.inbox import Record
from lake.resolution import Resolution
from lake.roles import OPERATOR
from sql.statements import DeleteDeadLetters, Name, Pause, Print, ResumeSource

log = logging.getLogger("tailgate.engine")

LOST, LOST_MAX = "lost", 100  # option of a source: what RESUME AT EARLIEST has accepted, the newest last
LINES_MAX = 10_000  # of one PRINT
LINES = 100  # of a PRINT without LIMIT


Place = tuple[str, str, dict[str, str]]  # Engine.place


class Attending:
    """Holds the installation's lock while the catalog changes."""

    def __init__(self, installation: Installation) -> None:
        self._installation, self._engine = installation, installation.engine

    # ---- pause and resume ------------------------------------------------------------------------------------------------

    def pause(self, statement: Pause, names: Resolution) -> str:
        """Sources that share a reader have one place in their topic, so they stop and go on together."""
        with self._installation.lock:
            catalog = names.over(self._engine.catalog)
            sources = {i.id: i for i in (_source(n, catalog) for n in statement.names)}
            channels = {i.options["channel"] for i in sources.values()}
            for other in catalog.items.values():
                if other.kind == "source" and other.options["channel"] in channels and other.id not in sources:
                    raise ObjectNotInPrerequisiteState(
                        f'source "{other.name}" reads its topic together with what is named', hint="Name them all in one statement."
                    )
            put = tuple(replace(i, options={**i.options, "paused": not statement.resume}) for i in sources.values())
            self._engine.resume(channels if statement.resume else set())
            self._installation.install(Change(put=put))
        return "RESUME SOURCE" if statement.resume else "PAUSE SOURCE"

    # ---- dead letters ----------------------------------------------------------------------------------------------------

    def retry(self, name: Name, names: Resolution) -> str:
        """Every letter there is, once; the tag says how many."""
        source = _source(name, names.over(self._engine.catalog))
        return f"RETRY {self._installation.letters.retry(source)}"

    def delete(self, statement: DeleteDeadLetters, role: str | None, names: Resolution) -> str:
        """The tag says how many. `role`: in whose name the condition is evaluated; None is the operator."""
        catalog = names.over(self._engine.catalog)
        source = _source(statement.name, catalog)
        letters = of_source(source, catalog)
        asker = catalog.role(role) if role else OPERATOR
        return f"DELETE {self._installation.letters.delete(source, lambda t: chosen_letters(t, letters, statement.where, asker, catalog))}"

    # ---- records that are lost -------------------------------------------------------------------------------------------

    def accept_loss(self, statement: ResumeSource, names: Resolution) -> list[str]:
        """A source goes on at the earliest records that its topic still has. Returns what is to be told; the loss is logged, and noted
        in the source's item."""
        with self._installation.lock:
            catalog = names.over(self._engine.catalog)
            if statement.if_exists and catalog.find(statement.name) is None:
                return [f'relation "{statement.name.name}" does not exist, skipping']
            source = _source(statement.name, catalog)
            reader, topic = reader_name(source), source.options["topic"]
            there = kafka.topic(*self._engine.place(source))
            if (error := kafka.other(topic, there.id, source.options.get("topic_id"))) is not None:
                raise ObjectNotInPrerequisiteState(error)
            known = self._engine.newest.offsets.get(reader, {}).get(topic, {})
            bounds = {p: there.bounds.get(p, (0, 0)) for p in known}
            lost = {p: (at, min(max(at, bounds[p][0]), bounds[p][1])) for p, at in known.items() if not bounds[p][0] <= at <= bounds[p][1]}
            if not lost:
                return [f'source "{source.name}" has lost no records']
            said = [_loss(topic, p, at, next_) for p, (at, next_) in sorted(lost.items())]
            together = [i for i in catalog.items.values() if i.kind == "source" and i.options["channel"] == source.options["channel"]]
            for line in said:
                log.warning("%s: %s", ", ".join(f'source "{i.name}"' for i in together), line)
            self._engine.resume([source.options["channel"]])
            put = tuple(replace(i, options={**i.options, LOST: [*i.options.get(LOST, ()), *said][-LOST_MAX:]}) for i in together)
            offsets = {reader: {topic: {**known, **{p: next_ for p, (_, next_) in lost.items()}}}}
            self._installation.install(Change(put=put), offsets=offsets)
        return said

    # ---- topics ----------------------------------------------------------------------------------------------------------

    def topics(self) -> list[list[Any]]:
        """name, partitions, replicas, records: of all brokers that sources and sinks name."""
        out = []
        for brokers, settings in self._brokers():
            for name, partitions, replicas in kafka.listed(brokers, settings):
                bounds = kafka.topic(brokers, name, settings).bounds
                out.append([name, partitions, replicas, sum(high - low for low, high in bounds.values())])
        return sorted(out)

    def print(self, statement: Print, names: Resolution) -> list[str]:
        """The records of a topic: the first ones, or the last ones that there are."""
        if statement.connection is not None:
            brokers, settings = self._reached(of_kind(CONNECTION, statement.connection, names.over(self._engine.catalog)))
        elif statement.brokers:
            brokers, settings = statement.brokers, {}
        else:
            known = self._brokers()
            if len(known) != 1:
                raise InvalidParameterValue(
                    "it is not clear which broker has the topic", hint="Write PRINT 'topic' FROM BROKER 'host:port', or FROM CONNECTION c."
                )
            brokers, settings = known[0]
        limit = LINES if statement.limit is None else min(statement.limit, LINES_MAX)
        bounds = kafka.topic(brokers, statement.topic, settings).bounds
        begin = {p: low if statement.beginning else max(low, high - limit) for p, (low, high) in bounds.items()}
        found = []
        for record in kafka.history(brokers, statement.topic, begin, {p: high for p, (_, high) in bounds.items()}, settings):
            found.append(record)
            if statement.beginning and len(found) >= limit:
                break
        found.sort(key=lambda r: (r.timestamp, r.partition, r.offset))
        return [_line(r) for r in (found[:limit] if statement.beginning else found[-limit:] if limit else [])]

    def _brokers(self) -> list[tuple[str, dict[str, str]]]:
        """All that sources, sinks and connections name, each in one way of reaching it."""
        items = sorted(self._engine.catalog.items.values(), key=lambda i: i.id)
        found = {i.options["brokers"]: i for i in items if i.kind in ("source", "sink", CONNECTION) and "brokers" in i.options}
        return [self._reached(found[brokers]) for brokers in sorted(found)]

    def _reached(self, item: Item) -> tuple[str, dict[str, str]]:
        if "brokers" not in item.options:
            raise WrongObjectType(f'connection "{item.name}" is not to Kafka')
        said = item.options.get("settings" if item.kind == CONNECTION else "kafka", {})
        return item.options["brokers"], self._engine.opened(said)


def lags(sources: Iterable[Item], offsets: Mapping[str, Any], place: Callable[[Item], Place]) -> dict[int, int]:
    """Of each source by id: records of its topic that it has not read; without those whose broker does not say. Brokers are asked once."""
    together: dict[str, list[Item]] = {}
    for source in sources:
        together.setdefault(json.dumps([source.options["brokers"], source.options.get("kafka", {})], sort_keys=True), []).append(source)
    found: dict[int, int] = {}
    for group in together.values():
        try:
            brokers, _, settings = place(group[0])
            topics = kafka.look(brokers, sorted({i.options["topic"] for i in group}), settings)
        except TailgateError:
            continue
        for source in group:
            if (topic := topics.get(source.options["topic"])) is not None:
                at = offsets.get(reader_name(source), {}).get(source.options["topic"], beginning(source, topic.bounds))
                found[source.id] = sum(max(0, high - at.get(p, low)) for p, (low, high) in topic.bounds.items())
    return found


def _source(name: Name, catalog: Catalog) -> Item:
    item = catalog.named(name)
    if item.kind != "source":
        raise WrongObjectType(f'"{item.name}" is not a source', position=name.position)
    return item


def _loss(topic: str, partition: str, at: int, next_: int) -> str:
    if next_ > at:
        return f"topic {topic}, partition {partition}: the records from offset {at} to {next_ - 1} are lost"
    return f"topic {topic}, partition {partition}: the records from offset {next_} to {at - 1} were read and are no longer there"


def _line(record: Record) -> str:
    place = f"partition: {record.partition}, offset: {record.offset}"
    return f"timestamp: {record.timestamp}, key: {_text(record.key)}, value: {_text(record.value)}, {place}"


def _text(value: bytes | None) -> str:
    """As text where it is text, otherwise as bytea prints it."""
    if value is None:
        return "NULL"
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return "\\x" + value.hex()
    return text if text.isprintable() else "\\x" + value.hex()
