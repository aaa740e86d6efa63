"""Budgets for the memory that a gateway holds for clients.

    the gateway ◄── a role ◄── a session ◄── prepared statements, portals, cursors, temporary views, results, received messages

Memory is charged when it is taken and released when it is freed. A charge counts at every level. One that would exceed a limit fails
with 53200 and affects only the session that made it. Caches are charged to the gateway only. Before a charge is refused, they are
evicted, the least recently used entries first.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from tailgate.lake.errors import OutOfMemory

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Budget:
    """The memory limit of the gateway, a role or a session. Thread-safe.

    `limit`: in bytes. `name`: the owner, for error messages. `parent`: the next higher level.
    """

    def __init__(self, name: str, limit: int, parent: Budget | None = None) -> None:
        self.name, self.limit, self.parent = name, limit, parent
        self.used = 0
        self.closed = False
        self._lock: threading.RLock = parent._lock if parent is not None else threading.RLock()
        self._caches: list[Callable[[int], int]] = parent._caches if parent is not None else []

    def charge(self, size: int) -> None:
        """Charges `size` bytes, or raises 53200 without charging anything. Evicts caches first if the gateway's limit is reached."""
        full = self._add(size)
        if full is not None and full.parent is None:
            for evict in self._caches:
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
        """Charges all levels. If one is full, charges none and returns it."""
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
        """Releases everything that is charged here, and refuses further charges. Later releases have no effect."""
        with self._lock:
            self.release(self.used)
            self.closed = True

    def release_with(self, thing: Any, size: int) -> None:
        """Releases `size` bytes when `thing` is garbage-collected."""
        weakref.finalize(thing, self.release, size)

    def evict(self) -> int:
        """Empties all caches. Returns the freed bytes."""
        return sum(evict(1 << 62) for evict in self._caches)

    def evictable(self, evict: Callable[[int], int]) -> None:
        """Registers a cache. `evict(size)` frees up to about `size` bytes of this budget and returns the freed bytes."""
        self._caches.append(evict)


class Charge:
    """The part of a budget that one object holds, adjusted as its size changes."""

    __slots__ = ("_budget", "size")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.size = 0

    def set(self, size: int) -> None:
        """Sets the charged size. Raises 53200 if the budget does not allow the increase; the previous size stays charged."""
        if size != self.size:
            if size > self.size:
                self._budget.charge(size - self.size)
            else:
                self._budget.release(self.size - size)
            self.size = size

    def add(self, size: int) -> None:
        self.set(self.size + size)


class Cache(Generic[K, V]):
    """A cache with least-recently-used eviction. Thread-safe.

    `most`: the limit of all values, in bytes. `gone` is called with each key and value that is removed.
    """

    def __init__(self, budget: Budget, most: int, on_evict: Callable[[K, V], None] | None = None) -> None:
        self._budget, self.most, self._gone = budget, most, on_evict
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.RLock()
        self.bytes = 0
        budget.evictable(self.evict)

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        with self._lock:
            entry = self._kept.get(key)
            if entry is None:
                return None
            self._kept.move_to_end(key)
            return entry[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Stores a value, unless it is too large or memory is short. `size`: bytes of key and value."""
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
            entry = self._kept.pop(key, None)
            if entry is None:
                return
            self.bytes -= entry[1]
        self._budget.release(entry[1])
        if self._gone is not None:
            self._gone(key, entry[0])

    def evict(self, size: int) -> int:
        """Removes the least recently used entries until `size` bytes are free. Returns the freed bytes."""
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
        """Returns the entries, least recently used first."""
        with self._lock:
            return [(key, value) for key, (value, _) in self._kept.items()]


UNLIMITED = Budget("the gateway", 1 << 62)  # an unlimited budget, for code that runs without a gateway
TASK_BUDGET: ContextVar[Budget] = ContextVar("charged", default=UNLIMITED)  # the budget of the current task


class ChargedDict(dict[str, V]):
    """A session's prepared statements or portals by name, each charged by its size.

    The unnamed one is free up to UNNAMED_FREE bytes.
    """

    def __init__(self, size: Callable[[V], int]) -> None:
        super().__init__()
        self._size = size
        self._charged: dict[str, Charge] = {}
        self.budget = UNLIMITED

    def __setitem__(self, name: str, value: V) -> None:
        """Stores a value. Raises 53200 if the budget does not allow it; the name is then removed."""
        size = self._size(value)
        if not name and size <= UNNAMED_FREE and name not in self._charged:
            super().__setitem__(name, value)
            return
        charged = self._charged.setdefault(name, Charge(self.budget))
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
        value = super().pop(name, *default)
        if name in self._charged:
            self._forget(name)
        return value

    def clear(self) -> None:
        for name in list(self._charged):
            self._forget(name)
        super().clear()

    def _forget(self, name: str) -> None:
        charged = self._charged.pop(name, None)
        if charged is not None:
            charged.set(0)


SESSION_BYTES = 32 << 10  # memory of an idle session
UNNAMED_FREE = 16 << 10  # of the unnamed statement and portal, which are included in SESSION_BYTES
