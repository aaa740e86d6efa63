"""A session's transaction: a table of its states and transitions, and its snapshot, writes and savepoints.

    I idle ── BEGIN ──► T in a block ── error ──► E failed ── ROLLBACK, COMMIT ──► I
    I ── a Query of several statements, a pipeline up to Sync ──► implicit: reported as I, committed at its end

A block reads all its relations at one time. Its first read takes the snapshot, and its end closes it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import Enum
from itertools import count
from types import MappingProxyType

from tailgate.gateway.mirrors.overlay import UncommittedChanges
from tailgate.gateway.mirrors.snapshots import Snapshot
from tailgate.gateway.resources.advisory_locks import AdvisoryLocks
from tailgate.gateway.serving.service import Serving
from tailgate.gateway.session.temporary_tables import TemporaryTables
from tailgate.gateway.settings.settings import Mark
from tailgate.gateway.writes.pending import Pending
from tailgate.lake.catalog import Catalog, Item, Sequence
from tailgate.lake.catalog.schemas import is_logged
from tailgate.lake.constraints import Key, Reference
from tailgate.lake.errors import ActiveSqlTransaction, InvalidSavepointSpecification, ProgramLimitExceeded
from tailgate.lake.uncommitted import SequencePositions, Uncommitted, positioned
from tailgate.sql.statements import CreateTemporaryFunction

EXPORTS_MAX = 1_000  # names of the snapshot of a transaction
NO_ROWS: Mapping[int, UncommittedChanges] = MappingProxyType({})


class State(Enum):
    """The state of a transaction. The first letter is the status in ReadyForQuery."""

    __hash__ = object.__hash__  # members are singletons, and Enum's __hash__ is slow

    IDLE = "I"
    IMPLICIT = "I-implicit"
    BLOCK = "T"
    FAILED = "E"


class Move(Enum):
    """An event that changes the state of a transaction."""

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
    (State.IMPLICIT, Move.RECOVER): State.IMPLICIT,  # in a block of DO
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


class ConstraintModes:
    """When a block checks its deferrable constraints, each (id of the table, name), by SET CONSTRAINTS; as declared without it."""

    def __init__(self, of: ConstraintModes | None = None) -> None:
        self._all: bool | None = None if of is None else of._all
        self._one: dict[tuple[int, str], bool] = {} if of is None else dict(of._one)

    def set(self, keys: frozenset[tuple[int, str]] | None, *, deferred: bool) -> None:
        """Sets the mode of these constraints, or of all."""
        if keys is None:
            self._all = deferred
            self._one.clear()
        else:
            self._one.update(dict.fromkeys(keys, deferred))

    def is_deferred(self, table: int, constraint: Key | Reference) -> bool:
        """Returns whether the check of a constraint of a table is postponed."""
        general = constraint.deferred if self._all is None else self._all
        return constraint.deferrable and self._one.get((table, constraint.name), general)


@dataclass(frozen=True, slots=True)
class SavedState:
    """The state of a transaction at a savepoint.

    `writes`: the number of writes. `temporary`: the temporary relations, as they were in the catalog `catalog`.
    `locks` and `functions`: as of `Transaction`.
    `advisory_locks`: the position among those of the transaction. `notifications`: as of `Notifications`.
    """

    name: str
    writes: int
    settings: Mark
    constraint_modes: ConstraintModes
    definitions: Uncommitted | None
    temporary: Mapping[int, Item]
    catalog: Catalog
    locks: frozenset[tuple[int, str]]
    functions: Mapping[str, CreateTemporaryFunction]
    advisory_locks: int
    notifications: tuple[int, int]


class Transaction:
    """The transaction of one session.

    `savepoints`: oldest first. `writes`: the pending writes, with the rows of `temporary` tables. `definitions`: the uncommitted changes
    of the catalog, or None. `sequences`: the positions of sequences that the transaction has created or altered, and used.
    `exported`: the exported snapshots by name, for SET TRANSACTION SNAPSHOT in other sessions.
    `locks`: ids of relations and the modes in which LOCK TABLE has locked them. `advisory_locks`: those of the session.
    `functions`: the functions of pg_temp in PL/pgSQL that the transaction has created. `calls`: the number of calls of them that run.
    `queried`: whether a statement has run that takes the snapshot of the transaction in PostgreSQL.
    """

    def __init__(self, temporary: TemporaryTables, advisory_locks: AdvisoryLocks) -> None:
        self.state = State.IDLE
        self.advisory_locks = advisory_locks
        self.queried = False
        self.savepoints: list[SavedState] = []
        self.temporary = temporary
        self.writes = Pending(temporary.rows)
        self.constraint_modes = ConstraintModes()
        self.definitions: Uncommitted | None = None
        self.sequences: SequencePositions = {}
        self.locks: set[tuple[int, str]] = set()
        self.functions: dict[str, CreateTemporaryFunction] = {}
        self.calls = 0
        self.exported: dict[str, Snapshot] = {}
        self._exports = count(1)
        self._snapshot: Snapshot | None = None

    @property
    def status(self) -> str:
        """Returns the letter of ReadyForQuery."""
        return self.state.value[0]

    @property
    def in_block(self) -> bool:
        return self.state in (State.BLOCK, State.FAILED)

    @property
    def pending(self) -> bool:
        """Returns whether statements take effect at the end of the transaction: in a block or an implicit transaction."""
        return self.state is not State.IDLE

    def move(self, move: Move) -> None:
        self.state = MOVES[self.state, move]
        if self.state is State.IDLE or (self.state is State.FAILED and not self.savepoints):  # after ROLLBACK TO, a block keeps its time
            self.release()
        if self.state is State.FAILED:
            self.advisory_locks.back_to(self.savepoints[-1].advisory_locks if self.savepoints else 0)
        if self.state is State.IDLE:
            self.savepoints.clear()
            self.writes, self.definitions, self.sequences = Pending(self.temporary.rows), None, {}
            self.constraint_modes, self.queried = ConstraintModes(), False
            self.locks.clear()
            self.functions.clear()
            self.advisory_locks.back_to(0)

    def query(self) -> None:
        """Records that the transaction, if there is one, has run a query."""
        self.queried = self.state is not State.IDLE

    def check_mode(self, key: str, before: str, value: str) -> None:
        """Raises 25001 if a mode can no longer be changed: most of them only before the first query and outside of subtransactions."""
        in_subtransaction = bool(self.savepoints)
        match key:
            case "transaction_isolation" if value != before and self.queried:
                raise ActiveSqlTransaction("SET TRANSACTION ISOLATION LEVEL must be called before any query")
            case "transaction_isolation" if value != before and in_subtransaction:
                raise ActiveSqlTransaction("SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction")
            case "transaction_read_only" if (before, value) == ("on", "off"):
                if in_subtransaction:
                    raise ActiveSqlTransaction("cannot set transaction read-write mode inside a read-only transaction")
                if self.queried:
                    raise ActiveSqlTransaction("transaction read-write mode must be set before any query")
            case "transaction_deferrable" if in_subtransaction:
                raise ActiveSqlTransaction("SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction")
            case "transaction_deferrable" if self.queried:
                raise ActiveSqlTransaction("SET TRANSACTION [NOT] DEFERRABLE must be called before any query")

    def back_to(self, name: str, *, keep: bool) -> SavedState:
        """Removes the savepoints after the newest one with this name, and that one too unless `keep`.

        Returns the state at the savepoint. With `keep` (ROLLBACK TO), undoes the later writes. Raises 3B001 if none has the name.
        """
        if all(name != savepoint.name for savepoint in self.savepoints):
            raise InvalidSavepointSpecification(f'savepoint "{name}" does not exist')
        saved = self.savepoints.pop()
        while saved.name != name:
            saved = self.savepoints.pop()
        if keep:
            self.savepoints.append(saved)
            self.writes.back_to(saved.writes)
            self.locks = set(saved.locks)
            self.functions = dict(saved.functions)
            self.constraint_modes = ConstraintModes(saved.constraint_modes)
            self.advisory_locks.back_to(saved.advisory_locks)
            if self.definitions is not None:  # ids of objects are not used again
                self.definitions = replace(saved.definitions or Uncommitted(), next_id=self.definitions.next_id)
        return saved

    def snapshot(self, serving: Serving) -> Snapshot | None:
        """Returns the snapshot that statements read, with the pending writes. Takes it on first use.

        Returns None outside a transaction, where each statement reads at the newest time.
        """
        if self.state is State.IDLE:
            return None
        if self._snapshot is None:
            self._snapshot = serving.queries.snapshot()
        self._snapshot.write(self.writes.changes)
        return self._snapshot

    @asynccontextmanager
    async def reading(
        self, serving: Serving, relations: Iterable[int], rows: Mapping[int, UncommittedChanges] = NO_ROWS, *, only: bool = False
    ) -> AsyncIterator[Snapshot | None]:
        """Provides the snapshot that a statement reads: that of the transaction, or a new one for relations that are not in the log.

        `rows`: of relations of the schema tailgate. `only`: whether the statement reads no other relations.
        Provides None for another statement outside a transaction.
        """
        if self.pending:
            snapshot = self.snapshot(serving)
            if snapshot is not None and rows:
                snapshot.write({**self.writes.changes, **rows})
            yield snapshot
        elif not all(map(is_logged, relations)):
            rows, read = {**self.writes.temporary, **rows}, frozenset(relations) if only else None
            with await serving.queries.open_snapshot(rows, relations=read) as snapshot:
                yield snapshot
        else:
            yield None

    def holds(self, sequence: Sequence) -> bool:
        """Returns whether the transaction has created or altered the sequence, so that no other one uses it until COMMIT."""
        return self.definitions is not None and any(item.id == sequence.id for item in self.definitions.change.put)

    def moved_sequence(self, sequence: Sequence) -> Sequence:
        """Returns a sequence of the catalog at the position that the transaction has given it."""
        return positioned(sequence, self.sequences)

    def move_sequence(self, sequence: Sequence, after: Sequence) -> None:
        """Moves a sequence that the transaction holds to the position of `after`. ROLLBACK TO does not undo this, as in PostgreSQL."""
        self.sequences[sequence.id, sequence.series] = after.position, after.called

    def export(self, serving: Serving, process: int) -> str:
        """Returns a name for the snapshot, which is valid until the transaction ends."""
        if len(self.exported) >= EXPORTS_MAX:
            raise ProgramLimitExceeded(f"a transaction can export its snapshot at most {EXPORTS_MAX} times")
        snapshot = self.snapshot(serving)
        name = f"{process:08X}-{next(self._exports):08X}-1"
        if snapshot is not None:
            self.exported[name] = snapshot
        return name

    def read_at(self, serving: Serving, time: int, catalog: Catalog | None = None) -> None:
        """Takes the snapshot at the given time. Reads it from the lake if the mirrors are already at a later time.

        `catalog`: that of the snapshot; the present one by default.
        """
        self._snapshot = serving.queries.snapshot()
        if self._snapshot.time != time:
            self._snapshot.close()
            self._snapshot = serving.queries.snapshot(time, catalog)

    @property
    def time(self) -> int | None:
        """Returns the time of the snapshot, or None if it has not been taken."""
        return None if self._snapshot is None else self._snapshot.time

    @property
    def catalog(self) -> Catalog | None:
        """Returns the catalog of the snapshot, or None if it has not been taken."""
        return None if self._snapshot is None else self._snapshot.catalog

    def forget_writes(self) -> None:
        """Removes the writes of a statement outside of a transaction, which are carried out."""
        self.writes = Pending(self.temporary.rows)

    def release(self) -> None:
        self.exported.clear()
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None
