"""Followers of a view that reconnect often; their folded rows must equal the view.

A TAIL with progress resumes at its last complete time, a subscription at the acknowledged time.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import psycopg

Row = tuple[Any, ...]


class Tail:
    """The rows of a relation, folded from TAIL over several connections.

    Call `open` for each connection, then `fetch`.
    """

    def __init__(self, relation: str) -> None:
        self.relation = relation
        self.begin()

    def begin(self) -> None:
        """Forgets all rows, to begin with a new snapshot."""
        self._rows: Counter[Row] = Counter()
        self._pending: list[tuple[int, Row, int]] = []
        self.seen: int | None = None  # the rows include all changes up to this time

    @property
    def rows(self) -> dict[Row, int]:
        return {row: n for row, n in self._rows.items() if n}

    def open(self, connection: psycopg.Connection[Any]) -> None:
        """Declares the cursor, in a transaction block.

        Raises 22023 if the time to resume at is not retained.
        """
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
    """A consumer that stores rows and their time together, as in one transaction, and then acknowledges."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._rows: Counter[Row] = Counter()
        self.saved = -1
        self.acknowledged = -1  # confirmed by the server

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
