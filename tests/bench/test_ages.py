"""Tests the computation of ages of orders from the records of load and reader."""

from __future__ import annotations

import numpy as np
import pytest

from bench.w1.ages import Missing, Received, ages_ms, quantiles


def received(*rows: tuple[float, int, int]) -> Received:
    times, groups, counts = zip(*rows, strict=True) if rows else ((), (), ())
    return Received(np.array(times, np.float64), np.array(groups, np.int32), np.array(counts, np.int64))


def ages(produced: list[float], groups: list[int], record: Received, since: float = 0.0, until: float = 100.0) -> list[float]:
    return sorted(np.round(ages_ms(np.array(produced), np.array(groups), record, since, until)[0], 6))


def test_an_order_is_readable_when_its_groups_count_reaches_its_place() -> None:
    assert ages([1.0, 2.0], [7, 7], received((1.1, 7, 1), (2.3, 7, 2))) == [100.0, 300.0]


def test_one_count_may_bring_several_orders() -> None:
    assert ages([1.0, 2.0], [7, 7], received((3.0, 7, 2))) == [1000.0, 2000.0]


def test_groups_are_apart() -> None:
    assert ages([1.0, 1.0], [2, 4], received((1.5, 4, 1), (1.2, 2, 1))) == [200.0, 500.0]


def test_a_late_count_changes_nothing() -> None:
    assert ages([1.0, 2.0], [7, 7], received((2.5, 7, 2), (2.6, 7, 1), (2.7, 7, 2))) == [500.0, 1500.0]


def test_orders_before_the_interval_count_for_the_place_and_have_no_age() -> None:
    record = received((1.1, 7, 1), (2.3, 7, 2), (3.9, 7, 3))
    assert ages([1.0, 2.0, 3.0], [7, 7, 7], record, since=2.0, until=3.0) == [300.0]


def test_orders_of_groups_that_shrink_have_no_age() -> None:
    assert ages([1.0, 2.0], [-1, 7], received((2.1, 7, 1))) == [100.0]


def test_an_order_that_was_not_received_is_an_error() -> None:
    with pytest.raises(Missing, match="1 orders of group 7"):
        ages([1.0, 2.0], [7, 7], received((1.1, 7, 1)))
    with pytest.raises(Missing):
        ages([1.0], [7], received())


def test_the_times_belong_to_the_ages() -> None:
    ages, times = ages_ms(np.array([1.0, 2.0]), np.array([4, 2]), received((2.5, 2, 1), (1.1, 4, 1)), 0.0, 9.0)
    assert dict(zip(times.tolist(), np.round(ages, 6).tolist(), strict=True)) == {1.0: 100.0, 2.0: 500.0}


def test_quantiles() -> None:
    assert quantiles(np.arange(1000.0, 0.0, -1.0)) == {"p50": 501.0, "p95": 951.0, "p99": 991.0, "max": 1000.0}
    assert quantiles(np.array([])) == {}
