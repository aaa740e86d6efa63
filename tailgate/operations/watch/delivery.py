"""Delivery of notifications: in order, to each target, until it accepts them.

    notification n ──► POST ── 2xx ──► position n is durable ──► n + 1
                        └── else ──► wait, 1 s at first, doubled up to 60 s ──► POST again

A process that is killed between the answer and the position sends the notification again, with the same id.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

import urllib3

from tailgate.lake.catalog.secrets import Sealed
from tailgate.lake.errors import TailgateError
from tailgate.lake.folder import Lake
from tailgate.operations.watch import notifications, payloads
from tailgate.operations.watch.alerts import Notification
from tailgate.operations.watch.notifications import Notifications

log = logging.getLogger("tailgate.watch")

RETRY_FIRST_S, RETRY_LAST_S = 1.0, 60.0
REQUEST_S = 10.0  # for the connection, and again for the answer
END_S = 5.0  # for a request that is running
POLL_S = 10.0  # a thread that is not woken looks for notifications this often


class Target(Protocol):
    """A place that receives notifications. `name` identifies its position; it changes with whatever makes it another place."""

    @property
    def name(self) -> str: ...

    def wants(self, notification: Notification) -> bool:
        """Returns whether a notification is for this target."""

    def send(self, notification: Notification) -> str | None:
        """Sends a notification. Returns why the target did not accept it, or None."""

    def close(self) -> None:
        """Closes a connection that `send` has left open."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """A URL to which notifications are sent. `secret`: returns the key of the signature, or None."""

    url: str
    form: payloads.Format
    lake: str
    secret: Callable[[], str | None]
    accepts: Callable[[Notification], bool]
    owner: str = ""  # of several targets with one URL, each has its position
    sealed: Sealed | None = None  # the secret as the catalog has it

    @property
    def name(self) -> str:
        return hashlib.sha256("\n".join((self.owner, self.form, self.url)).encode()).hexdigest()[:16]

    def wants(self, notification: Notification) -> bool:
        return self.accepts(notification)

    def send(self, notification: Notification) -> str | None:
        content = payloads.body(notification, self.form, self.lake)
        try:
            headers = payloads.headers(notification, content, self.secret(), int(time.time()))
            answer = _pool.request("POST", self.url, body=content, headers=headers, timeout=REQUEST_S, retries=False, preload_content=False)
            answer.close()  # the body is not read
        except (urllib3.exceptions.HTTPError, TailgateError, OSError, ValueError) as error:
            return type(error).__name__
        return None if 200 <= answer.status < 300 else f"HTTP status {answer.status}"

    def close(self) -> None:
        pass


_pool = urllib3.PoolManager(maxsize=1)


class Deliverer(threading.Thread):
    """A thread that delivers the notifications of a lake to one target."""

    def __init__(self, lake: Lake, target: Target, start: int) -> None:
        """Creates the thread. A target without a position begins after the id `start`."""
        super().__init__(name=f"deliver {target.name}", daemon=True)
        self.target = target
        self._lake, self._read = lake, Notifications(lake)
        at = notifications.position(lake, target.name)
        self.position = start if at is None else at
        self._wake, self._ending = threading.Event(), threading.Event()
        if at is None:
            notifications.set_position(lake, target.name, start)

    def wake(self) -> None:
        """Makes the thread look for new notifications at once."""
        self._wake.set()

    def end(self) -> None:
        """Ends the thread; a request that is running ends first."""
        self._ending.set()
        self._wake.set()

    def run(self) -> None:
        while not self._ending.is_set():
            self._wake.clear()
            try:
                self._deliver()
            except OSError as error:  # for example a full disk: the position is written later
                log.warning("the position of a target cannot be read or written: %s", error)
                self._ending.wait(RETRY_FIRST_S)
            else:
                self.target.close()
                self._wake.wait(POLL_S)
        self.target.close()

    def _deliver(self) -> None:
        """Delivers all notifications after the position."""
        for n in self._read.numbers():
            if n <= self.position:
                continue
            notification = self._read.get(n)
            if self._ending.is_set():
                return
            if notification is not None and not notification.silenced and self.target.wants(notification) and not self._send(notification):
                return
            self.position = n  # also if it cannot be written now: a full disk must not repeat a notification
            notifications.set_position(self._lake, self.target.name, n)

    def _send(self, notification: Notification) -> bool:
        """Sends a notification until the target accepts it. Returns False if the thread ends before."""
        pause = RETRY_FIRST_S
        while (reason := self.target.send(notification)) is not None:
            log.warning("notification %d is not accepted (%s); it is sent again in %.0f s", notification.n, reason, pause)
            if self._ending.wait(pause):
                return False
            pause = min(2 * pause, RETRY_LAST_S)
        return True


class Deliverers:
    """The threads for all targets. A new target begins after the notification `start`."""

    def __init__(self, lake: Lake, start: int) -> None:
        self._lake, self._start = lake, start
        self._threads: dict[str, Deliverer] = {}
        self._first = True

    def update(self, targets: Iterable[Target], newest: int, receiving: Collection[int]) -> None:
        """Starts threads for new targets, and ends those of targets that do not exist any more and have received everything.

        `newest`: the newest notification. `receiving`: the ids of the alerts that are active and have webhooks.
        """
        by_name = {target.name: target for target in targets}
        if self._first:
            notifications.forget_targets(self._lake, by_name)
            self._first = False
        for name, target in by_name.items():
            thread = self._threads.get(name)
            if thread is None:
                thread = self._threads[name] = Deliverer(self._lake, target, self._start)
                thread.start()
            thread.target = target  # its secret may have changed
        for name in self._threads.keys() - by_name.keys():
            if self._threads[name].position >= newest and not receiving:
                self._threads.pop(name).end()
                notifications.forget_target(self._lake, name)

    def wake(self) -> None:
        """Makes all threads look for new notifications at once."""
        for thread in self._threads.values():
            thread.wake()

    def undelivered(self, newest: int) -> dict[str, int]:
        """Returns the number of notifications that each target has not received yet."""
        return {name: newest - thread.position for name, thread in list(self._threads.items())}

    def end(self) -> None:
        """Ends all threads, and waits for requests that are running, at most END_S."""
        for thread in self._threads.values():
            thread.end()
        for thread in self._threads.values():
            thread.join(END_S)
