"""Tests which ages count in the shop's freshness; two tables of PostgreSQL replace the view."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

from tailgate.examples.shop.freshness import NEWEST, VIEW, Freshness, Poller

ANSWER_S = 30.0


@pytest.fixture
def dsn(postgres: str) -> Iterator[str]:
    with psycopg.connect(postgres, autocommit=True) as db:
        db.execute(f"CREATE TABLE {NEWEST} (sent_at bigint)")
        db.execute(f"CREATE TABLE {VIEW} (is_vip int, channel text, ts_hour timestamptz, pageview_count bigint)")
        db.execute(f"INSERT INTO {NEWEST} VALUES (%s)", [int(time.time() * 1000)])
        yield postgres
        db.execute(f"DROP TABLE {NEWEST}, {VIEW}")


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + ANSWER_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_ages_count_only_while_the_load_sends(dsn: str) -> None:
    sending = threading.Event()
    sending.set()
    freshness = Freshness(sending.is_set, warm_s=0.0)
    poller = Poller(dsn, freshness)
    poller.start()
    try:
        until(lambda: len(freshness.ages_ms) >= 5 or poller.error is not None)
        sending.clear()
        polls = poller.polls
        until(lambda: poller.polls > polls + 1 or poller.error is not None)
        stopped, polls = len(freshness.ages_ms), poller.polls
        until(lambda: poller.polls >= polls + 5 or poller.error is not None)
        assert len(freshness.ages_ms) == stopped
    finally:
        poller.ended.set()
        poller.join(ANSWER_S)
    assert poller.error is None


def test_the_first_seconds_do_not_count() -> None:
    freshness = Freshness(lambda: True, warm_s=0.2)
    began = time.monotonic()
    while not freshness.ages_ms:
        freshness.add(time.time() * 1000)
    assert time.monotonic() - began >= 0.2


def test_an_age_is_the_time_since_the_newest_page_view_was_sent() -> None:
    freshness = Freshness(lambda: True, warm_s=0.0)
    for age_ms in range(1, 101):
        freshness.add(time.time() * 1000 - age_ms * 1000)
    percentiles = freshness.percentiles()
    marks = {"p50": 51_000, "p95": 96_000, "p99": 100_000, "max": 100_000}
    assert {name: round(age, -3) for name, age in percentiles.items()} == marks


def test_there_are_no_percentiles_without_ages() -> None:
    assert Freshness(lambda: True).percentiles() == {}
