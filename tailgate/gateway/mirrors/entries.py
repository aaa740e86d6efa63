"""A cache of log entries: the process reads and decodes each entry once, for all followers.

It keeps the newest entries, up to a limit; older ones are read from the log again. Results that
many followers share, such as the changes of a followed query, are cached with their entry.
"""

from __future__ import annotations

import contextlib
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import pyarrow as pa

from tailgate.gateway.resources.budgets import UNLIMITED, Budget, Charge
from tailgate.lake.errors import OutOfMemory
from tailgate.lake.folder import Lake
from tailgate.lake.log.entry import Entry, Header

KEPT = 2000  # entries: five minutes at six ticks a second; the log never removes younger ones
KEPT_BYTES = 64 << 20  # of headers, bodies, decoded and derived data; a larger entry is served and evicted first
CHECKED_EVERY = 16  # entries, after which the bytes are added; sooner after one with more than its share of KEPT_BYTES
HEADER_FACTOR = 10  # memory of a decoded header per byte
QUICK_BYTES = 64 << 10  # up to this size the event loop decodes a section itself: 50 µs, the cost of a thread switch
TIMES_KEPT = 100_000  # entry times, 16 bytes each: a follower's first entry is found without reading the log


class Size:
    """The size of an entry's data in bytes.

    Shared objects, which the entry holds, refer to this and not to the entry: a cycle with the entry would keep it in memory until a full
    garbage collection.
    """

    def __init__(self) -> None:
        self.bytes = 0

    def grow(self, size: int) -> None:
        """Adds to the size: a shared object has allocated `size` more bytes."""
        self.bytes += size


class CachedEntry:
    """A log entry with the data that was decoded or derived from it. Thread-safe."""

    def __init__(self, entry: Entry) -> None:
        self.header: Header = entry.header
        self._sections = {section.relation: section for section in entry.header.relations}
        self.relations = frozenset(self._sections)
        self.size = Size()
        self._entry = entry
        self._memo: dict[Hashable, pa.Table | None] = {}
        self._shared: dict[Hashable, Any] = {}
        self._lock = threading.Lock()
        self._has_body = False  # whether the body is counted
        self.size.grow(HEADER_FACTOR * entry.head)
        if entry.is_loaded:
            self._count_body()

    def changes(self, relation: int) -> pa.Table | None:
        """Returns the net changes of a relation, or None if it did not change."""
        section = self._sections.get(relation)
        if section is None:
            return None
        with self._lock:
            if relation not in self._memo:
                self._memo[relation] = self._entry.read(section)
                if section.file is None:
                    self._count_body()
                else:
                    self.size.grow(section.length)
            return self._memo[relation]

    @property
    def length(self) -> int:
        """Returns the bytes of the entry, also those that are not in memory."""
        return self._entry.head + self._entry.body_bytes + sum(s.length for s in self._sections.values() if s.file is not None)

    def _count_body(self) -> None:
        """Counts the body, which is in memory as a whole and of which the decoded sections are parts."""
        if not self._has_body:
            self._has_body = True
            self.size.grow(self._entry.body_bytes)

    def bytes_of(self, relation: int) -> int:
        """Returns the size of the changes of a relation."""
        return self._sections[relation].length

    def is_quick(self, relation: int) -> bool:
        """Returns whether `changes` of a relation takes less time than a thread switch."""
        section = self._sections.get(relation)
        return section is None or section.length <= QUICK_BYTES or relation in self._memo

    def derived(self, key: Hashable) -> tuple[bool, pa.Table | None]:
        """Returns whether `derive` has stored a value under the key, and the value (maybe None)."""
        with self._lock:
            return key in self._memo, self._memo.get(key)

    def derive(self, key: Hashable, table: pa.Table | None) -> pa.Table | None:
        with self._lock:
            self._put(key, table)
        return table

    def shared(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Returns the cached object of this key; calls `make` at the first use."""
        with self._lock:
            if key not in self._shared:
                self._shared[key] = make()
            return self._shared[key]

    def _put(self, key: Hashable, table: pa.Table | None) -> None:
        if table is not None and not any(table is cached for cached in self._memo.values()):
            self.size.grow(table.nbytes)
        self._memo[key] = table


class Entries:
    """The cache of log entries of a process. Thread-safe."""

    def __init__(self, lake: Lake, budget: Budget = UNLIMITED) -> None:
        self._lake = lake
        self._charged, self._most = Charge(budget), min(KEPT_BYTES, budget.limit // 4)
        budget.evictable(self._evict)
        self._known: OrderedDict[int, CachedEntry] = OrderedDict()
        self._numbers: list[int] = []
        self._times: list[int] = []
        self._lock = threading.RLock()

    def add(self, entry: Entry) -> CachedEntry:
        """Caches the next entry of the log; the mirrors' thread calls this in log order."""
        with self._lock:
            cached = self._known.setdefault(entry.header.n, CachedEntry(entry))
            self.note(entry.header)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
            if entry.header.n % CHECKED_EVERY == 0 or cached.length > self._most // CHECKED_EVERY:
                self._forget(sum(k.size.bytes for k in self._known.values()), self._most)
            return cached

    def _forget(self, total: int, most: int) -> None:
        """Evicts the oldest entries until at most `most` bytes are left; keeps the newest entry."""
        while len(self._known) > 1 and total > most:
            _, oldest = self._known.popitem(last=False)
            total -= oldest.size.bytes
        with contextlib.suppress(OutOfMemory):  # other caches are already empty, and one entry is left
            self._charged.set(total)

    def _evict(self, size: int) -> int:
        with self._lock:
            total = self._charged.size
            self._forget(sum(k.size.bytes for k in self._known.values()), max(total - size, 0))
            return total - self._charged.size

    def note(self, header: Header) -> None:
        """Records number and time of an entry, for `at`."""
        if not self._times or header.time > self._times[-1]:
            self._numbers.append(header.n)
            self._times.append(header.time)
            if len(self._times) > 2 * TIMES_KEPT:
                del self._numbers[:TIMES_KEPT], self._times[:TIMES_KEPT]

    def recent(self, n: int) -> CachedEntry | None:
        """Returns the entry if it is cached, otherwise None. Never reads the log."""
        return self._known.get(n)

    def between(self, after: int, last: int) -> list[CachedEntry] | None:
        """Returns the entries after one, up to `last`, or None if some of them are not cached. Never reads the log."""
        entries = [entry for n in range(after + 1, last + 1) if (entry := self._known.get(n)) is not None]
        return entries if len(entries) == last - after else None

    def get(self, n: int) -> CachedEntry:
        """Returns an existing entry, read from the log if needed. Raises `Gone` if it was removed."""
        with self._lock:
            if n in self._known:
                return self._known[n]
        return CachedEntry(self._lake.log.read(n))

    def at(self, time: int) -> int:
        """Returns the number of the newest entry not later than `time`; 0 if there is none."""
        with self._lock:
            if self._times and self._times[0] <= time:
                return self._numbers[bisect_right(self._times, time) - 1]
        header = self._lake.log.find(time)
        return 0 if header is None else header.n
