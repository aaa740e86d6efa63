"""Filling a new view: the history of its inputs, sent along its edges only, beside the running ticks.

    entry n0 (CREATE): the view's operators are in the circuit, live changes flow to them
    history up to n0 ──► pieces ──► inbox, channel $fill/… ──► the view's operators     (weights may be below zero meanwhile)
    last piece is in ──► entry: the view is ready, operators that equal others' are shared

A stored input is read from the lake at the time of n0, a topic from its first record to its offsets in n0: in the JVM, which fetches
and decodes the next piece while a tick has the last one. One piece is under way at a time, so memory is bounded, and the next is made
smaller if its tick took long. After a crash the fill
begins anew, with operators and channels of its own: half-filled state is forgotten rather than trusted. So does a fill whose topic loses
records before they were read (`HeadLost`). What is not ready itself has no history: it began empty in the same entry, and live changes
bring all of it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError

from engine.plan.circuit import UNIT
from engine.runtime import kafka
from engine.runtime.engine import Engine
from engine.runtime.letters import Backfill, Letters, Offsets, Passed, between
from lake import crash
from lake.catalog import Item
from lake.entry import stream
from lake.errors import ConnectionFailure, IoError, ObjectNotInPrerequisiteState
from lake.inbox import Record
from lake.types import arrow_schema

log = logging.getLogger("tailgate.fills")

T = TypeVar("T")

PIECE = "$piece/"  # begins the channel of a record that stands for a piece in the JVM's memory (tailgate.History)
PIECE_ROWS_MAX = 100_000
PIECE_ROWS_MIN = 10_000
PIECE_ROWS = 20_000  # of the first
UNIT_ROW = pa.Table.from_arrays([pa.array([True]), pa.array([1])], schema=arrow_schema(UNIT, weight=True))
TICK_S = 0.5  # that the tick of a piece is to take: other views wait as long; what a tick costs whatever it reads is half of less
SHRINK, GROW = 0.5, 1.5  # of a piece by the one before
ANSWER_MS = 1000  # a wait for a piece is looked into so often
RETRY_S = 2.0  # after a broker did not answer, or the file system failed
PROGRESS_S = 5.0  # how often a long fill says in the log how far it is
OUT_OF_RANGE = "org.apache.kafka.clients.consumer.OffsetOutOfRangeException"
AT_ONCE = 2  # fills side by side: each holds the rows of one stored input in memory


@dataclass(frozen=True, slots=True)
class History:
    """One input of a fill: a stored `relation` at `time`, the `source` item's topic in [begin, end), or else the unit row. `n` and `time`
    are of the entry that the view began with."""

    channel: str
    relation: int = 0
    n: int = 0
    time: int = 0
    source: Item | None = None
    begin: tuple[tuple[str, int], ...] = ()
    end: tuple[tuple[str, int], ...] = ()


class HeadLost(Exception):
    """A topic no longer has the records that a fill was to read next."""


class Filled(Protocol):
    """Who is told how a fill ended."""

    def filled(self, fill: Fill) -> None:
        """The last piece is in."""

    def failed(self, fill: Fill, error: Exception) -> None:
        """It cannot be filled."""

    def awaits(self, fill: Fill) -> bool:
        """Returns whether a statement waits, which is told of a failure."""

    def begin_again(self, fill: Fill, why: str) -> None:
        """It is to be filled from the beginning."""


class Fill(threading.Thread):
    """Fills one view, unless `end` is called before it is done. `rows`: sent so far."""

    _turn = threading.Semaphore(AT_ONCE)

    def __init__(self, engine: Engine, item: Item, histories: tuple[History, ...], told: Filled, letters: Letters) -> None:
        super().__init__(name=f"fill-{item.name}", daemon=True)
        self.item = item
        self.rows = 0
        self._engine, self._histories, self._told, self._letters = engine, histories, told, letters
        self._backfills = {h.source.id: Backfill(dict(h.end)) for h in histories if h.source is not None}
        letters.begin(item, self._backfills)
        self._ended = threading.Event()
        self._piece_rows = PIECE_ROWS
        self._input, self._part = 0, 0.0  # which input is being sent, and how much of it was

    @property
    def percent(self) -> float:
        """Of its inputs, each counted alike: how many rows a stored one has is known when it is read."""
        return 100.0 if not self._histories else min(100.0, 100 * (self._input + self._part) / len(self._histories))

    def end(self) -> None:
        self._ended.set()

    @property
    def alive(self) -> bool:
        return not self._ended.is_set() and not self._engine.stopping

    def run(self) -> None:
        try:
            with self._turn:
                try:
                    self._fill()
                except HeadLost as e:
                    why = str(e)
                    if self.alive:
                        self._persist(lambda: self._told.begin_again(self, why))
                    return
            if self.alive:
                self._persist(lambda: self._told.filled(self))
        except Exception as e:
            if self.alive:
                log.exception("filling %s failed", self.item.name)
                self._told.failed(self, e)

    def _fill(self) -> None:
        began = told = time.monotonic()
        for history in self._histories:
            for records, rows in self._pieces(history):
                if not self.alive:
                    return
                self._send(records)
                self.rows += rows
                crash.point("fill.piece")
                if time.monotonic() - told > PROGRESS_S:
                    told = time.monotonic()
                    log.info("filling %s: %d rows, %.0f %% in %.0f s", self.item.name, self.rows, self.percent, told - began)
            self._input, self._part = self._input + 1, 0.0
        if not self.rows:
            self._send([])  # a tick all the same: an aggregate without groups has a row over no input
        log.info("%s is filled: %d rows in %.1f s", self.item.name, self.rows, time.monotonic() - began)

    def _send(self, records: list[Record]) -> None:
        began = time.monotonic()
        number = self._persist(lambda: self._engine.enter(records))
        self._engine.wait_inbox(number, lambda: self.alive)
        factor = min(max(TICK_S / (time.monotonic() - began), SHRINK), GROW)
        self._piece_rows = int(min(max(self._piece_rows * factor, PIECE_ROWS_MIN), PIECE_ROWS_MAX))

    def _persist(self, action: Callable[[], T]) -> T:
        """Does it. While the file system fails it is done again, unless a statement waits: that gets the error."""
        while True:
            try:
                return action()
            except (OSError, IoError) as e:
                if self._told.awaits(self) or not self.alive:
                    raise
                log.warning("filling %s waits: %s", self.item.name, e)
                time.sleep(RETRY_S)

    def _pieces(self, history: History) -> Iterator[tuple[list[Record], int]]:
        if history.source is not None:
            with self._letters.filling(history.source, self._backfills[history.source.id]):
                yield from self._topic(history, history.source)
        elif history.relation:
            yield from self._stored(history)
        else:
            yield [Record(history.channel, None, stream(UNIT_ROW))], 1

    def _stored(self, history: History) -> Iterator[tuple[list[Record], int]]:
        table = self._engine.lake.snapshot(history.relation, history.time)
        at = 0
        while at < table.num_rows:
            piece = table.slice(at, self._piece_rows)
            at += piece.num_rows
            self._part = at / table.num_rows
            yield [Record(history.channel, None, stream(piece))], piece.num_rows

    def _topic(self, history: History, source: Item) -> Iterator[tuple[list[Record], int]]:
        """Fetched and decoded in the JVM, beside the ticks; a piece enters by its number."""
        at, end = dict(history.begin), dict(history.end)
        passed = Passed(self._engine, source, history.n, history.time).offsets()  # constant: only this fill reads records before `end`
        size_of_all = max(sum(end[p] - at.get(p, 0) for p in end), 1)
        while True:
            pieces = self._engine.history(history.channel, *self._engine.place(source), {p: at.get(p, 0) for p in end}, end)
            try:
                while not pieces.ended():
                    piece = pieces.next(self._piece_rows, ANSWER_MS)
                    if not self.alive:
                        return
                    if piece is not None:
                        _exclude(piece, passed, at)
                        at.update(piece.at())
                        self._part = 1 - sum(max(end[p] - at.get(p, 0), 0) for p in end) / size_of_all
                        yield [Record(PIECE + history.channel, None, None, offset=piece.number())], piece.records()
                self._check_topic(source)
                return
            except (Py4JJavaError, ConnectionFailure) as e:
                if isinstance(e, Py4JJavaError) and e.java_exception.getClass().getName() == OUT_OF_RANGE:
                    raise HeadLost(f"topic {source.options['topic']} has lost records while they were read") from e
                said = e.message if isinstance(e, ConnectionFailure) else e.java_exception.getMessage()
                log.warning("filling %s waits: %s", self.item.name, said)
                time.sleep(RETRY_S)
                if not self.alive:
                    return
            finally:
                pieces.close()

    def _check_topic(self, source: Item) -> None:
        """What was read is of the topic that the source was made of. Raises 55000, 08006."""
        brokers, topic, said = self._engine.place(source)
        error = kafka.other(topic, kafka.Identities(brokers, said).of([topic])[topic], source.options.get("topic_id"))
        if error is not None:
            raise ObjectNotInPrerequisiteState(error)


def _exclude(piece: Any, passed: Offsets, begin: Mapping[str, int]) -> None:
    """Leaves records out of a piece that begins at these offsets."""
    for partition, next_ in piece.at().items():
        if of := between(passed, int(partition), begin.get(partition, 0), next_):
            piece.exclude(int(partition), of)
