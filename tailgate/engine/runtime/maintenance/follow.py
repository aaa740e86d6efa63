"""Applies the log to the Delta tables about once a second, maintains one table after each round, and removes obsolete files."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from tailgate.engine.runtime.maintenance.isolation import Isolation
from tailgate.engine.runtime.ticks.engine import IDLE_S, Engine
from tailgate.lake.errors import Replaced
from tailgate.lake.tables.table_sizes import TableSize
from tailgate.lake.writer import maintenance, retention
from tailgate.lake.writer.rounds import Follower, is_due

log = logging.getLogger("tailgate.tables")

T = TypeVar("T")

# The pause between two rounds is SHARE times the last round, so that many tables leave CPU to the
# ticks, but at least ROUND_S, and at most ROUND_MAX_S: readers of the tables are at most 3 s behind.
# While ticks run more than the part BUSY of the time, the pause is at most ROUND_BUSY_MAX_S.
ROUND_S = 1.0
SHARE = 4
ROUND_MAX_S = 2.0
BUSY = 0.9
ROUND_BUSY_MAX_S = 15.0
SWEEP_RETRY_S = 60.0  # after a sweep that failed


class Follow(threading.Thread):
    """A thread that updates the Delta tables until the engine stops.

    Entries without changes cause no round and no sweep, so an idle engine makes few requests to the store. A failed round is repeated.
    If another engine has taken over, this engine ends.
    """

    def __init__(self, engine: Engine, isolation: Isolation) -> None:
        super().__init__(name="tables", daemon=True)
        self._engine, self._isolation = engine, isolation
        self._follower = Follower(engine.lake, engine.writer.epoch)
        self._tables = threading.Lock()  # held while tables are read and written
        self.written = 0  # the entry that the tables contain
        self._round_at = (0, 0)  # age and number of the newest entry at the last round
        self._has_obsolete = False  # whether a round has run since the last sweep

    @property
    def sizes(self) -> Mapping[int, TableSize]:
        """Returns the sizes of the stored relations after the last round, by id."""
        return self._follower.sizes

    def run(self) -> None:
        next_sweep = time.monotonic()
        while not self._engine.stopping:
            header = self._engine.wait_newer(self.written, IDLE_S)
            began = time.monotonic()
            if self._engine.changed <= self.written and not is_due(*self._round_at, header):
                self.written = header.n  # the tables need no change
            else:
                with self._tables:
                    if self._round() is not None:
                        self._attempt("stopping views whose rows cannot be correct", self._stop_inconsistent)
                        self._attempt("maintaining a table", lambda: maintenance.tend(self._engine.lake, self._engine.writer.epoch))
            took = time.monotonic() - began
            if self._has_obsolete and time.monotonic() >= next_sweep and retention.due(self._engine.lake):
                next_sweep = time.monotonic() + SWEEP_RETRY_S
                self._attempt("removing obsolete files", self._sweep)
            self._pause(took)

    def _pause(self, took_s: float) -> None:
        """Waits until the next round is due. `took_s`: the duration of the last one."""
        figures = self._engine.runner.figures
        began, busy_s = time.monotonic(), figures.busy_s
        time.sleep(min(max(ROUND_S, SHARE * took_s), ROUND_MAX_S))
        while not self._engine.stopping:
            waited_s = time.monotonic() - began
            if waited_s >= min(SHARE * took_s, ROUND_BUSY_MAX_S) or figures.busy_s - busy_s < BUSY * waited_s:
                return
            time.sleep(ROUND_S)

    def last_round(self) -> None:
        """Brings the tables up to the newest entry of an engine that has stopped, after the round that is running."""
        with self._tables:
            self._round()

    def _round(self) -> int | None:
        """Brings the tables up to the newest entry. Returns its number, or None after a failure."""
        header = self._engine.newest
        n = self._attempt("applying the log to the tables", self._follower.round)
        if n is not None:
            self.written, self._round_at, self._has_obsolete = n, (header.age, header.n), True
        return n

    def _sweep(self) -> None:
        retention.sweep(self._engine.writer)
        self._has_obsolete = False

    def _stop_inconsistent(self) -> None:
        """Stops the views whose rows cannot be correct according to their tables."""
        for relation, (n, why) in self._follower.inconsistent.items():
            if not self._isolation.relation(relation, n, why):
                log.error("the table of relation %d stays at entry %d: %s", relation, n, why)

    def _attempt(self, what: str, action: Callable[[], T]) -> T | None:
        """Returns the result of `action`, or None if it fails. The error is logged."""
        try:
            return action()
        except Replaced as error:
            self._engine.end(error)
        except Exception:
            log.exception("%s failed; it is tried again", what)
        return None
