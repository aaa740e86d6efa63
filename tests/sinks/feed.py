"""A lake with one view and its sinks, written tick by tick without an engine.

A model says which events the sinks must write.
"""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from confluent_kafka import Consumer, Message, TopicPartition

from tailgate.formats.events import avro as schema
from tailgate.lake import types
from tailgate.lake.catalog import Change, MaterializedView, Sink
from tailgate.lake.catalog.formats import SinkFormat
from tailgate.lake.folder import Lake
from tailgate.lake.readers import holds
from tailgate.lake.types import Field, arrow_schema
from tailgate.lake.writer.log_writer import Writer, open_epoch

REPOSITORY = Path(__file__).parent.parent.parent

COLUMNS = (Field("k", types.INT4, False), Field("v", types.TEXT), Field("amount", types.numeric(2)))
VIEW, ERRORS, FIRST_SINK = 16384, 16385, 16390

Row = tuple[Any, ...]
Event = tuple[Row | None, Row | None]  # before, after


class Feed:
    """A lake whose view changes at random.

    `rows` is the view's current content, by key. `expected` are the events of the newest sink.
    """

    def __init__(self, path: Path | str, *, keyed: bool = True) -> None:
        self.lake = Lake.create(path)
        self.writer: Writer = open_epoch(self.lake)
        self.rows: dict[int, Row] = {}
        self.expected: list[Event] = []
        self.keyed = keyed
        key = (0,) if keyed else None
        view = MaterializedView(VIEW, "view", COLUMNS, key=key, stored=True, errors=ERRORS)
        self.writer.append(kind="catalog", catalog=Change(put=(view,)))

    def create_sink(self, brokers: str, registry: str, topic: str, *, id: int = FIRST_SINK, **options: Any) -> Sink:
        """Creates a sink of the view and returns its item. `options` override the defaults."""
        defaults = {"brokers": brokers, "topic": topic, "value_format": SinkFormat(type="avro", registry=registry)}
        sink = Sink(id, f"sink{id}", depends=(VIEW,), **{**defaults, **options})
        self.writer.append(kind="catalog", catalog=Change(put=(sink,)))
        snapshot = options.get("snapshot", True)
        self.expected = self._ordered({k: (None, row) for k, row in self.rows.items()}) if snapshot else []
        return sink

    def drop(self, id: int) -> None:
        """Drops an item."""
        self.writer.append(kind="catalog", catalog=Change(drop=(id,)))

    def tick(self, new: Mapping[int, Row | None], errors: list[tuple[str, str, int]] | None = None, *, shown: bool = True) -> None:
        """Commits new rows by key; None deletes the row.

        Without `shown`, the sink writes no events for it.
        """
        changed = {k: (self.rows.get(k), row) for k, row in new.items() if self.rows.get(k) != row}
        weighted = [(*row, weight) for pair in changed.values() for row, weight in zip(pair, (-1, 1), strict=True) if row is not None]
        random.shuffle(weighted)
        sections: list[tuple[int, Any]] = []
        if weighted:
            sections.append((VIEW, _table(arrow_schema(COLUMNS, weight=True), weighted)))
        if errors:
            from tailgate.lake.catalog import ERRORS as ERROR_COLUMNS

            sections.append((ERRORS, _table(arrow_schema(ERROR_COLUMNS, weight=True), errors)))
        self.writer.append(sections)
        for k, (_, row) in changed.items():
            if row is None:
                del self.rows[k]
            else:
                self.rows[k] = row
        if shown:
            self.expected += self._ordered(changed)

    def random_tick(self, keys: int = 40, changes: int = 8) -> None:
        """Commits random changes of at most `changes` keys."""
        new: dict[int, Row | None] = {}
        for _ in range(random.randint(0, changes)):
            k = random.randrange(keys) - 10
            new[k] = None if random.random() < 0.3 else (k, random.choice([None, "a", "ä" * 30, str(random.random())]), _money())
        self.tick(new)

    def _ordered(self, changed: Mapping[int, tuple[Row | None, Row | None]]) -> list[Event]:
        """Returns the events of one time in the order of the sink.

        A view with a key is ordered by key. Without one, deletions come first, and both parts are
        ordered by row. The order is that of the Avro encoding.
        """
        pairs = {k: pair for k, pair in changed.items() if pair[0] != pair[1]}
        if self.keyed:
            return [pairs[k] for k in sorted(pairs, key=lambda k: _bytes(schema.key(COLUMNS[:1]), {"k": k}))]
        removed = sorted((p[0] for p in pairs.values() if p[0] is not None), key=_row_bytes)
        come = sorted((p[1] for p in pairs.values() if p[1] is not None), key=_row_bytes)
        return [(row, None) for row in removed] + [(None, row) for row in come]


def _money() -> Any:
    from decimal import Decimal

    return random.choice([None, Decimal(random.randrange(-10000, 10000)) / 100])


def _table(schema: pa.Schema, rows: list[Any]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def _bytes(of: Any, record: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(of), record)
    return out.getvalue()


def _row_bytes(row: Row) -> bytes:
    return _bytes(schema.upsert(COLUMNS), dict(zip(("k", "v", "amount"), row, strict=True)))


# ---- reading the topics --------------------------------------------------------------------------------------------------


def records(address: str, topic: str, partition: int = 0, *, committed: bool = True) -> list[tuple[bytes | None, bytes | None]]:
    """Returns keys and values."""
    return [(m.key(), m.value()) for m in messages(address, topic, partition, committed=committed)]


def messages(address: str, topic: str, partition: int = 0, *, committed: bool = True) -> list[Message]:
    """Returns the messages that a consumer, by default of read_committed, reads up to the end of the topic.

    Returns an empty list if the topic does not exist.
    """
    reader = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "test",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    reader.assign([TopicPartition(topic, partition, 0)])
    out: list[Message] = []
    try:
        while True:
            message = reader.poll(10)
            assert message is not None, "no end of the topic in 10 s"
            if message.error() is not None:
                return out
            out.append(message)
    finally:
        reader.close()


DEBEZIUM = fastavro.parse_schema(schema.debezium(COLUMNS))


def events(address: str, topic: str) -> list[Event]:
    """Returns the topic's records as pairs (before, after)."""
    out: list[Event] = []
    for _, value in records(address, topic):
        assert value is not None
        decoded: Any = fastavro.schemaless_reader(io.BytesIO(value[5:]), DEBEZIUM)
        before, after = (None if decoded[side] is None else tuple(decoded[side].values()) for side in ("before", "after"))
        out.append((before, after))
    return out


def fold(all: list[Event]) -> dict[int, Row]:
    """Applies events in order and returns the resulting rows.

    Each event must match the current rows.
    """
    rows: dict[int, Row] = {}
    for before, after in all:
        if before is not None:
            assert rows.pop(before[0]) == before
        if after is not None:
            assert after[0] not in rows
            rows[after[0]] = after
    return rows


# ---- the process ---------------------------------------------------------------------------------------------------------


class Process:
    """A `tailgate sinks` process."""

    def __init__(self, lake: Path, *arguments: str, crash: str = "") -> None:
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TAILGATE_CRASH": crash}
        command = [sys.executable, "-m", "tailgate", "sinks", "--data", str(lake), *arguments]
        self.process = subprocess.Popen(command, env=environment, cwd=REPOSITORY)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)

    def stop(self) -> int:
        """Stops the process, when it has started, and returns its exit code."""
        until(self._handles_sigterm)
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def _handles_sigterm(self) -> bool:
        """Returns whether the process handles SIGTERM, or has ended. A process that still imports modules does not."""
        if self.process.poll() is not None:
            return True
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (caught,) = (int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt:"))
        return bool(caught >> signal.SIGTERM - 1 & 1)

    def wait_killed(self, seconds: float = 60) -> None:
        assert self.process.wait(seconds) == -signal.SIGKILL


def until(what: Callable[[], Any], seconds: float = 60, every: float = 0.2) -> Any:
    """Polls `what` and returns its first true answer. Fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        answer = what()
        if answer:
            return answer
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(every)


def copy(lake: Lake, sink: int = FIRST_SINK) -> dict[str, Any]:
    """Returns the progress and status that the sink has reported in the lake, or {}."""
    return holds.read(lake, holds.sink(sink)) or {}
