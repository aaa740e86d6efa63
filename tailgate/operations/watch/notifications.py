"""The notifications of a lake: one object each, named by its id. `tailgate watch` writes them; gateways read them.

    watch/notifications/<n>    a notification as JSON
    watch/lock                 held by the process that writes them
    watch/targets/<name>       the id of the last notification that a target has received
    watch/reserve/<n>          space on the disk for a notification while the disk is full

A notification exists as soon as its object has its name, as an entry of the log does (W1): a second writer finds the name taken. So ids
have no gaps, whatever is killed.
"""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Iterable
from contextlib import suppress

from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.lake.folder import Lake
from tailgate.lake.store import NoLocks, Store, documents
from tailgate.operations.watch.alerts import Event, Notification, alerts

FOLDER = "watch"
NOTIFICATIONS, TARGETS, LOCK = f"{FOLDER}/notifications", f"{FOLDER}/targets", f"{FOLDER}/lock"
KEPT_MS = 7 * 24 * 3_600_000
KEPT_MAX = 10_000  # notifications; one has about 300 bytes
RESERVE = f"{FOLDER}/reserve"
RESERVED = 16  # notifications that can be written while the disk is full
RESERVED_BYTES = 16 << 10  # for a notification, and for the position of a target that has received it


class Notifications:
    """The notifications of a lake, for reading."""

    def __init__(self, lake: Lake) -> None:
        self._store = lake.store
        self._read: dict[int, Notification] = {}  # those that `all` has returned; they never change

    def all(self) -> list[Notification]:
        """Returns the notifications that are kept, in order. Safe from many threads."""
        cache = self._read
        notifications = {n: cache.get(n) or self.get(n) for n in self.numbers()}
        self._read = {n: notification for n, notification in notifications.items() if notification is not None}
        return list(self._read.values())

    def get(self, n: int) -> Notification | None:
        """Returns a notification, or None if it does not exist."""
        document = documents.read(self._store, _name(n))
        return None if document is None else Notification.from_json(document)

    def numbers(self) -> list[int]:
        """Returns the ids that are kept, in order."""
        return self._store.numbers(NOTIFICATIONS)


class Writer:
    """The only writer of the notifications of a lake. Raises 55000 if another process is."""

    def __init__(self, lake: Lake) -> None:
        self.read = Notifications(lake)
        self._lock = lake.store.lock(LOCK)
        with suppress(NoLocks):  # then the names of the notifications exclude a second writer
            if not self._lock.take():
                raise _another(lake)
        self._lake, self._reserve = lake, Reserve(lake.store)
        numbers = self.read.numbers()
        self.newest = numbers[-1] if numbers else 0

    def append(self, event: Event, *, silenced: bool = False) -> Notification:
        """Makes an event durable as the next notification. If the disk is full, it gets space of the reserve.

        Raises OSError if it cannot be written, 55000 if another process writes.
        """
        n, now = self.newest + 1, time.time_ns() // 1_000_000
        notification = Notification(n, now, event.kind, event.condition, event.since or now, silenced)
        content = json.dumps(notification.to_json()).encode()
        try:
            is_new = self._lake.store.create(_name(n), [content])
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not self._reserve.release():
                raise
            is_new = self._lake.store.create(_name(n), [content])
        if not is_new:
            raise _another(self._lake)
        self.newest = n
        return notification

    def maintain(self) -> None:
        """Removes old notifications, but not the newest one, and none of an active alert. Then fills the reserve, but not in a bucket.

        Raises OSError if the disk has too little space for the reserve.
        """
        history = self.read.all()
        needed = {alert.first for alert in alerts(history) if alert.resolved_at is None} | {self.newest}
        oldest = time.time_ns() // 1_000_000 - KEPT_MS
        old = (n.n for n in history if n.at < oldest or n.n <= self.newest - KEPT_MAX)
        self._lake.store.discard(_name(n) for n in old if n not in needed)
        if self._lake.store is self._lake.local:
            self._reserve.fill()

    def close(self) -> None:
        """Lets another process write."""
        self._lock.release()


class Reserve:
    """Objects that take space on the disk, for its notifications when it is full."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def fill(self) -> None:
        """Creates the objects that are missing. Raises OSError if the disk has too little space for them."""
        for number in set(range(1, RESERVED + 1)).difference(self._store.numbers(RESERVE)):
            self._store.put(f"{RESERVE}/{number}", bytes(RESERVED_BYTES))

    def release(self) -> bool:
        """Removes an object. Returns False if there is none."""
        numbers = self._store.numbers(RESERVE)
        self._store.discard([f"{RESERVE}/{number}" for number in numbers[:1]])
        return bool(numbers)


def position(lake: Lake, target: str) -> int | None:
    """Returns the id of the last notification that a target has received, or None if there is none."""
    document = documents.read(lake.store, f"{TARGETS}/{target}")
    return None if document is None else int(document["n"])


def set_position(lake: Lake, target: str, n: int) -> None:
    """Records that a target has received a notification and all before it."""
    documents.write(lake.store, f"{TARGETS}/{target}", {"n": n})


def forget_targets(lake: Lake, existing: Iterable[str]) -> None:
    """Removes the positions of targets that do not exist any more."""
    for target in set(lake.store.names(TARGETS)).difference(existing):
        forget_target(lake, target)


def forget_target(lake: Lake, target: str) -> None:
    """Removes the position of a target."""
    lake.store.discard([f"{TARGETS}/{target}"])


def _name(n: int) -> str:
    return f"{NOTIFICATIONS}/{n}"


def _another(lake: Lake) -> ObjectNotInPrerequisiteState:
    return ObjectNotInPrerequisiteState(f"another tailgate watch runs on the lake in {lake.store.location('')}", hint="Stop it first.")
