"""Statistics of statements and requests: number, duration and SQLSTATE by lane for metrics, and figures by template.

    statement ──► ended ─────────────────────────────────┬──► counts, durations, templates
    poll ───────► polled ──► collected ──► settle: many ─┘

A poll that is answered from memory takes less than 20 µs, so polls are collected and counted many at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

from tailgate.gateway.protocol.backend import rows_sent
from tailgate.gateway.resources.budgets import Budget
from tailgate.gateway.session.statements.templates import SUCCESS, Call, Templates
from tailgate.lake.errors import BY_SQLSTATE
from tailgate.operations.metrics import Counter, Distribution, Histogram, Labels
from tailgate.sql.plpgsql.conditions import SQLSTATES

COLLECTED_MAX = 512  # polls that are counted at once: texts of at most 1 MB
TEXT_BYTES_MAX = 2048  # of a collected text
TAIL_BYTES = 40  # of an answer, with its CommandComplete
OTHER = "other"  # stands for each SQLSTATE that PostgreSQL and Tailgate lack: a block of DO can raise 60 million of them
KNOWN = frozenset((SUCCESS, *BY_SQLSTATE, *SQLSTATES.values()))


class StatementStatistics:
    """The statistics of all statements of a gateway. The event loop adds statements; other threads read.

    `requests`: the number of requests over HTTP by endpoint and status. `request_durations`: their durations by endpoint.
    """

    def __init__(self, budget: Budget) -> None:
        self.requests, self.request_durations = Counter(), Histogram()
        self._counts, self._durations = Counter(), Histogram()
        self._templates = Templates(budget)
        self._polls: deque[tuple[int, bytes, float, bytes]] = deque()  # role, text, seconds, end of the answer
        self._lock = Lock()  # guards the three above; it is held for less than a ms

    def ended(self, call: Call) -> None:
        """Counts a statement that has ended."""
        with self._lock:
            self._counts.add(call.lane, call.sqlstate if call.sqlstate in KNOWN else OTHER)
            self._durations.observe(call.seconds, call.lane)
            self._templates.of(call.role, call.lane, call.text).ended(call)

    def polled(self, role: int, text: bytes, seconds: float, answer: bytes) -> None:
        """Counts a SELECT that was answered from memory."""
        self._polls.append((role, text[:TEXT_BYTES_MAX], seconds, answer[-TAIL_BYTES:]))
        if len(self._polls) >= COLLECTED_MAX:
            with self._lock:
                self._settle()

    def counts(self) -> dict[Labels, float]:
        """Returns the number of statements by lane and SQLSTATE."""
        with self._lock:
            self._settle()
            return self._counts.series()

    def durations(self) -> dict[Labels, Distribution]:
        """Returns the durations of statements by lane."""
        with self._lock:
            self._settle()
            return self._durations.series()

    def rows(self, process: int, name: Callable[[int], str | None]) -> list[dict[str, Any]]:
        """Returns the rows of tailgate.statements. `name`: returns the name of a role, or None to leave out its statements."""
        with self._lock:
            self._settle()
            listed = self._templates.listed()
        return [
            {"gateway": process, "role": user, "lane": lane, "statement": template} | figures.columns()
            for role, lane, template, figures in listed
            if (user := name(role)) is not None
        ]

    def _settle(self) -> None:
        """Counts the collected polls."""
        polls = self._polls
        by_text: dict[tuple[int, bytes], list[float]] = {}
        rows: dict[tuple[int, bytes], int] = {}
        sent: dict[bytes, int] = {}
        for _ in range(len(polls)):
            role, text, seconds, tail = polls.popleft()
            count = sent.get(tail)
            if count is None:
                count = sent[tail] = rows_sent(tail)
            key = role, text
            by_text.setdefault(key, []).append(seconds)
            rows[key] = rows.get(key, 0) + count
        for (role, text), durations in by_text.items():
            array = np.array(durations)
            self._counts.add("memory", SUCCESS, by=len(durations))
            self._durations.observe_all(array, "memory")
            self._templates.of(role, "memory", text).polled(array * 1e6, rows[role, text])
