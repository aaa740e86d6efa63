"""Bytes that clients make a gateway hold: charged when they are kept, released when they go, refused (53200) when they would be too many.

    the gateway ◄── a role ◄── a session ◄── prepared statements, portals, cursors, temporary views, results, what is received

A charge counts at every level. What was refused harms who asked, and nobody else. Caches are charged to the gateway alone, and give way:
before a charge is refused they are emptied, those that were used longest ago first.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from lake.errors import OutOfMemory

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Budget:
    """`limit`: in bytes. `name`: whose it is, for errors. Safe from many threads."""

    def __init__(self, name: str, limit: int, parent: Budget | None = None) -> None:
        self.name, self.limit, self.parent = name, limit, parent
        self.used = 0
        self.closed = False
        self._lock: threading.RLock = parent._lock if parent is not None else threading.RLock()  # type: ignore[valid-type]
        self._caches: list[Callable[[int], int]] = parent._caches if parent is not None else []

    def charge(self, size: int) -> None:
        """Raises 53200, and then nothing is charged."""
        full = self._add(size)
        if full is not None and full.parent is None:
            for evict in self._caches:  # what is kept for speed alone
                evict(full.used + size - full.limit)
                full = self._add(size)
                if full is None:
                    return
        if full is not None:
            raise OutOfMemory(
                "out of memory",
                detail=f"Memory of {full.name}: {full.used} bytes are used and {size} more are needed; the limit is {full.limit}.",
                hint="Close prepared statements and cursors, or ask for less at once.",
            )

    def _add(self, size: int) -> Budget | None:
        """Charges all levels; or none, and gives the one that is full."""
        with self._lock:
            if self.closed:
                return None if size <= 0 else self
            level: Budget | None = self
            while level is not None:
                if size > 0 and level.used + size > level.limit:
                    return level
                level = level.parent
            level = self
            while level is not None:
                level.used += size
                level = level.parent
        return None

    def release(self, size: int) -> None:
        self._add(-size)

    def close(self) -> None:
        """Releases what is charged here. Nothing is charged from here on, and what is released later was released now."""
        with self._lock:
            self.release(self.used)
            self.closed = True

    def release_with(self, thing: Any, size: int) -> None:
        """Releases what is charged for `thing` when that is gone."""
        weakref.finalize(thing, self.release, size)

    def evict(self) -> int:
        """Empties all caches; the bytes that were freed."""
        return sum(evict(1 << 62) for evict in self._caches)

    def evictable(self, evict: Callable[[int], int]) -> None:
        """`evict(size)` frees so many bytes of this budget, if it can, and says how many it has freed."""
        self._caches.append(evict)


class Charged:
    """What one thing holds of a budget, as it changes."""

    __slots__ = ("_budget", "size")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.size = 0

    def set(self, size: int) -> None:
        """Raises 53200 if it is to hold more and may not; what it held stays charged."""
        if size != self.size:
            if size > self.size:
                self._budget.charge(size - self.size)
            else:
                self._budget.release(self.size - size)
            self.size = size

    def add(self, size: int) -> None:
        self.set(self.size + size)


class Cache(Generic[K, V]):
    """Values that can be made again, the least recently used of them forgotten first. Safe from many threads.

    `most`: bytes of all. `gone` is told of values that are forgotten.
    """

    def __init__(self, budget: Budget, most: int, gone: Callable[[K, V], None] | None = None) -> None:
        self._budget, self.most, self._gone = budget, most, gone
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.RLock()
        self.bytes = 0
        budget.evictable(self.evict)

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Keeps a value of so many bytes, its key among them, unless it is too large."""
        self.pop(key)
        if size > self.most:
            return
        self.evict(self.bytes + size - self.most)
        try:
            self._budget.charge(size)
        except OutOfMemory:
            return
        with self._lock:
            self._kept[key] = value, size
            self.bytes += size

    def pop(self, key: K) -> None:
        with self._lock:
            found = self._kept.pop(key, None)
            if found is None:
                return
            self.bytes -= found[1]
        self._budget.release(found[1])
        if self._gone is not None:
            self._gone(key, found[0])

    def evict(self, size: int) -> int:
        freed = 0
        while freed < size:
            with self._lock:
                if not self._kept:
                    break
                key, (value, held) = self._kept.popitem(last=False)
                self.bytes -= held
            freed += held
            self._budget.release(held)
            if self._gone is not None:
                self._gone(key, value)
        return freed

    def clear(self) -> None:
        self.evict(self.bytes)

    def items(self) -> list[tuple[K, V]]:
        """The least recently used first."""
        with self._lock:
            return [(key, value) for key, (value, _) in self._kept.items()]


NOWHERE = Budget("the gateway", 1 << 62)  # for what runs without a gateway
CHARGED: ContextVar[Budget] = ContextVar("charged", default=NOWHERE)  # what the task that runs is charged to


class Kept(dict[str, V]):
    """What a session keeps by name, each charged by its size. What has no name is there once, and free up to UNNAMED_FREE."""

    def __init__(self, size: Callable[[V], int]) -> None:
        super().__init__()
        self._size = size
        self._charged: dict[str, Charged] = {}
        self.budget = NOWHERE

    def __setitem__(self, name: str, value: V) -> None:
        """Raises 53200, and then nothing is kept under the name."""
        size = self._size(value)
        if not name and size <= UNNAMED_FREE and name not in self._charged:
            super().__setitem__(name, value)
            return
        charged = self._charged.setdefault(name, Charged(self.budget))
        try:
            charged.set(size)
        except OutOfMemory:
            self.pop(name, None)
            raise
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._forget(name)

    def pop(self, name: str, *default: Any) -> Any:
        found = super().pop(name, *default)
        if name in self._charged:
            self._forget(name)
        return found

    def clear(self) -> None:
        for name in list(self._charged):
            self._forget(name)
        super().clear()

    def _forget(self, name: str) -> None:
        charged = self._charged.pop(name, None)
        if charged is not None:
            charged.set(0)


SESSION_BYTES = 32 << 10  # of a session that does nothing
UNNAMED_FREE = 16 << 10  # of its unnamed statement and portal, which are part of that
