"""Filling a new view: the history of its inputs, sent along its edges only, beside the running ticks.

    entry n0 (CREATE): the view's operators are in the circuit, live changes flow to them
    history up to n0 ──► pieces ──► inbox, channel $fill/… ──► the view's operators     (weights may be below zero meanwhile)
    last piece is in ──► entry: the view is ready, operators that equal others' are shared

A stored input is read from the lake at the time of n0, a topic from its first record to its offsets in n0. One piece is under way
at a time, at most PIECE_BYTES, so memory is bounded, and the next is made smaller if its tick took long. After a crash the fill
begins anew, with operators of its own: half-filled state is forgotten rather than trusted.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.runtime import kafka
from engine.runtime.engine import Engine
from lake import crash
from lake.catalog import Item
from lake.entry import stream
from lake.inbox import Record

if TYPE_CHECKING:
    from engine.runtime.statements import Statements

log = logging.getLogger("tailgate.fills")

PIECE_ROWS_MAX = 20_000
PIECE_ROWS_MIN = 1_000
PIECE_BYTES_MAX = 8 * 1024 * 1024
TICK_S = 0.3  # a piece whose tick takes longer makes the next one smaller
RETRY_S = 2.0  # after a broker did not answer
PROGRESS_S = 5.0  # how often a long fill says how far it is


@dataclass(frozen=True, slots=True)
class History:
    """One input of a fill. Either a stored `relation` at `time`, or the `source` item's topic in [begin, end)."""

    channel: str
    relation: int = 0
    time: int = 0
    source: Item | None = None
    begin: tuple[tuple[str, int], ...] = ()
    end: tuple[tuple[str, int], ...] = ()


class Fill(threading.Thread):
    """Fills one view. `done` is set when it is ready, dropped or the engine stops."""

    def __init__(self, engine: Engine, item: Item, histories: tuple[History, ...], statements: Statements) -> None:
        super().__init__(name=f"fill-{item.name}", daemon=True)
        self.item = item
        self.done = threading.Event()
        self.rows = 0
        self._engine, self._histories, self._statements = engine, histories, statements
        self._piece_rows = PIECE_ROWS_MAX // 4

    @property
    def alive(self) -> bool:
        return self.item.id in self._engine.catalog.items and not self._engine.stopping

    def run(self) -> None:
        began = told = time.monotonic()
        try:
            for history in self._histories:
                for records, rows in self._pieces(history):
                    if not self.alive:
                        return
                    self._send(records)
                    self.rows += rows
                    crash.point("fill.piece")
                    if time.monotonic() - told > PROGRESS_S:
                        told = time.monotonic()
                        log.info("filling %s: %d rows in %.0f s", self.item.name, self.rows, told - began)
            if self.alive:
                self._statements.filled(self.item)
                log.info("%s is filled: %d rows in %.1f s", self.item.name, self.rows, time.monotonic() - began)
        except Exception:
            log.exception("filling %s failed; a restart of the engine begins it anew", self.item.name)
        finally:
            self.done.set()

    def _send(self, records: list[Record]) -> None:
        began = time.monotonic()
        self._engine.wait_inbox(self._engine.enter(records), lambda: self.alive)
        took = time.monotonic() - began
        factor = 0.5 if took > TICK_S else 1.5
        self._piece_rows = int(min(max(self._piece_rows * factor, PIECE_ROWS_MIN), PIECE_ROWS_MAX))

    def _pieces(self, history: History) -> Iterator[tuple[list[Record], int]]:
        if history.source is None:
            yield from self._stored(history)
        else:
            yield from self._topic(history, history.source)

    def _stored(self, history: History) -> Iterator[tuple[list[Record], int]]:
        table = self._engine.lake.snapshot(history.relation, history.time)
        at = 0
        while at < table.num_rows:
            piece = table.slice(at, self._piece_rows)
            at += piece.num_rows
            yield [Record(history.channel, None, stream(piece))], piece.num_rows

    def _topic(self, history: History, source: Item) -> Iterator[tuple[list[Record], int]]:
        at = dict(history.begin)
        while True:
            piece: list[Record] = []
            size = 0
            try:
                for record in kafka.history(
                    history.channel,
                    source.options["brokers"],
                    source.options["topic"],
                    at,
                    dict(history.end),
                    source.options.get("kafka", {}),
                ):
                    piece.append(record)
                    size += len(record.value or b"") + len(record.key or b"")
                    at[str(record.partition)] = record.offset + 1
                    if len(piece) >= self._piece_rows or size >= PIECE_BYTES_MAX:
                        yield piece, len(piece)
                        piece, size = [], 0
                if piece:
                    yield piece, len(piece)
                return
            except kafka.ConnectionFailure as e:
                log.warning("filling %s waits: %s", self.item.name, e.message)
                if piece:
                    yield piece, len(piece)
                time.sleep(RETRY_S)
                if not self.alive:
                    return
