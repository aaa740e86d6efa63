"""Runs Tailgate on workload W1 for a short time with each reader, and on a small backlog."""

from __future__ import annotations

from functools import partial

import pytest

from bench.w1 import turns
from bench.w1.orders import Workload
from bench.w1.systems import Tailgate

pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.spark]


@pytest.mark.parametrize("reader", ["tail", "select"])
def test_freshness(reader: str) -> None:
    result = turns.freshness(partial(Tailgate, reader=reader), Workload(200), rate=500, changes=10, warm_up=1, seconds=4, parts=2)
    assert 900 < result.orders < 1100
    assert 0 < result.ages_ms["p50"] <= result.ages_ms["p95"] <= result.ages_ms["max"] < turns.EQUAL_S * 1000
    assert len(result.parts) == 2
    assert result.cores["system"] > 0
    assert result.peak_mib > 100


def test_catch_up() -> None:
    result = turns.catch_up(partial(Tailgate, reader="select"), Workload(200), orders=5_000)
    assert 0 < result.seconds < turns.CATCH_UP_S


def test_new_view() -> None:
    """The ages of the first second after the first row of a view, and of the time after it."""
    first, later = turns.new_view(partial(Tailgate, reader="tail"), Workload(200), rate=500, changes=10, warm_up=1, seconds=3)
    for ages in (first, later):
        assert 0 < ages["p50"] <= ages["max"] < turns.EQUAL_S * 1000
