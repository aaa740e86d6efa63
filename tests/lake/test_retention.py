"""Retention: holds of readers, copies of the catalog, the inbox, histories longer than an hour."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.catalog import Subscription
from tailgate.lake.folder import Lake
from tailgate.lake.host import disk
from tailgate.lake.log import ages, segments
from tailgate.lake.log.log import name
from tailgate.lake.readers import holds, reading, subscriptions
from tailgate.lake.tables import checkpoints
from tailgate.lake.tables.checkpoints import Checkpoint
from tailgate.lake.types import INT8, Field
from tailgate.lake.writer import log_writer, retention
from tailgate.lake.writer.log_writer import Writer, open_epoch
from tailgate.lake.writer.rounds import Follower
from tests.lake.relations import BOTH_STORES_LONG, History, add, changes, item, snapshot, sweep

COLUMNS = (Field("a", INT8),)
BAG = item(16384, COLUMNS, None)


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes everything old at once, with segments of three entries."""
    monkeypatch.setattr(segments, "ENTRIES", 3)
    monkeypatch.setattr(retention, "ENTRIES", 3)
    monkeypatch.setattr(reading, "RETAIN_HISTORY_MS", 0)
    monkeypatch.setattr(retention, "AGE_MIN_MS", 0)


def ticks(writer: Writer, follower: Follower, count: int) -> History:
    history = History()
    for i in range(count):
        history.append(writer, {BAG.id: changes(BAG, [([i], 1)])})
        follower.round()
    return history


def begin(lake: Lake) -> tuple[Writer, Follower]:
    writer = open_epoch(lake)
    add(writer, BAG)
    return writer, Follower(lake, writer.epoch)


@BOTH_STORES_LONG
@pytest.mark.usefixtures("old")
def test_a_reader_holds_entries_until_it_is_stopped(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, follower = begin(lake)
    holds.hold(lake, "sink-1", 5)
    holds.hold(lake, "sink-2", 8)
    ticks(writer, follower, 20)
    sweep(writer)
    assert lake.log.first() <= 6
    assert [h.stopped for h in holds.holds(lake)] == [None, None]
    holds.limit_bytes(lake, holds.Limits(lake).size_after(8))
    sweep(writer)
    first, second = holds.holds(lake)
    assert first.stopped == holds.stopped(lake, "sink-1")
    assert first.stopped is not None
    assert second.stopped is None
    assert 6 < lake.log.first() <= 9
    monkeypatch.setattr(holds, "AGE_MAX_MS", 0)
    sweep(writer)
    assert holds.stopped(lake, "sink-2") is not None
    holds.release(lake, "sink-1")
    assert holds.stopped(lake, "sink-1") is None


@pytest.mark.usefixtures("old")
def test_a_dropped_subscription_leaves_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holds, "AGE_MAX_MS", -1)  # the sweep that releases it could stop it, too
    writer, follower = begin(lake)
    holds.hold(lake, subscriptions.reader(BAG.id - 1), 1)
    ticks(writer, follower, 3)
    sweep(writer)
    assert lake.store.names(holds.FOLDER) == []


@pytest.mark.usefixtures("old")
def test_a_relation_may_ask_for_a_longer_history(lake: Lake) -> None:
    writer = open_epoch(lake)
    long = item(16390, COLUMNS, None, retain_history_ms=3_600_000)
    add(writer, BAG, long)
    follower = Follower(lake, writer.epoch)
    history = ticks(writer, follower, 12)
    sweep(writer)
    history.check(lake, BAG)
    assert reading.since(lake) <= history.entries[0][0].time
    add(writer, item(16390, COLUMNS, None))
    ticks(writer, follower, 6)
    sweep(writer)
    assert reading.since(lake) > history.entries[0][0].time


@BOTH_STORES_LONG
@pytest.mark.usefixtures("old")
def test_copies_of_the_catalog_follow(lake: Lake) -> None:
    writer, follower = begin(lake)
    for i in range(4):
        add(writer, item(16400 + i, COLUMNS, None))
        ticks(writer, follower, 3)
    follower.round()
    sweep(writer)
    first = lake.log.first()
    assert first > 10
    assert lake.catalog_copies.versions()[0] == lake.log.header(first).catalog_version
    for n in range(first, writer.newest.n + 1):
        assert BAG.id in Lake(lake.location).catalog_at(n).items


@BOTH_STORES_LONG
@pytest.mark.usefixtures("old")
def test_an_interrupted_sweep_is_repeated(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment exists, and its entries are still in log/."""
    writer, follower = begin(lake)
    monkeypatch.setattr(reading, "RETAIN_HISTORY_MS", 3_600_000)
    history = ticks(writer, follower, 10)
    lake.log.segments.roll(1, [name(n) for n in (1, 2, 3)], writer.store)
    history.check(Lake(lake.location), BAG)
    sweep(writer)
    assert lake.log.numbers()[0] > 3
    history.check(Lake(lake.location), BAG)


@BOTH_STORES_LONG
@pytest.mark.usefixtures("old")
def test_a_segment_of_removed_entries_comes_back(lake: Lake) -> None:
    """An engine that was replaced may write a segment again after its removal. The next sweep removes it."""
    writer, follower = begin(lake)
    history = ticks(writer, follower, 4)
    lake.log.segments.roll(1, [name(n) for n in (1, 2, 3)], writer.store)
    content = bytes(lake.store.get("segments/1-3"))
    for _ in range(3):
        history.entries += ticks(writer, follower, 5).entries
        sweep(writer)
    first = lake.log.first()
    assert first > 6
    lake.store.put("segments/1-3", content)
    history.entries += ticks(writer, follower, 1).entries
    holds.hold(lake, "sink-1", 4)
    sweep(writer)
    assert lake.log.first() >= first
    assert not lake.store.exists("segments/1-3")
    history.check(Lake(lake.location), BAG)


@BOTH_STORES_LONG
@pytest.mark.usefixtures("old")
def test_an_engine_begins_while_entries_are_removed(lake: Lake) -> None:
    """Its newest known entry is old, the next one is removed already, and others are not. Its first entry is the newest of the log."""
    writer, follower = begin(lake)
    late = Lake(lake.location)
    known = late.log.newest()
    assert known is not None
    history = ticks(writer, follower, 12)
    content = bytes(lake.store.get(name(known.n)))
    sweep(writer)
    lake.store.put(name(known.n), content)
    assert not lake.store.exists(name(known.n + 1))
    newest = writer.newest.n
    open_epoch(late, take_over=True)
    assert Lake(lake.location).log.newest().n == newest + 1
    history.check(Lake(lake.location), BAG)


DAY_MS = 86_400_000
FEED = Subscription(16400, "feed", depends=(BAG.id,), retention_ms=3_600_000, snapshot=True, progress=False)


@pytest.mark.parametrize("jump", [DAY_MS, -DAY_MS], ids=["forward", "back"])
def test_a_jump_of_the_clock_stops_no_reader_and_keeps_the_history(jump: int, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention depends on ages, which count the time that engines run, and not on times.

    The lake keeps the entries of the last hour of running.
    """
    monkeypatch.setattr(segments, "ENTRIES", 3)
    monkeypatch.setattr(retention, "ENTRIES", 3)
    writer, follower = begin(lake)
    history = ticks(writer, follower, 5)
    subscriptions.begin(lake, FEED, writer.newest.n, writer.newest.time)
    add(writer, FEED)
    holds.hold(lake, "sink-16401", writer.newest.n)
    start = writer.newest.n
    wall, monotonic = log_writer.now, ages.now
    monkeypatch.setattr(log_writer, "now", lambda: wall() + jump)
    history.entries += ticks(writer, follower, 5).entries
    sweep(writer)
    history.entries += ticks(writer, follower, 5).entries
    sweep(writer)
    assert [hold.stopped for hold in holds.holds(lake)] == [None, None]
    assert lake.log.first() == 1
    history.check(lake, BAG)
    times = [header.time for header, _ in history.entries]
    assert times == sorted(set(times))
    if jump > 0:
        assert times[-1] - times[0] > DAY_MS - 1_000
        assert times[5] - times[4] > DAY_MS - 1_000
    monkeypatch.setattr(ages, "STEP_MAX_MS", DAY_MS)
    # an hour of running, independent of the wall clock
    monkeypatch.setattr(ages, "now", lambda: monotonic() + 3_700_000)
    ticks(writer, follower, 6)
    sweep(writer)
    ticks(writer, follower, 6)
    sweep(writer)
    subscription = subscriptions.place(lake, FEED.id)
    assert subscription is not None
    assert subscription.stopped is not None
    assert [hold.stopped for hold in holds.holds(lake) if hold.reader == "sink-16401"] == [None]
    assert 1 < lake.log.first() <= start + 1


def test_a_step_between_two_entries_counts_a_minute_at_most(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses, sleep and the time without an engine do not age the history."""
    writer, _ = begin(lake)
    age = writer.newest.age
    monotonic = ages.now
    monkeypatch.setattr(ages, "now", lambda: monotonic() + DAY_MS)
    writer.append()
    assert writer.newest.age - age == ages.STEP_MAX_MS
    writer.append()
    assert writer.newest.age - age < ages.STEP_MAX_MS + 1_000
    writer.close()
    monkeypatch.setattr(ages, "now", lambda: monotonic() + 3 * DAY_MS)
    assert open_epoch(lake).newest.age == writer.newest.age


def test_a_stop_holds_for_where_the_reader_was_seen(lake: Lake) -> None:
    """An engine is paused while it stops a reader. If the reader advances, it is not stopped."""
    begin(lake)
    holds.hold(lake, "sink-1", 5)
    holds.stop(lake, "sink-1", 5, "too slow")
    assert holds.stopped(lake, "sink-1") == "too slow"
    holds.hold(lake, "sink-1", 6)
    assert holds.stopped(lake, "sink-1") is None
    assert [hold.stopped for hold in holds.holds(lake)] == [None]


@BOTH_STORES_LONG
@pytest.mark.usefixtures("old")
def test_a_reader_of_rows_holds_their_time(lake: Lake) -> None:
    """A sink holds the time of its snapshot in the same way, until the snapshot is sent."""
    writer, follower = begin(lake)
    ticks(writer, follower, 10)
    at = writer.newest.time
    rows = snapshot(lake, BAG, at)
    holds.hold(lake, "sink-1", writer.newest.n, at)
    for _ in range(4):
        ticks(writer, follower, 5)
        sweep(writer)
    assert lake.log.first() > 1
    assert snapshot(lake, BAG, at) == rows
    holds.hold(lake, "sink-1", writer.newest.n)
    for _ in range(4):
        ticks(writer, follower, 5)
        sweep(writer)
    assert reading.since(lake) > at


@pytest.mark.usefixtures("old")
def test_entries_stay_until_the_catalog_has_a_copy(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """If catalog copies cannot be written, the entries that they are computed from stay."""
    writer, follower = begin(lake)

    def full(name: str, path: Path, action: Callable[[], Any]) -> Any:
        if path.parent.name == "catalog" and name == "link":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return action()

    with monkeypatch.context() as patch:
        patch.setattr(disk, "hook", full)
        for i in range(3):
            add(writer, item(16410 + i, COLUMNS, None))
            ticks(writer, follower, 6)
            sweep(writer)
    assert set(Lake(lake.location).catalog().items) == {BAG.id, 16410, 16411, 16412}
    assert lake.log.first() <= 4
    sweep(writer)
    assert lake.log.first() > 4
    assert set(Lake(lake.location).catalog().items) == {BAG.id, 16410, 16411, 16412}


def test_checkpoints_are_thinned_and_since_keeps_its_own() -> None:
    age = 10_000_000_000
    all = [Checkpoint(n, age - (5_000 - n) * 1_000, age - (5_000 - n) * 1_000, {}, {}, {}) for n in range(5_001)]
    remaining = checkpoints.thinned(all, age, age - 3_600_000)
    assert remaining[0].time <= age - 3_600_000 < remaining[1].time
    assert remaining[-1] == all[-1]
    assert [c.n for c in remaining if age - c.age < checkpoints.RECENT_MS] == list(range(4_991, 5_001))
    assert len(remaining) < 60 + 62
    assert checkpoints.thinned(remaining, age, age - 3_600_000) == remaining
    assert checkpoints.thinned(all[:1], age, age) == all[:1]


def test_the_engine_sets_how_long_history_is_kept(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "RETAIN_HISTORY_MS", reading.RETAIN_HISTORY_MS)  # restores it
    writer = open_epoch(lake)
    add(writer, BAG)
    writer.append()
    writer.append()
    assert reading.since_wanted(lake) == 0
    reading.retain_history(0)
    assert reading.since_wanted(lake) > 0
