"""Writes of tables, from gateways to the inbox: each is let in if what it was made from is still so.

    gateway: reads at inbox number b ──► changes, what it read ──► POST /write
    here, one at a time: has anything it read been written after b?
        yes ──► {"conflict": c}: the gateway evaluates it again when its mirrors have c
        no  ──► one entry of the inbox, durable ──► {"number": n}: committed with the tick that reads n

What a write reads is keys of a table (as hashes: two that are equal by chance cost one more evaluation, nothing else) or whole tables.
So every write is as if it had been evaluated here, at its place in the inbox's order, and nothing has to be checked in the tick.

Only what was written of late is remembered; a write that is older than that counts as in conflict. An entry of the inbox has, as the
keys of its records, the hashes of what it read and writes, so an engine that starts remembers the entries that no tick has read.
A write that reads whole tables and lost may *reserve*: others of those tables then wait for it a moment, so that it gets through however
many there are.

Source: the resolvers of FoundationDB (Zhou et al., SIGMOD 2021, section 2.4.2); ADR 0004.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake.catalog import Catalog, Table
from tailgate.lake.control import Part, Write
from tailgate.lake.errors import ProgramLimitExceeded, UndefinedTable
from tailgate.lake.host import crash
from tailgate.lake.tables.weights import formed, total
from tailgate.lake.types import WEIGHT, arrow_schema
from tailgate.lake.writer.inbox import TABLE, Inbox, Record

KEYS_MAX = 500_000  # hashes of keys that are remembered: 60 MB
RESERVED_S = 2.0  # how long others wait for one that lost; it comes back within a tick
TRANSACTION_BYTES_MAX = 1 << 30  # of one write; larger ones are refused with 54000


class Writes:
    """Lets writes in, in one order. `enter` puts records into the inbox and starts a tick."""

    def __init__(self, inbox: Inbox, catalog: Callable[[], Catalog], enter: Callable[[list[Record]], int]) -> None:
        self._catalog, self._enter = catalog, enter
        self._lock = threading.Condition()
        self._tables: dict[int, int] = {}  # table → the last entry that wrote it
        self._keys: dict[int, dict[int, int]] = {}  # table → hash of a key → the last entry that wrote it
        self._recent: deque[tuple[int, int, memoryview]] = deque()  # (entry, table, keys), oldest first
        self._count = 0
        self._floor = inbox.consumed  # what was written up to here is not remembered
        self._reserved: dict[int, tuple[str, float]] = {}  # table → for whom, until when
        for number in range(inbox.consumed + 1, inbox.newest + 1):
            self._recall(number, list(inbox.keys(number)))

    def write(self, body: bytes) -> dict[str, Any]:
        """The answer of `POST /write`: {"number": n}, or {"conflict": c} if entry c wrote what this one had read."""
        if len(body) > TRANSACTION_BYTES_MAX:
            raise ProgramLimitExceeded(f"a transaction of {len(body)} bytes; {TRANSACTION_BYTES_MAX} are the most")
        write = Write.decode(body)
        with self._lock:
            self._wait_reserved(write)
            conflict = self._conflict(write)
            if conflict:
                if write.reserve:
                    until = time.monotonic() + RESERVED_S
                    for table in write.reads:
                        self._reserved.setdefault(table, (write.reserve, until))
                return {"conflict": conflict}
            self._check(write)
            crash.point("write.begin")
            changed = [part for part in write.parts if part.changes]  # the others were only read
            number = self._enter([Record(f"{TABLE}{part.table}", part.keys.tobytes(), part.changes) for part in changed])
            self._note(number, changed)
            self._release(write)
            return {"number": number}

    def _check(self, write: Write) -> None:
        catalog = self._catalog()
        for table in {*write.reads, *(p.table for p in write.parts)}:
            item = catalog.items.get(table)
            if item is None or not isinstance(item, Table):
                raise UndefinedTable("a table of the statement does not exist", detail="It was dropped while the statement ran.")

    def _conflict(self, write: Write) -> int:
        """The last entry after `base` that wrote what this write has read; 0 if there is none."""
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

    def _recall(self, number: int, records: list[tuple[str, memoryview | None]]) -> None:
        """Remembers an entry that an earlier engine has let in. It has no keys if that was an older version: then all conflicts with it."""
        written = [(int(channel.removeprefix(TABLE)), key) for channel, key in records if channel.startswith(TABLE)]
        self._note(number, [Part(table, b"", memoryview(bytes(key)).cast("Q")) for table, key in written if key is not None])
        if any(key is None for _, key in written):
            self._floor = number

    def _note(self, number: int, parts: Sequence[Part]) -> None:
        if sum(len(p.keys) for p in parts) > KEYS_MAX:  # too many to remember: whoever has not seen them is in conflict
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

    def _wait_reserved(self, write: Write) -> None:
        """Until none of the tables that it writes is reserved for another."""
        written = {p.table for p in write.parts}
        while True:
            now = time.monotonic()
            for table in [t for t, (_, until) in self._reserved.items() if until <= now]:
                del self._reserved[table]
            waiting = [until for t, (who, until) in self._reserved.items() if t in written and who != write.reserve]
            if not waiting:
                return
            self._lock.wait(max(waiting) - now)

    def _release(self, write: Write) -> None:
        mine = [t for t, (who, _) in self._reserved.items() if who == write.reserve]
        for table in mine:
            del self._reserved[table]
        if mine:
            self._lock.notify_all()


def written(inbox: Inbox, after: int, upto: int, catalog: Catalog) -> list[tuple[int, pa.Table]]:
    """Returns the net changes of tables in entries (after, upto] of the inbox, without dropped tables.

    Skips empty records, which versions before 0.3 wrote for tables that a transaction only read.
    """
    tables: dict[int, list[pa.Table]] = {}
    for channel, value in inbox.read(after, upto):
        if channel.startswith(TABLE) and value:
            tables.setdefault(int(channel.removeprefix(TABLE)), []).append(pa.ipc.open_stream(value).read_all())
    return [(table, _net(parts, table, catalog)) for table, parts in sorted(tables.items()) if table in catalog.items]


def _net(parts: list[pa.Table], table: int, catalog: Catalog) -> pa.Table:
    """The sum of several writes; one alone is net already, as are those that only add rows with keys."""
    item = catalog[table]
    schema = arrow_schema(item.columns, weight=True)
    if len(parts) == 1:
        return formed(parts[0], schema)
    if item.key is not None and all(pc.min(p[WEIGHT]).as_py() > 0 for p in parts):
        return pa.concat_tables([formed(p, schema) for p in parts])
    return total(parts, schema)
