"""Rows of existing tables that are committed together with a change of the catalog.

    records ──► inbox, as an entry that is not committed ──► tick: the views above the tables ──► one entry of the log: the rows, the
    changes of the views, and the change of the catalog ──► the new circuit

The entry of the log is the only commit. Until it is there, the entry of the inbox has no effect: if the engine ends, the next engine
reads it as empty (`lake.writer.inbox`); if the tick fails, it is emptied, and the statement fails.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tailgate.engine.runtime.ticks.engine_log import Changes, EngineLog
from tailgate.lake.errors import AdminShutdown, SerializationFailure, TailgateError
from tailgate.lake.log.entry import Header
from tailgate.lake.writer.inbox import Record

WAIT_S = 1.0  # between two checks whether the engine is stopping


@dataclass(frozen=True, slots=True)
class TableWrites:
    """The rows.

    `records`: for the inbox, with the columns that the tables have before the change. `rows`: weighted rows by table, with the columns
    after it. `entered`: called with the number of the inbox entry when it is durable.
    """

    records: Sequence[Record]
    rows: Mapping[int, pa.Table]
    entered: Callable[[int], None]


@dataclass(slots=True, eq=False)
class PendingEntry:
    """A change of the catalog that waits for the tick that reads the inbox entry `number`.

    - `rows`: as of `TableWrites`.
    - `fields`: returns the fields of the log entry; its arguments are the offsets and `extra` after the tick, and the tick's changes.
    - `switch`: called after the entry is in the log: the new circuit takes effect.
    """

    number: int
    rows: Mapping[int, pa.Table]
    fields: Callable[[Mapping[str, Any], Mapping[str, Any], Changes], dict[str, Any]]
    switch: Callable[[], None]
    header: Header | None = None
    _ended: threading.Event = field(default_factory=threading.Event)
    _error: TailgateError | None = None

    def commit(self, header: Header) -> None:
        """Records that the entry is in the log."""
        self.header = header
        self.switch()
        self._ended.set()

    def fail(self, cause: Exception) -> None:
        """Records that the change has no effect."""
        self._error = SerializationFailure(
            "could not commit the transaction, because a tick failed",
            detail=cause.message if isinstance(cause, TailgateError) else str(cause).partition("\n")[0],
            hint="The transaction might succeed if retried.",
        )
        self._ended.set()

    def wait(self, engine_log: EngineLog) -> Header:
        """Returns the entry of the log. Raises 40001 if the tick failed, 57P01 if the engine stops before it."""
        while not self._ended.wait(WAIT_S):
            if engine_log.stopping:
                with engine_log.boundary:  # the tick that may have committed it has ended
                    if not self._ended.is_set():
                        is_committed = engine_log.newest.inbox >= self.number
                        hint = "The transaction is committed." if is_committed else "The transaction is not committed."
                        raise AdminShutdown("the engine is stopping", hint=hint)
        if self._error is not None:
            raise self._error
        assert self.header is not None
        return self.header


def without(changes: Changes, relations: Collection[int]) -> list[tuple[int, Any]]:
    """Returns the changes of other relations than these, and removes files of the omitted ones."""
    others = []
    for relation, data in changes:
        if relation not in relations:
            others.append((relation, data))
        elif isinstance(data, Path):
            data.unlink(missing_ok=True)
    return others
