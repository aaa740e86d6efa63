"""Advisory locks of sessions: each is held while the request of `POST /lock` that has got it is open.

    POST /lock ──► granted, or in the order of requests when the sessions before it have released ──► answer
                                                        └── the connection ends: the lock is released

A gateway closes the connection when the session releases the lock, and the kernel does so when the gateway is killed. If the engine
ends, its gateways end the sessions that hold locks. Two modes of one session never conflict.

Source: PostgreSQL 15, "Advisory Locks"; src/backend/storage/lmgr/README, deadlock.c.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from tailgate.engine.runtime.control.control import Client
from tailgate.engine.runtime.control.turns import check_canceled
from tailgate.lake.control import LockRequest
from tailgate.lake.errors import DeadlockDetected, OutOfMemory

# locks that are held or waited for, of all roles and of one: each holds a thread of the control interface
LOCKS_MAX, LOCKS_EACH = 1000, 200
DEADLOCK_S = 1.0  # that a request waits before it looks for a deadlock, as PostgreSQL's deadlock_timeout
CANCEL_LOOK_S = 0.25  # between two checks whether the client of a waiting request is still connected


class AdvisoryLocks:
    """The locks that sessions hold and wait for. Thread safe."""

    def __init__(self) -> None:
        self._held: list[LockRequest] = []
        self._waiting: list[LockRequest] = []  # in the order of their requests
        self._released = threading.Condition()

    def request(self, body: bytes, client: Client) -> tuple[dict[str, Any], Callable[[], None]]:
        """Waits for a lock, unless the request does not. Returns the answer, and a function that releases the lock.

        Raises 40P01 for a deadlock, 53200 if there are too many locks, 57014 if the client ends.
        """
        request = LockRequest.decode(body)
        with self._released:
            self._check_limits(request.role)
            granted = self._is_free(request)
            if not granted and request.waits:
                self._wait(request, client)
                granted = True
            if not granted:
                return {"granted": False}, lambda: None
            self._held.append(request)
        return {"granted": True}, lambda: self._release(request)

    def _check_limits(self, role: int) -> None:
        roles = [request.role for request in (*self._held, *self._waiting)]
        if len(roles) >= LOCKS_MAX or roles.count(role) >= LOCKS_EACH:
            detail = f"Sessions can hold {LOCKS_MAX} locks, those of one role {LOCKS_EACH}."
            raise OutOfMemory("too many advisory locks", detail=detail, hint="Release locks that are not needed.")

    def _wait(self, request: LockRequest, client: Client) -> None:
        """Waits until the request can be granted. The caller holds `_released`."""
        self._waiting.append(request)
        deadlock_look = time.monotonic() + DEADLOCK_S
        try:
            while not self._is_free(request):
                self._released.wait(CANCEL_LOOK_S)
                check_canceled(client)
                if time.monotonic() >= deadlock_look:
                    self._check_deadlock(request)
        finally:
            self._waiting.remove(request)
            self._released.notify_all()

    def _release(self, request: LockRequest) -> None:
        with self._released:
            self._held.remove(request)
            self._released.notify_all()

    def _is_free(self, request: LockRequest) -> bool:
        return next(self._blocking(request), None) is None

    def _blocking(self, request: LockRequest) -> Iterator[LockRequest]:
        """Yields the locks and the earlier requests of other sessions that a request has to wait for.

        If the session has the lock in the other mode, it does not wait for earlier requests, which may wait for it.
        """
        others = [held for held in self._held if held.key == request.key]
        if not request.waits or all(held.session != request.session for held in others):
            earlier = self._waiting[: self._waiting.index(request)] if request in self._waiting else self._waiting
            others += [waiting for waiting in earlier if waiting.key == request.key]
        yield from (o for o in others if o.session != request.session and not (o.shared and request.shared))

    def _check_deadlock(self, request: LockRequest) -> None:
        """Raises 40P01 if the session waits, directly or not, for itself."""
        waiting = {other.session: other for other in self._waiting}
        reached: dict[int, tuple[LockRequest, int]] = {}  # by session: a request that it blocks
        paths = [request]
        while paths:
            blocked = paths.pop()
            for blocker in {other.session for other in self._blocking(blocked)}:
                if blocker in reached:
                    continue
                reached[blocker] = (blocked, blocker)
                if blocker == request.session:
                    raise DeadlockDetected("deadlock detected", detail=_cycle(request.session, reached))
                if blocker in waiting:
                    paths.append(waiting[blocker])


def _cycle(session: int, reached: dict[int, tuple[LockRequest, int]]) -> str:
    """Returns a line for each session of a cycle, as PostgreSQL's detail has."""
    lines: list[str] = []
    end = session
    while not lines or end != session:
        blocked, blocker = reached[end]
        mode = "ShareLock" if blocked.shared else "ExclusiveLock"
        numbers = ",".join(map(str, blocked.key))
        lines.append(f"Process {blocked.session} waits for {mode} on advisory lock [{numbers}]; blocked by process {blocker}.")
        end = blocked.session
    return "\n".join(reversed(lines))
