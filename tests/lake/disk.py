"""A simulated disk that can lose power.

It records the lake's file operations and builds every folder state that the disk may have after a
power loss.

    Disk(folder)           records from now on which contents and which names are durable
    disk.fail_at(k, …)     operation k raises
    disk.image(target, …)  the folder as it may be after a power loss now

Content is durable up to the length that the file had at its last fsync. A name, or its absence, is
durable as of the last fsync of its folder. Everything else may be present or not, and content may
be cut anywhere. What delta-rs or the JVM write is durable only if an fsync of it was recorded.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tailgate.lake.host import disk


class PowerLoss(BaseException):
    """The end of the process, because the power is gone."""


Fault = Callable[[], BaseException]


class Disk:
    """A folder whose file operations are recorded, as pairs (name, path) in `operations`.

    `shadow` must be on the same file system: it keeps hard links to synced files.
    """

    def __init__(self, folder: Path, shadow: Path) -> None:
        self.folder = folder
        self.operations: list[tuple[str, Path]] = []
        self._shadow = shadow
        shadow.mkdir()
        self._lengths: dict[int, int] = {}  # inode → length of the durable content
        # folder → its durable names, each with the inode of its file or folder
        self._names: dict[Path, dict[str, int]] = {}
        self._fault: tuple[int, bool, Fault] | None = None
        self._lock = threading.RLock()  # a round syncs from several threads
        self._dead = False
        self.faulted: tuple[str, Path] | None = None

    # ---- recording ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def recording(self) -> Iterator[Disk]:
        """Records the lake's file operations until the block ends."""
        disk.hook = self._operation
        try:
            yield self
        finally:
            disk.hook = None

    def fail_at(self, number: int, after: bool, fault: Fault) -> None:
        """Makes the operation `number`, counted from now, raise: before it runs, or after."""
        self._fault = (len(self.operations) + number, after, fault)
        self.faulted = None

    def _operation(self, name: str, path: Path, operation: Callable[[], Any]) -> Any:
        with self._lock:
            if self._dead:
                raise PowerLoss
            return self._done(name, path, operation)

    def _done(self, name: str, path: Path, operation: Callable[[], Any]) -> Any:
        number = len(self.operations)
        self.operations.append((name, path))
        fault = self._fault if self._fault is not None and self._fault[0] == number else None
        if fault is not None and not fault[1]:
            self._raise(name, path, fault[2])
        try:
            result = operation()
            if name == "fsync":
                self.synced(path)
        finally:
            if fault is not None and self._fault is fault:
                self._raise(name, path, fault[2])
        return result

    def _raise(self, name: str, path: Path, fault: Fault) -> None:
        self._fault = None
        self.faulted = (name, path)
        error = fault()
        self._dead = isinstance(error, PowerLoss)
        raise error

    def synced(self, path: Path) -> None:
        """Notes that an fsync of a file or folder has completed."""
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return
        if not path.is_dir():
            self._pin(path, status.st_ino)
            self._lengths[status.st_ino] = max(status.st_size, self._lengths.get(status.st_ino, 0))
            return
        if path != self.folder and self.folder not in path.parents:
            return
        names: dict[str, int] = {}
        for entry in os.scandir(path):
            names[entry.name] = entry.inode()
            if entry.is_file(follow_symlinks=False):
                self._pin(Path(entry.path), entry.inode())
        self._names[path] = names

    def _pin(self, path: Path, inode: int) -> None:
        """Keeps the file, and so its inode number, even if its name is removed."""
        link = self._shadow / str(inode)
        if not link.exists():
            try:
                os.link(path, link)
            except FileNotFoundError:
                return

    # ---- loss --------------------------------------------------------------------------------------------------------------

    def image(self, target: Path, chance: random.Random | None, lost: float = 0.5) -> Path:
        """Copies the folder to `target` as it may be after a power loss now. Returns `target`.

        Without `chance`, everything that may be lost is lost. `lost` is the probability of each
        loss.
        """
        self._copy(self.folder, target, chance, lost)
        return target

    def _copy(self, folder: Path, target: Path, chance: random.Random | None, lost: float) -> None:
        target.mkdir(parents=True)
        target.chmod(0o700)
        durable = self._names.get(folder, {})
        now = {entry.name: entry.inode() for entry in os.scandir(folder)} if folder.is_dir() else {}
        for name in sorted({*durable, *now}):
            choices = [durable.get(name), now.get(name)]
            inode = choices[0 if chance is None or chance.random() < lost else 1]
            if inode is None:
                continue
            source = folder / name if now.get(name) == inode else self._shadow / str(inode)
            if source.is_dir():
                self._copy(source, target / name, chance, lost)
            elif source.exists():
                self._copy_file(source, target / name, inode, chance, lost)
            # A removed folder is not kept in the shadow: its removal always survives.

    def _copy_file(self, source: Path, target: Path, inode: int, chance: random.Random | None, lost: float) -> None:
        size = source.stat().st_size
        durable = min(self._lengths.get(inode, 0), size)
        length = size
        if chance is None:
            length = durable
        elif chance.random() < lost:
            length = chance.choice([durable, chance.randint(durable, size)])
        if length == size:
            shutil.copyfile(source, target)
        else:
            target.write_bytes(source.read_bytes()[:length])
