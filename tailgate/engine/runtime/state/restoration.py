"""Completes the state of an engine that begins on another machine, or after a restore, from the bucket and the log.

newest entry n ──► uploaded entry u ──► state/uploaded/<u>: the files of its state ──► working folder
──► entries u+1 … n: the changelogs of their ticks ──► working folder

The changelogs of later ticks name only the versions since the newest snapshot of the first machine, which may not be in the bucket. So
the newest ones are written with the names of all versions since the snapshot in the list.

The list of a lake that was restored from a backup of a folder (`restored_state`) has all files of the folder, also those of attempts that
have failed, until an engine has uploaded the state itself, in its first seconds.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tailgate.engine.runtime.state.files import changed, in_bucket, logged
from tailgate.engine.runtime.state.lineages import Lineage
from tailgate.lake.errors import Gone
from tailgate.lake.folder import Lake
from tailgate.lake.log import uploaded_state
from tailgate.lake.log.entry import Header
from tailgate.lake.log.state_files import folder_of, versions
from tailgate.lake.log.uploaded_state import UPLOADED
from tailgate.lake.store import Store, locations

THREADS = 8  # that download files, and read entries
LINEAGE_MAX = 780  # versions in a changelog: Spark writes their numbers and ids, of 83 bytes, into a text of at most 65,535 bytes

Copy = Callable[[str, str, Mapping[str, Lineage]], None]  # `Lineages.copy`

log = logging.getLogger("tailgate.engine")


def complete(lake: Lake, newest: Header, scratch: Path, copy: Copy) -> Set[str]:
    """Downloads the state of the newest entry if this machine lacks it, and returns the names of its files, otherwise none.

    If that is not possible, logs it: ticks restore the state.

    A folder that was restored from a backup of a bucket has the same objects as a bucket. `scratch`: a folder for temporary files.
    """
    local = lake.local
    needed = in_bucket(lake) or UPLOADED in newest.extra
    if not needed or all(local.exists(version.changelog(folder_of(newest))) for version in versions(newest.state)):
        return frozenset()
    download = _Download(lake, newest, locations.made(scratch / "changelogs", ()), copy)
    if (why := download.run()) is not None:
        log.warning("the state cannot be downloaded: %s", why)
        return frozenset()
    log.info("the state of entry %d was downloaded", newest.n)
    return download.names


class _Download:
    """A download of the state of an entry. `names`: of the files.

    The changelogs of the newest versions are written last: if they exist, all other files do. Up to then they are in `scratch`.
    """

    def __init__(self, lake: Lake, newest: Header, scratch: Store, copy: Copy) -> None:
        self._lake, self._newest, self._scratch, self._copy = lake, newest, scratch, copy
        self._folder = folder_of(newest)
        self.names: set[str] = set()
        self._last = {version.changelog(self._folder): version.place for version in versions(newest.state)}

    def run(self) -> str | None:
        """Downloads the state. Returns why it cannot be, or None."""
        listed, folder = uploaded_state.read(self._lake.store, self._newest), self._folder
        if listed is None or listed["folder"] != folder:
            return "it was not uploaded"
        self.names.update(listed["files"])
        uploaded: int = self._newest.extra[UPLOADED]
        state: str = listed["state"]
        try:
            for header in self._unpacked(range(uploaded + 1, self._newest.n + 1)):
                names = {file.name for file in header.state_files}
                if not {version.changelog(folder) for version in changed(state, header.state)} <= names:
                    return f"entry {header.n} does not have its changes"
                self.names |= names
                state = header.state
            lineages: dict[str, list[tuple[int, str]]] = defaultdict(list)
            later = {version.place for version in changed(listed["state"], state)}
            for version in logged(folder, self.names):
                if version.place in later:
                    lineages[version.place].append((version.version, version.id))
            if (longest := max(map(len, lineages.values()), default=0)) > LINEAGE_MAX:
                return f"there are {longest} versions since the snapshot that was uploaded"
            if any(len(dict(lineage)) < len(lineage) for lineage in lineages.values()):
                return "the state of a folder was restored, and has not been uploaded by an engine since then"
            self._fetch(listed["files"])
            for name in (name for name, place in self._last.items() if place not in lineages):
                self._lake.local.put(name, bytes(self._scratch.get(name)))
        except Gone:
            return f"entries after {uploaded} were removed"
        except FileNotFoundError as error:
            return f"a file is missing: {error}"
        if lineages:
            self._copy(self._scratch.location(folder), self._lake.local.location(folder), lineages)
        self._scratch.discard_folder(folder)
        return None

    def _put(self, name: str, content: bytes) -> None:
        (self._scratch if name in self._last else self._lake.local).put(name, content)

    def _unpacked(self, numbers: Iterable[int]) -> list[Header]:
        """Writes the changelogs in some entries. Returns the headers."""

        def unpack(n: int) -> Header:
            entry = self._lake.log.read(n)
            for file in entry.header.state_files:
                self._put(file.name, entry.file(file))
            return entry.header

        with ThreadPoolExecutor(THREADS, thread_name_prefix="state") as threads:
            return list(threads.map(unpack, numbers))

    def _fetch(self, names: Iterable[str]) -> None:
        """Downloads the files that are missing. Raises FileNotFoundError if the bucket lacks one."""

        def fetch(name: str) -> None:
            if name in self._last or not self._lake.local.exists(name):
                self._put(name, bytes(self._lake.store.get(name)))

        with ThreadPoolExecutor(THREADS, thread_name_prefix="state") as threads:
            list(threads.map(fetch, names))
