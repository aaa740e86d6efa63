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

from collections.abc import Iterable, Sequence
from datetime import timedelta

from tailgate.lake.folder import Lake
from tailgate.lake.log import segments
from tailgate.lake.log.entry import LOG
from tailgate.lake.log.log import Listing, name
from tailgate.lake.log.segments import ENTRIES
from tailgate.lake.readers import holds, subscriptions
from tailgate.lake.readers.holds import Hold
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
    listing = roll(writer)
    all_holds = holds.holds(lake)
    held = stop_readers(lake, all_holds, listing.first)
    subscriptions.release_dropped(lake, [hold.reader for hold in all_holds])
    first = remove_entries(writer, removable(lake, listing.first, held), listing)
    remove_catalogs(lake, first)
    maintenance.remove_dropped(lake)
    state = sweep_state.of(lake)
    state.age = sweep_state.age(lake)
    state.save(lake)


def roll(writer: Writer) -> Listing:
    """Rolls older entries into segments of a thousand each. Returns the names in the log's folders afterwards.

    The newest thousand entries stay single files, where readers look first.
    """
    log = writer.lake.log
    listing = log.listing()
    first, numbers, ranges = listing.first, listing.numbers, list(listing.ranges)
    rolled = max((r.last for r in ranges), default=0)
    _free(writer, [name(n) for n in numbers if n <= rolled or n < first])  # left by an interrupted sweep
    numbers = [n for n in numbers if n > rolled and n >= first]
    for _ in range(SEGMENTS_MAX):
        if len(numbers) < 2 * ENTRIES:
            break
        block = [name(n) for n in numbers[:ENTRIES]]
        ranges.append(log.segments.roll(numbers[0], block, writer.store))
        _free(writer, block)
        numbers = numbers[ENTRIES:]
    return Listing(numbers, listing.sections, ranges)


def _free(writer: Writer, names: list[str]) -> None:
    """Removes entries and segments that are copied to a segment or no longer needed.

    The segments are made durable before. The removal is durable afterwards, because files that only
    these entries need are removed next.
    """
    if names:
        writer.lake.store.sync([segments.FOLDER])
        writer.store.free(names)


def removable(lake: Lake, first: int, held: Sequence[Hold]) -> int:
    """Returns the last entry that may be removed; 0 if none may (W7).

    An entry stays if a reader of any time since `since` needs it, if a sink or subscription has not
    read it, if it is younger than five minutes, or if it is the newest. The entry at the oldest
    checkpoint's position is needed too: it names the version of the catalog. `first`: the oldest entry.
    `held`: the holds of readers that may continue.
    """
    checkpoints.sync(lake)
    newest, listed = lake.log.newest(), checkpoints.listed(lake)
    old = lake.log.aged(AGE_MIN_MS, first)
    if newest is None or not listed or old is None or listed[0].time > since_wanted(lake, first, held):
        return 0
    return min([min(c.position for c in listed) - 1, old.n, newest.n - 1, *(hold.n for hold in held)])


def remove_entries(writer: Writer, upto: int, listing: Listing) -> int:
    """Removes entries up to `upto` in whole segments, and sections in separate objects that no entry names any more.

    Returns the oldest entry afterwards.
    """
    lake, log, first = writer.lake, writer.lake.log, listing.first
    going = [r.name for r in listing.ranges if r.last <= upto]
    next_ = max((r.last for r in listing.ranges if r.last <= upto), default=0) + 1
    if len(going) == len(listing.ranges):
        going += [name(n) for n in listing.numbers if n <= upto]
        next_ = upto + 1
    if going:
        next_ = max(next_, first)  # a replaced engine may have left a segment of removed entries
        version = log.header(next_).catalog_version
        if not lake.catalog_copies.write(version, lake.catalog_at(next_), writer.store):
            return first  # without the copy, the entries are needed to compute it
        _free(writer, going)
        first = next_
    _remove_sections(writer, first, listing.sections)
    return first


def _remove_sections(writer: Writer, first: int, sections: Iterable[str]) -> None:
    """Removes sections in separate objects that no entry names. `first`: the oldest entry."""
    log, newest = writer.lake.log, writer.newest
    unnamed = []
    for file in sections:
        number, epoch = map(int, file.split(".")[:2])
        if epoch > writer.epoch or (epoch == writer.epoch and number > newest.n):
            continue  # belongs to an entry that is being appended
        referenced = first <= number <= newest.n and file in (s.file for s in log.header(number).relations)
        if not referenced:
            unnamed.append(f"{LOG}/{file}")
    writer.lake.store.discard(unnamed)


def stop_readers(lake: Lake, held: Iterable[Hold], first: int) -> list[Hold]:
    """Stops readers that hold entries that are too old, or too many bytes, so that the log cannot grow without limit.

    Returns the holds of the others. `first`: the oldest entry.
    """
    retentions, limits = subscriptions.retentions(lake.catalog()), holds.Limits(lake, first)
    others = []
    for hold in held:
        if hold.stopped is not None:
            continue
        age_max_ms = min(retentions.get(hold.reader, holds.AGE_MAX_MS), holds.AGE_MAX_MS)
        holding = limits.held(hold)
        if holding.age > age_max_ms:
            holds.stop(lake, hold.reader, hold.n, f"it has read nothing for {timedelta(seconds=holding.age // 1000)}")
        elif holding.bytes > limits.bytes_max:
            holds.stop(lake, hold.reader, hold.n, f"it holds back {holding.bytes >> 30} GiB of the log")
        else:
            others.append(hold)
    return others


def remove_catalogs(lake: Lake, first: int) -> None:
    """Removes copies of the catalog that no entry names any more. `first`: the oldest entry."""
    needed = lake.log.header(first).catalog_version
    versions = lake.catalog_copies.versions()
    going = [version for version in versions if version < needed]
    if going and needed in versions:
        lake.catalog_copies.discard(going)
