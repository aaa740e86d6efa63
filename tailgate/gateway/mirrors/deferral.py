"""Changes that the tables of mirrors get later, because no statement of DuckDB reads the tables now.

    changes of a tick ── a statement reads the table, or has read it lately ──► applied in the tick's transaction
                      └─ others ──► deferred ──► applied before the next statement reads the table, or when there are many

Polls and look-ups that are answered from memory, and followers, do not read the tables. An update of 12 rows takes 1 ms of CPU, and one
of the changes of many ticks takes little more.

    reader: count me; does a table lack changes? ── yes ──► with the lock of the mirrors: apply them
    tick, with that lock: does nobody read the table? ── yes ──► its changes are deferred

Both questions are asked under one lock, so a statement reads all its tables, and the clock, at one entry.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa

CLOCK = 0  # stands for the clock among the relations; no item of the catalog has this id
EAGER_S = 5.0  # after a statement has read a table, in which the changes of each tick are applied at once
ENTRIES_MAX = 64  # of which a table lacks the changes
ROWS_MAX = 1_000  # changes that a table lacks: to apply them takes some milliseconds


class Deferral:
    """The changes that tables lack, and the statements that read tables. Safe from many threads.

    The holder of the mirrors' lock calls `due`, `applied` and `forget`. `relations`: None for all of them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: Counter[int | None] = Counter()
        self._read_at: dict[int | None, float] = {}  # the end of the last statement that has read a relation, or all
        self._lacking: dict[int, list[pa.Table]] = {}  # by relation: changes of successive entries, none for the clock

    @property
    def are_behind(self) -> bool:
        """Returns whether some tables lack changes. The clock is set quickly."""
        return any(relation != CLOCK for relation in list(self._lacking))

    def begin(self, relations: Collection[int] | None) -> bool:
        """Counts a statement that reads relations, until `end`. Returns whether some of their tables, or the clock, lack changes."""
        with self._lock:
            for relation in _with_clock(relations):
                self._readers[relation] += 1
            return bool(self._lacking) if relations is None else not self._lacking.keys().isdisjoint(_with_clock(relations))

    def end(self, relations: Collection[int] | None) -> None:
        """Ends what `begin` has begun."""
        now = time.monotonic()
        with self._lock:
            for relation in _with_clock(relations):
                self._read_at[relation] = now
                self._readers[relation] -= 1
                if not self._readers[relation]:
                    del self._readers[relation]

    def due(self, waiting: Mapping[int, list[pa.Table]], always: Collection[int]) -> dict[int, list[pa.Table]]:
        """Returns the changes that are applied now, by relation, with those that were deferred before. Defers the others.

        `waiting`: the changes of new entries. `always`: relations whose changes are never deferred. The result has CLOCK if the clock
        must be set now.
        """
        with self._lock:
            now = time.monotonic()
            due: dict[int, list[pa.Table]] = {}
            for relation, parts in waiting.items():
                if relation in always or self._is_read(relation, now):
                    due[relation] = [*self._lacking.get(relation, ()), *parts]
                else:
                    self._lacking.setdefault(relation, []).extend(parts)
            if due or self._readers[CLOCK] or self._readers[None]:
                due[CLOCK] = []
            else:
                self._lacking.setdefault(CLOCK, [])
            return due

    def _is_read(self, relation: int, now: float) -> bool:
        return any(self._readers[each] or now - self._read_at.get(each, -EAGER_S) < EAGER_S for each in (relation, None))

    def lacking(self, relations: Collection[int] | None = None) -> dict[int, list[pa.Table]]:
        """Returns the deferred changes of relations."""
        with self._lock:
            return {id: parts for id, parts in self._lacking.items() if relations is None or id in relations}

    def many(self) -> list[int]:
        """Returns the relations with many deferred changes."""
        with self._lock:
            each = self._lacking.items()
            return [id for id, parts in each if len(parts) >= ENTRIES_MAX or sum(part.num_rows for part in parts) >= ROWS_MAX]

    def applied(self, relations: Iterable[int]) -> None:
        """Forgets deferred changes that are in the tables now."""
        with self._lock:
            for relation in relations:
                self._lacking.pop(relation, None)

    def forget(self, relations: Iterable[int]) -> None:
        """Forgets relations whose mirrors are dropped."""
        with self._lock:
            for relation in relations:
                self._lacking.pop(relation, None)
                self._read_at.pop(relation, None)


def _with_clock(relations: Collection[int] | None) -> Collection[int | None]:
    return (None,) if relations is None else (*relations, CLOCK)
