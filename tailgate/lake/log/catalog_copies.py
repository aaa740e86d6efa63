"""Copies of the catalog: catalog/<n> is the whole catalog at entry n, written after every entry that changes it (W6).

Each entry has the number of the newest entry that changed the catalog, so readers need only one copy. If
it is missing, it is computed from an older copy and the later changes, so a failed write is harmless. A
later sweep writes the missing copy, at the latest before the entries needed to compute it are removed.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.codec import decode_catalog, encode_catalog
from tailgate.lake.errors import Uncertain
from tailgate.lake.host import files
from tailgate.lake.log.fencing import Revoked, WriterFolder
from tailgate.lake.log.log import Log

logger = logging.getLogger("tailgate.catalogs")


class CatalogCopies:
    """The copies of the catalog in one lake. `log`: the log whose entries change the catalog."""

    def __init__(self, folder: Path, log: Log) -> None:
        self.folder = folder
        self._log = log

    def versions(self) -> list[int]:
        """Returns the entries with a copy of the catalog, oldest first."""
        return files.numbered(self.folder)

    def read(self, version: int) -> Catalog:
        """Returns the catalog after the entry `version`."""
        if version == 0:
            return Catalog()
        try:
            return decode_catalog(json.loads((self.folder / str(version)).read_bytes()))
        except FileNotFoundError:
            pass
        header = self._log.header(version)
        assert header.catalog is not None, f"entry {version} changes no catalog"
        before = self._log.header(version - 1).catalog_version if version > 1 else 0
        return self.read(before).apply(header.catalog)

    def write(self, version: int, catalog: Catalog, folder: WriterFolder) -> bool:
        """Writes the copy for an entry of the log. Returns whether the copy exists now; a failure is logged."""
        path = self.folder / str(version)
        if version == 0 or path.exists():
            return True
        try:
            folder.create(path, [json.dumps(encode_catalog(catalog), separators=(",", ":")).encode()])
        except (OSError, Revoked, Uncertain) as error:
            logger.warning("could not write the copy of the catalog of entry %d: %s", version, error)
        return path.exists()
