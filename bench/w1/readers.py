"""The measuring client: a process that reads the view of any system and records each update with its time.

    TAIL     COPY (TAIL …) TO STDOUT: changes as they arrive
    SELECT   the whole view, every 20 ms; after a poll that takes longer, the next one starts at once
    topic    a Kafka topic with upserts by key or with changes; the system defines the isolation level

For all sources, the reader keeps a copy of the view. It records the counts of the groups whose counts
only grow (see bench.w1), with the time when it received them. At the end it compares its copy with the
recompute.
"""

from __future__ import annotations

import json
import select
import time
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from multiprocessing.connection import Connection
from typing import Any, Literal

import numpy as np
import psycopg
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from bench._load import Client, query
from bench.w1.ages import Received
from bench.w1.orders import VIEW, Row, named_group
from bench.w1.process import Process

POLL_S = 0.02
LOOK_S = 0.05  # longest wait for the system between two checks for requests of the parent
BATCH = 1_000  # messages of a topic between two checks for requests of the parent
END_S = 30.0
SHOWN = 3  # rows of a difference

Change = tuple[str, str, int, str, int]  # segment, item, orders, amount as text, +1 or -1


@dataclass(frozen=True, slots=True)
class Output:
    """The place and form of a system's view. `name` is that of the relation or topic.

    `address` is a DSN, or Kafka's brokers. With a topic, `form` says whether messages are upserts
    by key, or changes whose field `diff` is the weight. Amounts are multiples of `unit`.
    """

    kind: Literal["tail", "select", "topic"]
    address: str
    form: Literal["upserts", "changes"] = "upserts"
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    unit: Decimal = Decimal(1)
    name: str = VIEW

    @property
    def words(self) -> str:
        """Returns the description for tables."""
        return {"tail": "COPY (TAIL …)", "select": "SELECT every 20 ms", "topic": f"Kafka topic, {self.isolation}"}[self.kind]


class Different(Exception):
    """The error when the reader's copy of the view has not become equal to the recompute in time."""


class Reader(Process):
    """The reader's process. It reads from `read` until `stop`."""

    def __init__(self) -> None:
        super().__init__("reader", END_S, _serve)

    def read(self, output: Output) -> None:
        """Starts to read."""
        self.send(output)

    def await_first(self, seconds: float) -> float:
        """Waits until a row of the view was received. Returns the time."""
        return float(self.ask("first", seconds))

    def await_answer(self, answer: frozenset[Row], seconds: float) -> float:
        """Waits until the reader's copy equals `answer`.

        Returns the time, or raises Different after `seconds`.
        """
        return float(self.ask("answer", answer, seconds))

    def received(self) -> Received:
        """Returns the counts received until now."""
        times, groups, counts = self.ask("received")
        return Received(np.frombuffer(times, np.float64), np.frombuffer(groups, np.int32), np.frombuffer(counts, np.int64))


class _Copy:
    """The reader's copy of the view, and the record of received counts."""

    def __init__(self, unit: Decimal) -> None:
        self.times, self.groups, self.counts = array("d"), array("i"), array("q")
        self._unit = unit
        self._rows: Counter[tuple[str, str, int, str]] = Counter()

    def apply(self, changes: list[Change], now: float) -> None:
        rows = self._rows
        for segment, item, orders, amount, diff in changes:
            row = (segment, item, orders, amount)
            rows[row] += diff
            if not rows[row]:
                del rows[row]
            if diff > 0 and (group := named_group(segment, item)) >= 0:
                self.times.append(now)
                self.groups.append(group)
                self.counts.append(orders)

    def __len__(self) -> int:
        return len(self._rows)

    def difference(self, answer: frozenset[Row]) -> str | None:
        """Describes the difference to the recompute; None if the copy is equal."""
        mine = Counter({(s, i, n, Decimal(amount) * self._unit): copies for (s, i, n, amount), copies in self._rows.items()})
        expected = Counter(answer)
        if mine == expected:
            return None
        more, less = dict(list((mine - expected).items())[:SHOWN]), dict(list((expected - mine).items())[:SHOWN])
        return f"{len(mine)} rows, {len(expected)} in the recompute; there are {more} that it lacks, and it has {less}"


def _serve(pipe: Connection) -> None:
    request: tuple[Any, ...] | None = None
    deadline = 0.0
    try:
        output = pipe.recv()
        copy = _Copy(output.unit)
        for changes in {"tail": _tail, "select": _select, "topic": _topic}[output.kind](output):
            now = time.monotonic()
            copy.apply(changes, now)
            changed = bool(changes)
            if request is None and pipe.poll():
                request = pipe.recv()
                deadline = now + (request[-1] if len(request) > 1 else 0.0)
                changed = True  # the copy may be complete already
            if request is not None and (changed or now > deadline):
                answer = _answered(copy, request, now, deadline)
                if answer is not None:
                    pipe.send(answer)
                    request = None
    except (EOFError, BrokenPipeError):
        return  # the parent has ended, or has no more requests
    except Exception as error:  # noqa: BLE001  # raised in the parent
        pipe.send(RuntimeError(f"the reader failed: {error!r}"))


def _answered(copy: _Copy, request: tuple[Any, ...], now: float, deadline: float) -> Any:
    """Returns the answer to a request, or None if it has to wait."""
    match request:
        case ("received",):
            return copy.times.tobytes(), copy.groups.tobytes(), copy.counts.tobytes()
        case ("first", _):
            return now if len(copy) else TimeoutError("no row of the view was received") if now > deadline else None
        case ("answer", answer, _):
            difference = copy.difference(answer)
            return now if difference is None else Different(difference) if now > deadline else None
    raise ValueError(request)


def _tail(output: Output) -> Iterator[list[Change]]:
    """Yields changes from COPY's text rows: time, diff, segment, item, orders, amount; one per CopyData."""
    connection = Client(output.address).socket
    connection.sendall(query(f"COPY (TAIL {output.name}) TO STDOUT"))
    rest = b""
    while True:
        if not select.select((connection,), (), (), LOOK_S)[0]:
            yield []
            continue
        data = connection.recv(1 << 20)
        if not data:
            raise ConnectionError("the server closed the connection")
        rest += data
        changes: list[Change] = []
        at = 0
        while len(rest) - at >= 5:
            end = at + 1 + int.from_bytes(rest[at + 1 : at + 5], "big")
            if end > len(rest):
                break
            if rest[at] == 0x64:  # CopyData
                _, diff, segment, item, orders, amount = rest[at + 5 : end - 1].decode().split("\t")
                changes.append((segment, item, int(orders), amount, int(diff)))
            elif rest[at] != 0x48:  # CopyOutResponse
                raise ConnectionError(f"the server ended TAIL: {rest[at:end]!r}")
            at = end
        rest = rest[at:]
        yield changes


def _select(output: Output) -> Iterator[list[Change]]:
    """Yields the changes between consecutive polls."""
    before: dict[tuple[str, str], tuple[int, str]] = {}
    with psycopg.connect(output.address, autocommit=True) as db:
        db.adapters.register_loader("numeric", psycopg.types.string.TextLoader)
        due = time.monotonic()
        while True:
            rows = db.execute(f"SELECT segment, item, orders, amount FROM {output.name}").fetchall()
            current = {(segment, item): (orders, amount) for segment, item, orders, amount in rows}
            removed = [(*key, *was, -1) for key, was in before.items() if current.get(key) != was]
            yield [*removed, *((*key, *row, 1) for key, row in current.items() if before.get(key) != row)]
            before = current
            due = max(due + POLL_S, time.monotonic())
            time.sleep(max(due - time.monotonic(), 0.0))


def _topic(output: Output) -> Iterator[list[Change]]:
    """Yields the changes in a topic with one partition and the fields segment, item, orders and amount.

    An upsert replaces the earlier one with its key; one without a value removes it.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": output.address,
            "group.id": "reader",
            "isolation.level": output.isolation,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(output.name, 0, OFFSET_BEGINNING)])  # without a consumer group, since joining takes seconds
    before: dict[bytes, tuple[str, str, int, str]] = {}
    while True:
        changes: list[Change] = []
        message = consumer.poll(LOOK_S)
        while message is not None:
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            key, value = message.key(), message.value()
            fields = json.loads(value, parse_float=str) if value is not None else None
            row = None if fields is None else (fields["segment"], fields["item"], int(fields["orders"]), str(fields["amount"]))
            if output.form == "changes":
                assert fields is not None and row is not None
                changes.append((*row, fields["diff"]))
            else:
                assert key is not None
                if (was := before.pop(key, None)) is not None:
                    changes.append((*was, -1))
                if row is not None:
                    before[key] = row
                    changes.append((*row, 1))
            message = consumer.poll(0) if len(changes) < BATCH else None
        yield changes
