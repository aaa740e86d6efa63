"""Writers that continue while processes are killed, and a check of the rows that they wrote.

An acknowledged write must be there once, any other write at most once.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from tailgate.lake.folder import Lake
from testing.engine_process import rows, until

TABLES = (
    "CREATE TABLE keyed (id int PRIMARY KEY, writer int)",
    "CREATE TABLE bag (writer int)",
    "CREATE TABLE tally (id int PRIMARY KEY, n int)",
    "INSERT INTO tally VALUES (1, 0)",
)


class Writer(threading.Thread):
    """A thread that writes transactions: one row into `keyed` and `bag`, and one more in the tally of all writers.

    `unknown` has the ids of transactions whose outcome it does not know.
    """

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]], number: int) -> None:
        super().__init__(daemon=True)
        self.connect, self.number = connect, number
        self.going = True
        self.written: set[int] = set()
        self.unknown: set[int] = set()

    def run(self) -> None:
        next_id = self.number
        connection: psycopg.Connection[Any] | None = None
        while self.going:
            next_id += 3
            try:
                connection = connection or self.connect()
                self.unknown.add(next_id)
                with connection.transaction():
                    connection.execute("INSERT INTO keyed VALUES (%s, %s)", (next_id, self.number))
                    connection.execute("INSERT INTO bag VALUES (%s)", (self.number,))
                    connection.execute("UPDATE tally SET n = n + 1")
                self.written.add(next_id)
                self.unknown.discard(next_id)
            except psycopg.errors.SerializationFailure:
                self.unknown.discard(next_id)
            except (psycopg.OperationalError, psycopg.errors.SystemError, OSError):
                if connection is not None and connection.broken:
                    connection.close()
                    connection = None
                time.sleep(0.1)
        if connection is not None:
            connection.close()

    def stop(self) -> None:
        self.going = False
        self.join(60)
        assert not self.is_alive(), "a writer waits for ever"

    def moves(self) -> bool:
        """Returns True once more rows are written."""
        before = len(self.written)
        until(lambda: len(self.written) > before + 2)
        return True


def checked(lake: Lake, writers: Sequence[Writer]) -> Counter[tuple[Any, ...]]:
    """Stops the writers and checks their rows. Returns the rows of `keyed`."""
    for writer in writers:
        writer.stop()
    keyed, bag = rows(lake, "keyed"), rows(lake, "bag")
    assert set(keyed.values()) <= {1}
    for writer in writers:
        mine = {id for id, who in keyed if who == writer.number}
        assert writer.written <= mine, "an acknowledged row is lost"
        assert mine <= writer.written | writer.unknown, "a row that nobody wrote"
        assert bag[(writer.number,)] == len(mine), "half of a block"
    assert rows(lake, "tally") == {(1, len(keyed)): 1}, "an update is lost"
    return keyed
