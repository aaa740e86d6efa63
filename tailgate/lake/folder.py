"""The lake: one folder, and access to its parts.

    lake.json  log/  segments/  catalog/  tables/  inbox/  state/  readers/  writers/  boot  engine.lock  engine.json  sweep.json

Only its owner can read the folder (0700), because it contains all data.
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from pathlib import Path
from typing import Any

from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import FeatureNotSupported, ObjectNotInPrerequisiteState
from tailgate.lake.host import scratch
from tailgate.lake.log.catalog_copies import CatalogCopies
from tailgate.lake.log.log import Log
from tailgate.lake.store import Store
from tailgate.lake.store.folder import FolderStore

FORMAT = 1
FILE = "lake.json"
FOLDERS = ("log", "segments", "catalog", "tables", "inbox", "state", "readers", "writers")


class Lake:
    """An open lake. Any number of processes may open it; only an engine writes to it (`lake.writer.log_writer`)."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self.store: Store = FolderStore(self.path)
        try:
            data = json.loads(self.store.get(FILE).to_pybytes())
        except FileNotFoundError:
            raise ObjectNotInPrerequisiteState(f"there is no lake in {self.path}", hint="An engine makes it: tailgate up.") from None
        if data["format"] != FORMAT:
            raise FeatureNotSupported(
                f"the lake in {self.path} has format {data['format']}, and this version reads format {FORMAT}",
                hint="It was made by another version of Tailgate; use that one.",
            )
        self.id: str = data["id"]
        self.log = Log(self.store)
        self.catalog_copies = CatalogCopies(self.store, self.log)
        self._catalog: tuple[int, Catalog] = (0, Catalog())
        self.lock = threading.Lock()
        self.cache: dict[str, Any] = {}  # caches of the modules that read tables, by module name

    @staticmethod
    def create(path: str | os.PathLike[str]) -> Lake:
        """Creates a lake, or opens an existing one. If two processes create it at once, both get the same lake."""
        folder = Path(path).absolute()
        if not Lake.exists(folder):
            store = FolderStore.made(folder, FOLDERS)
            content = json.dumps({"id": uuid.uuid4().hex, "format": FORMAT}).encode() + b"\n"
            store.create(FILE, [content])
        return Lake(folder)

    @staticmethod
    def exists(path: str | os.PathLike[str]) -> bool:
        """Returns whether there is a lake in a folder."""
        return FolderStore(Path(path).absolute()).exists(FILE)

    @staticmethod
    def open(path: str | os.PathLike[str], *, create: bool = False) -> Lake:
        return Lake.create(path) if create else Lake(path)

    @property
    def scratch(self) -> Path:
        """Returns the folder of this machine for the working files of processes that use the lake."""
        return self.path / scratch.ROOT

    def catalog(self) -> Catalog:
        """Returns the catalog at the newest entry."""
        newest = self.log.newest()
        return self._catalog_version(newest.catalog_version) if newest else Catalog()

    def catalog_at(self, n: int) -> Catalog:
        """Returns the catalog at entry n. Raises `Gone` if the entry was removed."""
        return self._catalog_version(self.log.header(n).catalog_version)

    def _catalog_version(self, version: int) -> Catalog:
        cached = self._catalog
        if cached[0] != version:
            cached = (version, self.catalog_copies.read(version))
            if cached[0] > self._catalog[0]:
                self._catalog = cached
        return cached[1]
