"""A whole Tailgate without Spark: the engine's statements, writes and control over a lake, and a gateway.

    gateway ──POST /statement──► engine.runtime.statements ──► an entry of the log, rows of new views
            ──POST /write──────► engine.runtime.writes ──► an entry of the log

Nothing that decides who may do what is replaced.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import psycopg

from engine.runtime.control import Control
from engine.runtime.writes import Writes, written
from lake import Lake
from lake.engines import Announcement
from lake.inbox import Inbox, Record
from lake.writing import open_epoch
from tests.sparkless import Engine, WithoutKafka
from tests.tables.world import Served


class World:
    """`dsn`, and `sql(user, text, …)`: what a user is answered. `errors`: what the engine says of views, by name."""

    def __init__(self, path: Path) -> None:
        self.lake = Lake.create(path)
        self.writer = open_epoch(self.lake)
        self.inbox = Inbox(self.lake, self.writer.epoch, self.writer.newest.inbox)
        self._boundary = threading.RLock()
        self.statements = WithoutKafka(Engine(self.lake, self.writer, self._boundary, self._enter))
        self.errors: dict[str, dict[str, dict[str, Any]]] = {"sources": {}, "views": {}, "sinks": {}}
        self.execute = self.statements.execute  # what the control calls; a test may put something in front of it
        writes = Writes(self.inbox, lambda: self.writer.catalog, self._enter)
        self.control = Control(
            lambda *arguments: self.execute(*arguments), self.statements.newest, lambda: {**self.errors, "ticks": 0}, writes.write
        )
        self.control.start()
        Announcement.mine(self.writer.epoch, self.control.address, self.control.token, None).write(self.lake)
        self.served = Served(self.lake)

    def _enter(self, records: list[Record]) -> int:
        """Writes are durable and committed at once: a tick for each."""
        with self._boundary:
            number = self.inbox.write(records)
            before = self.writer.newest.inbox
            self.writer.append(written(self.inbox, before, number, self.writer.catalog), inbox=number)
            self.inbox.remove(before, number)
        return number

    def connect(self, user: str = "tailgate", **words: Any) -> psycopg.Connection:
        """A session of a role; `tailgate` is the superuser."""
        return psycopg.connect(self.served.dsn, user=user, autocommit=True, **words)

    def sql(self, user: str, *texts: str) -> list[Any]:
        """The rows, or the tag, of the last statement. Raises the first error."""
        with self.connect(user) as connection:
            for text in texts:
                cursor = connection.execute(text.encode())
            return cursor.fetchall() if cursor.description else [cursor.statusmessage]

    def close(self) -> None:
        self.served.close()
        self.control.stop()
        self.writer.close()
        self.statements.close()
