"""What is no longer needed goes, oldest first (W7).

    newest … ─ log/ ─┬─ segments/ ─┬─ removed
                     │             └─ every table's oldest checkpoint, every reader and five minutes have passed it
                     └─ older than the newest thousand entries

`since` moves when the oldest checkpoint is dropped from the list (`lake.checkpoints`), which trails by the history that is asked
for. All ages are those of entries (`lake.ages`), not differences of times. A sweep may end anywhere and be done again; only the
engine sweeps, in the thread that also runs the rounds.

An engine that was paused in a sweep and replaced may go on at any later time: what it chose to remove is not needed by anybody any
more, and stays so. Names that it would create are those of its own folder (`lake.fencing`).
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from lake import catalogs, checkpoints, files, readers, subscriptions
from lake.folder import Lake
from lake.reading import since_wanted
from lake.segments import ENTRIES
from lake.tending import tend
from lake.writing import Writer

AGE_MIN_MS = 300_000  # nothing younger goes: a reader that has just begun must be able to end
SEGMENTS_MAX = 10  # rolled in one sweep: some 10,000 entries are half an hour of ticks


def sweep(writer: Writer) -> None:
    """Rolls, removes and tends what has become old; about once a minute. `Replaced` if another engine writes the log."""
    lake = writer.lake
    writer.check()
    writer.keep_catalog()
    roll(writer)
    stop_readers(lake)
    subscriptions.release_dropped(lake)
    remove_entries(writer, removable(lake))
    remove_catalogs(lake)
    tend(lake, writer.epoch)


def roll(writer: Writer) -> None:
    """Rolls older entries into segments, a thousand each; the newest thousand stay files, where readers look first."""
    log = writer.lake.log
    first = log.first()
    for _ in range(SEGMENTS_MAX):
        rolled = max((r.last for r in log.segments.ranges()), default=0)
        numbers = log.numbers()
        _free(writer, [log.folder / str(n) for n in numbers if n <= rolled or n < first])  # what a sweep before left
        numbers = [n for n in numbers if n > rolled and n >= first]
        if len(numbers) < 2 * ENTRIES:
            return
        block = [log.folder / str(n) for n in numbers[:ENTRIES]]
        log.segments.roll(numbers[0], block, writer.folder)
        _free(writer, block)


def _free(writer: Writer, paths: list[Path]) -> None:
    """Removes entries and segments of the log whose content is in a segment, or is needed no more.

    Their names are free afterwards, so other writers lose their folders first. The segments are durable before, and the removal
    after it: what only these entries need is removed next.
    """
    if paths:
        folders = [writer.lake.log.segments.folder, writer.lake.log.folder]
        writer.folder.revoke_others()
        files.sync_all(folders)
        for path in paths:
            files.discard(path)
        files.sync_all(folders)


def removable(lake: Lake) -> int:
    """W7: the last entry that may go; 0 if none may.

    Not one which a reader of any time from `since` on needs (the oldest checkpoint's own says what the catalog was), which a
    sink or subscription has yet to read, which is younger than five minutes, and never the newest.
    """
    checkpoints.sync(lake)
    newest, listed = lake.log.newest(), checkpoints.listed(lake)
    old = lake.log.aged(AGE_MIN_MS)
    if newest is None or not listed or old is None or listed[0].time > since_wanted(lake):
        return 0
    held = (hold.n for hold in readers.holds(lake) if hold.stopped is None)
    return min([min(c.position for c in listed) - 1, old.n, newest.n - 1, *held])


def remove_entries(writer: Writer, upto: int) -> None:
    """Removes entries up to one, in whole segments, and what lies beside them."""
    lake, log = writer.lake, writer.lake.log
    ranges = log.segments.ranges()
    going = [log.segments.folder / r.name for r in ranges if r.last <= upto]
    first = max((r.last for r in ranges if r.last <= upto), default=0) + 1
    if len(going) == len(ranges):
        going += [log.folder / str(n) for n in log.numbers() if n <= upto]
        first = upto + 1
    if going:
        version = log.header(first).catalog_version
        if not catalogs.write(lake, version, lake.catalog_at(first), writer.folder):
            return  # without the copy, the entries are needed to compute it
        _free(writer, going)
    _remove_sections(writer)


def _remove_sections(writer: Writer) -> None:
    """Removes the files beside the log that no entry names."""
    log = writer.lake.log
    first, newest = log.first(), writer.newest
    for path in log.folder.glob("*.arrow"):
        number, epoch = map(int, path.name.split(".")[:2])
        if epoch > writer.epoch or (epoch == writer.epoch and number > newest.n):
            continue  # of an entry that is just being appended
        named = first <= number <= newest.n and path.name in (s.file for s in log.header(number).relations)
        if not named:
            files.discard(path)


def stop_readers(lake: Lake) -> None:
    """Stops readers that hold too much for too long; they never skip, and the log does not grow for ever."""
    asked = subscriptions.retentions(lake.catalog())
    for hold in readers.holds(lake):
        if hold.stopped is not None:
            continue
        next_ = max(hold.n + 1, lake.log.first())
        newest = lake.log.newest()
        if newest is None or next_ > newest.n:
            continue
        age = newest.age - lake.log.header(next_).age
        if age > min(asked.get(hold.reader, readers.AGE_MAX_MS), readers.AGE_MAX_MS):
            readers.stop(lake, hold.reader, hold.n, f"it has read nothing for {timedelta(seconds=age // 1000)}")
        elif (held := size_after(lake, hold.n)) > readers.BYTES_MAX:
            readers.stop(lake, hold.reader, hold.n, f"it holds back {held >> 30} GiB of the log")


def size_after(lake: Lake, n: int) -> int:
    """Bytes of the entries after n, to the segment."""
    segments = [lake.log.segments.folder / r.name for r in lake.log.segments.ranges() if r.last > n]
    entries = [p for p in map(Path, os.scandir(lake.log.folder)) if p.name.split(".")[0].isdecimal() and int(p.name.split(".")[0]) > n]
    return sum(p.stat().st_size for p in [*segments, *entries])


def remove_catalogs(lake: Lake) -> None:
    """Removes copies of the catalog that no entry names any more."""
    needed = lake.log.header(lake.log.first()).catalog_version
    there = catalogs.versions(lake)
    going = [version for version in there if version < needed]
    if going and needed in there:
        files.sync_folder(lake.path / "catalog")
        for version in going:
            files.discard(lake.path / "catalog" / str(version))
