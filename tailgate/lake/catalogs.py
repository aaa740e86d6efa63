"""Copies of the catalog: catalog/<n> is the whole catalog at entry n, written after every entry that changes it (W6).

Each entry has the number of the newest entry that changed the catalog, so readers need only one copy. If
it is missing, it is computed from an older copy and the later changes, so a failed write is harmless. A
later sweep writes the missing copy, at the latest before the entries needed to compute it are removed.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from tailgate.lake import files
from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.codec import decode_catalog, encode_catalog
from tailgate.lake.errors import Uncertain
from tailgate.lake.fencing import Revoked, WriterFolder

if TYPE_CHECKING:
    from tailgate.lake.folder import Lake

log = logging.getLogger("tailgate.catalogs")


def versions(lake: Lake) -> list[int]:
    """Returns the entries with a copy of the catalog, oldest first."""
    return files.numbered(lake.path / "catalog")


def read(lake: Lake, version: int) -> Catalog:
    """Returns the catalog after the entry `version`."""
    if version == 0:
        return Catalog()
    folder = lake.path / "catalog"
    try:
        return decode_catalog(json.loads((folder / str(version)).read_bytes()))
    except FileNotFoundError:
        pass
    header = lake.log.header(version)
    assert header.catalog is not None, f"entry {version} changes no catalog"
    before = lake.log.header(version - 1).catalog_version if version > 1 else 0
    return read(lake, before).apply(header.catalog)


def write(lake: Lake, version: int, catalog: Catalog, folder: WriterFolder) -> bool:
    """Writes the copy for an entry of the log. Returns whether the copy exists now; a failure is logged."""
    path = lake.path / "catalog" / str(version)
    if version == 0 or path.exists():
        return True
    try:
        folder.create(path, [json.dumps(encode_catalog(catalog), separators=(",", ":")).encode()])
    except (OSError, Revoked, Uncertain) as error:
        log.warning("could not write the copy of the catalog of entry %d: %s", version, error)
    return path.exists()
