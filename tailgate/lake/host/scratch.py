"""Scratch folders of engines and gateways: working copies of the state, changes too large for memory, shuffle files, what DuckDB spills.

    ROOT/engine-RANDOM/lock      locked by the engine and its JVM; the kernel unlocks it when the last of them ends
    ROOT/engine-RANDOM/…         may be lost at any time
    ROOT/gateway-RANDOM/…        likewise, of a gateway
    ROOT/backup-RANDOM/…         likewise, of `tailgate backup`: links to files of the lake

A process that is killed leaves its folder behind. The next engine or gateway that starts removes every folder whose lock is free. ROOT is
`scratch` in the lake's folder, or the argument of --scratch of an engine. It is never the system's temporary folder, which may be a memory
file system.

Only the standard library is imported here, because the JVM starts before other modules are imported.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = "scratch"  # below the lake's folder
ENGINE, GATEWAY, BACKUP = "engine", "gateway", "backup"  # owners of folders
LOCK = "lock"


@dataclass(frozen=True, slots=True)
class Scratch:
    """A scratch folder. `descriptor` is its locked file: a child process that inherits it keeps the folder."""

    path: Path
    descriptor: int


@contextmanager
def scratch(root: Path, owner: str = ENGINE) -> Iterator[Scratch]:
    """Creates a scratch folder of an owner below `root`, and removes it afterwards together with those that dead processes left."""
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    _remove_abandoned(root)
    unlocked = Path(tempfile.mkdtemp(prefix=f".{owner}-", dir=root.resolve()))
    descriptor = os.open(unlocked / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    path = unlocked.with_name(unlocked.name[1:])
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        unlocked.rename(path)  # under the name that others look at it is locked
        yield Scratch(path, descriptor)
    finally:
        os.close(descriptor)
        shutil.rmtree(path, ignore_errors=True)


def _remove_abandoned(root: Path) -> None:
    for path in [path for owner in (ENGINE, GATEWAY, BACKUP) for path in root.glob(f"{owner}-*")]:
        with contextlib.suppress(OSError):  # another process may remove it at the same time
            if _is_abandoned(path):
                shutil.rmtree(path, ignore_errors=True)


def _is_abandoned(path: Path) -> bool:
    """Returns whether no process holds the folder's lock."""
    descriptor = os.open(path / LOCK, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
