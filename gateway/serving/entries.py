"""The log's entries as this process reads them: each read once and decoded once, however many follow.

Kept are the newest ones, within a bound; an older one is read from the log again. What is computed from an entry for many (the
changes of a followed query, say) is remembered with it.
"""

from __future__ import annotations

import contextlib
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gateway.budgets import NOWHERE, Budget, Charged
from lake.entry import Entry, Header
from lake.errors import OutOfMemory

if TYPE_CHECKING:
    from lake import Lake

KEPT = 2000  # entries: five minutes of six ticks a second, the time for which a log never removes one (W7)
KEPT_BYTES = 256 << 20  # of what was decoded and derived; an entry above that is still served, and forgotten first
TIMES_KEPT = 100_000  # times of entries, to find where a follower starts without reading the log: 16 bytes each


class Known:
    """An entry of the log and what was decoded or derived from it. Safe from many threads."""

    def __init__(self, entry: Entry) -> None:
        self.header: Header = entry.header
        self.relations = frozenset(section.relation for section in entry.header.relations)
        self.bytes = 0
        self._entry = entry
        self._memo: dict[Hashable, pa.Table | None] = {}
        self._shared: dict[Hashable, Any] = {}
        self._lock = threading.Lock()

    def changes(self, relation: int) -> pa.Table | None:
        """Net changes of a relation, or None if it did not change."""
        if relation not in self.relations:
            return None
        with self._lock:
            if relation not in self._memo:
                self._put(relation, self._entry.changes(relation))
            return self._memo[relation]

    def derived(self, key: Hashable) -> tuple[bool, pa.Table | None]:
        """What `derive` remembered; whether it did, since None is a value."""
        with self._lock:
            return key in self._memo, self._memo.get(key)

    def derive(self, key: Hashable, table: pa.Table | None) -> pa.Table | None:
        with self._lock:
            self._put(key, table)
        return table

    def shared(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What was made of the changes for all who follow; made at the first time."""
        with self._lock:
            if key not in self._shared:
                self._shared[key] = make()
            return self._shared[key]

    def grow(self, size: int) -> None:
        """Something that is shared has taken so many bytes more."""
        self.bytes += size

    def _put(self, key: Hashable, table: pa.Table | None) -> None:
        self.bytes += 0 if table is None or any(table is known for known in self._memo.values()) else table.nbytes
        self._memo[key] = table


class Entries:
    def __init__(self, lake: Lake, budget: Budget = NOWHERE) -> None:
        self._lake = lake
        self._charged, self._most = Charged(budget), min(KEPT_BYTES, budget.limit // 4)
        budget.evictable(self._evict)
        self._known: OrderedDict[int, Known] = OrderedDict()
        self._numbers: list[int] = []
        self._times: list[int] = []
        self._lock = threading.RLock()

    def add(self, entry: Entry) -> Known:
        """Remembers the next entry of the log; called by the one who follows it, in order."""
        with self._lock:
            known = self._known.setdefault(entry.header.n, Known(entry))
            self.note(entry.header)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
            if len(self._known) % 16 == 0:
                self._forget(sum(k.bytes for k in self._known.values()), self._most)
            return known

    def _forget(self, total: int, most: int) -> None:
        """The oldest, until at most so many bytes are left; the newest stays."""
        while len(self._known) > 1 and total > most:
            _, oldest = self._known.popitem(last=False)
            total -= oldest.bytes
        with contextlib.suppress(OutOfMemory):  # caches of others were emptied for it, and it is the last
            self._charged.set(total)

    def _evict(self, size: int) -> int:
        with self._lock:
            total = self._charged.size
            self._forget(sum(k.bytes for k in self._known.values()), max(total - size, 0))
            return total - self._charged.size

    def note(self, header: Header) -> None:
        if not self._times or header.time > self._times[-1]:
            self._numbers.append(header.n)
            self._times.append(header.time)
            if len(self._times) > 2 * TIMES_KEPT:
                del self._numbers[:TIMES_KEPT], self._times[:TIMES_KEPT]

    def recent(self, n: int) -> Known | None:
        """An entry that is kept; never reads."""
        return self._known.get(n)

    def get(self, n: int) -> Known:
        """An entry that exists. Raises lake's `Gone` if it was removed."""
        with self._lock:
            if n in self._known:
                return self._known[n]
        return Known(self._lake.log.read(n))

    def at(self, time: int) -> int:
        """Number of the newest entry whose time is not later than this; 0 if there is none."""
        with self._lock:
            if self._times and self._times[0] <= time:
                return self._numbers[bisect_right(self._times, time) - 1]
        found = self._lake.log.find(time)
        return 0 if found is None else found.n
