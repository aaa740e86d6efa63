"""Sources whose ticks contain whole transactions of their database.

Sources with the same transaction topic share one reader, which no other source uses.

    sources with the topic ──► one Reader: their topics and the transaction topic ──► tailgate.sources.TransactedKafka: offsets of a tick

If one of the topics cannot be read, all these sources wait. A paused source is ignored: its part of
a transaction is not waited for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tailgate.engine.ddl.kafka.transactions import OPTION
from tailgate.lake.catalog import Item


def of(source: Item) -> Mapping[str, Any] | None:
    """Returns the transaction option of a source (`engine.ddl.transactions`), or None."""
    found: Mapping[str, Any] | None = source.options.get(OPTION)
    return found


def group(source: Item) -> int | None:
    """Returns the id of the source of the transaction topic, or None."""
    said = of(source)
    return None if said is None else int(said["source"])


def formats(source: Item) -> list[Mapping[str, Any]]:
    """Returns the formats of a source's transaction markers and transaction blocks."""
    said = of(source)
    return [] if said is None else [said["marks"], said["block"]]


def topics(source: Item) -> tuple[str, ...]:
    """Returns the topics that a reader needs for a source: its own and its transaction topic."""
    said = of(source)
    return (source.options["topic"],) if said is None else (source.options["topic"], said["topic"])


def accesses(source: Item) -> list[Mapping[str, Any]]:
    """Returns the access settings of the registries for a source's transaction formats."""
    return [f.get("access", {}) for f in formats(source)]


def told(sources: Iterable[Item]) -> str:
    """Returns the configuration for the JVM (TransactionScan) of a reader's sources, as JSON.

    It is empty if they have no transaction topic.
    """
    all = [(s, said) for s in sources if (said := of(s)) is not None]
    if not all:
        return ""
    changes = {s.options["topic"]: {"collection": said["collection"], "block": said["block"]} for s, said in all}
    return json.dumps({"topic": all[0][1]["topic"], "marks": all[0][1]["marks"], "changes": changes}, sort_keys=True)


def topic(told: str) -> str | None:
    """Returns the transaction topic in this configuration, or None."""
    return str(json.loads(told)["topic"]) if told else None


def unveiled(told: str, keep: Callable[[str], str]) -> str:
    """Returns the configuration with stored access settings: `keep` stores them in the JVM."""
    said = json.loads(told)
    for format in (said["marks"], *(c["block"] for c in said["changes"].values())):
        format["access"] = keep(json.dumps(format["access"], sort_keys=True)) if "access" in format else ""
    return json.dumps(said)
