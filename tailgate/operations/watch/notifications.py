"""The notifications of a lake: one file each, named by its id. `tailgate watch` writes them; gateways read them.

    watch/notifications/<n>    a notification as JSON
    watch/lock                 held by the process that writes them
    watch/targets/<name>       the id of the last notification that a target has received

A notification exists as soon as its file has its name, as an entry of the log does (W1): a second writer finds the name taken. So ids
have no gaps, whatever is killed.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path

from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.lake.folder import Lake
from tailgate.lake.host import files
from tailgate.operations.watch.alerts import Event, Notification, alerts

FOLDER = "watch"
KEPT_MS = 7 * 24 * 3_600_000
KEPT_MAX = 10_000  # notifications; a file has about 300 bytes


class Notifications:
    """The notifications of a lake, for reading."""

    def __init__(self, lake: Lake) -> None:
        self.folder = lake.path / FOLDER / "notifications"
        self._read: dict[int, Notification] = {}  # those that `all` has returned; they never change

    def all(self) -> list[Notification]:
        """Returns the notifications that are kept, in order. Safe from many threads."""
        cache = self._read
        notifications = {n: cache.get(n) or self.get(n) for n in self.numbers()}
        self._read = {n: notification for n, notification in notifications.items() if notification is not None}
        return list(self._read.values())

    def get(self, n: int) -> Notification | None:
        """Returns a notification, or None if it does not exist."""
        try:
            return Notification.from_json(json.loads((self.folder / str(n)).read_bytes()))
        except FileNotFoundError:
            return None

    def numbers(self) -> list[int]:
        """Returns the ids that are kept, in order."""
        try:
            return files.numbered(self.folder)
        except FileNotFoundError:
            return []


class Writer:
    """The only writer of the notifications of a lake. Raises 55000 if another process is."""

    def __init__(self, lake: Lake) -> None:
        self.read = Notifications(lake)
        files.make_folder(self.read.folder)
        self._lock = os.open(lake.path / FOLDER / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, files.PRIVATE)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise _another(lake.path) from None
        except OSError:  # a file system without locks: the names of the files exclude a second writer
            pass
        self._lake = lake
        numbers = self.read.numbers()
        self.newest = numbers[-1] if numbers else 0

    def append(self, event: Event, *, silenced: bool = False) -> Notification:
        """Makes an event durable as the next notification. Raises OSError if it cannot be written, 55000 if another process writes."""
        n, now = self.newest + 1, time.time_ns() // 1_000_000
        notification = Notification(n, now, event.kind, event.condition, event.since or now, silenced)
        path = self.read.folder / str(n)
        content = json.dumps(notification.to_json()).encode()
        if not files.create(path, [content], path.with_name(f".{n}.{os.getpid()}")):
            raise _another(self._lake.path)
        self.newest = n
        return notification

    def remove_old(self) -> None:
        """Removes old notifications, but not the newest one, and none of an active alert."""
        history = self.read.all()
        needed = {alert.first for alert in alerts(history) if alert.resolved_at is None} | {self.newest}
        oldest = time.time_ns() // 1_000_000 - KEPT_MS
        for notification in history:
            old = notification.at < oldest or notification.n <= self.newest - KEPT_MAX
            if old and notification.n not in needed:
                files.discard(self.read.folder / str(notification.n))

    def close(self) -> None:
        """Lets another process write."""
        os.close(self._lock)


def position(lake: Lake, target: str) -> int | None:
    """Returns the id of the last notification that a target has received, or None if there is none."""
    try:
        return int(json.loads((lake.path / FOLDER / "targets" / target).read_bytes())["n"])
    except FileNotFoundError:
        return None


def set_position(lake: Lake, target: str, n: int) -> None:
    """Records that a target has received a notification and all before it."""
    path = lake.path / FOLDER / "targets" / target
    if not path.parent.exists():
        files.make_folder(path.parent)
    files.replace(path, json.dumps({"n": n}).encode())


def forget_targets(lake: Lake, existing: Iterable[str]) -> None:
    """Removes the positions of targets that do not exist any more."""
    folder, names = lake.path / FOLDER / "targets", set(existing)
    for path in folder.iterdir() if folder.exists() else ():
        if path.name not in names and not path.name.startswith("."):
            files.discard(path)


def forget_target(lake: Lake, target: str) -> None:
    """Removes the position of a target."""
    files.discard(lake.path / FOLDER / "targets" / target)


def _another(path: Path) -> ObjectNotInPrerequisiteState:
    return ObjectNotInPrerequisiteState(f"another tailgate watch runs on the lake in {path}", hint="Stop it first.")
