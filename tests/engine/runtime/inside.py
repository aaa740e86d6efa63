"""An engine in the test's process.

Tests call its operations and can make their file accesses fail.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.control.statements import Statements
from tailgate.engine.runtime.ticks import repeated_writes
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.engine.runtime.ticks.writes import Writes
from tailgate.lake.catalog import Item
from tailgate.lake.control import Attempt, Part, Write
from tailgate.lake.folder import Lake
from tailgate.lake.log.entry import stream
from tailgate.lake.types import arrow_schema
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.lake.writer.rounds import Follower
from tailgate.sql.name_resolution import resolve
from testing.engine_process import rows
from tests.lake.relations import sweep

COMMIT_S = 60.0


class Waiting:
    """The client of a statement, which waits for the answer."""

    attempt = Attempt()

    def tell(self, notice: dict[str, Any]) -> None:
        pass

    def gone(self) -> bool:
        return False


class Inside:
    """A run of an engine, from its start to `end`. `ended` is its error, or None."""

    def __init__(self, session: Any, path: Path, parallelism: int = 1) -> None:
        self.lake = Lake.create(path)
        self.writer = open_epoch(self.lake, take_over=True)
        self.engine = Engine(self.lake, session, self.writer, parallelism)
        self.installation = Installation(self.engine)
        self.statements = Statements(self.engine, self.installation)
        find = partial(repeated_writes.find, self.lake, self.engine.inbox)
        self.writes = Writes(self.engine.inbox, lambda: self.engine.catalog, self.engine.enter, find=find, confirm=self.engine.confirm)
        self.follower = Follower(self.lake, self.writer.epoch)
        self.ended: BaseException | None = None
        self.installation.recover()
        self._thread = threading.Thread(target=self._run, name="engine")
        self._thread.start()

    def _run(self) -> None:
        try:
            self.engine.run()
        except BaseException as error:  # noqa: BLE001  # the test inspects it
            self.ended = error

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> None:
        """Stops the engine and waits until it has ended."""
        self.engine.stop()
        self._thread.join(COMMIT_S)
        assert not self.alive
        self.writer.close()

    def execute(self, sql: str) -> dict[str, Any]:
        """Runs a statement and returns the answer."""
        catalog = self.engine.catalog
        return self.statements.execute(sql, {}, resolve(sql, catalog, catalog), Waiting())

    def insert(self, table: str, *added: tuple[Any, ...], wait: bool = True) -> int:
        """Writes rows and returns their inbox number. The write is acknowledged when this returns.

        With `wait`, its tick is in the log.
        """
        body = write_body(self.engine.catalog.relation(table), added)
        number = int(self.writes.write(body)["number"])
        if wait:
            self.wait(number)
        return number

    def wait(self, number: int) -> None:
        """Returns when the tick of this inbox entry is in the log, or the engine has ended."""
        self.engine.wait_inbox(number, lambda: self.alive)

    def round(self) -> None:
        self.follower.round()

    def sweep(self) -> None:
        sweep(self.writer)

    def rows(self, name: str) -> Counter[tuple[Any, ...]]:
        """Returns the relation's rows as another process sees them."""
        return rows(Lake(self.lake.path), name)


def write_body(table: Item, added: Sequence[tuple[Any, ...]]) -> bytes:
    """Returns the body of a `POST /write` that adds rows to a table and has read nothing."""
    schema = arrow_schema(table.columns, weight=True)
    columns = [*zip(*added, strict=True), [1] * len(added)]
    changes = stream(pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema))
    return Write(0, (), (Part(table.id, changes, memoryview(b"").cast("Q")),)).encode()
