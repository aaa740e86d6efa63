"""Copies of the catalog: catalog/<n> is the whole catalog at entry n, written soon after an entry that changes it (W6).

Each entry has the number of the newest entry that changed the catalog, so readers need only one copy. If
it is missing, it is computed from an older copy and the later changes, so a failed write is harmless, and no
statement waits for it. A later sweep writes the missing copy, at the latest before the entries needed to
compute it are removed.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable

from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.codec import decode_catalog, encode_catalog
from tailgate.lake.errors import Uncertain
from tailgate.lake.log.log import Log
from tailgate.lake.store import FencedWriter, Revoked, Store

FOLDER = "catalog"
KEPT_MAX = 4  # catalogs in memory: the newest one, and those that readers at earlier times share, such as streams that are resumed

logger = logging.getLogger("tailgate.catalogs")


class CatalogCopies:
    """The copies of the catalog in one lake. `log`: the log whose entries change the catalog."""

    def __init__(self, store: Store, log: Log) -> None:
        self._store = store
        self._log = log
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, Catalog] = OrderedDict()  # by version, the last used one at the end

    def versions(self) -> list[int]:
        """Returns the entries with a copy of the catalog, oldest first."""
        return self._store.numbers(FOLDER)

    def at(self, version: int) -> Catalog:
        """Returns the catalog after the entry `version`, from memory if it was used lately."""
        with self._lock:
            catalog = self._kept.get(version)
        return self.keep(version, self._read(version) if catalog is None else catalog)

    def keep(self, version: int, catalog: Catalog) -> Catalog:
        """Keeps the catalog after the entry `version` in memory. Returns it, or the same one that is kept already."""
        with self._lock:
            catalog = self._kept.setdefault(version, catalog)
            self._kept.move_to_end(version)
            if len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
            return catalog

    def _read(self, version: int) -> Catalog:
        if version == 0:
            return Catalog()
        try:
            return decode_catalog(json.loads(self._store.get(_name(version)).to_pybytes()))
        except FileNotFoundError:
            pass
        header = self._log.header(version)
        assert header.catalog is not None, f"entry {version} changes no catalog"
        before = self._log.header(version - 1).catalog_version if version > 1 else 0
        return self.at(before).apply(header.catalog)

    def write(self, version: int, catalog: Catalog, writer: FencedWriter) -> bool:
        """Writes the copy for an entry of the log. Returns whether the copy exists and is durable; a failure is logged."""
        name = _name(version)
        try:
            if version > 0 and self._store.exists(name):
                self._store.sync([FOLDER])  # another thread may be creating it, or an engine that was killed has
            elif version > 0:
                writer.create_copy(name, [json.dumps(encode_catalog(catalog), separators=(",", ":")).encode()])
            return True
        except (OSError, Revoked, Uncertain) as error:
            logger.warning("could not write the copy of the catalog of entry %d: %s", version, error)
            return False

    def discard(self, versions: Iterable[int]) -> None:
        """Removes copies. The other ones are durable before."""
        self._store.sync([FOLDER])
        self._store.discard(map(_name, versions))


def _name(version: int) -> str:
    return f"{FOLDER}/{version}"
