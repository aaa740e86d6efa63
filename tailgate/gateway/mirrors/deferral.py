"""Changes that the tables of mirrors get later, because no statement of DuckDB reads the tables now.

    changes of a tick ── a statement reads the table, or has read it lately ──► applied in the tick's transaction
                      └─ others ──► deferred ──► applied before the next statement reads the table, or with the tick that makes them many

Polls and look-ups that are answered from memory, and followers, do not read the tables. An update of 12 rows takes 1 ms of CPU, and one
of the changes of many ticks takes little more.

    reader: count me; does a table lack changes? ── yes ──► with the lock of the mirrors: apply them
    tick, with that lock: does nobody read the table? ── yes ──► its changes are deferred

One lock protects both answers, so a statement reads all its tables, and the clock, at one entry.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

CLOCK = 0  # stands for the clock among the relations; no item of the catalog has this id
EAGER_S = 5.0  # after a statement has read a table, in which the changes of each tick are applied at once
ENTRIES_MAX = 64  # of which a table lacks the changes
ROWS_MAX = 1_000  # changes that a table lacks: to apply them takes some milliseconds, maybe in the event loop
BYTES_MAX = 256 << 10  # of these changes, which are in memory in addition to the table
READ_MAX = 10_000  # relations whose last reader is known, before those that were read before EAGER_S are forgotten


@dataclass(frozen=True, slots=True)
class Lacking:
    """The changes of successive entries that a table lacks; none for the clock."""

    parts: Sequence[pa.Table] = ()
    rows: int = 0
    bytes: int = 0

    def plus(self, parts: Sequence[pa.Table]) -> Lacking:
        """Returns these changes and those of later entries."""
        rows, size = sum(part.num_rows for part in parts), sum(part.nbytes for part in parts)
        return Lacking((*self.parts, *parts), self.rows + rows, self.bytes + size)

    @property
    def are_many(self) -> bool:
        return len(self.parts) >= ENTRIES_MAX or self.rows >= ROWS_MAX or self.bytes >= BYTES_MAX


class Deferral:
    """The changes that tables lack, and the statements that read tables. Safe from many threads.

    The holder of the mirrors' lock calls `due`, `applied` and `forget`. `relations`: None for all of them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: Counter[int | None] = Counter()
        self._read_at: dict[int | None, float] = {}  # the end of the last statement that has read a relation, or all
        self._lacking: dict[int, Lacking] = {}  # by relation

    def are_behind(self, relations: Collection[int] | None = None) -> bool:
        """Returns whether some tables of relations, or the clock, lack changes."""
        with self._lock:
            return self._are_behind(relations)

    def _are_behind(self, relations: Collection[int] | None) -> bool:
        return bool(self._lacking) if relations is None else not self._lacking.keys().isdisjoint(_with_clock(relations))

    def begin(self, relations: Collection[int] | None) -> bool:
        """Counts a statement that reads relations, until `end`. Returns whether some of their tables, or the clock, lack changes."""
        with self._lock:
            for relation in _with_clock(relations):
                self._readers[relation] += 1
            return self._are_behind(relations)

    def end(self, relations: Collection[int] | None) -> None:
        """Ends what `begin` has begun."""
        now = time.monotonic()
        with self._lock:
            for relation in _with_clock(relations):
                self._read_at[relation] = now
                self._readers[relation] -= 1
                if not self._readers[relation]:
                    del self._readers[relation]
            if len(self._read_at) > READ_MAX:  # a statement may end after the mirror that it has read was dropped
                self._read_at = {relation: at for relation, at in self._read_at.items() if now - at < EAGER_S}

    def due(self, waiting: Mapping[int, Sequence[pa.Table]], always: Collection[int]) -> dict[int, Sequence[pa.Table]]:
        """Returns the changes that are applied now, by relation, with those that were deferred before. Defers the others.

        `waiting`: the changes of new entries. `always`: relations whose changes are never deferred. The result has CLOCK if the clock
        must be set now.
        """
        with self._lock:
            now = time.monotonic()
            due: dict[int, Sequence[pa.Table]] = {}
            for relation, parts in waiting.items():
                lacking = self._lacking.get(relation, Lacking())
                if relation in always or self._is_read(relation, now) or (more := lacking.plus(parts)).are_many:
                    due[relation] = (*lacking.parts, *parts)
                else:
                    self._lacking[relation] = more
            if due or self._is_read(CLOCK, now):
                due[CLOCK] = ()
            else:
                self._lacking[CLOCK] = Lacking()
            return due

    def _is_read(self, relation: int, now: float) -> bool:
        return any(self._readers[each] or now - self._read_at.get(each, -EAGER_S) < EAGER_S for each in (relation, None))

    def lacking(self, relations: Collection[int] | None = None) -> dict[int, Sequence[pa.Table]]:
        """Returns the deferred changes of relations."""
        with self._lock:
            return {id: lacking.parts for id, lacking in self._lacking.items() if relations is None or id in relations}

    def applied(self, relations: Iterable[int]) -> None:
        """Forgets deferred changes that are in the tables now."""
        with self._lock:
            for relation in relations:
                self._lacking.pop(relation, None)

    def forget(self, relations: Iterable[int]) -> None:
        """Forgets relations whose mirrors have been dropped. Until then, a statement that reads one waits, as for other changes."""
        with self._lock:
            for relation in relations:
                self._lacking.pop(relation, None)
                self._read_at.pop(relation, None)


def _with_clock(relations: Collection[int] | None) -> Collection[int | None]:
    return (None,) if relations is None else (*relations, CLOCK)
