"""The catalog as files: catalog/<n> is all of it at entry n, written after every entry that changes it (W6).

An entry names the newest entry that changed the catalog, so one file is read. If that file is missing, an older one and the
changes since give the same catalog; so a copy that could not be written is no failure. It is written by a later sweep, at the
latest before the entries that it would be computed from are removed.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from lake import files
from lake.catalog import Catalog
from lake.errors import Uncertain
from lake.fencing import Revoked, WriterFolder

if TYPE_CHECKING:
    from lake.folder import Lake

log = logging.getLogger("tailgate.catalogs")


def versions(lake: Lake) -> list[int]:
    """The entries with a copy of the catalog, oldest first."""
    return files.numbered(lake.path / "catalog")


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


def write(lake: Lake, version: int, catalog: Catalog, folder: WriterFolder) -> bool:
    """Writes the copy for an entry that is in the log. Returns whether there is one now; a failure is logged."""
    path = lake.path / "catalog" / str(version)
    if version == 0 or path.exists():
        return True
    try:
        folder.create(path, [json.dumps(catalog.to_json(), separators=(",", ":")).encode()])
    except (OSError, Revoked, Uncertain) as error:
        log.warning("could not write the copy of the catalog of entry %d: %s", version, error)
    return path.exists()
