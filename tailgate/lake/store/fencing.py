"""Fencing of replaced writers in a folder: each writer has a folder, writers/<id>.

A writer creates every file of log/ and segments/ in its folder and links it from there. While a name is
taken, no other file can get it. Names become free when entries are rolled into a segment and when
segments are removed. Before that, the folders of all other writers are removed:

    writer A   folder ─► reads newest entry n ─► ···· paused ···· ─► links n+1 ─► fails: its folder is gone
    writer B                       n+1, n+2, …, n+2000 ─► removes A's folder ─► rolls: the name n+1 is free

So a writer that resumes, at any instruction, finds either the name taken or its folder gone. A running
writer whose folder was removed creates a new folder, and continues only if the newest entry is its own.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

from tailgate.lake.host import files
from tailgate.lake.store.interface import Revoked, nothing

FOLDER = "writers"


class FolderWriter:
    """The writer with one of the folders in writers/. `lake` is the lake's folder."""

    def __init__(self, lake: Path) -> None:
        self._lake = lake
        self._parent = lake / FOLDER
        self._parent.mkdir(mode=files.PRIVATE_FOLDER, exist_ok=True)
        self.renew()

    def renew(self) -> None:
        self.path = self._parent / uuid.uuid4().hex
        self.path.mkdir(mode=files.PRIVATE_FOLDER)

    def create(self, name: str, parts: Iterable[bytes | memoryview], *, visible: Callable[[], None] = nothing) -> bool:
        path = self._lake / name
        try:
            return files.create(path, parts, self.path / path.name, linked=visible)
        except FileNotFoundError:
            if not path.parent.exists():
                raise
            raise Revoked from None

    def create_copy(self, name: str, parts: Iterable[bytes | memoryview]) -> None:
        self.create(name, parts)

    def fence_others(self) -> None:
        for name in os.listdir(self._parent):
            if name != self.path.name:
                files.remove_folder(self._parent / name)

    def free(self, names: Iterable[str]) -> None:
        paths = [self._lake / name for name in names]
        if paths:
            self.fence_others()
            for path in paths:
                files.discard(path)
            files.sync_all({path.parent for path in paths})

    def close(self) -> None:
        files.discard_folder(self.path)
