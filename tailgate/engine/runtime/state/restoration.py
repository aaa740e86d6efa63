"""Completes the state in the working folder of an engine that begins on another machine, from the bucket and the log.

newest entry n ──► uploaded entry u ──► state/uploaded/<u>: the files of its state ──► working folder
──► entries u+1 … n: the changelogs of their ticks ──► working folder
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence, Set
from concurrent.futures import ThreadPoolExecutor

from tailgate.engine.runtime.state.files import STATE, changed, folder_of, in_bucket, versions
from tailgate.lake.errors import Gone
from tailgate.lake.folder import Lake
from tailgate.lake.log.entry import Header
from tailgate.lake.store import documents

UPLOADED = "uploaded"  # in `Header.extra`: the newest entry whose state has been uploaded
LISTS = f"{STATE}/{UPLOADED}"  # folder of the lists of files of these entries
THREADS = 8  # that download files, and read entries

log = logging.getLogger("tailgate.engine")


def complete(lake: Lake, newest: Header) -> None:
    """Downloads the state of the newest entry if the working folder lacks it. If that is not possible, logs it: ticks restore the state."""
    local = lake.local
    if not in_bucket(lake) or all(local.exists(version.changelog(folder_of(newest))) for version in versions(newest.state)):
        return
    if (why := _downloaded(lake, newest)) is not None:
        log.warning("the state cannot be downloaded: %s", why)
    else:
        log.info("the state of entry %d was downloaded", newest.n)


def _downloaded(lake: Lake, newest: Header) -> str | None:
    """Downloads the state. Returns why it cannot be, or None.

    The changelogs of the newest versions are written last: if they exist, all other files do.
    """
    uploaded, folder = newest.extra.get(UPLOADED), folder_of(newest)
    listed = None if uploaded is None else documents.read(lake.store, f"{LISTS}/{uploaded}")
    if uploaded is None or listed is None or listed["folder"] != folder:
        return "it was not uploaded"
    last = {version.changelog(folder): b"" for version in versions(newest.state)}
    state: str = listed["state"]
    try:
        for header, contents in _unpacked(lake, range(uploaded + 1, newest.n + 1), last.keys()):
            names = {file.name for file in header.state_files}
            if not {version.changelog(folder) for version in changed(state, header.state)} <= names:
                return f"entry {header.n} does not have its changes"
            last |= contents
            state = header.state
        _fetch(lake, [name for name in listed["files"] if name not in last])
        last |= {name: bytes(lake.store.get(name)) for name in listed["files"] if name in last}
    except Gone:
        return f"entries after {uploaded} were removed"
    except FileNotFoundError as error:
        return f"a file is missing: {error}"
    for name, content in last.items():
        lake.local.put(name, content)
    return None


def _unpacked(lake: Lake, numbers: Iterable[int], last: Set[str]) -> list[tuple[Header, dict[str, bytes]]]:
    """Writes the changelogs in some entries, except those named `last`. Returns the headers, with the contents of these."""

    def unpack(n: int) -> tuple[Header, dict[str, bytes]]:
        entry = lake.log.read(n)
        contents = {file.name: entry.file(file) for file in entry.header.state_files}
        for name in contents.keys() - last:
            lake.local.put(name, contents[name])
        return entry.header, {name: contents[name] for name in contents.keys() & last}

    with ThreadPoolExecutor(THREADS, thread_name_prefix="state") as threads:
        return list(threads.map(unpack, numbers))


def _fetch(lake: Lake, names: Sequence[str]) -> None:
    """Downloads the files that are missing. Raises FileNotFoundError if the bucket lacks one."""

    def fetch(name: str) -> None:
        if not lake.local.exists(name):
            lake.local.put(name, bytes(lake.store.get(name)))

    with ThreadPoolExecutor(THREADS, thread_name_prefix="state") as threads:
        list(threads.map(fetch, names))
