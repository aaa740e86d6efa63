"""The lake: one folder, and access to its parts.

    lake.json  log/  segments/  catalog/  tables/  inbox/  state/  checkpoint/  readers/  writers/  boot  engine.lock  engine.json

Only its owner can read the folder (0700), because it contains all data.
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailgate.lake import files
from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import FeatureNotSupported, ObjectNotInPrerequisiteState
from tailgate.lake.log import Log

if TYPE_CHECKING:
    import pyarrow as pa

    from tailgate.lake.checkpoints import Checkpoint

FORMAT = 1
FOLDERS = ("log", "segments", "catalog", "tables", "inbox", "state", "checkpoint", "readers", "writers")


class Lake:
    """An open lake. Any number of processes may open it; only an engine writes to it (`lake.writing`)."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        try:
            data = json.loads((self.path / "lake.json").read_bytes())
        except FileNotFoundError:
            raise ObjectNotInPrerequisiteState(f"there is no lake in {self.path}", hint="An engine makes it: tailgate up.") from None
        if data["format"] != FORMAT:
            raise FeatureNotSupported(
                f"the lake in {self.path} has format {data['format']}, and this version reads format {FORMAT}",
                hint="It was made by another version of Tailgate; use that one.",
            )
        self.id: str = data["id"]
        self.log = Log(self.path / "log", self.path / "segments")
        self._catalog: tuple[int, Catalog] = (0, Catalog())
        self.lock = threading.Lock()
        self.cache: dict[str, Any] = {}  # caches of the modules that read tables, by module name

    @staticmethod
    def create(path: str | os.PathLike[str]) -> Lake:
        """Creates a lake, or opens an existing one. If two processes create it at once, both get the same lake."""
        folder = Path(path).absolute()
        if not (folder / "lake.json").exists():
            files.make_folder(folder)
            folder.chmod(files.PRIVATE_FOLDER)
            for name in FOLDERS:
                (folder / name).mkdir(exist_ok=True, mode=files.PRIVATE_FOLDER)  # durable with lake.json
            content = json.dumps({"id": uuid.uuid4().hex, "format": FORMAT}).encode() + b"\n"
            files.create(folder / "lake.json", [content], folder / f".lake.json.{os.getpid()}.{uuid.uuid4().hex}")
        return Lake(folder)

    @staticmethod
    def open(path: str | os.PathLike[str], *, create: bool = False) -> Lake:
        return Lake.create(path) if create else Lake(path)

    # ---- the catalog -----------------------------------------------------------------------------------------------------

    def catalog(self) -> Catalog:
        """Returns the catalog at the newest entry."""
        newest = self.log.newest()
        return self._catalog_version(newest.catalog_version) if newest else Catalog()

    def catalog_at(self, n: int) -> Catalog:
        """Returns the catalog at entry n. Raises `Gone` if the entry was removed."""
        return self._catalog_version(self.log.header(n).catalog_version)

    def _catalog_version(self, version: int) -> Catalog:
        from tailgate.lake.catalogs import read

        cached = self._catalog
        if cached[0] != version:
            cached = (version, read(self, version))
            if cached[0] > self._catalog[0]:
                self._catalog = cached
        return cached[1]

    # ---- reading at a time -----------------------------------------------------------------------------------------------

    def since(self) -> int:
        """Returns the oldest time that can be read. All later times can be read too."""
        from tailgate.lake import reading

        return reading.since(self)

    def checkpoint(self, at: int | None = None) -> Checkpoint | None:
        """Returns the newest checkpoint with a time of at most `at`; None if there is none."""
        from tailgate.lake import checkpoints

        return checkpoints.newest(self, at)

    def snapshot(self, relation: int, at: int | None = None) -> pa.Table:
        """Returns the rows of a relation at a time, by default now, each once with `__weight` > 0 (R1). Raises `Gone` below `since`."""
        from tailgate.lake import reading

        return reading.snapshot(self, relation, at)

    # ---- readers' holds --------------------------------------------------------------------------------------------------

    def hold(self, reader: str, n: int, since: int | None = None) -> None:
        """Holds the entries after n for a reader, and the rows at times from `since` on.

        Moving a hold forward lets entries be removed. Only the reader's owner calls this.
        """
        from tailgate.lake import readers

        readers.hold(self, reader, n, since)

    def release(self, reader: str) -> None:
        """Removes the hold of a dropped reader."""
        from tailgate.lake import readers

        readers.release(self, reader)
