"""Evaluates the functions of advisory locks.

Source: PostgreSQL 15, src/backend/utils/adt/lockfuncs.c.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import cast

from tailgate.gateway.resources.advisory_locks import HeldLock, Lock
from tailgate.gateway.session.session import Session
from tailgate.gateway.settings.settings import milliseconds
from tailgate.lake.control import LockRequest
from tailgate.lake.errors import LockNotAvailable
from tailgate.sql.functions.advisory_locks import ACTIONS, Action


async def called(session: Session, name: str, arguments: Sequence[object]) -> object:
    """Returns the value of a call. Raises 40P01, 53200, 55P03, 58000."""
    locks = session.transaction.advisory_locks
    if None in arguments:
        return None
    action = ACTIONS[name]
    lock = Lock(cast("tuple[int, ...]", tuple(arguments)), action.shared)
    if action.kind == "unlock":
        released = locks.release(lock)
        if not released:
            session.notice(f"you don't own a lock of type {lock.mode}", "WARNING", "01000")
        return released
    got = await locks.acquire(lock, partial(_requested, session, lock, action), for_transaction=action.for_transaction)
    return "" if action.waits else got


async def _requested(session: Session, lock: Lock, action: Action) -> HeldLock | None:
    """Requests a lock from the engine, and waits at most for lock_timeout."""
    request = LockRequest(lock.key, lock.shared, action.waits, session.client.process, session.access.role.id)
    timeout_ms = milliseconds(session.settings["lock_timeout"])
    try:
        return await asyncio.wait_for(session.control.advisory_lock(request), timeout_ms / 1000 if timeout_ms else None)
    except asyncio.TimeoutError:
        raise LockNotAvailable("canceling statement due to lock timeout") from None
