"""The catalog as files: catalog/<n> is all of it at entry n, written after every entry that changes it (W6).

An entry names the newest entry that changed the catalog, so one file is read. If that file is not there yet, because the
writer ended between the entry and its copy, an older one and the changes since give the same.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from lake import files
from lake.catalog import Catalog

if TYPE_CHECKING:
    from lake.folder import Lake


def versions(lake: Lake) -> list[int]:
    """The entries with a copy of the catalog, oldest first."""
    return sorted(int(name) for name in os.listdir(lake.path / "catalog") if name.isdecimal())


def read(lake: Lake, version: int) -> Catalog:
    """The catalog as the entry `version` left it."""
    if version == 0:
        return Catalog()
    folder = lake.path / "catalog"
    try:
        return Catalog.from_json(json.loads((folder / str(version)).read_bytes()))
    except FileNotFoundError:
        pass
    header = lake.log.header(version)
    assert header.catalog is not None, f"entry {version} changes no catalog"
    before = lake.log.header(version - 1).catalog_version if version > 1 else 0
    return read(lake, before).apply(header.catalog)


def write(lake: Lake, version: int, catalog: Catalog) -> None:
    """Writes the copy for an entry that is in the log; the first one stays, as all would be the same."""
    path = lake.path / "catalog" / str(version)
    files.create(path, [json.dumps(catalog.to_json(), separators=(",", ":")).encode()], path.with_name(f".{version}.{os.getpid()}"))
