"""The lake: one folder, and how its parts are found.

    lake.json  log/  segments/  catalog/  tables/  inbox/  state/  checkpoint/  readers/  writers/  boot  engine.lock  engine.json

The folder is its owner's alone (0700): it holds whatever came in.
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lake import files
from lake.catalog import Catalog
from lake.errors import FeatureNotSupported, ObjectNotInPrerequisiteState
from lake.log import Log

if TYPE_CHECKING:
    import pyarrow as pa

    from lake.checkpoints import Checkpoint

FORMAT = 1
FOLDERS = ("log", "segments", "catalog", "tables", "inbox", "state", "checkpoint", "readers", "writers")


class Lake:
    """An opened lake. Any number of processes may open one; only an engine writes (`lake.writing`)."""

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
        self.cache: dict[str, Any] = {}  # what readers of the tables remember, by their module's name

    @staticmethod
    def create(path: str | os.PathLike[str]) -> Lake:
        """Makes a lake, or opens the one that is there: of two that make one at once, both get the same."""
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
        """The catalog at the newest entry."""
        newest = self.log.newest()
        return self._catalog_version(newest.catalog_version) if newest else Catalog()

    def catalog_at(self, n: int) -> Catalog:
        """The catalog at entry n. `Gone` if that entry is."""
        return self._catalog_version(self.log.header(n).catalog_version)

    def _catalog_version(self, version: int) -> Catalog:
        from lake.catalogs import read

        known = self._catalog
        if known[0] != version:
            known = (version, read(self, version))
            if known[0] > self._catalog[0]:
                self._catalog = known
        return known[1]

    # ---- reading at a time -----------------------------------------------------------------------------------------------

    def since(self) -> int:
        """The oldest time that can be read; every time from it on can."""
        from lake import reading

        return reading.since(self)

    def checkpoint(self, at: int | None = None) -> Checkpoint | None:
        """The newest checkpoint of the tables whose time is not later than `at`; None if there is none."""
        from lake import checkpoints

        return checkpoints.newest(self, at)

    def snapshot(self, relation: int, at: int | None = None) -> pa.Table:
        """R1: the rows of a relation at a time (now if left out), each once with its `__weight` > 0. `Gone` below `since`."""
        from lake import reading

        return reading.snapshot(self, relation, at)

    # ---- readers' holds --------------------------------------------------------------------------------------------------

    def hold(self, reader: str, n: int, since: int | None = None) -> None:
        """Keeps the entries after n for a reader, and the history from the time `since` on if it reads rows.

        Moving it forward lets entries go. Only the reader's owner calls this.
        """
        from lake import readers

        readers.hold(self, reader, n, since)

    def release(self, reader: str) -> None:
        """The reader is no more."""
        from lake import readers

        readers.release(self, reader)
