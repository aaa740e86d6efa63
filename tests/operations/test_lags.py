"""Tests the freshness lag of relations, computed from answers of the engine and entries of the mirrors."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tailgate.gateway.freshness.lags import ANSWER_AGE_MAX_MS, BACKFILL, ERRORS, NO_ENGINE, Lags
from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView, Source, Table
from tailgate.lake.log.entry import Header
from tailgate.lake.types import INT8, Field
from tailgate.operations.sketch import BUCKETS_MAX, Sketch, Window

NOW = 1_800_000_000_000
COLUMNS = (Field("id", INT8),)
ORDERS = Source(id=1001, name="orders", columns=COLUMNS, channel="r/orders")
NOTES = Table(id=1002, name="notes", columns=COLUMNS)
TOTALS = MaterializedView(id=1003, name="totals", columns=COLUMNS, depends=(1001,), ready=True)
BOTH = MaterializedView(id=1004, name="both", columns=COLUMNS, depends=(1003, 1002), ready=True)


def catalog(*items: Item) -> Catalog:
    return Catalog().apply(Change(put=items or (ORDERS, NOTES, TOTALS, BOTH)))


def lags_of(newest: Header | None = None) -> Lags:
    return Lags(lambda: newest)


def entry(n: int, orders: tuple[int, ...] = (0,), inbox: int = 0) -> Header:
    """Returns the header of an entry with these offsets of the partitions of `orders`."""
    return Header(n, NOW, 1, "tick", offsets={"r": {"orders": {str(p): offset for p, offset in enumerate(orders)}}}, inbox=inbox)


def answer(
    unread: dict[int, list[tuple[int, int]]] | None = None, ticks: list[Any] | None = None, failing: tuple[int, ...] = (), **reasons: str
) -> dict[str, Any]:
    """Returns an answer of the engine, with ids as JSON has them."""
    unread = unread or {}
    inputs = {str(item.id): [min(unread.get(item.id, [(None, 0)]))[0], reasons.get(item.name)] for item in (ORDERS, NOTES)}
    records = {str(id): [list(record) for record in of] for id, of in unread.items()}
    return {"inputs": inputs, "unread": records, "failing": list(failing), "ticks": ticks or []}


def tick(n: int, began: int, oldest: dict[int, int]) -> list[Any]:
    """Returns a tick that takes 30 ms and 5 ms for its entry. Its oldest records arrived 4 ms after their time."""
    return [n, began, began + 30, began + 35, {str(id): [time, time + 4] for id, time in oldest.items()}]


def test_a_relation_that_shows_all_records_has_no_lag() -> None:
    lags = lags_of()
    lags.answered(answer(), NOW)
    assert [lags.lag(catalog(), item, NOW).ms for item in (ORDERS, NOTES, TOTALS, BOTH)] == [0, 0, 0, 0]


def test_the_lag_is_the_age_of_the_oldest_record_that_no_tick_has_read() -> None:
    lags = lags_of()
    lags.answered(answer({1001: [(NOW - 700, 1)], 1002: [(NOW - 200, 1)]}), NOW)
    assert lags.lag(catalog(), TOTALS, NOW).ms == 700
    assert lags.lag(catalog(), NOTES, NOW).ms == 200
    worst = lags.lag(catalog(), BOTH, NOW + 50)
    assert (worst.ms, worst.slowest) == (750, 1001)


def test_a_committed_tick_counts_until_the_mirrors_show_it() -> None:
    lags = lags_of()
    lags.answered(answer({1001: [(NOW - 10, 1)]}, [tick(7, NOW - 400, {1001: NOW - 500})]), NOW)
    assert lags.lag(catalog(), TOTALS, NOW).ms == 500
    assert lags.shown([(6, NOW)]) == {}
    assert lags.shown([(6, NOW), (7, NOW + 20)]) == {1001: 520}
    assert lags.lag(catalog(), TOTALS, NOW + 20).ms == 30
    phases = lags.phases[1001]
    assert (phases.kafka, phases.wait, phases.tick, phases.commit, phases.mirror) == (4, 96, 30, 5, 385)


def test_a_tick_that_the_mirrors_show_does_not_count_before_it_is_taken() -> None:
    newest = entry(6)
    lags = Lags(lambda: newest)
    lags.answered(answer(ticks=[tick(7, NOW - 400, {1001: NOW - 500})]), NOW)
    assert lags.lag(catalog(), TOTALS, NOW).ms == 500
    newest = entry(7)
    assert lags.lag(catalog(), TOTALS, NOW).ms == 0
    assert lags.shown([(7, NOW)]) == {1001: 500}


def test_a_record_does_not_count_when_the_mirrors_show_an_entry_behind_it() -> None:
    newest = entry(6, (10, 5), 3)
    lags = Lags(lambda: newest)
    lags.answered(answer({1001: [(NOW - 700, 18), (NOW - 300, 20)], 1002: [(NOW - 200, 4)]}), NOW)
    assert [lags.lag(catalog(), item, NOW).ms for item in (ORDERS, NOTES)] == [700, 200]
    newest = entry(7, (10, 5), 3)  # a change of the catalog
    assert [lags.lag(catalog(), item, NOW).ms for item in (ORDERS, NOTES)] == [700, 200]
    newest = entry(8, (11, 7), 3)
    assert [lags.lag(catalog(), item, NOW).ms for item in (ORDERS, NOTES)] == [300, 200]
    newest = entry(9, (13, 7), 4)
    assert [lags.lag(catalog(), item, NOW).ms for item in (ORDERS, NOTES)] == [0, 0]


def test_an_engine_of_an_earlier_version_names_no_position() -> None:
    lags = lags_of(entry(9, (100,)))
    earlier = answer({1001: [(NOW - 700, 1)]})
    del earlier["unread"]
    lags.answered(earlier, NOW)
    assert [lags.lag(catalog(), item, NOW).ms for item in (ORDERS, NOTES)] == [700, 0]


def test_the_lag_is_unknown_as_soon_as_the_engine_is_lost() -> None:
    lags = lags_of()
    lags.answered(answer(), NOW)
    lags.lost()
    assert lags.lag(catalog(), TOTALS, NOW).reason == NO_ENGINE
    lags.answered(answer(), NOW)
    assert lags.lag(catalog(), TOTALS, NOW).ms == 0


def test_a_tick_is_taken_once() -> None:
    lags = lags_of()
    for _ in range(2):
        lags.answered(answer(ticks=[tick(7, NOW - 100, {1001: NOW - 200})]), NOW)
    assert lags.shown([(7, NOW)]) == {1001: 200}
    assert lags.shown([(8, NOW + 1)]) == {}


@pytest.mark.parametrize(
    ("answered", "reason"),
    [
        (answer(orders="the source cannot be read"), "the source cannot be read"),
        (answer(failing=(1003,)), ERRORS),
    ],
)
def test_an_unknown_lag(answered: dict[str, Any], reason: str) -> None:
    lags = lags_of()
    lags.answered(answered, NOW)
    lag = lags.lag(catalog(), TOTALS, NOW)
    assert (lag.ms, lag.reason) == (None, reason)
    assert lags.lag(catalog(), NOTES, NOW).ms == 0


def test_the_lag_is_unknown_during_a_backfill_and_without_an_engine() -> None:
    lags = lags_of()
    assert lags.lag(catalog(), TOTALS, NOW).reason == NO_ENGINE
    lags.answered(answer(), NOW)
    assert lags.lag(catalog(), TOTALS, NOW + ANSWER_AGE_MAX_MS).ms == 0
    assert lags.lag(catalog(), TOTALS, NOW + ANSWER_AGE_MAX_MS + 1).reason == NO_ENGINE
    assert lags.lag(catalog(ORDERS, NOTES), replace(TOTALS, ready=False), NOW).reason == BACKFILL
    assert lags.lag(catalog(ORDERS, NOTES), replace(TOTALS, stale=NOW), NOW).reason == BACKFILL


def test_a_history_has_the_peaks_and_forgets_dropped_relations() -> None:
    lags = lags_of()
    lags.answered(answer({1001: [(NOW - 100, 1)]}), NOW)
    lags.observe(catalog(), [TOTALS, NOTES], {1001: 900}, NOW)
    minute = lags.histories[1003].minute.total(NOW / 1000)
    assert minute.max == 900
    assert minute.quantile(0.99) == pytest.approx(100, rel=0.06)
    lags.observe(catalog(), [NOTES], {}, NOW)
    assert set(lags.histories) == {1002}


def test_an_unknown_lag_is_no_zero_in_the_history() -> None:
    lags = lags_of()
    lags.answered(answer(orders="the source cannot be read"), NOW)
    lags.observe(catalog(), [TOTALS], {}, NOW)
    minute = lags.histories[1003].minute.total(NOW / 1000)
    assert (minute.counts, minute.max, minute.missing) == ({}, None, 1)


@pytest.mark.parametrize("limit", [1, 50, 5_000, 100_000_000])
def test_quantiles_are_right_to_five_percent(limit: int) -> None:
    values = sorted(random.uniform(0, limit) for _ in range(5_000))
    one, other = Sketch(), Sketch()
    for i, value in enumerate(values):
        (one if i % 2 else other).add(value)
    one.merge(other)
    for fraction in (0.5, 0.95, 0.99):
        assert one.quantile(fraction) == pytest.approx(values[int(fraction * len(values)) - 1], rel=0.06, abs=1.0)
    assert one.max == values[-1]


def test_many_values_count_as_single_ones() -> None:
    values = [0.0, 1e-12, 0.5, 1.0, 1.05, 3.0, 3.0, 1e6, 1e15]
    alone, together = Sketch(), Sketch()
    for value in values:
        alone.add(value)
    together.add_all(np.array(values))
    together.add_all(np.array([]))
    assert (alone._counts, alone.max) == (together._counts, together.max)


def test_a_sketch_is_bounded() -> None:
    sketch = Sketch()
    for exponent in range(-3, 60):
        sketch.add(2.0**exponent)
    assert len(sketch._counts) <= BUCKETS_MAX
    assert sketch.quantile(1.0) is not None
    assert Sketch().quantile(0.5) is None


def test_the_total_of_a_window_adds_up_its_steps(seed: int) -> None:
    """At each moment, also if a total was read before the newest step has got its last value."""
    window, random_ = Window(10, 6), random.Random(seed)
    values: list[tuple[int, float]] = []
    for second in range(300):
        if random_.random() < 0.7 and not 100 < second < 190:
            values.append((second, random_.uniform(0, 500)))
            window.current(second).add(values[-1][1])
        total, expected = window.total(second), Sketch()
        for at, value in values:
            if second // 10 - at // 10 <= 6:
                expected.add(value)
        assert (total.counts, total.max) == (expected.counts, expected.max)


def test_the_total_of_a_window_adds_the_newest_step_only(monkeypatch: pytest.MonkeyPatch) -> None:
    window = Window(3600, 24)
    for hour in range(24):
        window.current(3600 * hour).add(hour)
    merged: list[Sketch] = []
    merge = Sketch.merge
    monkeypatch.setattr(Sketch, "merge", lambda self, other: merged.append(other) or merge(self, other))
    for _ in range(10):
        window.total(3600 * 23)
    assert len(merged) == 23 + 10


def test_a_window_forgets_old_values() -> None:
    window = Window(10, 6)
    for second in range(0, 200, 10):
        window.current(second).add(second)
    assert window.total(190).quantile(0.0001) == pytest.approx(130, rel=0.06)
    assert window.total(10_000).max is None
