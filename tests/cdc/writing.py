"""Writes to a captured database: random transactions of several sessions, and page views.

A transaction has 1 to STATEMENTS steps, each for a random table: insert, update, delete, a change of
the key, delete and insert, changes of many rows, truncate. Some transactions are rolled back by the
client, some by the server.
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

STATEMENTS = 6  # maximum for a transaction
ROLLED_BACK = 0.04  # share of the transactions that the client rolls back
FIRST_ROWS = 0.5  # share of a table's keys that exist before the capture
BATCH = 200  # rows of one INSERT
MARK = 1_000_000  # key of the last row of every table, larger than random keys


class Pageviews:
    """Page views, sent to a topic and kept to fill a table of the database."""

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
        """Creates a table with the page views; it is not captured."""
        session.transaction(["CREATE TABLE pageviews (user_id INT, channel VARCHAR(40), received_at BIGINT)"])
        for first in range(0, len(self.sent), BATCH):
            rows = ", ".join(f"({user}, '{channel}', {at})" for user, channel, at in self.sent[first : first + BATCH])
            session.transaction([f"INSERT INTO pageviews VALUES {rows}"])


class Writer(threading.Thread):
    """A thread that runs transactions in a session, about `rate` per second, until `stop`."""

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
                    self.refused += 1  # duplicate key, or deadlock
                if self._also is not None:
                    self._also()
        except Exception as error:  # noqa: BLE001  # raised by check()
            self.error = error

    def _transaction(self) -> list[str]:
        if self._scenario.transaction is not None:
            return self._scenario.transaction(self._random)
        tables = self._random.choices(self._scenario.tables, k=self._random.randint(1, STATEMENTS))
        return [statement for table in tables for statement in self._statements(table)]

    def end(self) -> None:
        """Stops the writer. Calls after the first have no effect."""
        self._ended.set()
        self.join()
        self._session.close()

    def check(self) -> None:
        """Raises the error that ended the writer early, if any."""
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        self.end()
        self.check()


class Statements:
    """A generator of statements for one table in a server's dialect."""

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
    """Creates the tables with their first rows, which the connector's snapshot reads."""
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
    """Inserts one last row into every table. When it has arrived, all earlier changes have."""
    session = server.session()
    statements = Statements(server, random.Random(0))
    session.transaction([statements.insert(table, [MARK]) for table in scenario.tables])
    session.close()
