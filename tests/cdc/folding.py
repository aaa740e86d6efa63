"""Folds a sink's topic, read with read_committed, into rows, and checks that each event fits the earlier ones."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from tailgate.examples.shop.recompute import Topics
from tests.cdc.databases import Row, plain


class Misfit(Exception):
    """The error for a duplicate event, or one that does not fit the earlier events."""


def spelt(values: Iterable[Any]) -> Row:
    """Returns a row of a sink or view as text, with numbers normalized."""
    return tuple(_number(value) for value in values)


def _number(value: Any) -> str | None:
    text = plain(value)
    if text is not None and re.fullmatch(r"-?\d+\.\d+|-?\d+(\.\d+)?E[+-]\d+", text):
        return f"{Decimal(text).normalize():f}"
    return text


def fold(topics: Topics, topic: str, envelope: str) -> tuple[Counter[Row], int]:
    """Returns the rows that the events add up to, and the number of events. Raises Misfit."""
    return _debezium(topics, topic) if envelope == "debezium" else _upsert(topics, topic)


def _debezium(topics: Topics, topic: str) -> tuple[Counter[Row], int]:
    rows: Counter[Row] = Counter()
    events = 0
    for message in topics.messages(topic):
        events += 1
        event = topics.decode(message.value())
        if event["before"] is not None:
            before = spelt(event["before"].values())
            if not rows[before]:
                raise Misfit(f"{topic} offset {message.offset()}: takes away a row that is not there: {before}")
            rows[before] -= 1
        if event["after"] is not None:
            rows[spelt(event["after"].values())] += 1
    return +rows, events


def _upsert(topics: Topics, topic: str) -> tuple[Counter[Row], int]:
    rows: dict[bytes, bytes | None] = {}
    events = 0
    for message in topics.messages(topic):
        events += 1
        if rows.get(message.key()) == message.value():
            raise Misfit(f"{topic} offset {message.offset()}: says again what its key {message.key()!r} has: {message.value()!r}")
        rows[message.key()] = message.value()
    return Counter(spelt(json.loads(row).values()) for row in rows.values() if row is not None), events


def counted(topics: Topics, topic: str) -> int:
    """Returns the number of events that a consistency topic reports.

    Raises Misfit unless each time has one BEGIN and one END, and the times increase.
    """
    total, newest, open = 0, 0, False
    for message in topics.messages(topic):
        event = json.loads(message.value())
        time = int(event["id"])
        if event["status"] == "BEGIN":
            if open or time <= newest:
                raise Misfit(f"{topic} offset {message.offset()}: {time} begins after {newest}")
            newest, open = time, True
        else:
            if not open or time != newest:
                raise Misfit(f"{topic} offset {message.offset()}: {time} ends, which has not begun")
            total, open = total + event["event_count"], False
    return total
