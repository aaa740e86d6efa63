"""What enters a tick other than from Kafka: numbered files that the inbox source reads in order.

    write(records) ──► .<n> ──link──► <n> ──► advance(n) rings the doorbell ──► a batch reads (last, n]

Source of the format: engine/java, InboxSource.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Record:
    """A record with Kafka's columns; `timestamp` in milliseconds."""

    channel: str
    key: bytes | None
    value: bytes | None
    partition: int = 0
    offset: int = 0
    timestamp: int = 0

    def to_bytes(self) -> bytes:
        parts = [
            _sized(self.channel.encode()),
            _sized(self.key),
            _sized(self.value),
            struct.pack(">iqq", self.partition, self.offset, self.timestamp),
        ]
        return b"".join(parts)


def _sized(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


class Inbox:
    """The writing end; one per engine. `jvm` is py4j's view of the driver."""

    def __init__(self, folder: Path, consumed: int, jvm: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self._jvm = jvm
        self._lock = threading.Lock()
        numbers = [int(f.name) for f in folder.iterdir() if f.name.isdigit()]
        self.newest = max([consumed, *numbers])

    def write(self, records: Iterable[Record], *, durable: bool = False) -> int:
        """Adds an entry and starts a tick; returns its number. Pieces of a fill need not be durable: after a crash the fill begins anew."""
        data = b"".join(r.to_bytes() for r in records)
        with self._lock:
            number = self.newest + 1
            temporary = self.folder / f".{number}"
            with open(temporary, "wb") as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            os.rename(temporary, self.folder / str(number))
            if durable:
                directory = os.open(self.folder, os.O_RDONLY)
                os.fsync(directory)
                os.close(directory)
            self.newest = number
        self._jvm.tailgate.InboxSource.advance(str(self.folder), number)
        return number

    def ring(self) -> None:
        self._jvm.tailgate.InboxSource.ring(str(self.folder))

    def due(self, millis: int) -> None:
        """When the circuit next has something to do by the clock alone."""
        self._jvm.tailgate.InboxSource.due(str(self.folder), millis)

    def remove(self, after: int, upto: int) -> None:
        """Entries that the log has passed."""
        for number in range(after + 1, upto + 1):
            (self.folder / str(number)).unlink(missing_ok=True)
