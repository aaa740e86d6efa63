"""The lake's file operations.

    create    a complete file, if its name is free        temporary file ─► fsync ─► link ─► fsync of the folder
    replace   a complete file in place of another one     temporary file ─► fsync ─► rename ─► fsync of the folder
    sync      makes files that others wrote durable
    discard   removes a file that is no longer needed

A file is durable when its content and its name survive a power loss: content after fsync of the file, a
name after fsync of the folder. A link fails if its name is taken, even for two writers at once; W1 of
the architecture depends on that.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tailgate.lake.errors import Uncertain
from tailgate.lake.host.disk import operation

log = logging.getLogger("tailgate.files")

PRIVATE = 0o600
PRIVATE_FOLDER = 0o700
SYNC_THREADS = 8  # concurrent fsyncs share the commits of the file system's journal
NO_LINK = (errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EXDEV)  # the file system has no links, or no more or no other of this file
REMOVE_ATTEMPTS = 100  # of a folder in which another process still creates files,
REMOVE_PAUSE_S = 0.01  # with this pause between two attempts


# ---- single operations -------------------------------------------------------------------------------------------------------


def sync(path: Path) -> None:
    """Makes the content of a file, or the names in a folder, durable, no matter which process wrote them."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        operation("fsync", path, lambda: os.fsync(descriptor))
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    sync(folder)


def sync_all(paths: Iterable[Path]) -> None:
    """Makes files and folders durable, with several concurrent fsyncs."""
    unique = sorted(set(paths))
    if len(unique) < 2:
        for path in unique:
            sync(path)
        return
    with ThreadPoolExecutor(min(SYNC_THREADS, len(unique)), thread_name_prefix="sync") as pool:
        list(pool.map(sync, unique))


def make_folder(path: Path) -> None:
    """Creates a folder and its parents, unless they exist. All of them are durable afterwards."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        operation("mkdir", path, lambda: path.mkdir(mode=PRIVATE_FOLDER))
    for parent in path.parents:
        with contextlib.suppress(PermissionError):  # a folder that this user may not read was not created by this user
            sync_folder(parent)


def link(source: Path, target: Path) -> None:
    """Gives a file a second name. Raises FileExistsError if the name is taken."""
    operation("link", target, lambda: os.link(source, target))


def link_same(earlier: Path, target: Path, size: int, modified_ns: int) -> bool:
    """Gives the file `earlier` a second name if it has this size and time. Returns whether it did."""
    try:
        status = earlier.stat()
        if (status.st_size, status.st_mtime_ns) != (size, modified_ns):
            return False
        os.link(earlier, target)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno in NO_LINK:
            return False
        raise
    return True


def rename(source: Path, target: Path) -> None:
    """Renames a file or a folder; a file at `target` is replaced."""
    operation("rename", target, lambda: os.replace(source, target))


def write(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Writes a new file. Its content is durable, its name is not.

    An existing file with this name is removed first and never written to, because it may have a second
    name as a complete file.
    """
    with contextlib.suppress(FileNotFoundError):
        operation("unlink", path, lambda: os.unlink(path))
    descriptor = operation("open", path, lambda: os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
    with open(descriptor, "wb") as file:

        def content() -> None:
            for part in parts:
                file.write(part)
            file.flush()

        operation("write", path, content)
        operation("fsync", path, lambda: os.fsync(file.fileno()))


# ---- whole files -------------------------------------------------------------------------------------------------------------


def create(path: Path, parts: Iterable[bytes | memoryview], temporary: Path, *, linked: Callable[[], None] = lambda: None) -> bool:
    """Creates a complete, durable file. If the name is taken, changes nothing and returns False.

    `linked` is called when the name exists but may still be lost in a power loss. Raises `Uncertain` if the
    name exists but could not be made durable. After any other error nothing has changed.
    """
    try:
        write(temporary, parts)
        try:
            link(temporary, path)
        except OSError as error:
            if not _same(temporary, path):  # a file server may have created the link although the response was lost
                if isinstance(error, FileExistsError):
                    return False
                raise
        linked()
    finally:
        discard(temporary)
    try:
        sync_folder(path.parent)
    except OSError as error:
        raise Uncertain(f'could not fsync folder "{path.parent.name}": {error.strerror}') from error
    return True


def _same(temporary: Path, path: Path) -> bool:
    try:
        return os.path.samefile(temporary, path)
    except FileNotFoundError:
        return False


def replace(path: Path, content: bytes) -> None:
    """Writes a complete, durable file in place of an existing one. A path has one writer at a time."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(temporary, [content])
        rename(temporary, path)
    except BaseException:
        discard(temporary)
        raise
    sync_folder(path.parent)


# ---- removal -----------------------------------------------------------------------------------------------------------------


def discard(path: Path) -> None:
    """Removes a file that is no longer needed. Failures are logged: correctness never depends on the removal."""
    try:
        operation("unlink", path, lambda: os.unlink(path))
    except FileNotFoundError:
        pass
    except OSError as error:
        log.warning('could not remove file "%s": %s', path, error.strerror)


def discard_folder(path: Path) -> None:
    """Removes a folder and its content, as `discard` does."""
    try:
        operation("rmdir", path, lambda: shutil.rmtree(path, ignore_errors=True))
    except OSError as error:
        log.warning('could not remove folder "%s": %s', path, error.strerror)


def remove(path: Path) -> None:
    """Removes a file durably. Raises if it cannot be removed."""
    with contextlib.suppress(FileNotFoundError):
        operation("unlink", path, lambda: os.unlink(path))
    sync_folder(path.parent)


def remove_folder(path: Path) -> None:
    """Removes a folder of files. When this returns, no process can create a file in it or link one from it."""
    for attempt in range(REMOVE_ATTEMPTS):
        try:
            for name in os.listdir(path):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path / name)
            operation("rmdir", path, lambda: os.rmdir(path))
            return
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or attempt == REMOVE_ATTEMPTS - 1:
                raise
            time.sleep(REMOVE_PAUSE_S)
