"""Removal of old entries, segments and copies of the catalog, oldest first (W7).

    newest … ─ log/ ─┬─ segments/ ─┬─ removed
                     │             └─ older than every table's oldest checkpoint, every reader, and five minutes
                     └─ older than the newest thousand entries

`since` moves when the oldest checkpoint is dropped from the list (`lake.tables.checkpoints`). Its distance
from the newest time is the longest requested history. All ages are ages of entries (`lake.log.ages`), not
differences of times. A sweep may be interrupted anywhere and repeated. Only the engine sweeps, in the
thread that also runs the rounds.

An engine that was paused during a sweep and replaced may continue at any later time. This is
harmless: the files that it chose to remove are never needed again. It creates names only in its own
folder (`lake.store.fencing`).
"""

from __future__ import annotations

from datetime import timedelta

from tailgate.lake.folder import Lake
from tailgate.lake.log import segments
from tailgate.lake.log.entry import LOG
from tailgate.lake.log.log import name
from tailgate.lake.log.segments import ENTRIES
from tailgate.lake.readers import holds, subscriptions
from tailgate.lake.readers.reading import since_wanted
from tailgate.lake.tables import checkpoints
from tailgate.lake.writer import maintenance, sweep_state
from tailgate.lake.writer.log_writer import Writer

INTERVAL_MS = 60_000  # between two sweeps, by the age of entries: an engine that is killed each minute sweeps as often as others
AGE_MIN_MS = 300_000  # younger entries are never removed: a reader that has just begun must be able to finish
SEGMENTS_MAX = 10  # segments rolled per sweep: some 10,000 entries are half an hour of ticks


def due(lake: Lake) -> bool:
    """Returns whether INTERVAL_MS have passed since the last sweep."""
    return sweep_state.age(lake) - sweep_state.of(lake).age >= INTERVAL_MS


def sweep(writer: Writer) -> None:
    """Rolls and removes old entries, about once a minute. Raises `Replaced` if another engine writes the log."""
    lake = writer.lake
    writer.check()
    writer.keep_catalog()
    roll(writer)
    stop_readers(lake)
    subscriptions.release_dropped(lake)
    remove_entries(writer, removable(lake))
    remove_catalogs(lake)
    maintenance.remove_dropped(lake)
    state = sweep_state.of(lake)
    state.age = sweep_state.age(lake)
    state.save(lake)


def roll(writer: Writer) -> None:
    """Rolls older entries into segments of a thousand each. The newest thousand stay single files, where readers look first."""
    log = writer.lake.log
    first = log.first()
    for _ in range(SEGMENTS_MAX):
        rolled = max((r.last for r in log.segments.ranges()), default=0)
        numbers = log.numbers()
        _free(writer, [name(n) for n in numbers if n <= rolled or n < first])  # left by an interrupted sweep
        numbers = [n for n in numbers if n > rolled and n >= first]
        if len(numbers) < 2 * ENTRIES:
            return
        block = [name(n) for n in numbers[:ENTRIES]]
        log.segments.roll(numbers[0], block, writer.store)
        _free(writer, block)


def _free(writer: Writer, names: list[str]) -> None:
    """Removes entries and segments that are copied to a segment or no longer needed.

    The segments are made durable before. The removal is durable afterwards, because files that only
    these entries need are removed next.
    """
    if names:
        writer.lake.store.sync([segments.FOLDER])
        writer.store.free(names)


def removable(lake: Lake) -> int:
    """Returns the last entry that may be removed; 0 if none may (W7).

    An entry stays if a reader of any time since `since` needs it, if a sink or subscription has not
    read it, if it is younger than five minutes, or if it is the newest. The entry at the oldest
    checkpoint's position is needed too: it names the version of the catalog.
    """
    checkpoints.sync(lake)
    newest, listed = lake.log.newest(), checkpoints.listed(lake)
    old = lake.log.aged(AGE_MIN_MS)
    if newest is None or not listed or old is None or listed[0].time > since_wanted(lake):
        return 0
    held = (hold.n for hold in holds.holds(lake) if hold.stopped is None)
    return min([min(c.position for c in listed) - 1, old.n, newest.n - 1, *held])


def remove_entries(writer: Writer, upto: int) -> None:
    """Removes entries up to `upto` in whole segments, and sections in separate objects that no entry names any more."""
    lake, log = writer.lake, writer.lake.log
    ranges = log.segments.ranges()
    going = [r.name for r in ranges if r.last <= upto]
    first = max((r.last for r in ranges if r.last <= upto), default=0) + 1
    if len(going) == len(ranges):
        going += [name(n) for n in log.numbers() if n <= upto]
        first = upto + 1
    if going:
        first = max(first, log.first())  # a replaced engine may have left a segment of removed entries
        version = log.header(first).catalog_version
        if not lake.catalog_copies.write(version, lake.catalog_at(first), writer.store):
            return  # without the copy, the entries are needed to compute it
        _free(writer, going)
    _remove_sections(writer)


def _remove_sections(writer: Writer) -> None:
    """Removes sections in separate objects that no entry names."""
    log = writer.lake.log
    first, newest = log.first(), writer.newest
    unnamed = []
    for file in writer.lake.store.names(LOG):
        if not file.endswith(".arrow"):
            continue
        number, epoch = map(int, file.split(".")[:2])
        if epoch > writer.epoch or (epoch == writer.epoch and number > newest.n):
            continue  # belongs to an entry that is being appended
        referenced = first <= number <= newest.n and file in (s.file for s in log.header(number).relations)
        if not referenced:
            unnamed.append(f"{LOG}/{file}")
    writer.lake.store.discard(unnamed)


def stop_readers(lake: Lake) -> None:
    """Stops readers that hold entries that are too old, or too many bytes, so that the log cannot grow without limit."""
    retentions = subscriptions.retentions(lake.catalog())
    bytes_max = holds.bytes_max(lake)
    for hold in holds.holds(lake):
        if hold.stopped is not None:
            continue
        next_ = max(hold.n + 1, lake.log.first())
        newest = lake.log.newest()
        if newest is None or next_ > newest.n:
            continue
        age = newest.age - lake.log.header(next_).age
        if age > min(retentions.get(hold.reader, holds.AGE_MAX_MS), holds.AGE_MAX_MS):
            holds.stop(lake, hold.reader, hold.n, f"it has read nothing for {timedelta(seconds=age // 1000)}")
        elif (held := holds.size_after(lake, hold.n)) > bytes_max:
            holds.stop(lake, hold.reader, hold.n, f"it holds back {held >> 30} GiB of the log")


def remove_catalogs(lake: Lake) -> None:
    """Removes copies of the catalog that no entry names any more."""
    needed = lake.log.header(lake.log.first()).catalog_version
    versions = lake.catalog_copies.versions()
    going = [version for version in versions if version < needed]
    if going and needed in versions:
        lake.catalog_copies.discard(going)
