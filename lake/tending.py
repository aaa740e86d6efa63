"""Tables stay small beside the rounds: Delta's own checkpoints, old versions, and many small files made one.

    a sweep, table by table, until its time is over; the next one goes on with the next table
       commits since Delta's checkpoint ≥ 50 ──► a new one            (opening a table reads what came since)
       small files ≥ 16                      ──► one file of them
       files that no kept version has        ──► removed five minutes after they were first seen so
       Delta's log before the oldest kept    ──► removed

The versions that are kept are those which tables/checkpoints names, and the newest. Delta's own VACUUM and clean-up go by age
alone, and asking delta-rs to keep versions costs 50 ms for each (measured), so both are done here, by name.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import CommitProperties, DeltaTable

from lake import checkpoints
from lake.merging import FILE_BYTES
from lake.stored import table_path

if TYPE_CHECKING:
    from lake.folder import Lake

BUDGET_S = 1.0  # of a sweep: rounds wait for it, and tables are to be at most 3 s behind
COMMITS_MAX = 50  # without a checkpoint of Delta's; a merge takes 9 ms at 10 and 33 at 100 (measured)
SMALL_BYTES = FILE_BYTES // 4
SMALL_FILES = 16
GRACE_S = 300.0  # from when a file is no longer in a kept version until it goes

_VERSION = re.compile(r"([0-9]{20})\.(json|checkpoint\..*parquet|crc)$")


class Tender:
    """What is remembered between sweeps: where the last one ended, the files of versions, and what waits to be removed."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self._files: dict[str, dict[int, frozenset[str]]] = {}
        self._waiting: dict[Path, float] = {}
        self._last = ""

    def tend(self, budget_s: float = BUDGET_S) -> None:
        """Tends tables in turn for about this long, at least one."""
        ends = time.monotonic() + budget_s
        names = sorted(n for n in os.listdir(self.lake.path / "tables") if DeltaTable.is_deltatable(str(table_path(self.lake, n))))
        names = [n for n in names if n > self._last] + [n for n in names if n <= self._last]
        for name in names:
            self.tend_one(name)
            self._last = name
            if time.monotonic() > ends:
                return

    def tend_one(self, name: str) -> None:
        path = table_path(self.lake, name)
        table = DeltaTable(str(path))
        if name != checkpoints.NAME:
            compact(table)
        if table.version() - newest_checkpoint(path) >= COMMITS_MAX:
            table.create_checkpoint()
        listed = [] if name == checkpoints.NAME else checkpoints.listed(self.lake)
        kept = {c.versions[int(name)] for c in listed if int(name) in c.versions} | {table.version()}
        self._vacuum(name, path, table, kept)
        clean_log(path, min(kept))

    def _vacuum(self, name: str, path: Path, table: DeltaTable, kept: set[int]) -> None:
        known = self._files.get(name, {})
        known = {v: known[v] if v in known else self._files_at(path, table, v) for v in kept}
        self._files[name] = known
        needed = frozenset[str]().union(*known.values())
        unneeded = [p for p in path.iterdir() if p.suffix == ".parquet" and p.name not in needed]
        before = {p: since for p, since in self._waiting.items() if p.parent == path}
        self._waiting = {p: since for p, since in self._waiting.items() if p.parent != path}
        for p in unneeded:
            first_seen = before.get(p, time.monotonic())
            if time.monotonic() - first_seen >= GRACE_S:
                p.unlink(missing_ok=True)
            else:
                self._waiting[p] = first_seen

    def _files_at(self, path: Path, table: DeltaTable, version: int) -> frozenset[str]:
        at = table if version == table.version() else DeltaTable(str(path), version=version)
        return frozenset(uri.rpartition("/")[2] for uri in at.file_uris())


def tend(lake: Lake) -> None:
    """A part of the tables, in turn; what was left over is first in the next call."""
    tender = lake.cache.setdefault(__name__, None) or Tender(lake)
    lake.cache[__name__] = tender
    tender.tend()


def compact(table: DeltaTable) -> None:
    """Makes one file of many small ones; the rows stay, so no transaction is needed and none is touched."""
    sizes = table.get_add_actions()["size_bytes"].to_pylist()
    if sum(size < SMALL_BYTES for size in sizes) >= SMALL_FILES:
        table.optimize.compact(
            target_size=FILE_BYTES,
            commit_properties=CommitProperties(max_commit_retries=0),
            post_commithook_properties=checkpoints.NO_HOOKS,
        )


def newest_checkpoint(path: Path) -> int:
    """The newest version that Delta's log can be read from, -1 if it begins at its beginning."""
    return max(_checkpoints(os.listdir(path / "_delta_log")), default=-1)


def _checkpoints(names: Iterable[str]) -> list[int]:
    return [int(m[1]) for m in map(_VERSION.match, names) if m and m[2].startswith("checkpoint")]


def clean_log(path: Path, oldest: int) -> None:
    """Removes what no version from `oldest` on is read from: all before the newest of Delta's checkpoints not later than it."""
    folder = path / "_delta_log"
    names = os.listdir(folder)
    begin = max((v for v in _checkpoints(names) if v <= oldest), default=0)
    for name in sorted(names):
        found = _VERSION.match(name)
        if found and int(found[1]) < begin and time.time() - (folder / name).stat().st_mtime >= GRACE_S:
            (folder / name).unlink(missing_ok=True)
