"""Operations that change the disk. All of them pass through `operation`, where tests observe them or make them fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Hook: TypeAlias = Callable[[str, Path, Callable[[], Any]], Any]

hook: Hook | None = None
"""Called for each operation, if set: (name, path, action). Names: open, write, fsync, link, rename, unlink, mkdir, rmdir, commit."""


def operation(name: str, path: Path, action: Callable[[], T]) -> T:
    """Runs an action that changes the disk, and returns its result."""
    return action() if hook is None else hook(name, path, action)
