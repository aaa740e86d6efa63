"""Files that are there whole or not at all, and stay there when the power goes.

    bytes ──► temporary file ──► fsync ──► link (only if absent) or rename (replaces) ──► fsync of the folder

A link fails if its name is taken, also for two writers at once; that one property is what W1 rests on. On an object store
the same is a put-if-absent.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

PRIVATE = 0o600


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable, whoever wrote them."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """A new file, durable in content but not yet in name; what lay there is overwritten."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
    with open(descriptor, "wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def create(path: Path, parts: Iterable[bytes | memoryview], temporary: Path, *, linked: Callable[[], None] = lambda: None) -> bool:
    """A whole, durable file at `path`; False, and nothing changed, if there is one already.

    `linked` is called when the name is there and may still be lost with the power.
    """
    write(temporary, parts)
    try:
        os.link(temporary, path)
        linked()
    except (FileExistsError, FileNotFoundError):  # the second: whoever took the place has removed what we left aside
        if not path.exists():
            raise
        return False
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    sync_folder(path.parent)
    return True


def replace(path: Path, content: bytes) -> None:
    """A whole, durable file at `path` in place of the one that was there. Its owner is its only writer."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    write(temporary, [content])
    os.replace(temporary, path)
    sync_folder(path.parent)
