"""What is no longer needed goes, oldest first (W7).

    newest … ─ log/ ─┬─ segments/ ─┬─ removed
                     │             └─ every table's oldest checkpoint, every reader and five minutes have passed it
                     └─ older than the newest thousand entries

`since` moves when the oldest checkpoint is dropped from the list (`lake.checkpoints`), which trails by the history that is asked
for. A sweep may end anywhere and be done again; only the engine sweeps, in the thread that also runs the rounds.
"""

from __future__ import annotations

import os
import shutil
import time
from datetime import timedelta
from pathlib import Path

from lake import checkpoints, readers, subscriptions
from lake.catalogs import versions
from lake.folder import Lake
from lake.reading import since_wanted
from lake.segments import ENTRIES
from lake.stored import relations, table_path
from lake.tending import tend

AGE_MIN_MS = 300_000  # nothing younger goes: a reader that has just begun must be able to end
SEGMENTS_MAX = 10  # rolled in one sweep: some 10,000 entries are half an hour of ticks


def sweep(lake: Lake) -> None:
    """Rolls, removes and tends what has become old; about once a minute."""
    newest = lake.log.newest()
    if newest is None:
        return
    roll(lake)
    stop_readers(lake, now())
    subscriptions.release_dropped(lake)
    remove_entries(lake, removable(lake, now()))
    remove_catalogs(lake)
    remove_tables(lake)
    tend(lake)


def now() -> int:
    return time.time_ns() // 1_000_000


def roll(lake: Lake) -> None:
    """Rolls older entries into segments, a thousand each; the newest thousand stay files, where readers look first."""
    for _ in range(SEGMENTS_MAX):
        rolled = max((r.last for r in lake.log.segments.ranges()), default=0)
        numbers = lake.log.numbers()
        for n in numbers:
            if n > rolled:
                break
            (lake.log.folder / str(n)).unlink()  # a sweep ended before this one could
        numbers = [n for n in numbers if n > rolled]
        if len(numbers) < 2 * ENTRIES:
            return
        block = numbers[:ENTRIES]
        assert block[-1] - block[0] == ENTRIES - 1, f"the log has a gap between {block[0]} and {block[-1]}"
        lake.log.segments.roll(block[0], [lake.log.folder / str(n) for n in block])
        for n in block:
            (lake.log.folder / str(n)).unlink()


def removable(lake: Lake, now: int) -> int:
    """W7: the last entry that may go; 0 if none may.

    Not one which a reader of any time from `since` on needs (the oldest checkpoint's own says what the catalog was), which a
    sink or subscription has yet to read, which is younger than five minutes, and never the newest.
    """
    newest = lake.log.newest()
    listed = checkpoints.listed(lake)
    old = lake.log.find(now - AGE_MIN_MS)
    if newest is None or not listed or old is None or listed[0].time > since_wanted(lake, newest):
        return 0
    held = (hold.n for hold in readers.holds(lake) if hold.stopped is None)
    return min([min(c.position for c in listed) - 1, old.n, newest.n - 1, *held])


def remove_entries(lake: Lake, upto: int) -> None:
    """Removes entries up to one, in whole segments, and what lies beside them."""
    for segment in lake.log.segments.ranges():
        if segment.last > upto:
            break
        (lake.log.segments.folder / segment.name).unlink()
    if not lake.log.segments.ranges():
        for n in lake.log.numbers():
            if n > upto:
                break
            (lake.log.folder / str(n)).unlink()
    first, newest = lake.log.first(), lake.log.newest()
    for path in lake.log.folder.glob("*.arrow"):
        number, epoch = map(int, path.name.split(".")[:2])
        unnamed = newest is not None and epoch < newest.epoch and (number > newest.n or lake.log.header(number).epoch != epoch)
        if number < first or unnamed:
            path.unlink(missing_ok=True)


def stop_readers(lake: Lake, now: int) -> None:
    """Stops readers that hold too much for too long; they never skip, and the log does not grow for ever."""
    asked = subscriptions.retentions(lake.catalog())
    for hold in readers.holds(lake):
        if hold.stopped is not None:
            continue
        next_ = max(hold.n + 1, lake.log.first())
        newest = lake.log.newest()
        if newest is None or next_ > newest.n:
            continue
        age = now - lake.log.header(next_).time
        if age > min(asked.get(hold.reader, readers.AGE_MAX_MS), readers.AGE_MAX_MS):
            readers.stop(lake, hold.reader, f"it has read nothing for {timedelta(seconds=age // 1000)}")
        elif (held := size_after(lake, hold.n)) > readers.BYTES_MAX:
            readers.stop(lake, hold.reader, f"it holds back {held >> 30} GiB of the log")


def size_after(lake: Lake, n: int) -> int:
    """Bytes of the entries after n, to the segment."""
    segments = [lake.log.segments.folder / r.name for r in lake.log.segments.ranges() if r.last > n]
    entries = [p for p in map(Path, os.scandir(lake.log.folder)) if p.name.split(".")[0].isdecimal() and int(p.name.split(".")[0]) > n]
    return sum(p.stat().st_size for p in [*segments, *entries])


def remove_catalogs(lake: Lake) -> None:
    """Removes copies of the catalog that no entry names any more."""
    needed = lake.log.header(lake.log.first()).catalog_version
    there = versions(lake)
    if needed in there or needed == 0:
        for version in there:
            if version < needed:
                (lake.path / "catalog" / str(version)).unlink(missing_ok=True)


def remove_tables(lake: Lake) -> None:
    """Removes tables of dropped relations when `since` has passed the drop: no checkpoint names them."""
    kept = set(relations(lake.catalog())).union(*(c.versions for c in checkpoints.listed(lake)))
    for name in os.listdir(lake.path / "tables"):
        path = table_path(lake, name)
        if name.isdecimal() and int(name) not in kept and now() - path.stat().st_mtime * 1000 > AGE_MIN_MS:
            shutil.rmtree(path, ignore_errors=True)
