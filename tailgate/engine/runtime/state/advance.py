"""Downloads the uploaded state of a lake in a bucket while an engine stands by, so that its first tick waits for the later changes only."""

from __future__ import annotations

import logging
from collections.abc import Set
from pathlib import Path

from tailgate.engine.runtime.state.restoration import Copy, complete
from tailgate.lake.folder import Lake
from tailgate.lake.log.uploaded_state import UPLOADED

log = logging.getLogger("tailgate.engine")


class StateInAdvance:
    """The state of the newest entry that this process has seen. `scratch`: a folder for temporary files."""

    def __init__(self, lake: Lake, scratch: Path, copy: Copy) -> None:
        self._lake, self._scratch, self._copy = lake, scratch, copy
        self._uploaded: int | None = None
        self._files: Set[str] = frozenset()  # that this process has downloaded

    def update(self) -> None:
        """Downloads the state after each upload, and removes the files of the one before. If it fails, the engine downloads it."""
        newest = self._lake.log.seen
        if newest is None or newest.extra.get(UPLOADED) in (None, self._uploaded):
            return
        self._uploaded = newest.extra[UPLOADED]
        try:
            if files := complete(self._lake, newest, self._scratch, self._copy):
                self._lake.local.discard(self._files - files)
                self._files = files
        except Exception:
            log.exception("the state could not be downloaded before this engine begins")
