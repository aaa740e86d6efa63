"""Where a session's transaction is: the states of PostgreSQL's ReadyForQuery, as a table.

    I idle ── BEGIN ──► T in a block ── error ──► E failed ── ROLLBACK, COMMIT ──► I
    I ── a Query of several statements, a pipeline up to Sync ──► implicit: told as I, one snapshot, gone at its end

A block reads all its relations at one time: its snapshot is taken by its first read, and closed with it.
"""

from __future__ import annotations

from enum import Enum
from itertools import count
from typing import TYPE_CHECKING

from gateway.writing.pending import Pending
from lake.errors import of

if TYPE_CHECKING:
    from gateway.serving import Serving
    from gateway.serving.snapshots import Snapshot
    from gateway.settings import Mark
    from lake.catalog import Catalog


class State(Enum):
    __hash__ = object.__hash__  # a member is one object; Enum's own is slow

    IDLE = "I"
    IMPLICIT = "I-implicit"
    BLOCK = "T"
    FAILED = "E"


class Move(Enum):
    __hash__ = object.__hash__

    BEGIN = "begin"
    IMPLY = "imply"
    ERROR = "error"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    RECOVER = "recover"  # ROLLBACK TO
    FINISH = "finish"  # the end of a simple Query, or Sync


MOVES: dict[tuple[State, Move], State] = {
    (State.IDLE, Move.BEGIN): State.BLOCK,
    (State.IDLE, Move.IMPLY): State.IMPLICIT,
    (State.IDLE, Move.ERROR): State.IDLE,
    (State.IDLE, Move.COMMIT): State.IDLE,
    (State.IDLE, Move.ROLLBACK): State.IDLE,
    (State.IDLE, Move.FINISH): State.IDLE,
    (State.IMPLICIT, Move.BEGIN): State.BLOCK,
    (State.IMPLICIT, Move.IMPLY): State.IMPLICIT,
    (State.IMPLICIT, Move.ERROR): State.IDLE,
    (State.IMPLICIT, Move.COMMIT): State.IDLE,
    (State.IMPLICIT, Move.ROLLBACK): State.IDLE,
    (State.IMPLICIT, Move.FINISH): State.IDLE,
    (State.BLOCK, Move.BEGIN): State.BLOCK,
    (State.BLOCK, Move.IMPLY): State.BLOCK,
    (State.BLOCK, Move.ERROR): State.FAILED,
    (State.BLOCK, Move.RECOVER): State.BLOCK,
    (State.BLOCK, Move.COMMIT): State.IDLE,
    (State.BLOCK, Move.ROLLBACK): State.IDLE,
    (State.BLOCK, Move.FINISH): State.BLOCK,
    (State.FAILED, Move.IMPLY): State.FAILED,
    (State.FAILED, Move.ERROR): State.FAILED,
    (State.FAILED, Move.RECOVER): State.BLOCK,
    (State.FAILED, Move.COMMIT): State.IDLE,
    (State.FAILED, Move.ROLLBACK): State.IDLE,
    (State.FAILED, Move.FINISH): State.FAILED,
}


class Transaction:
    """`savepoints`: names, oldest first, with how many writes there were and the settings. `writes`: what it has written so far.
    `exported`: the time that it reads at, by the names under which other sessions may read at it too."""

    def __init__(self) -> None:
        self.state = State.IDLE
        self.savepoints: list[tuple[str, int, Mark]] = []
        self.writes = Pending()
        self.exported: dict[str, int] = {}
        self._exports = count(1)
        self._snapshot: Snapshot | None = None

    @property
    def status(self) -> str:
        """The letter of ReadyForQuery."""
        return self.state.value[0]

    @property
    def in_block(self) -> bool:
        return self.state in (State.BLOCK, State.FAILED)

    def move(self, move: Move) -> None:
        self.state = MOVES[self.state, move]
        if self.state is State.IDLE or (self.state is State.FAILED and not self.savepoints):  # behind one it goes on at its time
            self.release()
        if not self.in_block:
            self.savepoints.clear()
        if self.state is State.IDLE:
            self.writes = Pending()

    def back_to(self, name: str, *, keep: bool) -> Mark:
        """Forgets the savepoints after the newest of this name, and itself too unless it is kept; the settings of then."""
        if all(name != known for known, *_ in self.savepoints):
            raise of("3B001", f'savepoint "{name}" does not exist')
        found, writes, settings = self.savepoints.pop()
        while found != name:
            found, writes, settings = self.savepoints.pop()
        if keep:
            self.savepoints.append((name, writes, settings))
            self.writes.back_to(writes)
        return settings

    def snapshot(self, serving: Serving) -> Snapshot | None:
        """What statements of this transaction read; None outside one: then each reads at the newest time."""
        if self.state is State.IDLE:
            return None
        if self._snapshot is None:
            self._snapshot = serving.snapshot()
        self._snapshot.write(self.writes.changes)
        return self._snapshot

    def export(self, serving: Serving, process: int) -> str:
        """A name for the snapshot, good until the transaction ends."""
        snapshot = self.snapshot(serving)
        name = f"{process:08X}-{next(self._exports):08X}-1"
        if snapshot is not None:
            self.exported[name] = snapshot.time
        return name

    def read_at(self, serving: Serving, time: int) -> None:
        """Takes the snapshot at a time that another session reads at. Newer than that, the mirrors cannot tell it any more, and it is
        read from the lake."""
        self._snapshot = serving.snapshot()
        if self._snapshot.time != time:
            self._snapshot.close()
            self._snapshot = serving.snapshot(time)

    @property
    def time(self) -> int | None:
        """The time of the snapshot, if it is taken."""
        return None if self._snapshot is None else self._snapshot.time

    @property
    def catalog(self) -> Catalog | None:
        """Of the time of the snapshot, if it is taken."""
        return None if self._snapshot is None else self._snapshot.catalog

    def release(self) -> None:
        self.exported.clear()
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None
