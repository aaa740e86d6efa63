"""A lake's storage in a folder: one file for each object.

    create    writes a temporary file, syncs it, links it to its name, and syncs the folder
    replace   the same with a rename, under a lock of the folder
    get       maps large files into memory

Temporary files begin with a dot, and so does the file of the lock; such names are not listed.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from tailgate.lake.host import files, locks, processes
from tailgate.lake.store.fencing import FolderWriter
from tailgate.lake.store.interface import nothing, numbers_in

MAPPED_BYTES = 32 << 10  # larger files are mapped into memory; to read a smaller one is faster, and needs no mapping
LOCK = ".lock"  # of a folder, for `replace`


class FolderStore:
    """The objects in a folder."""

    look_s = 0.01
    options: Mapping[str, str] = {}

    def __init__(self, path: Path) -> None:
        self.path = path
        self.boot = processes.boot().encode()
        self._root = f"{path}/"
        self._id, self._count = uuid.uuid4().hex, itertools.count()  # make the names of temporary files unique

    @staticmethod
    def made(path: Path, folders: Iterable[str]) -> FolderStore:
        """Creates the folder, and empty folders in it, unless they exist. They are durable together with the first object."""
        files.make_folder(path)
        path.chmod(files.PRIVATE_FOLDER)
        for name in folders:
            (path / name).mkdir(exist_ok=True, mode=files.PRIVATE_FOLDER)
        return FolderStore(path)

    # ---- reading ---------------------------------------------------------------------------------------------------------------

    def get(self, name: str) -> pa.Buffer:
        descriptor = os.open(self._root + name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            if size <= MAPPED_BYTES:
                return pa.py_buffer(os.read(descriptor, size))
        finally:
            os.close(descriptor)
        with pa.memory_map(self._root + name) as file:
            return file.read_buffer()

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        descriptor = os.open(self._root + name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, length, offset)
        finally:
            os.close(descriptor)

    def get_version(self, name: str) -> tuple[bytes, str]:
        content = self.get(name).to_pybytes()
        return content, hashlib.sha256(content).hexdigest()

    def exists(self, name: str) -> bool:
        return os.path.exists(self._root + name)

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._root + folder) if name[0] != ".")
        except (FileNotFoundError, NotADirectoryError):
            return []

    def numbers(self, folder: str) -> list[int]:
        return numbers_in(self.names(folder))

    def sizes(self, folder: str) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for name in self.names(folder):
            with suppress(FileNotFoundError):  # removed since the folder was listed
                status = os.stat(f"{self._root}{folder}/{name}")
                if stat.S_ISREG(status.st_mode):
                    sizes[name] = status.st_size
        return sizes

    def size(self, name: str) -> int:
        return os.stat(self._root + name).st_size

    # ---- writing ---------------------------------------------------------------------------------------------------------------

    def create(self, name: str, parts: Iterable[bytes | memoryview], *, visible: Callable[[], None] = nothing) -> bool:
        folder, _, last = name.rpartition("/")
        path, temporary = Path(self._root + name), Path(f"{self._root}{folder}/.{last}.{os.getpid()}.{self._id}.{next(self._count)}")
        if not path.parent.is_dir():
            files.make_folder(path.parent)
        return files.create(path, parts, temporary, linked=visible)

    def put(self, name: str, content: bytes) -> None:
        files.replace(self._path(name), content)

    def replace(self, name: str, content: bytes, version: str | None) -> bool:
        path = self._path(name)
        lock = locks.Lock(path.parent / LOCK)
        try:
            with suppress(locks.NoLocks):
                lock.wait()
            try:
                current = self.get_version(name)[1]
            except FileNotFoundError:
                current = None
            if current != version:
                return False
            files.replace(path, content)
            return True
        finally:
            lock.release()

    def copy(self, name: str, target: str) -> None:
        path = self._path(target)
        files.discard(path)
        files.link(Path(self._root + name), path)

    def adopt(self, path: Path, name: str) -> int:
        target = self._path(name)
        files.discard(target)
        try:
            files.link(path, target)
        except OSError:  # the file is on another file system
            shutil.copyfile(path, target)
        files.sync_all([target, target.parent])
        return target.stat().st_size

    def _path(self, name: str) -> Path:
        """Returns the path of an object that is written. Its folder exists afterwards."""
        path = Path(self._root + name)
        if not path.parent.is_dir():
            files.make_folder(path.parent)
        return path

    def export(self, name: str, path: Path) -> None:
        os.link(self._root + name, path)

    def export_tree(self, folder: str, target: Path, earlier: Sequence[Path], is_needed: Callable[[str], bool]) -> None:
        root = self._root + folder
        for path, _, names in os.walk(root):
            below = os.path.relpath(path, root)
            place = target / folder / below
            for name in names:
                if is_needed(os.path.normpath(f"{below}/{name}")):
                    place.mkdir(mode=files.PRIVATE_FOLDER, parents=True, exist_ok=True)
                    with suppress(FileNotFoundError, FileExistsError):
                        os.link(f"{path}/{name}", place / name)

    # ---- removal, durability ---------------------------------------------------------------------------------------------------

    def remove(self, name: str) -> None:
        files.remove(Path(self._root + name))

    def discard(self, names: Iterable[str]) -> None:
        for name in names:
            files.discard(Path(self._root + name))

    def discard_folder(self, folder: str) -> None:
        files.discard_folder(Path(self._root + folder))

    def discard_unfinished(self, folder: str) -> None:
        for path in (self.path / folder).rglob(".*.tmp"):
            files.discard(path)

    def sync(self, names: Iterable[str]) -> None:
        files.sync_all(Path(self._root + name) for name in names)

    # ---- processes -------------------------------------------------------------------------------------------------------------

    def writer(self) -> FolderWriter:
        return FolderWriter(self.path)

    def lock(self, name: str) -> locks.Lock:
        return locks.Lock(self._path(name))

    def locked(self, name: str) -> bool:
        return locks.held(self.path / name)

    def renew(self, name: str, holds: Callable[[bytes], bool]) -> bool:
        with suppress(FileNotFoundError):
            if holds(self.get(name).to_pybytes()):
                os.utime(self._root + name)
                return True
        return False

    def renewed(self, name: str) -> tuple[bytes, Hashable]:
        renewed = os.stat(self._root + name).st_mtime_ns
        return self.get(name).to_pybytes(), renewed

    def location(self, name: str) -> str:
        return str(self.path / name)
