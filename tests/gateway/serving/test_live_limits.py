"""Tests of polls of which ticks update a part of the rows, those up to LIMIT and some more, and of polls that ticks do not update."""

from __future__ import annotations

import random
from decimal import Decimal

import psycopg
import pytest

from tailgate.gateway.answers import live_queries, live_rows, polls
from tailgate.lake.errors import OutOfMemory
from tests.gateway.serving.model_lake import Row
from tests.gateway.serving.polling import COLUMNS, World, row_of


def test_the_first_of_many_rows(slow: World, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll with LIMIT keeps some more rows than it has, and is run again when too many of them have left."""
    monkeypatch.setattr(live_queries, "KEPT_MIN", 2)  # 12 rows are kept, and half of more than 24
    chance, item = random.Random(seed), slow.model.create("v", COLUMNS, None)
    query = "SELECT id, name FROM v WHERE price < 9 ORDER BY amount DESC, id LIMIT 4 OFFSET 1"

    def tick(changes: list[tuple[Row, int]]) -> int:
        slow.tick({item.id: changes})
        live, read = (slow.raw(query, False, is_block=is_block) for is_block in (False, True))
        assert live == read
        return slow.runs

    def rows(first: int, stop: int, weight: int) -> list[tuple[Row, int]]:
        return [((id, "a", None, Decimal(1)), weight) for id in range(first, stop)]

    assert tick(rows(0, 5, 1)) == 0
    assert tick(rows(5, 40, 1)) == 1
    assert tick(rows(0, 7, -1)) == 1
    assert tick(rows(7, 8, -1)) == 2
    assert tick(rows(-30, 0, 1)) == 2
    assert tick(rows(-30, -14, -1)) == 2
    assert tick(rows(-14, -12, -1)) == 3
    for n in range(20):
        now = slow.model.now[item.id]
        removed = [(row, -now[row]) for row in chance.sample(list(now), len(now) // 3)]
        tick([*removed, *((row_of(chance, 100 * n + i), chance.randint(1, 2)) for i in range(chance.choice([0, 1, 30])))])
    assert slow.runs < 20


def test_rows_that_are_too_large(slow: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither many copies of a row nor wide rows behind LIMIT are kept."""
    monkeypatch.setattr(live_rows, "BYTES_MAX", 10_000)
    item, wide = slow.model.create("v", COLUMNS, None), (1, "a" * 1000, None, None)
    for weight, runs in (1, 0), (1, 1), (18, 2):
        slow.tick({item.id: [(wide, weight)]})
        assert len(slow.rows("SELECT name FROM v")) == slow.model.now[item.id][wide]
        assert slow.runs == runs
    (poll,) = slow.cached()
    assert poll.live is None
    monkeypatch.setattr(polls, "POLL_BYTES_MAX", 3_000)
    for id in range(2, 6):
        slow.tick({item.id: [((id, "a" * 1000, None, None), 1)]})
        assert len(slow.rows("SELECT name FROM v ORDER BY id LIMIT 1")) == 1
    assert slow.runs == 2


def test_memory_is_short(slow: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll that returns few rows does not fail if memory is short for those that would be kept."""
    item, requests = slow.model.create("v", COLUMNS, (0,)), list[object]()

    def fetched(*arguments: object) -> None:
        requests.append(arguments)
        raise OutOfMemory("out of memory")

    monkeypatch.setattr(live_queries, "fetched", fetched)
    for id in range(3):
        slow.tick({item.id: [((id, "a", None, None), 1)]})
        assert slow.raw("SELECT id FROM v ORDER BY id LIMIT 1", False) == [(b"0",)]
    assert len(requests) == 1


def test_polls_that_ticks_do_not_update(slow: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll with the error of a row is run again, and so is one with too many rows; both are right."""
    monkeypatch.setattr(live_queries, "ROWS_MAX", 3)
    monkeypatch.setattr(live_rows, "ROWS_MAX", 3)
    item = slow.model.create("v", COLUMNS, (0,))
    slow.tick({item.id: [((id, "a", None, None), 1) for id in (1, 2)]})
    failing, many = "SELECT 10 / id FROM v ORDER BY id LIMIT 2", "SELECT id FROM v WHERE name = 'a' ORDER BY id"
    for id in (7, 8):
        assert slow.raw(failing, False) == [(b"10",), (b"5",)]
        assert len(slow.rows(many)) == 2
        slow.tick({item.id: [((id, "b", None, None), 1)]})
    assert slow.runs == 2
    slow.tick({item.id: [((0, "b", None, None), 1)]})
    with pytest.raises(psycopg.errors.DivisionByZero):
        slow.rows(failing)
    slow.tick({item.id: [((0, "b", None, None), -1)]})
    assert slow.raw(failing, False) == [(b"10",), (b"5",)]
    for id in range(3, 6):
        assert len(slow.rows(many)) == id - 1
        slow.tick({item.id: [((id, "a", None, None), 1)]})
    runs = slow.runs
    monkeypatch.setattr(live_queries, "SORTED_MAX", 3)
    for id in range(10, 13):
        slow.tick({item.id: [((id, "c", None, None), 1)]})
        assert slow.raw("SELECT id FROM v WHERE name = 'c' ORDER BY id DESC LIMIT 1", False) == [(b"%d" % id,)]
    assert slow.runs == runs


def test_the_plans_of_cached_results_are_counted_once(slow: World) -> None:
    item = slow.model.create("v", COLUMNS, (0,))
    slow.tick({item.id: [((1, "a", None, None), 1)]})
    cache: polls.Polls = slow.served.serving.progress._callbacks[-1].__self__  # type: ignore[attr-defined]
    for value in ("a", "b", "c"):
        slow.client.execute("SELECT id FROM v WHERE name = %s", (value,))
    slow.rows("SELECT count(*) FROM v")
    cached = slow.cached()
    plans = {id(poll.query.plan): poll.query.plan.size for poll in cached}
    assert (len(cached), len(plans)) == (4, 2)
    assert cache.size == (4, sum(poll.size for poll in cached) + sum(plans.values()))
    _, size = cache.size
    before = slow.served.serving.budget.used
    assert cache._evict(1 << 30) == size == before - slow.served.serving.budget.used
    assert (cache.size, len(cache._plans)) == ((0, 0), 0)
