"""What enters a tick other than from Kafka: numbered entries, durable before anybody is told, that the next tick reads in order.

    write(records) ──► inbox/<epoch>/.<n> ──fsync──► link <n> ──fsync the folder──► [the epoch is still ours?] ──► n
    a tick reads (last, n] ──► the log's entry says `inbox: n` ──► remove(upto n)

Numbers go on for as long as the lake lives; the log's newest entry tells the last one that a tick has read, and what is later is still
to be read, also after a crash. Every epoch has a folder of its own: an engine that was paused and replaced can write to its old one
only, where nobody looks any more. A new epoch takes over what is not yet read, all at once, by the name of its folder.

An entry is records, big-endian: channel, key, value as a length (4 bytes, -1 for NULL) and bytes; then partition (4), offset (8) and
milliseconds (8); then the headers, sized as a whole: name and value of each as above. engine/java's InboxSource reads the same.
"""

from __future__ import annotations

import os
import shutil
import struct
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lake import crash, files
from lake.errors import Replaced

if TYPE_CHECKING:
    from lake.folder import Lake

TABLE = "$table/"  # begins the channels of tables; their ids follow


@dataclass(frozen=True, slots=True)
class Record:
    """A record with Kafka's columns; `timestamp` in milliseconds."""

    channel: str
    key: bytes | None
    value: bytes | None
    partition: int = 0
    offset: int = 0
    timestamp: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def parts(self) -> list[bytes]:
        """Its bytes, in pieces."""
        channel = self.channel.encode()
        return [
            struct.pack(">i", len(channel)),
            channel,
            *_sized(self.key),
            *_sized(self.value),
            struct.pack(">iqq", self.partition, self.offset, self.timestamp),
            *_sized(b"".join(p for k, v in self.headers for p in (*_sized(k.encode()), *_sized(v))) if self.headers else None),
        ]


def _sized(value: bytes | None) -> list[bytes]:
    return [struct.pack(">i", -1)] if value is None else [struct.pack(">i", len(value)), value]


def records(data: bytes) -> Iterator[tuple[str, memoryview | None]]:
    """Channel and value of each record of an entry."""
    view, at = memoryview(data), 0

    def taken() -> memoryview | None:
        nonlocal at
        (length,) = struct.unpack_from(">i", view, at)
        at += 4
        if length < 0:
            return None
        at += length
        return view[at - length : at]

    while at < len(view):
        channel, _, value = taken(), taken(), taken()
        assert channel is not None
        at += 20
        taken()
        yield bytes(channel).decode(), value


class Inbox:
    """The writing end; one per epoch. `consumed`: the last entry that the log has passed. Thread safe."""

    def __init__(self, lake: Lake, epoch: int, consumed: int) -> None:
        self._lake = lake
        self.epoch = epoch
        self.folder = lake.path / "inbox" / str(epoch)
        self._lock = threading.Lock()
        if not self.folder.is_dir():
            _take_over(self.folder, consumed)
        self.newest = max([consumed, *_numbers(self.folder)])
        for old in _epochs(self.folder.parent):
            if old < epoch:
                shutil.rmtree(self.folder.parent / str(old), ignore_errors=True)

    def write(self, entry: Iterable[Record]) -> int:
        """Adds an entry; its number, once it is durable. Raises Replaced if another epoch has begun meanwhile."""
        parts = [part for record in entry for part in record.parts()]
        with self._lock:
            number = self.newest + 1
            crash.point("inbox.entry")
            files.create(self.folder / str(number), parts, self.folder / f".{number}", linked=lambda: crash.point("inbox.link"))
            newest = self._lake.log.newest()
            if newest is not None and newest.epoch != self.epoch:
                raise Replaced(f"epoch {newest.epoch} writes the log now")
            crash.point("inbox.linked")
            self.newest = number
            return number

    def read(self, after: int, upto: int) -> Iterator[tuple[str, memoryview | None]]:
        """Channels and values of the records of entries (after, upto]."""
        for number in range(after + 1, upto + 1):
            yield from records((self.folder / str(number)).read_bytes())

    def remove(self, after: int, upto: int) -> None:
        """Entries (after, upto], which the log has passed."""
        for number in range(after + 1, upto + 1):
            (self.folder / str(number)).unlink(missing_ok=True)


def _numbers(folder: Path) -> list[int]:
    return [int(f.name) for f in folder.iterdir() if f.name.isdigit()]


def _epochs(folder: Path) -> list[int]:
    return sorted(int(f.name) for f in folder.iterdir() if f.name.isdigit() and f.is_dir())


def _take_over(folder: Path, consumed: int) -> None:
    """Makes an epoch's folder with what the last whole one holds after `consumed`: there at once, by its name, or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for stray in folder.parent.iterdir():
        if stray.is_file():
            stray.unlink()
    made = folder.with_name(f".{folder.name}")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(mode=0o700)
    for old in _epochs(folder.parent)[-1:]:
        for number in _numbers(folder.parent / str(old)):
            if number > consumed:
                os.link(folder.parent / str(old) / str(number), made / str(number))
    files.sync_folder(made)
    crash.point("inbox.taken")
    made.rename(folder)
    files.sync_folder(folder.parent)
