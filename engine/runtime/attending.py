"""What is done with sources that run: pause and resume them, retry their dead letters (`letters`), look into topics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from engine.ddl import of_kind
from engine.runtime import kafka
from engine.runtime.installing import Installation
from engine.runtime.readers import beginning, reader_name
from lake.catalog import CONNECTION, Catalog, Change, Item
from lake.errors import InvalidParameterValue, ObjectNotInPrerequisiteState, TailgateError, WrongObjectType
from lake.inbox import Record
from lake.resolution import Resolution
from sql.statements import Name, Pause, Print

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
