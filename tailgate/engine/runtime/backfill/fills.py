"""Fills (backfills) a new view: sends the history of its inputs to it while ticks run.

    entry n0 (CREATE): the view's operators are in the circuit and receive live changes
    history up to n0 ──► pieces ──► inbox, channel $fill/… ──► the view's operators
    last piece is read ──► entry: the view is ready and shares operators that are equal to others

Weights may be negative during a fill.

The history of a stored input is its snapshot in the lake at the time of n0. The history of a topic
is its records up to the offsets in n0; the JVM fetches and decodes the next piece while a tick runs
the last one. One piece is sent at a time, so memory is bounded. The next piece is smaller if the
tick took long.

An input that is not ready itself has no history: it was empty in entry n0, and live changes bring
all of it.

After a crash the fill restarts with new operators and channels, and the old state is dropped. The
same happens if a topic loses records before they were read (`HeadLost`), and if the fill waits for
its turn until the time of n0 can no longer be read (`Gone`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError

from tailgate.engine.plan.views.catalog_graph import SINGLE_ROW
from tailgate.engine.runtime.backfill.arrivals import arrived_after
from tailgate.engine.runtime.backfill.letters import Backfill, Letters, Offsets, Passed, between
from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.lake.catalog import Item, Source
from tailgate.lake.errors import ConnectionFailure, Gone, IoError, ObjectNotInPrerequisiteState
from tailgate.lake.host import crash
from tailgate.lake.log.entry import stream
from tailgate.lake.readers import reading
from tailgate.lake.types import arrow_schema
from tailgate.lake.writer.inbox import Record

log = logging.getLogger("tailgate.fills")

T = TypeVar("T")

# prefix of the channel of a record that refers to a piece in the JVM's memory (tailgate.circuit.TopicBackfill)
PIECE = "$piece/"
UNIT_ROW = pa.Table.from_arrays([pa.array([True]), pa.array([1])], schema=arrow_schema(SINGLE_ROW, weight=True))
SHRINK, GROW = 0.5, 1.5  # limits of the change in size from one piece to the next
ANSWER_MS = 1000  # between two checks while waiting for a piece whether the fill has ended
RETRY_S = 2.0  # pause after a broker did not answer or the file system failed
PROGRESS_S = 5.0  # between two progress messages in the log
OUT_OF_RANGE = "org.apache.kafka.clients.consumer.OffsetOutOfRangeException"
AT_ONCE = 2  # concurrent fills: each holds the rows of one stored input in memory


class PieceSizes(NamedTuple):
    """The rows of the pieces of a topic or relation. `tick_s`: target duration of the tick of a piece, for which other views wait."""

    first: int
    least: int
    most: int
    tick_s: float


# In a shorter tick, half of the time would be fixed costs: those of a job in other processes are ten times as high.
LOCAL = PieceSizes(20_000, 10_000, 100_000, 0.5)
CLUSTER = PieceSizes(50_000, 50_000, 100_000, 2.0)


@dataclass(frozen=True, slots=True)
class History:
    """One input of a fill.

    It is a stored `relation` at `time`, of a stream perhaps only the rows that have arrived `after` a
    time, or the records [begin, end) of the topic of `source`, or else the unit row. `n` and `time` are
    those of the entry in which the fill began.
    """

    channel: str
    relation: int = 0
    n: int = 0
    time: int = 0
    after: int | None = None
    source: Source | None = None
    begin: tuple[tuple[str, int], ...] = ()
    end: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the history: records for the inbox, and the number of rows. `durable` is called with the number of their entry."""

    records: list[Record]
    rows: int
    durable: Callable[[int], None] = lambda number: None


class HeadLost(Exception):
    """Raised when a topic no longer has the records that a fill was to read next."""


class Filled(Protocol):
    """Receives the outcome of a fill."""

    def filled(self, fill: Fill) -> None:
        """Records that the last piece has been read."""

    def failed(self, fill: Fill, error: Exception) -> None:
        """Records that the view cannot be filled."""

    def awaits(self, fill: Fill) -> bool:
        """Returns whether a statement waits for the fill and can report its failure."""

    def begin_again(self, fill: Fill, why: str) -> None:
        """Restarts the fill from the beginning."""


class Fill(threading.Thread):
    """A thread that fills one view, unless `end` stops it earlier.

    `rows` is the number of rows sent so far.
    """

    _turn = threading.Semaphore(AT_ONCE)

    def __init__(self, engine: Engine, item: Item, histories: tuple[History, ...], on_end: Filled, letters: Letters) -> None:
        super().__init__(name=f"fill-{item.name}", daemon=True)
        self.item = item
        self.rows = 0
        self._engine, self._histories, self._told, self._letters = engine, histories, on_end, letters
        self._backfills = {h.source.id: Backfill(dict(h.end)) for h in histories if h.source is not None}
        letters.begin(item, self._backfills)
        self._ended = threading.Event()
        self._sizes = LOCAL if engine.is_local else CLUSTER
        self._piece_rows = self._sizes.first
        # the number of the current input, and the fraction of it that was sent
        self._input, self._part = 0, 0.0
        self._began: float | None = None  # when it got its turn, by the monotonic clock

    @property
    def percent(self) -> float:
        """Returns the progress in percent.

        All inputs count the same: their sizes are unknown before they are read.
        """
        return 100.0 if not self._histories else min(100.0, 100 * (self._input + self._part) / len(self._histories))

    @property
    def left_s(self) -> float | None:
        """Returns an estimate of the seconds until the last piece is sent, from the progress until now; None before the first piece."""
        percent = self.percent
        return None if self._began is None or not percent else (time.monotonic() - self._began) * (100 / percent - 1)

    def end(self) -> None:
        """Stops the fill."""
        self._ended.set()

    @property
    def alive(self) -> bool:
        """Returns whether neither the fill nor the engine has been stopped."""
        return not self._ended.is_set() and not self._engine.stopping

    def run(self) -> None:
        try:
            with self._turn:
                try:
                    self._fill()
                except (HeadLost, Gone) as e:
                    why = e.message if isinstance(e, Gone) else str(e)
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
        """Sends all pieces of all inputs."""
        began = last_report = self._began = time.monotonic()
        for history in self._histories:
            for piece in self._pieces(history):
                if not self.alive:
                    return
                self._send(piece)
                self.rows += piece.rows
                crash.point("fill.piece")
                if time.monotonic() - last_report > PROGRESS_S:
                    last_report = time.monotonic()
                    log.info("filling %s: %d rows, %.0f %% in %.0f s", self.item.name, self.rows, self.percent, last_report - began)
            self._input, self._part = self._input + 1, 0.0
        if not self.rows:
            self._send(Piece([], 0))  # cause a tick: an aggregate without groups has a row even over no input
        log.info("%s is filled: %d rows in %.1f s", self.item.name, self.rows, time.monotonic() - began)

    def _send(self, piece: Piece) -> None:
        """Sends a piece, waits for its tick and adapts the size of the next piece."""
        began = time.monotonic()
        number = self._persist(lambda: self._engine.enter(piece.records, piece.durable))
        self._engine.wait_inbox(number, lambda: self.alive)
        factor = min(max(self._sizes.tick_s / (time.monotonic() - began), SHRINK), GROW)
        self._piece_rows = int(min(max(self._piece_rows * factor, self._sizes.least), self._sizes.most))

    def _persist(self, action: Callable[[], T]) -> T:
        """Returns the result of `action`, and retries it while the file system fails.

        If a statement waits for the fill, raises the error instead.
        """
        while True:
            try:
                return action()
            except (OSError, IoError) as e:
                if self._told.awaits(self) or not self.alive:
                    raise
                log.warning("filling %s waits: %s", self.item.name, e)
                time.sleep(RETRY_S)

    def _pieces(self, history: History) -> Iterator[Piece]:
        """Yields the pieces of an input."""
        if history.source is not None:
            with self._letters.filling(history.source, self._backfills[history.source.id]):
                yield from self._topic(history, history.source)
        elif history.relation:
            yield from self._stored(history)
        else:
            yield Piece([Record(history.channel, None, stream(UNIT_ROW))], 1)

    def _stored(self, history: History) -> Iterator[Piece]:
        """Yields the pieces of a stored relation's snapshot."""
        table = reading.snapshot(self._engine.lake, history.relation, history.time)
        if history.after is not None:
            table = arrived_after(table, history.after)
        at = 0
        while at < table.num_rows:
            piece = table.slice(at, self._piece_rows)
            at += piece.num_rows
            self._part = at / table.num_rows
            yield Piece([Record(history.channel, None, stream(piece))], piece.num_rows)

    def _topic(self, history: History, source: Source) -> Iterator[Piece]:
        """Yields the pieces of a topic.

        The JVM fetches and decodes them while ticks run; the inbox holds only the number of a
        piece. If tasks run in other processes, they get the fetched records with the inbox's entry, and
        decode them.
        """
        at, end = dict(history.begin), dict(history.end)
        # does not change meanwhile: only this fill reads records before `end`
        passed = Passed(self._engine, source, history.n, history.time).offsets()
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
                        if self._engine.is_local:
                            yield Piece([Record(PIECE + history.channel, None, None, offset=piece.number())], piece.records())
                        else:
                            yield Piece([], piece.records(), partial(piece.attach, self._engine.inbox.location))
                self._check_topic(source)
                return
            except (Py4JJavaError, ConnectionFailure) as e:
                if isinstance(e, Py4JJavaError) and e.java_exception.getClass().getName() == OUT_OF_RANGE:
                    raise HeadLost(f"topic {source.topic} has lost records while they were read") from e
                reason = e.message if isinstance(e, ConnectionFailure) else e.java_exception.getMessage()
                log.warning("filling %s waits: %s", self.item.name, reason)
                time.sleep(RETRY_S)
                if not self.alive:
                    return
            finally:
                pieces.close()

    def _check_topic(self, source: Source) -> None:
        """Checks that the topic was not replaced since the source was created.

        Raises 55000 if it was, 08006 if the broker does not answer.
        """
        brokers, topic, settings = self._engine.place(source)
        error = kafka.other(topic, kafka.Identities(brokers, settings).of([topic])[topic], source.topic_id)
        if error is not None:
            raise ObjectNotInPrerequisiteState(error)


def _exclude(piece: Any, passed: Offsets, begin: Mapping[str, int]) -> None:
    """Excludes records from a piece that begins at these offsets."""
    for partition, next_ in piece.at().items():
        if of := between(passed, int(partition), begin.get(partition, 0), next_):
            piece.exclude(int(partition), of)
