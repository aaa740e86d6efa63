"""Freshness of the shop's view as a polling client sees it.

Every 20 ms a poll reads `newest_pageview` and the view in one block. The poll's age is the time from
the moment at which the newest page view in the answer was sent to the moment at which the answer is
complete. An age counts only while the load is sending: afterwards the newest page view grows older
although nothing is late. The first 5 s after the first answer do not count either; the JVM's compiler
is at work then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg

VIEW, NEWEST = "pageviews_by_user_segment", "newest_pageview"
POLL_S = 0.02
WARM_S = 5.0
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


class Freshness:
    """The ages that count, in ms, of all polls of one demo.

    `sending` returns whether the load is sending now.
    """

    def __init__(self, sending: Callable[[], bool], warm_s: float = WARM_S) -> None:
        self.ages_ms: list[float] = []
        self._sending = sending
        self._warm_s = warm_s
        self._warm_until: float | None = None

    def add(self, sent_ms: float) -> None:
        """Records an answer that is complete now and whose newest page view was sent at `sent_ms`."""
        now = time.time()
        if self._warm_until is None:
            self._warm_until = now + self._warm_s
        if now >= self._warm_until and self._sending():
            self.ages_ms.append(now * 1000 - sent_ms)

    def percentiles(self) -> dict[str, int]:
        """Returns p50, p95, p99 and max; empty before the first age."""
        ordered = sorted(self.ages_ms)
        if not ordered:
            return {}
        last = len(ordered) - 1
        return {name: round(ordered[min(int(len(ordered) * q), last)]) for name, q in QUANTILES.items()}


class Poller(threading.Thread):
    """Polls the view as a client would, until `ended` is set or the connection fails."""

    def __init__(self, dsn: str, freshness: Freshness) -> None:
        super().__init__(name="poller", daemon=True)
        self._dsn = dsn
        self._freshness = freshness
        self.rows: list[tuple[Any, ...]] = []
        self.polls = 0
        self.ended = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with psycopg.connect(self._dsn, autocommit=True) as db:
                while not self.ended.wait(POLL_S):
                    with db.transaction():
                        newest = db.execute(f"SELECT sent_at FROM {NEWEST}").fetchone()
                        self.rows = db.execute(f"SELECT * FROM {VIEW} ORDER BY 1, 2, 3").fetchall()
                    self.polls += 1
                    if newest is not None and newest[0] is not None:
                        self._freshness.add(newest[0])
        except Exception as e:  # noqa: BLE001  # reported to the thread that started this one
            self.error = e
