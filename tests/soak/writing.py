"""Writers of tables that continue through all faults, and the check of the rows afterwards.

They write to ledger (keyed), journal (without a key) and counters (one row for each writer), in one
block each time. Acknowledged rows must exist once, refused ones must not exist, and blocks without
an answer must have been committed as a whole or not at all.
"""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

import psycopg

TABLES = (
    "CREATE TABLE ledger (id bigint PRIMARY KEY, writer int NOT NULL, amount bigint NOT NULL, at timestamptz NOT NULL)",
    "CREATE TABLE journal (writer int, id bigint)",
    "CREATE TABLE counters (writer int PRIMARY KEY, n bigint NOT NULL)",
)
IDLE = psycopg.pq.TransactionStatus.IDLE
STRIDE = 1_000_000_000  # the ids of a writer begin at its number times this
AGAIN_S = 0.2  # after an error
KEPT = 5_000  # newest rows of a writer, which it changes and deletes
UNSEEN = "canceling wait for the commit"  # the rows are durable, but another connection may not see them yet
CERTAIN = {"40001", "23505"}  # SQLSTATEs after which a COMMIT or a single statement has changed nothing

Connect: TypeAlias = Callable[[], "psycopg.Connection[Any]"]
Amount: TypeAlias = "int | None"  # None: the row does not exist


class Writer(threading.Thread):
    """A thread that runs about `rate` statements or blocks per second.

    `possible` holds the values that `ledger` may have for each id.
    """

    def __init__(self, connect: Connect, number: int, rate: float, seed: int) -> None:
        super().__init__(name=f"writer {number}", daemon=True)
        self._connect, self.number, self._rate = connect, number, rate
        self._random = random.Random(f"{seed} writer {number}")
        self._ended = threading.Event()
        self._next = number * STRIDE
        self._own: list[int] = []  # rows that certainly exist, newest last
        self.possible: dict[int, set[Amount]] = {}
        self.inserted: dict[int, bool | None] = {}  # whether the block with the id was committed; None: unknown
        self._unseen = False  # whether the newest commit was acknowledged with a warning, before its rows are readable
        self.acknowledged = self.refused = self.unanswered = 0
        self.errors: Counter[str] = Counter()
        self.error: BaseException | None = None

    def run(self) -> None:
        connection: psycopg.Connection[Any] | None = None
        try:
            while not self._ended.wait(self._random.expovariate(self._rate)):
                try:
                    connection = connection or self._open()
                    self._one(connection)
                except (psycopg.Error, OSError) as error:
                    self.errors[described(error)] += 1
                    self._ended.wait(AGAIN_S)
                if connection is not None and (connection.closed or connection.info.transaction_status != IDLE):
                    connection.close()
                    connection = None
        except BaseException as error:  # noqa: BLE001  # raised by stop()
            self.error = error
        if connection is not None:
            connection.close()

    def stop(self) -> None:
        self._ended.set()
        self.join(120)
        assert not self.is_alive(), f"{self.name} waits for ever"
        if self.error is not None:
            raise self.error

    def _open(self) -> psycopg.Connection[Any]:
        connection = self._connect()
        connection.add_notice_handler(self._notice)
        return connection

    def _notice(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        self._unseen |= diagnostic.message_primary == UNSEEN

    def _one(self, connection: psycopg.Connection[Any]) -> None:
        chance = self._random.random()
        if chance < 0.7 or not self._own:
            self._insert(connection, 1)
        elif chance < 0.75:
            self._insert(connection, self._random.randint(2, 200))
        elif chance < 0.95:
            id, amount = self._random.choice(self._own), self._random.randrange(10**6)
            self._alone(connection, f"UPDATE ledger SET amount = {amount} WHERE id = {id}", id, amount)
        else:
            id = self._own.pop(self._random.randrange(len(self._own)))
            self._alone(connection, f"DELETE FROM ledger WHERE id = {id}", id, None)

    def _insert(self, connection: psycopg.Connection[Any], count: int) -> None:
        """Inserts new rows into both tables and updates the counter, in one block."""
        ids = range(self._next, self._next + count)
        self._next += count
        rows = [(id, self._random.randrange(10**6)) for id in ids]
        for id in ids:
            self.possible[id], self.inserted[id] = {None}, False
        connection.execute("BEGIN")
        values = ", ".join(f"({id}, {self.number}, {amount}, now())" for id, amount in rows)
        connection.execute(f"INSERT INTO ledger VALUES {values}")  # type: ignore[call-overload]
        values = ", ".join(f"({self.number}, {id})" for id in ids)
        connection.execute(f"INSERT INTO journal VALUES {values}")  # type: ignore[call-overload]
        connection.execute(f"UPDATE counters SET n = n + {count} WHERE writer = {self.number}")  # type: ignore[call-overload]
        committed = self._ask(connection, "COMMIT")
        for id, amount in rows:
            self.inserted[id] = committed
            if committed is not False:
                self.possible[id] = {amount} if committed else {None, amount}
        if committed and not self._unseen:
            self._own = [*self._own, *ids][-KEPT:]

    def _alone(self, connection: psycopg.Connection[Any], text: str, id: int, amount: Amount) -> None:
        outcome = self._ask(connection, text)
        if outcome:
            self.possible[id] = {amount}
            if self._unseen and id in self._own:
                self._own.remove(id)
        elif outcome is None:
            self.possible[id] |= {amount}
            if id in self._own:
                self._own.remove(id)  # its value is unknown, so it is not changed any more
        elif amount is None:
            self._own.append(id)

    def _ask(self, connection: psycopg.Connection[Any], text: str) -> bool | None:
        """Runs a statement. Returns whether it took effect; None if unknown."""
        self._unseen = False
        try:
            connection.execute(text)  # type: ignore[call-overload]
        except psycopg.Error as error:
            self.errors[described(error)] += 1
            if error.sqlstate in CERTAIN:
                self.refused += 1
                return False
            self.unanswered += 1
            return None
        self.acknowledged += 1
        return True


def described(error: BaseException) -> str:
    """Returns an error's SQLSTATE or class and its first words, to count equal errors."""
    first = (str(error).splitlines() or [""])[0]
    return f"{getattr(error, 'sqlstate', None) or type(error).__name__} {re.sub(r'[0-9]+', 'N', first)[:70]}"


def begin(connection: psycopg.Connection[Any], writers: int) -> None:
    for statement in TABLES:
        connection.execute(statement)  # type: ignore[call-overload]
    connection.execute(f"INSERT INTO counters SELECT g, 0 FROM generate_series(0, {writers - 1}) AS g")  # type: ignore[call-overload]


def wrong(connection: psycopg.Connection[Any], writers: list[Writer]) -> str | None:
    """Compares the tables, read at one time, with the rows that the writers wrote.

    Returns differences, or None.
    """
    with connection.transaction():
        ledger: dict[int, int] = dict(connection.execute("SELECT id, amount FROM ledger").fetchall())
        journal: Counter[int] = Counter(id for (id,) in connection.execute("SELECT id FROM journal").fetchall())
        counters: dict[int, int] = dict(connection.execute("SELECT writer, n FROM counters").fetchall())
    findings: list[str] = []
    for writer in writers:
        for id, possible in writer.possible.items():
            if ledger.get(id) not in possible:
                findings.append(f"ledger has {ledger.get(id)} for {id}, where it may be {possible}")
            committed = writer.inserted[id]
            copies = journal[id]
            if copies not in ((0, 1) if committed is None else (int(committed),)):
                findings.append(f"journal has {id} {copies} times, and its block was {'not ' if not committed else ''}acknowledged")
            if committed is None and len(possible) == 2 and (id in ledger) != (copies == 1):
                findings.append(f"half of the block of {id} is there: ledger {id in ledger}, journal {copies}")
        copies = sum(journal[id] for id in writer.possible)
        if counters.get(writer.number) != copies:
            findings.append(f"counter {writer.number} is {counters.get(writer.number)}, and its blocks have {copies} rows")
    written = {id for writer in writers for id in writer.possible}
    findings += [f"ledger has {id}, which nobody wrote" for id in set(ledger) - written]
    findings += [f"journal has {id}, which nobody wrote" for id in set(journal) - written]
    return None if not findings else f"{len(findings)} differences: " + "; ".join(findings[:5])
