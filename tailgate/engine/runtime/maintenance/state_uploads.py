"""Uploads the operators' state of a lake in a bucket, while ticks run (ADR 0025).

    entry u ──► state/uploaded/<u>: the files of its state ──► those that the bucket lacks ──► the next entry names u

Each file in the bucket is in one of the lists, so nothing is left over by an engine that was killed. The newest LISTS_MAX lists
and their files are kept, and those that the newest entry names, which an engine that begins downloads.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tailgate.engine.runtime.state.files import needed
from tailgate.engine.runtime.state.lineages import Lineages
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.lake.errors import Replaced
from tailgate.lake.log.state_files import folder_of
from tailgate.lake.log.uploaded_state import LISTS, UPLOADED, name_of
from tailgate.lake.store import documents

LOOK_S = 1.0  # between two looks whether the state has changed
INTERVAL_S = 60.0  # between the beginnings of two uploads; recovery reads the entries since the last one
GAP_S = 10.0  # the same if an upload has failed, or an entry does not have its changes, so that recovery needs an upload after it
THREADS = 4  # that upload files
LISTS_MAX = 6  # that are kept: more than an engine that begins may read, because this one removes nothing after it

log = logging.getLogger("tailgate.engine")


class StateUploads(threading.Thread):
    """A thread that uploads the state, until the engine stops."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(name="state-uploads", daemon=True)
        self._engine = engine
        self._store, self._local = engine.lake.store, engine.lake.local
        self._lists: dict[int, set[str]] | None = None  # the files by the number of the entry; None before they are read
        self._state = ""  # that was uploaded
        self._uploaded: int = engine.newest.extra.get(UPLOADED, 0)
        self._began = -INTERVAL_S

    def run(self) -> None:
        while not self._engine.ended.wait(LOOK_S):
            if self._is_due():
                self._attempt()

    def _attempt(self) -> None:
        """Uploads the state. After a failure, the next attempt is made after GAP_S."""
        self._began = time.monotonic()
        self._engine.lacks_state = False
        try:
            self.upload()
        except Replaced as error:
            self._engine.end(error)
        except FileNotFoundError as error:  # Spark has removed an old version meanwhile
            self._engine.lacks_state = True
            log.info("the state was not uploaded: %s", error)
        except Exception:
            self._engine.lacks_state = True
            if not self._engine.stopping:
                log.exception("the state could not be uploaded; it is tried again")

    def _is_due(self) -> bool:
        """Returns whether the state has changed since the last upload, long ago enough."""
        state = self._engine.newest.state
        passed_s = time.monotonic() - self._began
        return bool(state) and state != self._state and passed_s >= (GAP_S if self._engine.lacks_state else INTERVAL_S)

    def upload(self) -> None:
        """Uploads the state of the newest entry."""
        if self._lists is None:
            lists = {n: documents.read(self._store, name_of(n)) for n in self._store.numbers(LISTS)}
            self._lists = {n: set(one["files"]) for n, one in lists.items() if one is not None}
        header = self._engine.newest
        folder = folder_of(header)
        lineages = Lineages(self._engine.session).of(self._local.location(folder), header.state)
        names = needed(self._local, folder, lineages)
        existing = self._lists.get(self._uploaded, set())
        documents.write(self._store, name_of(header.n), {"folder": folder, "state": header.state, "files": names})
        self._lists[header.n] = set(names)
        with ThreadPoolExecutor(THREADS, thread_name_prefix="state") as threads:
            list(threads.map(self._upload_one, sorted(set(names) - existing)))
        self._state, self._uploaded, self._engine.uploaded = header.state, header.n, header.n
        self._remove_old(self._lists)

    def _upload_one(self, name: str) -> None:
        self._store.adopt(Path(self._local.location(name)), name)

    def _remove_old(self, lists: dict[int, set[str]]) -> None:
        """Removes the lists before the newest ones, and their files."""
        self._engine.writer.check()
        retained = {*sorted(lists)[-LISTS_MAX:], self._uploaded, self._engine.newest.extra.get(UPLOADED)}
        going = lists.keys() - retained
        used = set[str]().union(*(files for n, files in lists.items() if n in retained))
        unused = set[str]().union(*(lists[n] for n in going)) - used
        self._store.discard([*sorted(unused), *(name_of(n) for n in going)])
        for n in going:
            del lists[n]
