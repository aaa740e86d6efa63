"""What happens in a database while it is captured: random transactions of several sessions at once, and visits to the shop's pages.

a transaction: 1 to STATEMENTS of {insert, update, delete, move to another key, delete and insert again, the same to many rows, truncate},
each of a random table; some are rolled back, by us or by the server
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable

from confluent_kafka import Producer

from tests.cdc.databases import Refused, Server, Session
from tests.cdc.scenarios import CHANNELS, USERS, Scenario, Table

STATEMENTS = 6  # of a transaction, at most
ROLLED_BACK = 0.04  # of the transactions, by ourselves
FIRST_ROWS = 0.5  # of a table's keys that are there before it is captured
BATCH = 200  # rows of one INSERT
MARK = 1_000_000  # a key that no random row has: of the last row of every table


class Pageviews:
    """Sent to their topic, and remembered for the database's own query."""

    def __init__(self, kafka: str, topic: str, seed: str) -> None:
        self._producer = Producer({"bootstrap.servers": kafka, "enable.idempotence": True, "log_level": 2})
        self._topic = topic
        self._random = random.Random(seed)
        self.sent: list[tuple[int, str, int]] = []

    def send(self) -> None:
        r = self._random
        user, channel, at = r.randrange(USERS + 5), r.choice(CHANNELS), int(time.time()) - 3600 * r.randrange(4)
        view = {"user_id": user, "url": f"/products/{r.randrange(50)}", "channel": channel, "received_at": at}
        self._producer.produce(self._topic, value=json.dumps(view).encode())
        self._producer.poll(0)
        self.sent.append((user, channel, at))

    def flush(self) -> None:
        assert self._producer.flush(30) == 0, "the broker takes no page views"

    def into(self, session: Session) -> None:
        """A table of them, which is not captured."""
        session.transaction(["CREATE TABLE pageviews (user_id INT, channel VARCHAR(40), received_at BIGINT)"])
        for first in range(0, len(self.sent), BATCH):
            rows = ", ".join(f"({user}, '{channel}', {at})" for user, channel, at in self.sent[first : first + BATCH])
            session.transaction([f"INSERT INTO pageviews VALUES {rows}"])


class Writer(threading.Thread):
    """One session's transactions, about `rate` a second, until `stop`."""

    def __init__(self, server: Server, scenario: Scenario, seed: str, rate: float, also: Callable[[], None] | None = None) -> None:
        super().__init__(name=f"writer of {server.name}", daemon=True)
        self._session = server.session()
        self._scenario = scenario
        self._random = random.Random(seed)
        self._statements = Statements(server, self._random)
        self._rate = rate
        self._also = also
        self._ended = threading.Event()
        self.transactions = 0
        self.refused = 0
        self.error: Exception | None = None

    def run(self) -> None:
        r = self._random
        try:
            while not self._ended.wait(r.expovariate(self._rate)):
                try:
                    self._session.transaction(self._transaction(), keep=r.random() > ROLLED_BACK)
                    self.transactions += 1
                except Refused:
                    self.refused += 1  # a key that is taken, a deadlock
                if self._also is not None:
                    self._also()
        except Exception as error:  # noqa: BLE001  # told to who started the thread
            self.error = error

    def _transaction(self) -> list[str]:
        if self._scenario.transaction is not None:
            return self._scenario.transaction(self._random)
        tables = self._random.choices(self._scenario.tables, k=self._random.randint(1, STATEMENTS))
        return [statement for table in tables for statement in self._statements(table)]

    def end(self) -> None:
        """Doing it again changes nothing."""
        self._ended.set()
        self.join()
        self._session.close()

    def check(self) -> None:
        """Raises what ended it, if it did not go on to its end."""
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        self.end()
        self.check()


class Statements:
    """Random statements for one table, in a server's words."""

    def __init__(self, server: Server, r: random.Random) -> None:
        self._before, self._behind = server.insert
        self._random = r

    def __call__(self, table: Table) -> list[str]:
        r, name = self._random, table.name
        one, other = r.randrange(table.ids), r.randrange(table.ids)
        row = table.row(r)
        some = ", ".join(f"{column} = {row[column]}" for column in r.sample(list(row), r.randint(1, min(2, len(row)))))
        few = f"id % {table.ids // 4} = {one % (table.ids // 4)}"
        kinds: dict[str, tuple[float, list[str]]] = {
            "insert": (5, [self.insert(table, [one])]),
            "update": (4, [f"UPDATE {name} SET {some} WHERE id = {one}"]),
            "delete": (1.5, [f"DELETE FROM {name} WHERE id = {one}"]),
            "move": (1, [self._move(name, one, other)]),
            "swap": (0.3, [self._move(name, one, table.ids), self._move(name, other, one), self._move(name, table.ids, other)]),
            "again": (0.5, [f"DELETE FROM {name} WHERE id = {one}", self.insert(table, [one])]),
            "twice": (0.5, [self.insert(table, [one]), f"UPDATE {name} SET {some} WHERE id = {one}"]),
            "change few": (0.3, [f"UPDATE {name} SET {some} WHERE {few}"]),
            "delete few": (0.2, [f"DELETE FROM {name} WHERE {few}"]),
            "truncate": (0.01 if table.truncated else 0, [f"TRUNCATE TABLE {name}"]),
        }
        return r.choices([statements for _, statements in kinds.values()], [weight for weight, _ in kinds.values()])[0]

    def insert(self, table: Table, ids: list[int]) -> str:
        rows = [{"id": str(id), **table.row(self._random)} for id in ids]
        values = ", ".join(f"({', '.join(row.values())})" for row in rows)
        return f"{self._before} {table.name} ({', '.join(rows[0])}) VALUES {values}{self._behind}"

    def _move(self, name: str, old: int, new: int) -> str:
        return f"UPDATE {name} SET id = {new} WHERE id = {old} AND NOT EXISTS (SELECT 1 FROM {name} AS taken WHERE taken.id = {new})"


def begin(server: Server, scenario: Scenario, seed: str) -> None:
    """The tables with their first rows, which the connector's snapshot finds."""
    session, r = server.session(), random.Random(seed)
    statements = Statements(server, r)
    for table in scenario.tables:
        session.transaction(server.define(table))
        ids = r.sample(range(table.ids), int(table.ids * FIRST_ROWS))
        for first in range(0, len(ids), BATCH):
            session.transaction([statements.insert(table, ids[first : first + BATCH])])
    session.close()


def alter(server: Server, scenario: Scenario) -> None:
    session = server.session()
    for statement in scenario.alters:
        session.transaction([statement])
    session.close()


def mark(server: Server, scenario: Scenario) -> None:
    """One more row in every table, after all others: where it is seen, all before it must be."""
    session = server.session()
    statements = Statements(server, random.Random(0))
    session.transaction([statements.insert(table, [MARK]) for table in scenario.tables])
    session.close()
