"""The pauses of rounds, in which ticks have the processors for themselves.

    round: table ─ pause ─ table ─ pause ─ … ─ the rest of the pause ─ the next round

Rounds pause SHARE times as long as they work, but at least ROUND_S, and at most ROUND_MAX_S: readers of the tables are at most 3 s
behind. While ticks run more than the part BUSY of the time, rounds pause up to ROUND_BUSY_MAX_S. A part of the pause, up to
TABLES_S or TABLES_BUSY_S, is between the tables of the round: during a round of 200 tables without pauses, ticks take several times
as long, and later ones have to catch up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tailgate.engine.runtime.ticks.tick_figures import TickFigures
from tailgate.lake.writer.rounds import THREADS

ROUND_S = 1.0
SHARE = 4
ROUND_MAX_S, TABLES_S = 2.0, 0.5
BUSY = 0.9
ROUND_BUSY_MAX_S, TABLES_BUSY_S = 12.0, 3.0
TABLE_MAX_S = 0.25  # after one table: an engine that stops waits for it


class Pauses:
    """The pauses of the rounds of an engine. Only `after_table` may be called by several threads at once."""

    def __init__(self, figures: TickFigures, stopping: Callable[[], bool]) -> None:
        self._figures, self._stopping = figures, stopping
        self._began, self._busy_s = time.monotonic(), figures.busy_s  # the newest round, and how long ticks had been running then
        self._tables_s = self._left_s = 0.0  # the pauses between the tables of the round, and their remaining part
        self._lock = threading.Lock()  # held while `_left_s` is changed

    def begin(self) -> None:
        """Begins a round."""
        now, busy_s = time.monotonic(), self._figures.busy_s
        is_busy = busy_s - self._busy_s >= BUSY * (now - self._began)
        self._began, self._busy_s = now, busy_s
        self._tables_s = self._left_s = TABLES_BUSY_S if is_busy else TABLES_S

    def after_table(self, took_s: float) -> None:
        """Waits after a table that took so long."""
        if self._stopping():
            return
        with self._lock:
            pause_s = min(SHARE * took_s, TABLE_MAX_S, self._left_s * THREADS)
            self._left_s -= pause_s / THREADS
        time.sleep(pause_s)

    def after_round(self) -> None:
        """Waits until the next round is due."""
        paused_s = self._tables_s - self._left_s
        began, busy_s = time.monotonic(), self._figures.busy_s
        work_s = began - self._began - paused_s
        time.sleep(max(0.0, min(max(ROUND_S, SHARE * work_s), ROUND_MAX_S) - paused_s))
        most_s = min(SHARE * work_s, ROUND_BUSY_MAX_S) - paused_s
        while not self._stopping():
            waited_s = time.monotonic() - began
            if waited_s >= most_s or self._figures.busy_s - busy_s < BUSY * waited_s:
                return
            time.sleep(min(ROUND_S, most_s - waited_s))
