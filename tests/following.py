"""Followers of a view whose connections end again and again: what they have folded must be the view.

A TAIL with progress is resumed at the time up to which everything was taken in; a subscription where it was acknowledged.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import psycopg

Row = tuple[Any, ...]


class Tail:
    """A relation as TAIL has told it, over as many connections as it took. `open` each connection, then `fetch` from it."""

    def __init__(self, relation: str) -> None:
        self.relation = relation
        self.begin()

    def begin(self) -> None:
        """From its rows on, again."""
        self._rows: Counter[Row] = Counter()
        self._pending: list[tuple[int, Row, int]] = []
        self.seen: int | None = None  # everything up to this time is in the rows

    @property
    def rows(self) -> dict[Row, int]:
        return {row: n for row, n in self._rows.items() if n}

    def open(self, connection: psycopg.Connection[Any]) -> None:
        """In a block. Raises 22023 if the time at which it would go on is no longer kept."""
        self._pending.clear()
        if self.seen is None:
            self._rows.clear()
        since = "WITH (PROGRESS)" if self.seen is None else f"WITH (SNAPSHOT = false, PROGRESS) AS OF {self.seen}"
        connection.execute(f"DECLARE c CURSOR FOR TAIL {self.relation} {since}")  # type: ignore[call-overload]

    def fetch(self, connection: psycopg.Connection[Any], wait_ms: int = 200) -> None:
        for at, progressed, diff, *row in connection.execute(f"FETCH ALL c WITH (timeout = '{wait_ms}ms')").fetchall():  # type: ignore[call-overload]
            if not progressed:
                self._pending.append((int(at), tuple(row), int(diff)))
                continue
            for _, change, weight in (p for p in self._pending if p[0] < at):
                self._rows[change] += weight
            self._pending = [p for p in self._pending if p[0] >= at]
            self.seen = int(at) - 1


class Subscriber:
    """A consumer that keeps rows together with their time, as in a transaction of its own database; then it acknowledges."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._rows: Counter[Row] = Counter()
        self.saved = -1
        self.acknowledged = -1  # what the server has confirmed

    @property
    def rows(self) -> dict[Row, int]:
        return {row: n for row, n in self._rows.items() if n}

    def fetch(self, connection: psycopg.Connection[Any], wait_ms: int = 200) -> None:
        text = f"FETCH 50 FROM SUBSCRIPTION {self.name} WITH (timeout = '{wait_ms}ms')"
        got = connection.execute(text).fetchall()  # type: ignore[call-overload]
        for at, progressed, diff, *row in got:
            if progressed:
                continue
            assert at > self.acknowledged, "given again after it was acknowledged"
            if at > self.saved:
                self._rows[tuple(row)] += int(diff)
        if got:
            self.saved = max(self.saved, int(got[-1][0]))
            connection.execute(f"ACKNOWLEDGE {self.name} UP TO %s", [self.saved])  # type: ignore[call-overload]
            self.acknowledged = self.saved
