"""The files of the operators' state, as Spark names them below the folder `state`. They never change.

    state/<store>/<partition>/<version>_<id>.changelog      the changes of a version
    state/<store>/<partition>/<version>_<id>.zip            a snapshot, which names files in SSTs/ and logs/

A tick commits a version in each partition of the stores that it has opened. The header of its entry names
them (`StateIds` in Java). In a bucket's lake the entry has their changelogs, too.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from tailgate.lake.log.entry import Header

STATE = "state"  # the folder
CHANGELOG, SNAPSHOT = ".changelog", ".zip"  # of the names


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


def versions(state: str) -> list[Version]:
    """Returns the versions that the ids in a header name."""
    stores = json.loads(state)["stores"] if state else {}
    return [Version(f"{store}/{partition}", one["version"], id) for store, one in stores.items() for partition, id in enumerate(one["ids"])]
