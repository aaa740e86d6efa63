"""What is kept and what goes: limits of readers, copies of the catalog, the inbox, histories longer than an hour."""

from __future__ import annotations

import time

import pytest

from lake import Lake, catalogs, checkpoints, readers, reading, retention, segments
from lake.checkpoints import Checkpoint
from lake.retention import sweep
from lake.tables import Follower
from lake.types import INT8, Field
from lake.writing import Writer, open_epoch
from tests.lake.relations import History, add, changes, item

COLUMNS = (Field("a", INT8),)
BAG = item(16384, COLUMNS, None)


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is old at once, and segments are of three entries."""
    monkeypatch.setattr(segments, "ENTRIES", 3)
    monkeypatch.setattr(retention, "ENTRIES", 3)
    monkeypatch.setattr(reading, "RETAIN_HISTORY_MS", 0)
    monkeypatch.setattr(retention, "now", lambda: time.time_ns() // 1_000_000 + 300_001)


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


@pytest.mark.usefixtures("old")
def test_a_reader_holds_entries_until_it_is_stopped(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, follower = begin(lake)
    lake.hold("sink-1", 5)
    lake.hold("sink-2", 8)
    ticks(writer, follower, 20)
    sweep(lake)
    assert lake.log.first() <= 6
    assert [h.stopped for h in readers.holds(lake)] == [None, None]
    monkeypatch.setattr(readers, "BYTES_MAX", retention.size_after(lake, 8))
    sweep(lake)
    first, second = readers.holds(lake)
    assert first.stopped == readers.stopped(lake, "sink-1")
    assert first.stopped is not None
    assert second.stopped is None
    assert 6 < lake.log.first() <= 9
    monkeypatch.setattr(readers, "AGE_MAX_MS", 0)
    sweep(lake)
    assert readers.stopped(lake, "sink-2") is not None
    lake.release("sink-1")
    assert readers.stopped(lake, "sink-1") is None


@pytest.mark.usefixtures("old")
def test_a_relation_may_ask_for_a_longer_history(lake: Lake) -> None:
    writer = open_epoch(lake)
    long = item(16390, COLUMNS, None, options={reading.RETAIN_OPTION: 3_600_000})
    add(writer, BAG, long)
    follower = Follower(lake, writer.epoch)
    history = ticks(writer, follower, 12)
    sweep(lake)
    history.check(lake, BAG)
    assert lake.since() <= history.entries[0][0].time
    add(writer, item(16390, COLUMNS, None))
    ticks(writer, follower, 6)
    sweep(lake)
    assert lake.since() > history.entries[0][0].time


@pytest.mark.usefixtures("old")
def test_copies_of_the_catalog_follow(lake: Lake) -> None:
    writer, follower = begin(lake)
    for i in range(4):
        add(writer, item(16400 + i, COLUMNS, None))
        ticks(writer, follower, 3)
    follower.round()
    sweep(lake)
    first = lake.log.first()
    assert first > 10
    assert catalogs.versions(lake)[0] == lake.log.header(first).catalog_version
    for n in range(first, writer.newest.n + 1):
        assert BAG.id in Lake(lake.path).catalog_at(n).items


@pytest.mark.usefixtures("old")
def test_a_sweep_that_ended_half_way_is_done_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment is there and its entries are still in log/."""
    writer, follower = begin(lake)
    monkeypatch.setattr(reading, "RETAIN_HISTORY_MS", 3_600_000)
    history = ticks(writer, follower, 10)
    lake.log.segments.roll(1, [lake.log.folder / str(n) for n in (1, 2, 3)])
    history.check(Lake(lake.path), BAG)
    sweep(lake)
    assert lake.log.numbers()[0] > 3
    history.check(Lake(lake.path), BAG)


def test_checkpoints_are_thinned_and_since_keeps_its_own() -> None:
    now = 10_000_000_000
    all = [Checkpoint(n, now - (5_000 - n) * 1_000, {}, {}, {}) for n in range(5_001)]
    kept = checkpoints.thinned(all, now, now - 3_600_000)
    assert kept[0].time <= now - 3_600_000 < kept[1].time
    assert kept[-1] == all[-1]
    assert [c.n for c in kept if now - c.time < checkpoints.RECENT_MS] == list(range(4_991, 5_001))
    assert len(kept) < 60 + 62
    assert checkpoints.thinned(kept, now, now - 3_600_000) == kept
    assert checkpoints.thinned(all[:1], now, now) == all[:1]
