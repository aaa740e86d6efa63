"""Fencing of replaced writers: each writer has a folder, writers/<id>.

A writer creates every file of log/ and segments/ in its folder and links it from there. While a name is
taken, no other file can get it. Names become free when entries are rolled into a segment and when
segments are removed. Before that, the folders of all other writers are removed:

    writer A   folder ─► reads newest entry n ─► ···· paused ···· ─► links n+1 ─► fails: its folder is gone
    writer B                       n+1, n+2, …, n+2000 ─► removes A's folder ─► rolls: the name n+1 is free

So a writer that resumes, at any instruction, finds either the name taken or its folder gone. A running
writer whose folder was removed creates a new folder, and continues only if the newest entry is its own.

An object store has no folders to remove. There, a rolled entry's key keeps an empty object, so that its
name never becomes free.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

from tailgate.lake.host import files

FOLDER = "writers"


class Revoked(Exception):
    """Another writer removed this writer's folder; nothing was created."""


class WriterFolder:
    """The folder of one writer of a lake. Everything that the writer read before `renew` returned may be out of date."""

    def __init__(self, lake_path: Path) -> None:
        self._parent = lake_path / FOLDER
        self._parent.mkdir(mode=files.PRIVATE_FOLDER, exist_ok=True)
        self.path = self.renew()

    def renew(self) -> Path:
        """Creates a new folder. The caller must then read the newest entry."""
        self.path = self._parent / uuid.uuid4().hex
        self.path.mkdir(mode=files.PRIVATE_FOLDER)
        return self.path

    def create(self, path: Path, parts: Iterable[bytes | memoryview], *, linked: Callable[[], None] = lambda: None) -> bool:
        """Creates a file as `files.create` does. Raises `Revoked` if the folder is gone."""
        try:
            return files.create(path, parts, self.path / path.name, linked=linked)
        except FileNotFoundError:
            if not path.parent.exists():
                raise
            raise Revoked from None

    def revoke_others(self) -> None:
        """Removes the folders of all other writers. Call it before any name in log/ or segments/ becomes free."""
        for name in os.listdir(self._parent):
            if name != self.path.name:
                files.remove_folder(self._parent / name)

    def close(self) -> None:
        files.discard_folder(self.path)
