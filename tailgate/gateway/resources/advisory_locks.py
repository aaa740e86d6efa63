"""The advisory locks of one session, which the engine holds (`engine.runtime.control.advisory_locks`).

A lock is held for the session, once for each call that has got it, for the transaction, or for both. The engine has it until all of
these are released. If the engine ends, the session ends: another session may get the lock from the next engine.

Source: PostgreSQL 15, src/backend/storage/lmgr/lock.c, src/backend/utils/adt/lockfuncs.c.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from tailgate.gateway.resources.background import Background


class HeldLock(Protocol):
    """A lock that the engine holds for a session."""

    async def lost(self) -> None:
        """Waits until the engine no longer holds it."""

    def release(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Lock:
    """A key, one bigint or two integers, and a mode."""

    key: tuple[int, ...]
    shared: bool

    @property
    def mode(self) -> str:
        """Returns the mode as pg_locks shows it."""
        return "ShareLock" if self.shared else "ExclusiveLock"


@dataclass(slots=True)
class _Hold:
    lock: HeldLock
    session: int = 0  # calls that have got it for the session
    transaction: int = 0  # and for the transaction


class AdvisoryLocks:
    """The locks of a session. `lost` is called when the engine has ended while it held one."""

    def __init__(self, background: Background, lost: Callable[[], None]) -> None:
        self._background, self._lost = background, lost
        self._holds: dict[Lock, _Hold] = {}
        self._of_transaction: list[Lock] = []  # in the order of the calls

    @property
    def held(self) -> list[Lock]:
        """Returns the locks that the session or its transaction holds."""
        return list(self._holds)

    async def acquire(self, lock: Lock, request: Callable[[], Awaitable[HeldLock | None]], *, for_transaction: bool) -> bool:
        """Gets a lock, with `request` to the engine if the session does not hold it. Returns False if the request does not get it."""
        hold = self._holds.get(lock)
        if hold is None:
            held = await request()
            if held is None:
                return False
            hold = self._holds[lock] = _Hold(held)
            self._background.run(self._watch(lock, held))
        if for_transaction:
            hold.transaction += 1
            self._of_transaction.append(lock)
        else:
            hold.session += 1
        return True

    def release(self, lock: Lock) -> bool:
        """Undoes one call for the session. Returns False if the session does not hold the lock."""
        hold = self._holds.get(lock)
        if hold is None or hold.session == 0:
            return False
        hold.session -= 1
        self._drop_unused(lock)
        return True

    def release_all(self) -> None:
        """Undoes all calls for the session."""
        for lock, hold in list(self._holds.items()):
            hold.session = 0
            self._drop_unused(lock)

    def mark(self) -> int:
        """Returns the position of a savepoint for `back_to`."""
        return len(self._of_transaction)

    def back_to(self, mark: int) -> None:
        """Releases the locks that the transaction has got since a savepoint; at 0, all of them."""
        while len(self._of_transaction) > mark:
            lock = self._of_transaction.pop()
            self._holds[lock].transaction -= 1
            self._drop_unused(lock)

    def end(self) -> None:
        """Releases all locks at the end of the session."""
        self.back_to(0)
        self.release_all()

    def _drop_unused(self, lock: Lock) -> None:
        hold = self._holds[lock]
        if hold.session == hold.transaction == 0:
            del self._holds[lock]
            hold.lock.release()

    async def _watch(self, lock: Lock, held: HeldLock) -> None:
        await held.lost()
        if (hold := self._holds.get(lock)) is not None and hold.lock is held:
            self._lost()
