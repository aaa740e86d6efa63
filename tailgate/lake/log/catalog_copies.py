"""Copies of the catalog: catalog/<n> is the whole catalog at entry n, written after every entry that changes it (W6).

Each entry has the number of the newest entry that changed the catalog, so readers need only one copy. If
it is missing, it is computed from an older copy and the later changes, so a failed write is harmless. A
later sweep writes the missing copy, at the latest before the entries needed to compute it are removed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable

from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.codec import decode_catalog, encode_catalog
from tailgate.lake.errors import Uncertain
from tailgate.lake.log.log import Log
from tailgate.lake.store import FencedWriter, Revoked, Store

FOLDER = "catalog"

logger = logging.getLogger("tailgate.catalogs")


class CatalogCopies:
    """The copies of the catalog in one lake. `log`: the log whose entries change the catalog."""

    def __init__(self, store: Store, log: Log) -> None:
        self._store = store
        self._log = log

    def versions(self) -> list[int]:
        """Returns the entries with a copy of the catalog, oldest first."""
        return self._store.numbers(FOLDER)

    def read(self, version: int) -> Catalog:
        """Returns the catalog after the entry `version`."""
        if version == 0:
            return Catalog()
        try:
            return decode_catalog(json.loads(self._store.get(_name(version)).to_pybytes()))
        except FileNotFoundError:
            pass
        header = self._log.header(version)
        assert header.catalog is not None, f"entry {version} changes no catalog"
        before = self._log.header(version - 1).catalog_version if version > 1 else 0
        return self.read(before).apply(header.catalog)

    def write(self, version: int, catalog: Catalog, writer: FencedWriter) -> bool:
        """Writes the copy for an entry of the log. Returns whether the copy exists now; a failure is logged."""
        name = _name(version)
        if version == 0 or self._store.exists(name):
            return True
        try:
            writer.create_copy(name, [json.dumps(encode_catalog(catalog), separators=(",", ":")).encode()])
            return True
        except (OSError, Revoked, Uncertain) as error:
            logger.warning("could not write the copy of the catalog of entry %d: %s", version, error)
        return self._store.exists(name)

    def discard(self, versions: Iterable[int]) -> None:
        """Removes copies. The other ones are durable before."""
        self._store.sync([FOLDER])
        self._store.discard(map(_name, versions))


def _name(version: int) -> str:
    return f"{FOLDER}/{version}"
