"""Writing the log: one living engine, one file an entry.

    open_epoch ──► lock (W4) ──► epoch entry (W3) ──► the earlier JVM is gone ──► Writer
    append     ──► temporary file `.n.epoch` ──► sync ──► link to n, if free (W1) ──► sync of the folder (W2) ──► announced

A writer that was paused and replaced finds its place taken at its next entry: `Replaced`. All that it wrote until then has
its epoch in the name, so it has spoiled nothing.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from lake import catalogs, crash, files
from lake.catalog import Catalog, Change
from lake.engines import Announcement, EngineLock, announced, forget, wait_until_gone
from lake.entry import ALIGNMENT, KINDS, Header, Section, encode_header, rows, stream
from lake.errors import Replaced
from lake.folder import Lake
from lake.log import carried

Changes: TypeAlias = (
    "bytes | memoryview | pa.Buffer | pa.Table | Path"  # an Arrow stream, a table, or a file with a stream that becomes the entry's own
)


def now() -> int:
    return time.time_ns() // 1_000_000


def open_epoch(lake: Lake, take_over: bool = False) -> Writer:
    """The lake's writer, in an epoch of its own. 55000 if another engine lives and `take_over` does not say to replace it."""
    lock = EngineLock(lake, take_over)
    try:
        before = announced(lake)
        writer = _begin(lake, lock)
        if before is not None:
            wait_until_gone(before, insist=not take_over)
        return writer
    except BaseException:
        lock.release()
        raise


def _begin(lake: Lake, lock: EngineLock) -> Writer:
    """W3: the first entry of an epoch. Of two that begin at once one finds its place taken, and takes the next."""
    while True:
        newest = carried(lake.log.newest())
        header = replace(newest, n=newest.n + 1, time=max(now(), newest.time + 1), epoch=newest.epoch + 1, kind="epoch")
        if _create(lake, header, [], f"{header.epoch}.{uuid.uuid4().hex}"):
            break
    _sweep_temporary(lake, header)
    return Writer(lake, lock, lake.log.announce(header))


class Writer:
    """The one who appends. `newest` is the newest entry, its own or the one before its first; one thread at a time appends."""

    def __init__(self, lake: Lake, lock: EngineLock, newest: Header) -> None:
        self.lake = lake
        self.newest = newest
        self.epoch = newest.epoch
        self.catalog: Catalog = lake.catalog_at(newest.n)
        self._lock = lock
        self._appending = threading.Lock()
        if newest.catalog_version:
            catalogs.write(lake, newest.catalog_version, self.catalog)  # an engine that ended may have left it out

    def append(
        self,
        changes: Sequence[tuple[int, Changes]] = (),
        *,
        kind: str = "tick",
        time: int | None = None,
        catalog: Change | None = None,
        **fields: Any,
    ) -> Header:
        """The next entry, durable, with the net changes of each relation that changed.

        `time` is later than the newest entry's; left out, it is the clock's or one more than that. Fields of `Header` that are
        not given (offsets, inbox, clock, state, checkpoint, batch, extra) are as in the newest entry. `Replaced` if the place is
        taken; after any other error the same may be tried again, and is `Replaced` if it was appended after all.
        """
        assert kind in KINDS, kind
        with self._appending:
            newest = carried(self.newest)
            n = newest.n + 1
            time = max(now(), newest.time + 1) if time is None else time
            if time <= newest.time:
                raise ValueError(f"time {time} is not later than the newest entry's, {newest.time}")
            sections, parts = self._sections(n, changes)
            version = newest.catalog_version if catalog is None else n
            header = replace(
                newest, n=n, time=time, epoch=self.epoch, kind=kind, catalog=catalog, catalog_version=version, relations=sections, **fields
            )
            if not _create(self.lake, header, parts, str(self.epoch)):
                raise Replaced(f"another engine has written entry {n} of the log")
            self.newest = self.lake.log.announce(header)
            if catalog is not None:
                crash.point("catalog.entry")
                self.catalog = self.catalog.apply(catalog)
                catalogs.write(self.lake, n, self.catalog)
            return header

    def _sections(self, n: int, changes: Sequence[tuple[int, Changes]]) -> tuple[tuple[Section, ...], list[bytes | memoryview]]:
        """Where each section will be, and the bytes of those inside the entry."""
        sections: list[Section] = []
        parts: list[bytes | memoryview] = []
        offset = 0
        for relation, given in changes:
            if isinstance(given, Path):
                if section := self._adopt(n, relation, given):
                    sections.append(section)
                continue
            raw = memoryview(stream(given) if isinstance(given, pa.Table) else given).cast("B")
            count = rows(pa.py_buffer(raw))
            if count == 0:
                continue
            sections.append(Section(relation, count, offset, len(raw)))
            filling = -len(raw) % ALIGNMENT
            parts += [raw, bytes(filling)]
            offset += len(raw) + filling
        if len({s.relation for s in sections}) != len(sections):
            raise ValueError("a relation has two sections")
        return tuple(sections), parts

    def _adopt(self, n: int, relation: int, path: Path) -> Section | None:
        """Moves a file beside the entry, under a name with its epoch."""
        with pa.memory_map(str(path)) as file:
            count = rows(file)
        if count == 0:
            return None
        name = f"{n}.{self.epoch}.{relation}.arrow"
        target = self.lake.log.folder / name
        try:
            os.link(path, target)
        except FileExistsError:  # this append failed before and is tried again
            os.unlink(target)
            os.link(path, target)
        except OSError:  # from another file system
            shutil.copyfile(path, target)
        with open(target, "rb+") as file:
            os.fsync(file.fileno())
        return Section(relation, count, 0, target.stat().st_size, name)

    def announce(self, *, address: str, token: str, jvm: int | None = None) -> None:
        """Tells gateways where the engine's control is, and later engines which processes to wait for."""
        Announcement.mine(self.epoch, address, token, jvm).write(self.lake)

    def close(self) -> None:
        """The end at a tick boundary: the next engine waits for nothing."""
        forget(self.lake, self.epoch)
        self._lock.release()


def _create(lake: Lake, header: Header, parts: Sequence[bytes | memoryview], mark: str) -> bool:
    """W1 and W2: the entry under its name, whole and durable; False if the name is taken."""
    folder = lake.log.folder

    def content() -> Iterator[bytes | memoryview]:
        yield encode_header(header)
        crash.point("entry.half")
        yield from parts
        crash.point("entry.link")

    return files.create(folder / str(header.n), content(), folder / f".{header.n}.{mark}", linked=lambda: crash.point("entry.linked"))


def _sweep_temporary(lake: Lake, newest: Header) -> None:
    """Removes what writers of earlier epochs left half done."""
    for name in os.listdir(lake.log.folder):
        words = name.split(".")
        if name.startswith(".") and len(words) >= 3 and words[2].isdecimal() and int(words[2]) < newest.epoch:
            (lake.log.folder / name).unlink(missing_ok=True)
