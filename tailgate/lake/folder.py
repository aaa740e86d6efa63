"""The lake: one folder or a prefix of a bucket, and access to its parts.

    lake.json  log/  segments/  catalog/  tables/  inbox/  state/  readers/  writers/  boot  engine.lock  engine.json  sweep.json

Only its owner can read a folder (0700), because it contains all data.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import uuid
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import FeatureNotSupported, ObjectNotInPrerequisiteState
from tailgate.lake.host import scratch
from tailgate.lake.log.catalog_copies import CatalogCopies
from tailgate.lake.log.log import Log
from tailgate.lake.store import Store, locations

FORMAT = 1
FILE = "lake.json"
FOLDERS = ("log", "segments", "catalog", "tables", "inbox", "state", "readers", "writers")
CONTENTS = ("log", "segments", "catalog", "tables", "inbox")  # folders that are empty before the lake is complete
WORK_DIR = Path("tailgate-work")  # of a lake in a bucket, unless another one is configured
CREATED_WAIT_S = 0.2  # between two looks whether there is a lake
OWNER = "lake"  # in a working folder: the id of its lake


class Lake:
    """An open lake. Any number of processes may open it; only an engine writes to it (`lake.writer.log_writer`)."""

    def __init__(self, location: str | os.PathLike[str], work_dir: Path | None = None) -> None:
        """Opens a lake. `work_dir`: the working folder of this machine, for a lake in a bucket."""
        self.store: Store = locations.opened(location)
        self._work_dir = work_dir or WORK_DIR
        self.location = self.store.location("")
        try:
            data = json.loads(self.store.get(FILE).to_pybytes())
        except FileNotFoundError:
            raise ObjectNotInPrerequisiteState(f"there is no lake in {self.location}", hint="An engine creates it: tailgate up.") from None
        if data["format"] != FORMAT:
            raise FeatureNotSupported(
                f"the lake in {self.location} has format {data['format']}, and this version reads format {FORMAT}",
                hint="It was made by another version of Tailgate; use that one.",
            )
        self.id: str = data["id"]
        self.log = Log(self.store)
        self.catalog_copies = CatalogCopies(self.store, self.log)
        self.lock = threading.Lock()
        self.cache: dict[str, Any] = {}  # caches of the modules that read tables, by module name

    @staticmethod
    def create(location: str | os.PathLike[str], work_dir: Path | None = None) -> Lake:
        """Creates a lake, or opens an existing one. If two processes create it at once, both get the same lake.

        Raises 55000 if there are objects of an incomplete lake.
        """
        if not Lake.exists(location):
            store = locations.made(location, FOLDERS)
            if any(map(store.names, CONTENTS)) and not Lake.exists(location):
                raise ObjectNotInPrerequisiteState(
                    f"there is an incomplete lake in {location}", hint="Remove its objects, and restore the backup again."
                )
            content = json.dumps({"id": uuid.uuid4().hex, "format": FORMAT}).encode() + b"\n"
            store.create(FILE, [content])
        return Lake(location, work_dir)

    @staticmethod
    def exists(location: str | os.PathLike[str]) -> bool:
        """Returns whether there is a lake at a location."""
        return locations.opened(location).exists(FILE)

    @staticmethod
    def wait_until_created(location: str | os.PathLike[str], log: logging.Logger, wait: Callable[[float], object]) -> bool:
        """Waits until there is a lake at a location, for processes that start before the engine has created it. Says so in their log.

        `wait`: waits for seconds, and returns whether the process is to end. Returns False if it is.
        """
        waiting = False
        while not Lake.exists(location):
            if not waiting:
                log.info("waiting until an engine creates the lake in %s", location)
                waiting = True
            if wait(CREATED_WAIT_S):
                return False
        return True

    @staticmethod
    def open(location: str | os.PathLike[str], work_dir: Path | None = None, *, create: bool = False) -> Lake:
        return Lake.create(location, work_dir) if create else Lake(location, work_dir)

    @property
    def path(self) -> Path:
        """Returns the lake's folder. Raises 0A000 if the lake is in a bucket."""
        if locations.is_bucket(self.location):
            raise FeatureNotSupported(f"this is not supported for the lake in {self.location}", hint="Use a lake in a folder.")
        return Path(self.location)

    @cached_property
    def local(self) -> Store:
        """Returns the store of this machine: the lake if it is in a folder, else the working folder, which may be lost.

        Raises 55000 if the working folder belongs to another lake.
        """
        if not locations.is_bucket(self.location):
            return self.store
        store = locations.made(self._work_dir, ())
        if not store.create(OWNER, [self.id.encode()]) and bytes(store.get(OWNER)) != self.id.encode():
            raise ObjectNotInPrerequisiteState(
                f"the working folder {self._work_dir} belongs to another lake", hint="Use another folder: --work-dir FOLDER."
            )
        return store

    @property
    def scratch(self) -> Path:
        """Returns the folder of this machine for the temporary files of processes that use the lake."""
        return Path(self.local.location(scratch.ROOT))

    def catalog(self) -> Catalog:
        """Returns the catalog at the newest entry."""
        newest = self.log.newest()
        return self.catalog_copies.at(newest.catalog_version) if newest else Catalog()

    def catalog_at(self, n: int) -> Catalog:
        """Returns the catalog at entry n. Raises `Gone` if the entry was removed."""
        return self.catalog_copies.at(self.log.header(n).catalog_version)
