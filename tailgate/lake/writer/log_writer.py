"""Writing the log: one engine at a time, one object per entry.

    open_epoch ──► lock (W4) ──► epoch entry (W3) ──► the earlier JVM has ended ──► Writer
    append     ──► created as log/n, if free (W1), complete and durable (W2) ──► announced

The creation is the commit. A failure before it changes nothing, and the same entry may be appended again.
After it only the name's durability can fail. Then the writer accepts no more entries (`Uncertain`),
the process ends, and the next start reads the committed entries from the log.

A writer that was paused and replaced cannot append any more, even if its entries' names have become
free (`lake.store.fencing`). It gets `Replaced`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import pyarrow as pa

from tailgate.lake.catalog import Catalog, Change
from tailgate.lake.catalog.schemas import DATABASE
from tailgate.lake.errors import ObjectNotInPrerequisiteState, Replaced, TailgateError, Uncertain
from tailgate.lake.folder import Lake
from tailgate.lake.host import crash
from tailgate.lake.log.ages import Ages
from tailgate.lake.log.entry import ALIGNMENT, KINDS, LOG, Header, Section, StateFile, encode_header, rows, stream
from tailgate.lake.log.log import SECTION, carried, name
from tailgate.lake.log.recent import SENT_BYTES_MAX
from tailgate.lake.ranges import ALL_RANGES
from tailgate.lake.store import FencedWriter, Lock, Revoked
from tailgate.lake.writer.engines import Announcement, announced, forget, locked, renew, wait_until_gone

Changes: TypeAlias = (
    "bytes | memoryview | pa.Buffer | pa.Table | Path"  # an Arrow stream, a table, or a file with a stream, which becomes a section
)


AHEAD_MS = 60_000  # by which the log's time may be ahead of the clock without a warning

log = logging.getLogger("tailgate.lake")

REPLACED = "another engine writes the log of this lake"


def now() -> int:
    """Returns the wall clock's time in ms since the epoch."""
    return time.time_ns() // 1_000_000


def open_epoch(lake: Lake, take_over: bool = False, *, after: int | None = None) -> Writer:
    """Returns the lake's writer, in a new epoch.

    Raises 55000 if another engine is running and `take_over` is false, or if the newest epoch is not `after`.
    """
    if after is not None:
        _last(lake, after)  # otherwise the engine that has begun would lose its lock
    lock = locked(lake, take_over)
    try:
        before = announced(lake)
        writer = _begin(lake, lock, after)
        if before is not None:
            wait_until_gone(before, insist=not take_over)
        return writer
    except BaseException:
        lock.release()
        raise


def _last(lake: Lake, after: int | None) -> Header:
    """Returns the newest entry, without what belongs to it alone. Raises 55000 if the newest epoch is not `after`."""
    newest = carried(lake.log.listed())
    if after is not None and newest.epoch != after:
        raise ObjectNotInPrerequisiteState("another engine has begun", detail=f"It runs in epoch {newest.epoch}.")
    return newest


def _begin(lake: Lake, lock: Lock, after: int | None) -> Writer:
    """Writes the first entry of an epoch (W3). If two engines begin at once, one finds the name taken and uses the next."""
    store = lake.store.writer()
    while True:
        newest = _last(lake, after)
        header = replace(newest, n=newest.n + 1, time=max(now(), newest.time + 1), epoch=newest.epoch + 1, kind="epoch")
        try:
            if _create(header, [encode_header(header)], store):
                break
        except Revoked:
            store.renew()
    store.fence_others()
    return Writer(lake, lock, lake.log.announce(header), store)


class Writer:
    """The writer of the log. `newest` is the newest entry, its own or the one before its first. One thread at a time appends."""

    def __init__(self, lake: Lake, lock: Lock, newest: Header, store: FencedWriter) -> None:
        self.lake = lake
        self.newest = newest
        self.epoch = newest.epoch
        self.store = store
        self.catalog: Catalog = lake.catalog_at(newest.n)
        self.statement = ""  # the id of the statement that makes the next change of the catalog
        self._lock = lock
        self._appending = threading.RLock()
        self._keeping = threading.Lock()  # held while a copy of the catalog is written
        self._ages = Ages(newest.age)
        self._announcement: Announcement | None = None
        self._failure: TailgateError | None = None
        self._ahead = False  # whether the time is more than AHEAD_MS ahead of the clock, which has been logged
        self.keep_catalog()  # the previous engine may not have written it

    def append(
        self,
        changes: Sequence[tuple[int, Changes]] = (),
        *,
        kind: str = "tick",
        time: int | None = None,
        catalog: Change | None = None,
        files: Mapping[str, bytes] = MappingProxyType({}),
        repeated: Sequence[tuple[int, Changes]] = (),
        **fields: Any,
    ) -> Header:
        """Appends the next entry durably, with the net changes of each relation that changed, and files of the state.

        `repeated`: rows that are removed and added again, by relation.

        `time` must be later than the newest entry's. By default it is the clock's time, or the newest plus one
        if that is greater. Other fields of `Header` (offsets, inbox, clock, state, checkpoint, batch, extra)
        default to those of the newest entry.

        Raises `Replaced` if another engine writes the log, and `Uncertain` if the entry may or may not be
        durable; after either, no entry can be appended. After any other error the entry is not in the log and
        may be appended again.
        """
        assert kind in KINDS, kind
        with self._appending:
            if self._failure is not None:
                raise self._failure
            newest = carried(self.newest)
            n = newest.n + 1
            time = max(now(), newest.time + 1) if time is None else time
            if time <= newest.time:
                raise ValueError(f"time {time} is not later than the newest entry's, {newest.time}")
            after = self.catalog if catalog is None else self.catalog.apply(catalog)
            sections, parts = self._sections(n, changes)
            repeated_sections, repeated_parts = self._sections(n, repeated, _size(parts))
            parts += repeated_parts
            version = newest.catalog_version if catalog is None else n
            if catalog is not None and self.statement:
                fields["writes"] = (*fields.get("writes", ()), self.statement)
            fields = {"age": self._ages.next(), "epoch": self.epoch, "kind": kind, "catalog": catalog, "catalog_version": version, **fields}
            fields["format"] = newest.format if catalog is None else max(newest.format, _format(catalog, after))
            state_files = tuple(_state_files(files, _size(parts)))
            header = replace(newest, n=n, time=time, relations=sections, repeated=repeated_sections, state_files=state_files, **fields)
            parts = [encode_header(header), *parts]
            self._link(header, [*parts, *files.values()])
            self.newest = self.lake.log.announce(header, b"".join(parts) if _size(parts) <= SENT_BYTES_MAX else None)
            self._ages.appended(header.age)
            self._compare_clock(time)
            if catalog is not None:
                self.catalog, self.statement = self.lake.catalog_copies.keep(n, after), ""
                crash.point("catalog.entry")
            return header

    def _compare_clock(self, time: int) -> None:
        """Logs a warning when the log's time gets too far ahead of the clock, once until the clock has caught up."""
        ahead = time - now()
        if ahead > AHEAD_MS and not self._ahead:
            log.warning(
                "the time of the log is %d s ahead of the clock, which was set back; times go on one by one until the clock has caught up",
                ahead // 1000,
            )
        self._ahead = ahead > AHEAD_MS

    def _link(self, header: Header, parts: Sequence[bytes | memoryview]) -> None:
        """Creates the entry in the log."""
        try:
            while True:
                try:
                    if _create(header, parts, self.store):
                        return
                    raise Replaced(REPLACED)
                except Revoked:
                    self.store.renew()
                    self.check()
        except (Replaced, Uncertain) as error:
            self._failure = error  # permanent: a renewal alone does not prove that this writer is the newest
            raise

    def check(self) -> None:
        """Raises `Replaced` if another engine has written to the log."""
        newest = self.lake.log.stored()
        if newest is None or newest.epoch != self.epoch:
            raise Replaced(REPLACED)

    def keep_catalog(self) -> bool:
        """Writes the copy of the newest catalog if it is missing. Returns whether it exists. Entries can be appended meanwhile."""
        with self._keeping:
            with self._appending:
                version, catalog = self.newest.catalog_version, self.catalog
            return self.lake.catalog_copies.write(version, catalog, self.store)

    def _sections(
        self, n: int, changes: Sequence[tuple[int, Changes]], offset: int = 0
    ) -> tuple[tuple[Section, ...], list[bytes | memoryview]]:
        """Returns the location of each section from an offset on, and the bytes of those inside the entry."""
        sections: list[Section] = []
        parts: list[bytes | memoryview] = []
        for relation, content in changes:
            if isinstance(content, Path):
                if section := self._adopt(n, relation, content):
                    sections.append(section)
                continue
            raw = memoryview(stream(content) if isinstance(content, pa.Table) else content).cast("B")
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
        """Takes a file into the store, as a section of entry n. Returns None if it has no rows."""
        with pa.memory_map(str(path)) as file:
            count = rows(file)
        if count == 0:
            return None
        file = f"{n}.{self.epoch}.{relation}{SECTION}"
        return Section(relation, count, 0, self.lake.store.adopt(path, f"{LOG}/{file}"), file)

    def announce(self, *, address: str, token: str, jvm: int | None = None, certificate: str | None = None) -> None:
        """Announces where gateways find the engine's control, and the processes that later engines wait for."""
        announcement = Announcement.mine(self.epoch, address, token, jvm, certificate)
        announcement.write(self.lake)
        self._announcement = announcement  # `renew_lease` may write the file; it has one writer at a time

    def renew_lease(self) -> None:
        """Renews the lease of this epoch. Repeats the announcement if a replaced engine has removed both."""
        if not renew(self.lake, self.epoch) and self._announcement is not None:
            self._announcement.write(self.lake)

    def close(self) -> None:
        """Ends the epoch at a tick boundary, so that the next engine need not wait."""
        self.keep_catalog()
        forget(self.lake, self.epoch)
        self.store.close()
        self._lock.release()


def _size(parts: Sequence[bytes | memoryview]) -> int:
    return sum(memoryview(part).nbytes for part in parts)


def _state_files(files: Mapping[str, bytes], offset: int) -> Iterator[StateFile]:
    """Yields the locations of the files behind an offset. Processes that receive the entry from the engine do not get them."""
    for path, content in files.items():
        yield StateFile(path, offset, len(content))
        offset += len(content)


def _format(change: Change, after: Catalog) -> int:
    """Returns the format that a change needs: versions that write lower formats do not store its types, or do not check its privileges."""
    if DATABASE.id in after.access or any(role.valid_until is not None for role in after.roles.values()):
        return 6
    types = [column.type for item in change.put for column in item.columns]
    if not ALL_RANGES.keys().isdisjoint(name for type in types for name in type.leaves):
        return 5
    if after.access:
        return 4
    return 3 if any(type.multidimensional for type in types) else 2 if any(type.general for type in types) else 1


def _create(header: Header, parts: Sequence[bytes | memoryview], store: FencedWriter) -> bool:
    """Creates the entry's object, complete and durable (W1, W2). Returns False if the name is taken."""

    def content() -> Iterator[bytes | memoryview]:
        yield parts[0]
        crash.point("entry.half")
        yield from parts[1:]
        crash.point("entry.link")

    return store.create(name(header.n), content(), visible=lambda: crash.point("entry.linked"))
