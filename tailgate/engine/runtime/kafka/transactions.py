"""Sources whose ticks contain whole transactions of their database.

Sources with the same transaction topic share one reader, which no other source uses.

    sources with the topic ──► one Reader: their topics and the transaction topic ──► tailgate.sources.TransactedKafka: offsets of a tick

If one of the topics cannot be read, all these sources wait. A paused source is ignored: its part of
a transaction is not waited for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from tailgate.lake.catalog import Source
from tailgate.lake.catalog.codec import encode
from tailgate.lake.catalog.formats import Avro, ConnectionSettings, MessageFormat


def group(source: Source) -> int | None:
    """Returns the id of the source of the transaction topic, or None."""
    return None if source.transactions is None else source.transactions.source


def formats(source: Source) -> list[MessageFormat]:
    """Returns the formats of a source's transaction markers and transaction blocks."""
    of = source.transactions
    return [] if of is None else [of.marks, of.block]


def topics(source: Source) -> tuple[str, ...]:
    """Returns the topics that a reader needs for a source: its own and its transaction topic."""
    return (source.topic,) if source.transactions is None else (source.topic, source.transactions.topic)


def accesses(source: Source) -> list[ConnectionSettings]:
    """Returns the access settings of the registries for a source's transaction formats."""
    return [f.access if isinstance(f, Avro) else {} for f in formats(source)]


def configuration(sources: Iterable[Source]) -> str:
    """Returns the configuration for the JVM (TransactionScan) of a reader's sources, as JSON.

    It is empty if they have no transaction topic.
    """
    all = [(s.topic, s.transactions) for s in sources if s.transactions is not None]
    if not all:
        return ""
    changes = {topic: {"collection": of.collection, "block": encode(of.block)} for topic, of in all}
    first = all[0][1]
    return json.dumps({"topic": first.topic, "marks": encode(first.marks), "changes": changes}, sort_keys=True)


def topic(configuration: str) -> str | None:
    """Returns the transaction topic in this configuration, or None."""
    return str(json.loads(configuration)["topic"]) if configuration else None


def with_access(configuration: str, keep: Callable[[str], str]) -> str:
    """Returns the configuration with stored access settings: `keep` stores them in the JVM."""
    data = json.loads(configuration)
    for format in (data["marks"], *(c["block"] for c in data["changes"].values())):
        format["access"] = keep(json.dumps(format["access"], sort_keys=True)) if "access" in format else ""
    return json.dumps(data)
