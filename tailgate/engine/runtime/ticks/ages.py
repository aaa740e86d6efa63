"""The ages of the records and writes that ticks read, from which gateways compute freshness lag.

    oldest record of each channel, and when it arrived ──┐
    acknowledged writes of each table                  ──┴─► the ticks that have read them; those that no tick has read

Times are in milliseconds since the epoch, by the wall clock, as Kafka's record times are.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile

from tailgate.lake.writer.inbox import TABLE

TICKS_KEPT = 2_000  # as many as the log entries that a gateway caches: some minutes
WRITES_KEPT = 100_000  # acknowledged writes that no tick has read; further ones count from the newest of them

Oldest = Mapping[str, tuple[int, int]]  # by channel: the oldest record's time, and when it arrived


@dataclass(frozen=True, slots=True)
class TickAge:
    """A committed tick: when it began, when its result was computed, and when its entry `n` was durable."""

    n: int
    began: int
    computed: int
    committed: int
    oldest: Oldest


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Ages:
    """The ages of the newest ticks and of writes that wait. Safe from many threads.

    Each change has a higher version: a tick began, because a record or a write arrived; it was committed; a write was acknowledged.
    """

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._version = now_ms()  # higher than those of an earlier engine
        self._begun = self._ended = 0  # the number of ticks that began, and how many of them had begun when one was committed
        self._ticks: deque[TickAge] = deque(maxlen=TICKS_KEPT)
        self._writes: deque[tuple[int, str, int]] = deque(maxlen=WRITES_KEPT)  # inbox entry, channel, time

    def acknowledge(self, number: int, tables: Iterable[int]) -> None:
        """Records that a write to these tables is durable now, as an entry of the inbox."""
        now = now_ms()
        with self._lock:
            self._writes.extend((number, f"{TABLE}{table}", now) for table in tables)
            self._change()

    def began(self) -> None:
        """Records that a tick begins now: there may be records that no tick has read."""
        with self._lock:
            self._begun += 1
            self._change()

    def between(self, timeout_s: float) -> int | None:
        """Returns the number of ticks that began, as soon as none of them runs; None after a timeout."""
        with self._lock:
            return self._begun if self._lock.wait_for(lambda: self._ended == self._begun, timeout_s) else None

    def committed(self, n: int, times: tuple[int, int], inbox: int, oldest: Oldest) -> TickAge:
        """Records a tick that is durable now, and returns it.

        `times`: when it began and was computed. `inbox`: the last write that it has read.
        """
        began, computed = times
        with self._lock:
            writes: dict[str, tuple[int, int]] = {}
            while self._writes and self._writes[0][0] <= inbox:
                _, channel, at = self._writes.popleft()
                writes.setdefault(channel, (at, at))
            tick = TickAge(n, began, computed, now_ms(), {**oldest, **writes})
            self._ticks.append(tick)
            self._ended = self._begun
            self._change()
            return tick

    def changed(self, version: int, timeout_s: float) -> int:
        """Returns the version, as soon as it is not this one, or after a timeout."""
        with self._lock:
            self._lock.wait_for(lambda: self._version != version, timeout_s)
            return self._version

    def _change(self) -> None:
        self._version += 1
        self._lock.notify_all()

    def after(self, n: int) -> list[TickAge]:
        """Returns the ticks later than entry `n` that are kept, in order."""
        with self._lock:
            return list(takewhile(lambda tick: tick.n > n, reversed(self._ticks)))[::-1]

    def waiting(self) -> dict[str, int]:
        """Returns the time of the oldest write of each table that no tick has read, by channel."""
        with self._lock:
            times: dict[str, int] = {}
            for _, channel, at in self._writes:
                times.setdefault(channel, at)
            return times
