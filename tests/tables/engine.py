"""The part of the engine that serves tables, without Spark: inbox, resolver and control. A tick only commits the writes of the inbox.

`python -m tests.tables.engine LAKE` runs one in a separate process.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tailgate.engine.runtime.control.advisory_locks import AdvisoryLocks
from tailgate.engine.runtime.control.blocks.commits import Commits
from tailgate.engine.runtime.control.control import Answers, Control
from tailgate.engine.runtime.control.entry_stream import EntryStream
from tailgate.engine.runtime.control.sequences import Sequences
from tailgate.engine.runtime.ticks import repeated_writes
from tailgate.engine.runtime.ticks.writes import Writes, written
from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.folder import Lake
from tailgate.lake.host import crash
from tailgate.lake.readers import holds
from tailgate.lake.writer import retention
from tailgate.lake.writer.engines import Announcement
from tailgate.lake.writer.inbox import Inbox, Record
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.lake.writer.rounds import Follower
from tests import sparkless
from tests.sparkless import WithoutKafka


class Engine:
    """The part of the engine that serves tables, in a thread.

    `paused`, as `pause`, stops ticks until `resume`. `listen`: where other machines reach its control.
    """

    def __init__(self, lake: Lake, *, paused: bool = False, listen: str | None = None) -> None:
        self.lake = lake
        self.writer = open_epoch(lake)
        self.inbox = Inbox(lake, self.writer.epoch, self.writer.newest.inbox)
        self._boundary = threading.RLock()
        self._follower = Follower(lake, self.writer.epoch)
        self._moved = threading.Condition()
        self._ending = False
        self._going = threading.Event()
        if not paused:
            self._going.set()
        engine = sparkless.Engine(lake, self.writer, self._boundary, inbox=self.inbox)
        self._statements = WithoutKafka(engine, fills=False)
        self._sequences = Sequences(engine, self._statements.installation)  # type: ignore[arg-type]
        self.writes = Writes(self.inbox, lambda: self.writer.catalog, self._enter, find=partial(repeated_writes.find, lake, self.inbox))
        self._commits = Commits(self._statements.installation, self.writes)  # type: ignore[arg-type]
        status = {"ticks": 0, "sources": {}, "sinks": {}}
        answers = Answers(
            self.statement,
            EntryStream(lake.log).serve,
            lambda lags: status,
            self.writes.write,
            table=self.change_table,
            sequence=self.sequence,
            plan=self._statements.planning.plan_in_block,
            block=self.commit_block,
            push=self._statements.push_queries.begin,
            print=self._statements.follow_topic,
            lock=AdvisoryLocks().request,
        )
        self.control = Control(answers, listen=listen)
        self.control.start()
        Announcement.mine(self.writer.epoch, self.control.address, self.control.token, None, self.control.certificate).write(lake)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _enter(self, records: list[Record], durable: Callable[[int], None]) -> int:
        number = self.inbox.write(records)
        durable(number)
        with self._moved:
            self._moved.notify_all()
        return number

    def pause(self) -> None:
        """Stops ticks."""
        self._going.clear()

    def resume(self) -> None:
        """Continues ticks."""
        self._going.set()

    def _run(self) -> None:
        while not self._ending:
            with self._moved:
                self._moved.wait_for(lambda: self._ending or self.inbox.newest > self.writer.newest.inbox, 1.0)
            self._going.wait()
            self.tick()

    def tick(self) -> None:
        """Commits all writes of the inbox in one log entry."""
        with self._boundary:
            before, upto = self.writer.newest.inbox, self.inbox.newest
            if upto > before and not self._ending:
                changes, writes = written(self.inbox, before, upto, self.writer.catalog)
                self.writer.append(changes, inbox=upto, writes=writes)
                crash.point("entry.committed")
                self.inbox.remove(before, upto)

    def sweep(self) -> None:
        """Brings the tables up to the log, and removes old entries. No process of sinks runs, so their positions hold none."""
        with self._boundary:
            for hold in holds.holds(self.lake):
                holds.release(self.lake, hold.reader)
            self._follower.round()
            retention.sweep(self.writer)

    def statement(self, sql: str, settings: dict[str, str], resolution: Resolution, client: object = None) -> dict[str, Any]:
        with self._boundary:
            return self._statements.execute(sql, settings, resolution, client)  # type: ignore[arg-type]

    def change_table(self, body: bytes, client: object) -> dict[str, Any]:
        with self._boundary:
            return self._statements.change_table(self.writes.accepted, body, client)  # type: ignore[arg-type]

    def commit_block(self, body: bytes, client: object) -> dict[str, Any]:
        with self._boundary:  # first, as for statements
            return self._commits(body, client)  # type: ignore[arg-type]

    def sequence(self, body: bytes, client: object) -> dict[str, Any]:
        with self._boundary:
            return self._sequences(body, client)  # type: ignore[arg-type]

    def close(self) -> None:
        if self._ending:
            return
        self._ending = True
        self._going.set()
        with self._moved:
            self._moved.notify_all()
        self._thread.join(30)
        self.control.stop()
        self.writer.close()


if __name__ == "__main__":
    Engine(Lake.open(Path(sys.argv[1])))
    print("ready", flush=True)
    threading.Event().wait()
