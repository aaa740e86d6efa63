"""Sources whose ticks hold whole transactions of their database: those that name one transaction topic share one reader, alone.

    sources that name the topic ──► one Reader: their topics and the transaction topic ──► tailgate.TransactedKafka: offsets of a batch

If one of them cannot be read the others wait with it; one that is paused is left out, and what transactions count of it is not waited for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from engine.ddl.transactions import OPTION
from lake.catalog import Item

FORMAT = "tailgate.TransactedKafka"


def of(source: Item) -> Mapping[str, Any] | None:
    """The option of a source that says so (`engine.ddl.transactions`)."""
    found: Mapping[str, Any] | None = source.options.get(OPTION)
    return found


def group(source: Item) -> int | None:
    """The id of the source of its transaction topic."""
    said = of(source)
    return None if said is None else int(said["source"])


def formats(source: Item) -> list[Mapping[str, Any]]:
    """How its transactions are written."""
    said = of(source)
    return [] if said is None else [said["marks"], said["block"]]


def topics(source: Item) -> tuple[str, ...]:
    """What a reader has to read for a source: its own topic, and that of its transactions."""
    said = of(source)
    return (source.options["topic"],) if said is None else (source.options["topic"], said["topic"])


def accesses(source: Item) -> list[Mapping[str, Any]]:
    """How the registries are reached that tell how its transactions are written."""
    return [f.get("access", {}) for f in formats(source)]


def told(sources: Iterable[Item]) -> str:
    """What the JVM has to know of a reader's sources (TransactionScan); empty if they have no transaction topic."""
    all = [(s, said) for s in sources if (said := of(s)) is not None]
    if not all:
        return ""
    changes = {s.options["topic"]: {"collection": said["collection"], "block": said["block"]} for s, said in all}
    return json.dumps({"topic": all[0][1]["topic"], "marks": all[0][1]["marks"], "changes": changes}, sort_keys=True)


def topic(told: str) -> str | None:
    """The transaction topic of what was told."""
    return str(json.loads(told)["topic"]) if told else None


def unveiled(told: str, keep: Callable[[str], str]) -> str:
    """The same, where `keep` has told the JVM how registries are reached."""
    said = json.loads(told)
    for format in (said["marks"], *(c["block"] for c in said["changes"].values())):
        format["access"] = keep(json.dumps(format["access"], sort_keys=True)) if "access" in format else ""
    return json.dumps(said)
