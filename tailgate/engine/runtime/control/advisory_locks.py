"""Advisory locks of sessions: each is held while the request of `POST /lock` that has got it is open.

    POST /lock ──► granted, or in the order of requests when the sessions before it have released ──► answer
                                                        └── the connection ends: the lock is released

A gateway closes the connection when the session releases the lock, and the kernel does so when the gateway is killed. A request whose
connection has ended blocks nobody, also before its thread has noticed. If the engine ends or is replaced, its gateways end the sessions
that hold locks. Two modes of one session never conflict.

Source: PostgreSQL 15, "Advisory Locks"; src/backend/storage/lmgr/README, deadlock.c.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from tailgate.engine.runtime.control.control import Client
from tailgate.engine.runtime.control.turns import check_canceled
from tailgate.lake.control import LockRequest
from tailgate.lake.errors import DeadlockDetected, OutOfMemory

# locks that are held or waited for, of all roles and of one: each holds a thread of the control interface
LOCKS_MAX, LOCKS_EACH = 1000, 200
DEADLOCK_S = 1.0  # that a request waits before it looks for a deadlock, as PostgreSQL's deadlock_timeout
CANCEL_LOOK_S = 0.25  # between two checks whether the client of a waiting request is still connected


@dataclass(frozen=True, slots=True, eq=False)
class _Claim:
    """A lock that a session holds or waits for, until its client ends."""

    request: LockRequest
    client: Client

    def blocks(self, other: LockRequest) -> bool:
        """Returns whether another request has to wait for this one, if its client is still connected."""
        own = self.request
        return own.key == other.key and own.session != other.session and not (own.shared and other.shared)


class AdvisoryLocks:
    """The locks that sessions hold and wait for. Thread safe."""

    def __init__(self) -> None:
        self._held: list[_Claim] = []
        self._waiting: list[_Claim] = []  # in the order of their requests
        self._released = threading.Condition()

    def request(self, body: bytes, client: Client) -> tuple[dict[str, Any], Callable[[], None]]:
        """Waits for a lock, unless the request does not. Returns the answer, and a function that releases the lock.

        Raises 40P01 for a deadlock, 53200 if there are too many locks, 57014 if the client ends.
        """
        claim = _Claim(LockRequest.decode(body), client)
        with self._released:
            self._check_limits(claim.request.role)
            granted = self._is_free(claim)
            if not granted and claim.request.waits:
                self._wait(claim)
                granted = True
            if not granted:
                return {"granted": False}, lambda: None
            self._held.append(claim)
        return {"granted": True}, lambda: self._release(claim)

    def _check_limits(self, role: int) -> None:
        roles = [claim.request.role for claim in (*self._held, *self._waiting)]
        if len(roles) >= LOCKS_MAX or roles.count(role) >= LOCKS_EACH:
            detail = f"Sessions can hold {LOCKS_MAX} locks, those of one role {LOCKS_EACH}."
            raise OutOfMemory("too many advisory locks", detail=detail, hint="Release locks that are not needed.")

    def _wait(self, claim: _Claim) -> None:
        """Waits until the request can be granted. The caller holds `_released`."""
        self._waiting.append(claim)
        deadlock_look = time.monotonic() + DEADLOCK_S
        try:
            while not self._is_free(claim):
                self._released.wait(CANCEL_LOOK_S)
                check_canceled(claim.client)
                if time.monotonic() >= deadlock_look:
                    self._check_deadlock(claim)
                    deadlock_look = math.inf  # a later request that completes a cycle looks for it
        finally:
            self._waiting.remove(claim)
            self._released.notify_all()

    def _release(self, claim: _Claim) -> None:
        with self._released:
            self._held.remove(claim)
            self._released.notify_all()

    def _is_free(self, claim: _Claim) -> bool:
        return all(other.client.gone() for other in self._blocking(claim))

    def _blocking(self, claim: _Claim) -> Iterator[_Claim]:
        """Yields the locks and the earlier requests of other sessions that a request has to wait for, unless their clients have ended.

        If the session has the lock in the other mode, it does not wait for earlier requests, which may wait for it.
        """
        request = claim.request
        yield from (held for held in self._held if held.blocks(request))
        own = (held for held in self._held if (held.request.session, held.request.key) == (request.session, request.key))
        if not request.waits or all(held.client.gone() for held in own):
            earlier = takewhile(lambda other: other is not claim, self._waiting)
            yield from (other for other in earlier if other.blocks(request))

    def _check_deadlock(self, claim: _Claim) -> None:
        """Raises 40P01 if the session waits, directly or not, for itself."""
        session = claim.request.session
        waiting = {other.request.session: other for other in self._waiting}  # the last request of each, which is not canceled
        reached: dict[int, LockRequest] = {}  # by session: a request that it blocks
        paths = [claim]
        while paths:
            blocked = paths.pop()
            for other in self._blocking(blocked):
                blocker = other.request.session
                if blocker in reached or other.client.gone():
                    continue
                reached[blocker] = blocked.request
                if blocker == session:
                    raise DeadlockDetected("deadlock detected", detail=_cycle(session, reached))
                if blocker in waiting and not waiting[blocker].client.gone():
                    paths.append(waiting[blocker])


def _cycle(session: int, reached: Mapping[int, LockRequest]) -> str:
    """Returns a line for each session of a cycle, as PostgreSQL's detail has. `reached`: by session, a request that it blocks."""
    lines: list[str] = []
    blocker = session
    while not lines or blocker != session:
        blocked = reached[blocker]
        mode = "ShareLock" if blocked.shared else "ExclusiveLock"
        numbers = ",".join(map(str, blocked.key))
        lines.append(f"Process {blocked.session} waits for {mode} on advisory lock [{numbers}]; blocked by process {blocker}.")
        blocker = blocked.session
    return "\n".join(reversed(lines))
