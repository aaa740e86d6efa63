"""Rounds: they bring the Delta tables to the newest entry of the log.

    newest entry n ──► net changes of each relation since its last transaction ──► one commit per table, two at a time
                   ──► sync of the objects of these commits
                   ──► tables/checkpoints: n and every table's version, synced too

A round may be interrupted anywhere. A table's transaction records up to which entry it holds its
relation, so the next round continues from there; the position of a table without changes is in the
newest checkpoint. During a backfill a relation keeps an empty table, because its weights may be
negative. A table whose changes are inconsistent stays where it is, and the others continue.

A listed version is durable; a power loss may remove later ones. The file `boot` identifies the boot
of the machine in which the tables were written. The first round after another boot rolls every table
back to its listed version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from tailgate.lake.errors import Replaced
from tailgate.lake.folder import Lake
from tailgate.lake.host import crash
from tailgate.lake.log.entry import Entry, Header
from tailgate.lake.readers import reading
from tailgate.lake.readers.reading import read_table, since_wanted
from tailgate.lake.tables import checkpoints, delta, merging, rollback, table_sizes
from tailgate.lake.tables.checkpoints import Checkpoint
from tailgate.lake.tables.large import LargeTable, is_large
from tailgate.lake.tables.stored_relations import Stored, begun, relations, table_name
from tailgate.lake.tables.table_sizes import EMPTY, TableSize
from tailgate.lake.tables.weights import formed, total
from tailgate.lake.writer import open_tables

LARGE_ROWS = 100_000  # changes after which a round returns freed memory to the system: Arrow keeps some hundred bytes for each
THREADS = 2  # delta-rs releases Python's lock, and a commit mostly waits for the disk
BOOT = "boot"  # the file's name
# A checkpoint is written after so much time and so many entries without changes of relations, so that entries can be removed, and a
# reader that starts at the checkpoint reads few of them. An idle engine appends an entry every 10 s.
UNCHANGED_MS, UNCHANGED_ENTRIES = 60_000, 60
# The permitted `since` is computed again after this part of the history that is kept, by the age of entries, so every ten seconds for an
# hour. This lists entries, segments and readers.
SINCE_PART = 360


@dataclass(slots=True)
class Table:
    """A table as this process knows it: its newest recorded version, and the entry up to which that version holds the relation.

    - `seen`: the last version that was read, which is later if maintenance has changed the table since.
    - `synced`: versions up to this one are durable.
    - `opened`: whether `rows` is known.
    - `rows`: the rows of a small table, None for a larger one.
    - `size`: its size after the last round that changed it; None until it is measured.
    """

    delta: DeltaTable
    version: int
    position: int
    seen: int
    synced: int
    opened: bool = False
    rows: pa.Table | None = None
    size: TableSize | None = None


@dataclass
class Follower:
    """The writer of the tables in one epoch of the engine. One thread at a time calls `round`.

    `inconsistent`: after a round, by relation with impossible changes, the last entry that its table
    holds, and the reason. `sizes`: the sizes of relations after a round, which another thread may read.
    """

    lake: Lake
    epoch: int
    inconsistent: dict[int, tuple[int, str]] = field(default_factory=dict)
    sizes: Mapping[int, TableSize] = field(default_factory=dict)
    _tables: dict[int, Table] = field(default_factory=dict)
    _checkpoints: list[Checkpoint] = field(default_factory=list)
    _list: DeltaTable | None = None
    _n: int = 0
    _since: tuple[int, int] | None = None  # the permitted `since`, and the age of the newest entry when it was computed

    def __post_init__(self) -> None:
        self._open_tables = open_tables.of(self.lake, self.epoch)

    def round(self) -> int:
        """Brings all tables to the newest entry and returns its number. Raises `Replaced` if another engine writes the log."""
        newest = self.lake.log.newest()
        if newest is None or newest.n == self._n:
            return self._n
        self._check(self.lake.log.stored())
        try:
            try:
                return self._round(newest)
            except (Superseded, CommitFailedError):
                self._open_tables.close()
                self._check(self.lake.log.stored())
                return self._round(newest)
        except BaseException:
            self._open_tables.close()  # the next round reads the state of the tables again
            self._check(self.lake.log.stored())
            raise

    def _check(self, newest: Header | None) -> None:
        if newest is not None and newest.epoch != self.epoch:
            raise Replaced("another engine writes the log of this lake")

    def _round(self, newest: Header) -> int:
        """Runs one round up to the entry `newest`."""
        if not self._open_tables.is_open(checkpoints.TABLE, self._list):
            self._n = 0
            self._open_tables.close()
            recover(self.lake)
            self._tables = {}
            self._list = checkpoints.create(self.lake)
            self._open_tables.put(checkpoints.TABLE, self._list)
            checkpoints.sync(self.lake)
            self._checkpoints = checkpoints.decoded(self._list)
        last = self._checkpoints[-1] if self._checkpoints else None
        stored_relations = relations(self.lake.catalog_at(newest.n))
        for stored in stored_relations.values():
            if stored.id not in self._tables:
                self._tables[stored.id] = self._open(stored, newest.n, last)
        self._tables = {id: table for id, table in self._tables.items() if id in stored_relations}
        self._open_tables.keep({checkpoints.TABLE, *map(table_name, stored_relations)})
        previous = self._n or (last.n if last else 0)
        begin = min([previous, *(t.position for id, t in self._tables.items() if stored_relations[id].ready)])
        entries = {entry.header.n: entry for entry in self.lake.log.after(begin, newest.n)}
        headers = [entry.header for entry in entries.values()]
        for header in headers:
            for id in begun(header.catalog) if header.n > previous else ():
                if id in stored_relations:
                    self._begin(stored_relations[id], header.n)
        behind = {id: t.position for id, t in self._tables.items() if stored_relations[id].ready and t.position < newest.n}
        changed = sections(headers, behind)
        with ThreadPoolExecutor(THREADS, thread_name_prefix="table") as pool:
            reasons = list(pool.map(lambda id: self._brought(stored_relations[id], [entries[n] for n in changed[id]], newest.n), changed))
        if sum(section.rows for header in headers for section in header.relations if section.relation in changed) > LARGE_ROWS:
            pa.default_memory_pool().release_unused()
        self.inconsistent = {id: (self._tables[id].position, why) for id, why in zip(changed, reasons, strict=True) if why is not None}
        for id in behind:
            if id not in self.inconsistent:
                self._tables[id].position = newest.n
        if changed or last is None or is_due(last.age, last.n, newest) or set(last.versions) != set(stored_relations):
            self._sync(stored_relations)
            crash.point("round.checkpoint")
            self._note(newest, stored_relations)
        self.sizes = {stored.id: self._size(stored) for stored in stored_relations.values()}
        self._n = newest.n
        return newest.n

    def _open(self, stored: Stored, n: int, last: Checkpoint | None) -> Table:
        """Returns a table in the state that an earlier round left, or creates an empty one."""
        name = table_name(stored.id)
        begin = last.n if last else 0  # a relation that the newest checkpoint does not list was created after it
        if not delta.is_table(self.lake.store, name):
            new_table = merging.create(self.lake.store, stored, delta.commit(self.epoch, str(stored.id), begin))
            self._open_tables.put(name, new_table)
            return Table(new_table, 0, begin, 0, -1, size=EMPTY)
        table = self._open_tables.get(name)
        position = table.transaction_version(str(stored.id)) or 0
        listed = -1 if last is None else last.versions.get(stored.id, -1)
        if last is not None and last.positions.get(stored.id, -1) >= position:
            return Table(table, listed, last.positions[stored.id], table.version(), listed)
        return Table(table, table.version(), position, table.version(), listed)

    def _begin(self, stored: Stored, n: int) -> None:
        """Removes rows from before entry n, which made the relation empty. Changes in the entry itself are applied later."""
        table = self._tables[stored.id]
        if table.position < n:
            self._refresh(table, stored)
            if table.delta.file_uris():
                if delta.has_vectors(table.delta):
                    self._large(table, stored).clear(delta.transactions(self.epoch, str(stored.id), n - 1))
                else:
                    merging.clear(table.delta, delta.commit(self.epoch, str(stored.id), n - 1))
                table.version = table.seen = table.delta.version()
                crash.point("round.cleared")
            table.position, table.opened, table.size = n - 1, False, EMPTY

    def _brought(self, stored: Stored, entries: list[Entry], n: int) -> str | None:
        """Brings a table to entry n. Returns the reason if its changes are inconsistent; then the table is unchanged."""
        try:
            self._bring(stored, entries, n)
        except merging.Inconsistent as error:
            return str(error)
        return None

    def _bring(self, stored: Stored, entries: list[Entry], n: int) -> None:
        table = self._tables[stored.id]
        parts = (entry.changes(stored.id) for entry in entries)
        changes = total((part for part in parts if part is not None), stored.changes)
        if changes.num_rows:
            self._refresh(table, stored)
            merging.widen(table.delta, stored, delta.commit(self.epoch))
            if table.rows is not None:
                table.rows = formed(table.rows, stored.changes)
            if not table.opened:
                is_few = not delta.has_vectors(table.delta) and merging.few(table.delta)
                table.rows = read_table(self.lake, stored, table.seen) if is_few else None
                table.opened = True
            if table.rows is None and stored.key and is_large(table.delta):
                self._large(table, stored).apply(stored, changes, delta.transactions(self.epoch, str(stored.id), n))
            else:
                table.rows = merging.apply(table.delta, stored, changes, delta.commit(self.epoch, str(stored.id), n), table.rows)
            table.version = table.seen = table.delta.version()
            table.size = None if table.size is None else table.size.after(changes, table.delta)
            crash.point("round.table")

    def _size(self, stored: Stored) -> TableSize:
        """Returns the size of a relation."""
        table = self._tables[stored.id]
        if table.size is None:
            table.size = table_sizes.measured(self.lake.store, table_name(stored.id), table.delta, is_keyed=stored.key is not None)
        return table.size

    def _large(self, table: Table, stored: Stored) -> LargeTable:
        """Returns a large table that commits through the open table."""
        if not self._open_tables.is_open(table_name(stored.id), table.delta):  # closed by maintenance that failed
            raise Superseded
        return self._open_tables.large(stored)

    def _refresh(self, table: Table, stored: Stored) -> None:
        """Notices the commits that maintenance has made to a table.

        If another engine has committed to it, our next commit fails, because it must follow the version that is open.
        """
        if table.delta.version() != table.seen:
            delta.check_epoch(table.delta, self.epoch)
            table.seen = table.delta.version()
            if (table.delta.transaction_version(str(stored.id)) or 0) > table.position:
                raise Superseded

    def _sync(self, stored_relations: dict[int, Stored]) -> None:
        """Makes the versions durable that the next checkpoint lists."""
        behind = [(id, table) for id, table in self._tables.items() if id in stored_relations and table.version > table.synced]
        store = self.lake.store
        store.sync(file for id, table in behind for file in delta.written_by(store, table_name(id), table.synced, table.version))
        for _, table in behind:
            table.synced = table.version

    def _note(self, newest: Header, stored_relations: dict[int, Stored]) -> None:
        """Writes a checkpoint for the entry `newest` to the list."""
        assert self._list is not None
        tables = {id: self._tables[id] for id in stored_relations}
        checkpoint = Checkpoint(
            newest.n,
            newest.time,
            newest.age,
            {id: t.version for id, t in tables.items()},
            {id: t.position for id, t in tables.items()},
            {id: s.name for id, s in stored_relations.items()},
        )
        remaining = checkpoints.thinned([*self._checkpoints, checkpoint], newest.age, self._since_wanted(newest))
        checkpoints.write(self.lake, self._list, remaining, self.epoch)
        self._checkpoints = remaining

    def _since_wanted(self, newest: Header) -> int:
        """Returns a permitted `since`, which may have been computed some rounds ago: it stays permitted."""
        if self._since is None or newest.age - self._since[1] >= reading.RETAIN_HISTORY_MS // SINCE_PART:
            self._since = since_wanted(self.lake), newest.age
        return self._since[0]


def is_due(age: int, n: int, newest: Header) -> bool:
    """Returns whether a checkpoint is due, although no relation has changed since the one at entry `n` of this age."""
    return newest.age - age >= UNCHANGED_MS and newest.n - n >= UNCHANGED_ENTRIES


class Superseded(Exception):
    """A table has changed or was closed since this follower opened it. The round starts again with the current tables."""


def recover(lake: Lake) -> None:
    """Rolls the tables back to their durable versions if objects may have been lost since they were written."""
    store, boot = lake.store, lake.store.boot
    if store.exists(BOOT) and bytes(store.get(BOOT)) == boot != b"":
        return
    rollback.roll_back(store)
    lake.cache.pop(checkpoints.NAME, None)
    store.put(BOOT, boot)


def sections(headers: Iterable[Header], behind: Mapping[int, int]) -> dict[int, list[int]]:
    """Returns, for each relation that is behind, the entries after its position that change it."""
    entries: dict[int, list[int]] = {}
    for header in headers:
        for section in header.relations:
            if behind.get(section.relation, header.n) < header.n:
                entries.setdefault(section.relation, []).append(header.n)
    return entries
