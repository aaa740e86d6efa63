"""The changelogs of ticks, and the files from which a version of the operators' state can be opened (`lake.log.state_files`)."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tailgate.lake.folder import Lake
from tailgate.lake.log.entry import Header
from tailgate.lake.log.state_files import CHANGELOG, SNAPSHOT, Version, folder_of, versions
from tailgate.lake.store import Store

BYTES_MAX = 4 << 20  # of the changelogs in an entry. An upload replaces larger ones


def in_bucket(lake: Lake) -> bool:
    """Returns whether the state is in a working folder, which may be lost."""
    return lake.local is not lake.store


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
