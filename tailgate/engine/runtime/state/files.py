"""The files of the operators' state, as Spark names them below the folder `state`. They never change.

    state/<store>/<partition>/<version>_<id>.changelog      the changes of a version
    state/<store>/<partition>/<version>_<id>.zip            a snapshot, which names files in SSTs/ and logs/

A tick commits a version in each partition of the stores that it has opened. The header of its entry names
them (`StateIds` in Java). In a bucket's lake the entry has their changelogs, too.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tailgate.lake.folder import Lake
from tailgate.lake.log.entry import Header
from tailgate.lake.log.uploaded_state import STATE
from tailgate.lake.store import Store

CHANGELOG, SNAPSHOT = ".changelog", ".zip"  # of the names
BYTES_MAX = 4 << 20  # of the changelogs in an entry. An upload replaces larger ones


class Version(NamedTuple):
    """A version of a partition of a store. `place`: the folder of the partition, below that of the state."""

    place: str
    version: int
    id: str

    def file(self, folder: str, suffix: str) -> str:
        return f"{folder}/{self.place}/{self.version}_{self.id}{suffix}"

    def changelog(self, folder: str) -> str:
        return self.file(folder, CHANGELOG)


def folder_of(header: Header) -> str:
    """Returns the folder of the state of an entry, below the folder of the lake or the working folder."""
    return f"{STATE}/{header.extra.get('state', '')}".rstrip("/")


def in_bucket(lake: Lake) -> bool:
    """Returns whether the state is in a working folder, which may be lost."""
    return lake.local is not lake.store


def versions(state: str) -> list[Version]:
    """Returns the versions that the ids in a header name."""
    stores = json.loads(state)["stores"] if state else {}
    return [Version(f"{store}/{partition}", one["version"], id) for store, one in stores.items() for partition, id in enumerate(one["ids"])]


def changed(before: str, after: str) -> list[Version]:
    """Returns the versions that the ids `after` name, and the ids `before` do not."""
    earlier = set(versions(before))
    return [version for version in versions(after) if version not in earlier]


def changelogs(lake: Lake, newest: Header, state: str) -> dict[str, bytes]:
    """Returns the files for the entry of a tick that follows `newest`; none if they are too large, or not needed."""
    if not in_bucket(lake):
        return {}
    names = [version.changelog(folder_of(newest)) for version in changed(newest.state, state)]
    if sum(map(lake.local.size, names)) > BYTES_MAX:
        return {}
    return {name: bytes(lake.local.get(name)) for name in names}


def logged(folder: str, names: Iterable[str]) -> list[Version]:
    """Returns the versions whose changelogs are among the files, oldest first."""
    result = []
    for name in names:
        if name.endswith(CHANGELOG):
            place, _, file = name.removeprefix(f"{folder}/").rpartition("/")
            version, _, id = file.removesuffix(CHANGELOG).partition("_")
            result.append(Version(place, int(version), id))
    return sorted(result, key=lambda version: version.version)


def needed(local: Store, folder: str, lineages: Mapping[str, Sequence[tuple[int, str]]]) -> list[str]:
    """Returns the files from which the last version of each lineage can be opened. Raises FileNotFoundError if there are too few."""
    return [name for place, items in lineages.items() for name in _needed(local, folder, [Version(place, *item) for item in items])]


def _needed(local: Store, folder: str, lineage: Sequence[Version]) -> Iterator[str]:
    """Yields the newest snapshot with its files, and the changelogs from its version on."""
    begin = next((i for i in reversed(range(len(lineage))) if local.exists(lineage[i].file(folder, SNAPSHOT))), 0)
    snapshot = lineage[begin].file(folder, SNAPSHOT)
    if local.exists(snapshot):
        yield snapshot
        yield from (f"{folder}/{lineage[begin].place}/{file}" for file in _files_of(bytes(local.get(snapshot))))
    elif lineage[begin].version != 1:
        raise FileNotFoundError(f"there is no snapshot before version {lineage[-1].version} of {lineage[-1].place}")
    yield from (version.changelog(folder) for version in lineage[begin:])


def _files_of(snapshot: bytes) -> Iterator[str]:
    """Yields the names of the files that a snapshot needs, below the folder of its partition."""
    with zipfile.ZipFile(io.BytesIO(snapshot)) as archive:
        metadata = json.loads(archive.read("metadata").decode().partition("\n")[2])
    yield from (f"SSTs/{file['dfsSstFileName']}" for file in metadata.get("sstFiles", ()))
    yield from (f"logs/{file['dfsLogFileName']}" for file in metadata.get("logFiles", ()))
