"""Uncommitted writes of a transaction: the effects of its statements, in order, and their sum.

The rows of the session's temporary tables are part of the sum, because only the session has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.mirrors.overlay import UncommittedChanges, generation
from tailgate.gateway.writes.effects import Effect
from tailgate.gateway.writes.plans import WritePlan
from tailgate.lake.catalog import Catalog, Table
from tailgate.lake.catalog.schemas import is_logged, is_temporary
from tailgate.lake.control import Part, Write
from tailgate.lake.log.entry import stream
from tailgate.lake.tables.weights import formed, net
from tailgate.lake.types import WEIGHT
from tailgate.sql.authorization import Authorized


class Pending:
    """Uncommitted writes.

    `changes` has the net of all effects by table, and the rows of temporary tables; `acknowledged` maps subscriptions to times.
    """

    def __init__(self, temporary: Mapping[int, UncommittedChanges] = MappingProxyType({})) -> None:
        """`temporary`: the rows of temporary tables before the transaction."""
        self._effects: list[Effect] = []
        self._read: list[frozenset[int]] = []
        self._before = temporary
        self.changes: dict[int, UncommittedChanges] = dict(temporary)
        self.postponed: set[tuple[int, str]] = set()  # checks of foreign keys for COMMIT: (id of the table, name of the constraint)
        self.waiting: list[tuple[Authorized[WritePlan], pa.Table]] = []  # collected INSERTs of one table, not yet evaluated
        self.acknowledged: dict[int, int] = {}
        self.base: int | None = None  # the oldest inbox entry that an effect was evaluated at

    def __len__(self) -> int:
        return len(self._effects)

    def __bool__(self) -> bool:
        return bool(self._effects or self.waiting or self.acknowledged)

    @property
    def durable(self) -> dict[int, UncommittedChanges]:
        """Returns the changes without those of temporary tables: COMMIT sends them to the engine."""
        return {id: changes for id, changes in self.changes.items() if not is_temporary(id)}

    @property
    def temporary(self) -> dict[int, UncommittedChanges]:
        """Returns the rows of temporary tables."""
        return {id: changes for id, changes in self.changes.items() if is_temporary(id)}

    def add(self, effect: Effect, base: int) -> None:
        self._effects.append(effect)
        self.postponed |= effect.postponed
        self.base = base if self.base is None else min(self.base, base)
        self._sum(effect)

    def read(self, relations: Iterable[int]) -> None:
        """Records relations that the transaction read; COMMIT fails if they have changed."""
        self._read.append(frozenset(relations))

    def back_to(self, count: int) -> None:
        """Drops the effects after the first `count`, for ROLLBACK TO; their reads remain recorded."""
        self._read += [e.reads for e in self._effects[count:]]
        del self._effects[count:]
        self.waiting.clear()
        self.changes = dict(self._before)
        for effect in self._effects:
            self._sum(effect)

    def _sum(self, effect: Effect) -> None:
        """Adds an effect to the net changes."""
        for id, changes in effect.changes.items():
            table = effect.rules[id].table
            earlier = self.changes.get(table.id)
            if earlier is not None and not earlier.changes.schema.equals(changes.schema):  # the transaction has altered the table
                earlier = UncommittedChanges(table, formed(earlier.changes, changes.schema), generation())
                self.changes[table.id] = earlier
            if changes.num_rows == 0:
                continue
            if earlier is None:
                self.changes[table.id] = UncommittedChanges(table, changes, generation())
                continue
            both = pa.concat_tables([earlier.changes, changes])
            if table.key is not None and pc.min(both[WEIGHT]).as_py() > 0:  # only inserts, so all keys differ
                self.changes[table.id] = UncommittedChanges(table, both, earlier.generation)
            else:
                self.changes[table.id] = UncommittedChanges(table, net(both), generation())

    def reads(self, catalog: Catalog) -> set[int]:
        """Returns the tables that the transaction read as a whole, directly or through views, and dropped relations that it read."""
        tables: set[int] = set()
        for relation in set().union(*self._read, *(e.reads for e in self._effects)):
            if not is_logged(relation):
                continue
            tables |= tables_below(relation, catalog) if relation in catalog.items else {relation}
        return tables

    def body(self, catalog: Catalog, reserve: str) -> bytes:
        """Returns the request body for the engine."""
        return self.write(catalog, reserve).encode()

    def write(self, catalog: Catalog, reserve: str) -> Write:
        """Returns the request for the engine, without the tables that the transaction has dropped."""
        parts: list[Part] = []
        touched = {t for e in self._effects for t in e.keys} | set(self.changes)
        versions = {t: rules.version for e in reversed(self._effects) for t, rules in e.rules.items()}
        for table in sorted(t for t in touched if t in catalog.items):
            rows = stream(self.changes[table].changes) if table in self.changes else b""
            hashes = [e.keys[table] for e in self._effects if table in e.keys]
            keys = np.unique(np.concatenate(hashes)) if hashes else np.empty(0, np.uint64)
            parts.append(Part(table, rows, keys.data, versions.get(table, "")))
        assert self.base is not None
        return Write(self.base, tuple(sorted(self.reads(catalog))), tuple(parts), reserve)


def tables_below(relation: int, catalog: Catalog) -> set[int]:
    """Returns the tables below a relation, or the relation itself if it is a table.

    Sources are not included: changes of Kafka sources do not conflict.
    """
    item = catalog.items.get(relation)
    if item is None:
        return set()
    if isinstance(item, Table):
        return {relation}
    return set().union(*(tables_below(d, catalog) for d in item.depends)) if item.depends else set()
