"""Writes of tables, from gateways to the inbox. Optimistic concurrency control: a write commits if nothing that it read has changed.

    gateway: reads at inbox number b ──► changes, keys and tables that it read ──► POST /write
    here, one at a time: has anything it read been written after b?
        yes ──► {"conflict": c}: the gateway evaluates it again when its mirrors have c
        no  ──► accepted ──► an entry of the inbox, durable ──► confirmed ──► {"number": n}: committed with the tick that reads n

Writes that are accepted while an entry is made durable share the next one, so a durable entry, which
takes milliseconds, is not made for each of them (group commit). The thread of one of them writes it.
A write that has read what an accepted one changes waits until that one is durable.

A write reads keys of a table, as hashes, or whole tables. Two keys with equal hashes cost one more
evaluation, nothing else. The result is the same as if every write had been evaluated here, in the
order of the inbox, so the tick checks nothing.

Only recent writes are remembered; an older write counts as a conflict. The keys of the records of an
entry are the hashes that the write read and writes, so a starting engine remembers the entries that
no tick has read. A write that reads whole tables and had a conflict may *reserve* them: for a moment,
other writes of those tables wait for it, so it succeeds despite many concurrent writes.

Source: the resolvers of FoundationDB (Zhou et al., SIGMOD 2021, section 2.4.2); ADR 0004.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake.catalog import Catalog, Table
from tailgate.lake.constraints import version
from tailgate.lake.control import NEW_TABLE, Part, Write
from tailgate.lake.errors import ProgramLimitExceeded, SerializationFailure, UndefinedTable
from tailgate.lake.host import crash
from tailgate.lake.tables.weights import formed, total
from tailgate.lake.types import WEIGHT, arrow_schema
from tailgate.lake.writer.inbox import TABLE, WRITE_ID, Inbox, Record, Stored

KEYS_MAX = 500_000  # hashes of keys that are remembered: 60 MB
RESERVED_S = 2.0  # how long other writes wait for one that had a conflict; it is repeated within a tick
TRANSACTION_BYTES_MAX = 1 << 30  # of one write; larger ones are refused with 54000
NO_ROWS: Mapping[int, pa.Table] = {}
GROUP_BYTES_MAX = 16 << 20  # of the writes that share an entry; a larger write has its own


@dataclass(slots=True, eq=False)
class _Accepted:
    """A write without a conflict. `parts`: its changes. `ended`: it is durable in entry `number`, or has failed with `error`."""

    id: str
    parts: Sequence[Part]
    ended: bool = False
    number: int = 0
    error: BaseException | None = None
    _keys: dict[int, frozenset[int]] = field(default_factory=dict)  # of its parts, once they are needed

    @property
    def size(self) -> int:
        return sum(len(part.changes) + part.keys.nbytes for part in self.parts)

    def records(self) -> list[Record]:
        """Returns the records of the inbox's entry."""
        parts = [Record(f"{TABLE}{part.table}", part.keys.tobytes(), part.changes) for part in self.parts]
        if self.id and parts:
            parts[0] = replace(parts[0], headers=((WRITE_ID, self.id.encode()),))
        return parts

    def changes_what(self, write: Write) -> bool:
        """Returns whether it changes a key or table that the other write has read."""
        if any(part.table in write.reads for part in self.parts):
            return True
        return any(self._meets(part, other) for part in self.parts for other in write.parts)

    def _meets(self, part: Part, other: Part) -> bool:
        if part.table != other.table or not part.keys or not other.keys:
            return False
        keys = self._keys.get(part.table)
        if keys is None:
            keys = self._keys[part.table] = frozenset(part.keys)
        return not keys.isdisjoint(other.keys)


class Writes:
    """Accepts writes in one order.

    `enter` puts records into the inbox, calls its second argument with the number of the durable
    entry, and starts a tick. It may fail after the call: the entry counts for later writes nevertheless.
    `find` returns the entry with a write that an earlier engine accepted (`repeated_writes`), or 0. `confirm` returns when no later
    engine can miss a durable entry; by default, it looks at the log.
    """

    def __init__(
        self,
        inbox: Inbox,
        catalog: Callable[[], Catalog],
        enter: Callable[[list[Record], Callable[[int], None]], int],
        on_durable: Callable[[int, Collection[int]], None] = lambda number, tables: None,
        find: Callable[[str, int], int] = lambda id, base: 0,
        confirm: Callable[[int], None] | None = None,
    ) -> None:
        self._catalog, self._enter, self._on_durable, self._find = catalog, enter, on_durable, find
        self._confirm = confirm or (lambda number: inbox.check())
        self._lock = threading.Condition()
        self._tables: dict[int, int] = {}  # table → the last entry that wrote it
        self._keys: dict[int, dict[int, int]] = {}  # table → hash of a key → the last entry that wrote it
        self._recent: deque[tuple[int, int, memoryview]] = deque()  # (entry, table, keys), oldest first
        self._count = 0
        self._floor = inbox.consumed  # writes up to this entry are not remembered
        self._reserved: dict[int, tuple[str, float]] = {}  # table → for whom, until when
        self._accepted: deque[_Accepted] = deque()  # not durable yet, oldest first
        self._entering = False  # whether a thread makes the oldest of them durable
        self._alone = 0  # callers of `accepted`, for which further writes wait
        for number in range(inbox.consumed + 1, inbox.newest + 1):
            self._recall(number, list(inbox.read(number - 1, number)))

    def write(self, body: bytes, id: str = "", again: bool = False) -> dict[str, Any]:
        """Returns the answer of `POST /write`: {"number": n}, or {"conflict": c} if entry c changed a key or table that this one read.

        `again`: the write was sent to an earlier engine, which may have accepted it; then it is not accepted twice.
        """
        if len(body) > TRANSACTION_BYTES_MAX:
            raise ProgramLimitExceeded(f"a transaction of {len(body)} bytes; {TRANSACTION_BYTES_MAX} are the most")
        write = Write.decode(body)
        if again and (number := self._find(id, write.base)):
            self._confirm(number)
            return {"number": number}
        with self._lock:
            self._wait_turn(write)
            conflict = self._validated(write)
            if conflict:
                return {"conflict": conflict}
            crash.point("write.begin")
            changed = [part for part in write.parts if part.changes]  # the others were only read
            self._check_rules(write)
            self._release(write)
            accepted = _Accepted(id, changed)
            self._accepted.append(accepted)
            while not accepted.ended:
                if self._entering:
                    self._lock.wait()
                else:
                    self._enter_group()
        if accepted.error is not None:
            raise accepted.error
        self._confirm(accepted.number)
        return {"number": accepted.number}

    @contextmanager
    def accepted(self, write: Write) -> Iterator[int]:
        """Yields 0 while no other write is accepted, or the number of the entry that the write conflicts with."""
        with self._lock:
            while left := self._reserved_s(write):
                self._lock.wait(left)
            self._alone += 1
            try:
                while self._accepted:
                    self._lock.wait()
                conflict = self._validated(write)
                yield conflict
                if not conflict:
                    self._release(write)
            finally:
                self._alone -= 1
                self._lock.notify_all()

    def _wait_turn(self, write: Write) -> None:
        """Waits until no other write has reserved its tables, is alone, or changes relations that it has read."""
        while True:
            if left := self._reserved_s(write):
                self._lock.wait(left)
            elif self._alone or any(accepted.changes_what(write) for accepted in self._accepted):
                self._lock.wait()
            else:
                return

    def _enter_group(self) -> None:
        """Makes the oldest accepted writes durable as one entry. The lock is free meanwhile."""
        group, size = [self._accepted[0]], self._accepted[0].size
        for accepted in islice(self._accepted, 1, None):
            size += accepted.size
            if size > GROUP_BYTES_MAX:
                break
            group.append(accepted)
        parts = [part for accepted in group for part in accepted.parts]
        number, error = 0, None
        self._entering = True
        self._lock.release()
        try:
            records = [record for accepted in group for record in accepted.records()]
            number = self._enter(records, lambda number: self.durable(number, parts))
        except BaseException as e:  # noqa: BLE001  # raised to the sessions of the group
            error = e
        finally:
            self._lock.acquire()
            self._entering = False
        for accepted in group:
            self._accepted.popleft()
            accepted.number, accepted.error, accepted.ended = number, error, True
        self._lock.notify_all()

    def _validated(self, write: Write) -> int:
        """Returns the number of the entry that the write conflicts with; 0 without a conflict."""
        conflict = self._conflict(write)
        if conflict and write.reserve:
            until = time.monotonic() + RESERVED_S
            for table in write.reads:
                self._reserved.setdefault(table, (write.reserve, until))
        if not conflict:
            self._check(write)
        return conflict

    def _check(self, write: Write) -> None:
        catalog = self._catalog()
        for table in {*write.reads, *(p.table for p in write.parts)} - {NEW_TABLE}:
            item = catalog.items.get(table)
            if item is None or not isinstance(item, Table):
                raise UndefinedTable("a table of the statement does not exist", detail="It was dropped while the statement ran.")

    def _check_rules(self, write: Write) -> None:
        """Raises 40001 for rows of a table that has got other columns or constraints since they were computed."""
        catalog = self._catalog()
        for part in write.parts:
            if part.version and part.version != version(catalog[part.table], catalog):
                raise SerializationFailure(
                    "could not serialize access due to concurrent update", hint="The transaction might succeed if retried."
                )

    def _conflict(self, write: Write) -> int:
        """Returns the last entry after `base` that changed a key or table that this write read; 0 without a conflict."""
        if not write.reads and not any(p.keys for p in write.parts):
            return 0
        if write.base < self._floor:
            return self._floor
        last = max([self._tables.get(table, 0) for table in write.reads], default=0)
        for part in write.parts:
            entries = self._keys.get(part.table)
            if entries and part.keys and self._tables.get(part.table, 0) > write.base:
                last = max(last, max([entries.get(key, 0) for key in part.keys]))
        return last if last > write.base else 0

    def _recall(self, number: int, records: list[Stored]) -> None:
        """Remembers an entry that an earlier engine has accepted. An entry of an older version has no keys: all writes conflict with it."""
        written = [(int(record.channel.removeprefix(TABLE)), record.key) for record in records if record.channel.startswith(TABLE)]
        self._note(number, [Part(table, b"", memoryview(bytes(key)).cast("Q")) for table, key in written if key is not None])
        if any(key is None for _, key in written):
            self._floor = number

    def durable(self, number: int, parts: Sequence[Part]) -> None:
        """Remembers the keys and tables that a durable entry has changed."""
        with self._lock:
            self._note(number, parts)
        self._on_durable(number, {part.table for part in parts})

    def _note(self, number: int, parts: Sequence[Part]) -> None:
        if sum(len(p.keys) for p in parts) > KEYS_MAX:  # too many to remember: writes with an earlier base conflict
            self._keys.clear()
            self._recent.clear()
            self._count, self._floor = 0, number
            self._tables.update({p.table: number for p in parts})
            return
        for part in parts:
            self._tables[part.table] = number
            if part.keys:
                self._keys.setdefault(part.table, {}).update(dict.fromkeys(part.keys, number))
                self._recent.append((number, part.table, part.keys))
                self._count += len(part.keys)
        while self._count > KEYS_MAX and len(self._recent) > 1:
            self._forget(*self._recent.popleft())

    def _forget(self, number: int, table: int, keys: memoryview) -> None:
        entries = self._keys[table]
        for key in keys:
            if entries.get(key) == number:
                del entries[key]
        self._count -= len(keys)
        self._floor = max(self._floor, number)

    # ---- reservations --------------------------------------------------------------------------------------------------------

    def _reserved_s(self, write: Write) -> float:
        """Returns for how many seconds a table that it writes is reserved for another write; 0 if none is."""
        now = time.monotonic()
        for table in [t for t, (_, until) in self._reserved.items() if until <= now]:
            del self._reserved[table]
        written = {p.table for p in write.parts}
        return max([until - now for t, (who, until) in self._reserved.items() if t in written and who != write.reserve], default=0.0)

    def _release(self, write: Write) -> None:
        mine = [t for t, (who, _) in self._reserved.items() if who == write.reserve]
        for table in mine:
            del self._reserved[table]
        if mine:
            self._lock.notify_all()


def written(
    inbox: Inbox, after: int, upto: int, catalog: Catalog, uncommitted: int = 0, rows: Mapping[int, pa.Table] = NO_ROWS
) -> tuple[list[tuple[int, pa.Table]], tuple[str, ...]]:
    """Returns the net changes of tables in entries (after, upto] of the inbox, without dropped tables, and the ids of the writes.

    `uncommitted`: an entry that is committed with a change of the catalog; `rows` are its rows, by table, and `catalog` the changed one.
    Skips empty records, which versions before 0.3 wrote for tables that a transaction only read.
    """
    tables: dict[int, list[pa.Table]] = {table: [changes] for table, changes in rows.items()}
    writes: list[str] = []
    for begin, end in [(after, uncommitted - 1), (uncommitted, upto)] if uncommitted else [(after, upto)]:
        for record in inbox.read(begin, end):
            if record.channel.startswith(TABLE) and record.value:
                tables.setdefault(int(record.channel.removeprefix(TABLE)), []).append(pa.ipc.open_stream(record.value).read_all())
            if (write := record.write) is not None:
                writes.append(write)
    net_changes = [(table, _net(parts, table, catalog)) for table, parts in sorted(tables.items()) if table in catalog.items]
    return net_changes, tuple(writes)


def _net(parts: list[pa.Table], table: int, catalog: Catalog) -> pa.Table:
    """Returns the sum of several writes. A single write is net already, as are writes that only add rows with keys."""
    item = catalog[table]
    schema = arrow_schema(item.columns, weight=True)
    if len(parts) == 1:
        return formed(parts[0], schema)
    if item.key is not None and all(pc.min(p[WEIGHT]).as_py() > 0 for p in parts):
        return pa.concat_tables([formed(p, schema) for p in parts])
    return total(parts, schema)
