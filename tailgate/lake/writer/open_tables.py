"""The Delta tables that an engine writes. They stay open, because opening one reads all its commits since Delta's checkpoint.

Only this engine commits to them. If an earlier engine that was paused commits, too, the next commit of this engine fails: it must
follow the version that is open (`delta.commit`). Then all tables are closed, and opened again.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from deltalake import DeltaTable

from tailgate.lake.folder import Lake
from tailgate.lake.store import Store
from tailgate.lake.tables import delta, large
from tailgate.lake.tables.large import LargeTable
from tailgate.lake.tables.stored_relations import Stored, table_name


@dataclass(slots=True)
class _Open:
    """An open table, its version when it was opened, and the epoch of its newest commit then.

    `large`: as a large table, once this was needed.
    """

    table: DeltaTable
    version: int
    epoch: int
    large: LargeTable | None = None


class OpenTables:
    """The open tables of the engine of an epoch, by the names of their folders."""

    def __init__(self, store: Store, epoch: int) -> None:
        self._store = store
        self._epoch = epoch
        self._open: dict[str, _Open] = {}
        self._options: Mapping[str, str] = {}  # of the store, with which the tables were opened

    def get(self, name: str) -> DeltaTable:
        """Returns a table, which is opened if it is not open. Raises `Replaced` if a later engine has committed to it."""
        if name not in self._open:
            self.put(name, delta.table(self._store, name))
        return self._open[name].table

    def put(self, name: str, table: DeltaTable) -> None:
        """Adds a table that has just been opened or created. Raises `Replaced` as `get` does."""
        if not self._open:
            self._options = self._store.options
        self._open[name] = _Open(table, table.version(), delta.check_epoch(table, self._epoch))

    def large(self, stored: Stored) -> LargeTable:
        """Returns an open table as a large one."""
        opened = self._open[table_name(stored.id)]
        if opened.large is None:
            opened.large = LargeTable(self._store, stored, opened.table, self._epoch, self._index_room)
        return opened.large

    def open_large(self, name: str) -> LargeTable | None:
        """Returns an open table if `large` has returned it."""
        return self._open[name].large

    def _index_room(self) -> int:
        """Returns how many bytes the indexes of large tables may still grow. Two threads of a round may exceed it by one file."""
        return large.INDEX_BYTES - sum(opened.large.index_bytes for opened in self._open.values() if opened.large is not None)

    def is_written(self, name: str) -> bool:
        """Returns whether this engine has committed to an open table."""
        opened = self._open[name]
        return opened.epoch == self._epoch or opened.table.version() > opened.version

    def is_open(self, name: str, table: DeltaTable | None) -> bool:
        """Returns whether this table is open, with the current credentials of the store."""
        return name in self._open and self._open[name].table is table and self._options == self._store.options

    def keep(self, names: Container[str]) -> None:
        """Closes all other tables."""
        self._open = {name: opened for name, opened in self._open.items() if name in names}

    def close_one(self, name: str) -> None:
        """Closes a table, if it is open."""
        self._open.pop(name, None)

    def close(self) -> None:
        """Closes all tables. The next round opens them again."""
        self._open = {}


def of(lake: Lake, epoch: int) -> OpenTables:
    """Returns the open tables of an engine. The same object each time."""
    cached: tuple[int, OpenTables] | None = lake.cache.get(__name__)
    if cached is None or cached[0] != epoch:
        cached = lake.cache[__name__] = (epoch, OpenTables(lake.store, epoch))
    return cached[1]
