"""Tailgate without Spark: the engine's statements, writes and control over a lake, and a gateway.

    gateway ──POST /statement──► engine.runtime.control.statements ──► an entry of the log, rows of new views
            ──POST /write──────► engine.runtime.ticks.writes ──► an entry of the log

All code that checks privileges is the product's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from tailgate.engine.runtime.control.blocks.commits import Commits
from tailgate.engine.runtime.control.control import Answers, Control
from tailgate.engine.runtime.control.entry_stream import EntryStream
from tailgate.engine.runtime.control.sequences import Sequences
from tailgate.engine.runtime.ticks.writes import Writes, written
from tailgate.lake.folder import Lake
from tailgate.lake.writer.engines import Announcement
from tailgate.lake.writer.inbox import Inbox, Record
from tailgate.lake.writer.log_writer import open_epoch
from tests.sparkless import Engine, WithoutKafka
from tests.tables.world import Served


class World:
    """A gateway and an engine without Spark.

    `errors` is the status that the engine reports, by name.
    """

    def __init__(self, path: Path) -> None:
        self.lake = Lake.create(path)
        self.writer = open_epoch(self.lake)
        self.inbox = Inbox(self.lake, self.writer.epoch, self.writer.newest.inbox)
        self._boundary = threading.RLock()
        engine = Engine(self.lake, self.writer, self._boundary, self._enter, self.inbox)
        self.statements = WithoutKafka(engine)
        sequences = Sequences(engine, self.statements.installation)  # type: ignore[arg-type]
        self.errors: dict[str, dict[str, dict[str, Any]]] = {"sources": {}, "views": {}, "sinks": {}}
        self.execute = self.statements.execute  # called by the control interface; a test may replace it
        writes = Writes(self.inbox, lambda: self.writer.catalog, self._enter)
        change_table = partial(self.statements.change_table, writes.accepted)
        status = lambda lags: {**self.errors, "ticks": 0}  # noqa: E731
        self.control = Control(
            Answers(
                lambda *arguments: self.execute(*arguments),
                EntryStream(self.lake.log).serve,
                status,
                writes.write,
                table=change_table,
                plan=self.statements.planning.plan_in_block,
                block=Commits(self.statements.installation, writes),  # type: ignore[arg-type]
                sequence=sequences,
                push=self.statements.push_queries.begin,
            )
        )
        self.control.start()
        Announcement.mine(self.writer.epoch, self.control.address, self.control.token, None).write(self.lake)
        self.served = Served(self.lake)

    def _enter(self, records: list[Record], durable: Callable[[int], None]) -> int:
        """Commits writes at once, as one tick. Returns its time."""
        with self._boundary:
            number = self.inbox.write(records)
            before = self.writer.newest.inbox
            changes, ids = written(self.inbox, before, number, self.writer.catalog)
            self.writer.append(changes, inbox=number, writes=ids)
            self.inbox.remove(before, number)
        durable(number)
        return number

    def connect(self, user: str = "tailgate", **words: Any) -> psycopg.Connection:
        """Opens a session of a role; `tailgate` is the superuser."""
        return psycopg.connect(self.served.dsn, user=user, autocommit=True, **words)

    def sql(self, user: str, *texts: str) -> list[Any]:
        """Runs statements as a user.

        Returns the rows of the last one, or its tag. Raises the first error.
        """
        with self.connect(user) as connection:
            for text in texts:
                cursor = connection.execute(text.encode())
            return cursor.fetchall() if cursor.description else [cursor.statusmessage]

    def close(self) -> None:
        self.served.close()
        self.control.stop()
        self.writer.close()
        self.statements.close()
