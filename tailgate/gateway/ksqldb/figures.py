"""The measured figures of DESCRIBE … EXTENDED: of a topic, and of the messages that are read from it or written to it.

    topics of the engine       partitions, replicas
    status of the engine       messages since the start of the process that reads or writes them
    dead letters of a source   the time of the newest

Source: ksqlDB 0.29, documentation, "DESCRIBE".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from tailgate.gateway.ksqldb.query_errors import waiting
from tailgate.lake.catalog import Catalog, DeadLetters, Item, Sink, Source, ksqldb_of
from tailgate.lake.folder import Lake
from tailgate.lake.readers import reading

WIDTH = 9  # of a figure
GROUP_OF_QUERIES = "_confluent-ksql-default_query_"  # what ksqlDB's names of consumer groups begin with


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one stream or table. `statistics`, `errors`: as text. `offsets`: those of the topics that its query reads."""

    partitions: int
    replication: int
    statistics: str
    errors: str
    offsets: Sequence[Mapping[str, Any]] = ()


class Measured:
    """The figures of all streams and tables. `status`: the engine's status. `topics`: its lines for SHOW TOPICS."""

    def __init__(self, catalog: Catalog, status: Mapping[str, Any], topics: Sequence[str], failed: Mapping[int, datetime]) -> None:
        self._catalog, self._status, self._failed = catalog, status, failed
        rows = (line.split("\t") for line in topics)
        self._topics = {name: (int(partitions), int(replicas)) for name, partitions, replicas, *_ in rows}
        self.failing = waiting(status, catalog)  # the ids of queries that wait for Kafka or the registry

    def of(self, item: Item) -> Figures:
        """Returns the figures of an item."""
        ksqldb = ksqldb_of(item)
        partitions, replication = self._topics.get("" if ksqldb is None else ksqldb.topic, (0, 0))
        is_read = isinstance(item, Source)
        counts = self._counts(item)
        prefix = "consumer-" if is_read else ""
        last = counts.get("last_message")
        statistics = [
            (f"{prefix}messages-per-sec", f"{counts.get('per_second') or 0:.2f}"),
            (f"{prefix}total-messages", str(counts.get("records") or 0)),
            *([("consumer-total-message-bytes", str(counts.get("bytes") or 0))] if is_read else []),
            ("last-message", _time(datetime.fromtimestamp(last / 1000, timezone.utc) if last else None)),
        ]
        errors = [
            (f"{prefix}failed-messages", str(counts.get("dead_letters") or 0)),
            ("last-failed", _time(self._failed.get(item.id))),
        ]
        return Figures(partitions, replication, _line(statistics), f" {_line(errors)}", self._offsets(item))

    def _offsets(self, item: Item) -> list[Mapping[str, Any]]:
        """Returns the offsets of the streams and tables that the query of an item reads."""
        ksqldb = ksqldb_of(item)
        if ksqldb is None or not ksqldb.query:
            return []
        read = (self._catalog[id] for id in item.depends if id != ksqldb.into)
        topics = [
            {
                "kafkaTopic": _topic(source),
                "offsets": [_partition(p, *bounds) for p, bounds in sorted(places.items(), key=lambda pair: int(pair[0]))],
            }
            for source in read
            if (places := self._counts(source).get("offsets"))
        ]
        return [{"groupId": f"{GROUP_OF_QUERIES}{ksqldb.query}", "topicSummaries": topics}] if topics else []

    def _counts(self, item: Item) -> Mapping[str, Any]:
        """Returns the counts of a source, or of the sink of a view."""
        if isinstance(item, Source):
            counts: Mapping[str, Any] = self._status.get("sources", {}).get(self._catalog.stored.name_of(item).sql, {})
            return counts
        sink = next((i for i in self._catalog.each(Sink) if i.of_view and item.id in i.depends), None)
        return {} if sink is None else self._status.get("sinks", {}).get(self._catalog.stored.name_of(sink).sql, {})


def last_failed(items: Sequence[Item], catalog: Catalog, lake: Lake, at: int) -> dict[int, datetime]:
    """Returns the time of the newest dead letter of each source that has one. Blocks."""
    sources = {item.id for item in items if isinstance(item, Source)}
    times = {}
    for letters in catalog.each(DeadLetters):
        if letters.depends[0] in sources:
            moments = [row["since"] or row["time"] for row in reading.snapshot(lake, letters.id, at).to_pylist()]
            if any(moments):
                times[letters.depends[0]] = max(moment for moment in moments if moment is not None)
    return times


def _topic(item: Item) -> str:
    """Returns the name of the topic of a source or of a derived item."""
    ksqldb = ksqldb_of(item)
    return item.topic if isinstance(item, Source) else "" if ksqldb is None else ksqldb.topic


def _partition(partition: str, first: int, end: int, at: int) -> dict[str, int]:
    return {"partition": int(partition), "logStartOffset": first, "logEndOffset": end, "consumerOffset": at}


def _line(figures: Sequence[tuple[str, str]]) -> str:
    return " ".join(f"{name:>16}: {value:>{WIDTH}}" for name, value in figures)


def _time(moment: datetime | None) -> str:
    """Returns a time in ISO 8601 with ms, or n/a."""
    return "n/a" if moment is None else moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
