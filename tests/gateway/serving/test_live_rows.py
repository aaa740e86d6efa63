"""Tests that polls whose rows ticks update give the rows that DuckDB gives, and are not run again."""

from __future__ import annotations

import random
import threading
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.gateway.answers import live_rows, polls
from tailgate.gateway.mirrors import deferral
from tailgate.gateway.mirrors.mirrors import Mirrors
from tailgate.gateway.serving.queries import Queries
from tailgate.lake.types import FLOAT8, INT8, TEXT, Type
from tests.gateway.serving.model_lake import ModelLake, Row
from tests.tables.world import Served

COLUMNS = {"id": INT8, "name": TEXT, "amount": FLOAT8, "price": Type("numeric", (12, 2))}
SEVERAL = 3  # ticks with each number of rows


class World:
    """A gateway over a lake, and a client that polls. `runs`: how often the gateway has run a poll in DuckDB."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.model = ModelLake(path)
        self.served = Served(self.model.lake)
        self.client = psycopg.connect(self.served.dsn, autocommit=True, prepare_threshold=None)
        self.runs = 0
        run = Queries.run_at_entry

        async def counted(queries: Queries, *arguments: Any) -> Any:
            self.runs += 1
            return await run(queries, *arguments)

        monkeypatch.setattr(Queries, "run_at_entry", counted)
        monkeypatch.setattr(polls, "REFRESH_BUDGET_S", 60.0)

    def tick(self, changes: dict[int, Sequence[tuple[Row, int]]]) -> None:
        self.served.reach(self.model.tick(changes))

    def rows(self, query: str, *, binary: bool = False) -> list[Any]:
        return sorted(self.client.execute(query, binary=binary).fetchall(), key=repr)

    def close(self) -> None:
        self.client.close()
        self.served.close()
        self.model.writer.close()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    world = World(tmp_path / "lake", monkeypatch)
    yield world
    world.close()


def row_of(chance: random.Random, id: int | None) -> Row:
    price = chance.choice([None, Decimal(chance.randrange(1000)) / 100])
    return id, chance.choice([None, "a", "ä", ""]), chance.choice([None, 0.0, -0.0, 0.1, 1e300, float("inf")]), price


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("prepared", [True, False])
def test_rows_are_those_of_duckdb(world: World, seed: int, keyed: bool, binary: bool, prepared: bool) -> None:
    """After each tick, for all columns, some of them in another order, and without a key."""
    chance, client = random.Random(seed), world.client
    client.prepare_threshold = 0 if prepared else None
    item = world.model.create("v", COLUMNS, (0,) if keyed else None)
    queries = ["SELECT * FROM v", "SELECT price, id FROM v", "SELECT name FROM (SELECT id, name, price FROM v) AS w"]
    for count in [*[5] * SEVERAL, *[100] * SEVERAL, 0, *[5] * SEVERAL]:
        now, changes = world.model.now[item.id], list[tuple[Row, int]]()
        for old in chance.sample(list(now), min(count, len(now)) // 2):
            changes.append((old, -now[old]))
        removed = {row[0] for row, _ in changes}
        ids = [id for id in range(150) if not keyed or id not in {row[0] for row in now} or id in removed]
        changes += [(row_of(chance, id), 1 if keyed else chance.randint(1, 2)) for id in chance.sample(ids, min(count, len(ids)))]
        world.tick({item.id: changes})
        for query in queries:
            assert world.rows(query, binary=binary) == world.rows(f"{query} WHERE true ORDER BY 1", binary=binary)
    assert world.runs == len(queries)


def test_rows_to_which_a_tick_cannot_be_applied_are_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a tick with many changes, and after bytes of a row that is removed are not those of a row."""
    item = world.model.create("v", COLUMNS, (0,))
    monkeypatch.setattr(live_rows, "CHANGES_MAX", 2)

    def read(runs: int) -> None:
        for _ in range(2):
            assert len(world.rows("SELECT name, id FROM v")) == len(world.model.now[item.id])
        assert world.runs == runs

    world.tick({item.id: [((1, "a", None, None), 1)]})
    read(1)
    world.tick({item.id: [((2, "a", None, None), 1)]})
    read(1)
    world.tick({item.id: [((id, "a", None, None), 1) for id in (3, 4, 5)]})
    read(2)
    for poll in world.served.serving.progress._callbacks[-1].__self__._polls.values():  # type: ignore[attr-defined]
        poll.live._copies = {b"another row": 1, **dict.fromkeys(list(poll.live._copies)[1:], 1)}
    world.tick({item.id: [((1, "a", None, None), -1)]})
    read(3)


def test_errors_of_the_view(world: World) -> None:
    """While the view has errors, a poll fails; after them it has the present rows."""
    item = world.model.create("v", COLUMNS, (0,))
    world.tick({item.id: [((1, "a", None, None), 1)]})
    assert len(world.rows("SELECT id FROM v")) == 1
    error = ("22012", "division by zero")
    world.tick({item.id: [((2, "a", None, None), 1)], item.errors: [(error, 1)]})
    with pytest.raises(psycopg.errors.DivisionByZero):
        world.rows("SELECT id FROM v")
    world.tick({item.errors: [(error, -1)]})
    assert world.rows("SELECT id FROM v") == [(1,), (2,)]
    world.tick({item.id: [((1, "a", None, None), -1)]})
    assert world.rows("SELECT id FROM v") == [(2,)]


def test_a_block_reads_at_its_time(world: World) -> None:
    item = world.model.create("v", COLUMNS, (0,))
    world.tick({item.id: [((1, "a", None, None), 1)]})
    assert world.rows("SELECT id FROM v") == [(1,)]
    with psycopg.connect(world.served.dsn) as other:
        assert other.execute("SELECT id FROM v").fetchall() == [(1,)]
        world.tick({item.id: [((2, "a", None, None), 1)]})
        assert world.rows("SELECT id FROM v") == [(1,), (2,)]
        assert other.execute("SELECT id FROM v").fetchall() == [(1,)]
    assert world.runs == 1


def test_the_event_loop_does_not_apply_the_changes_that_tables_lack(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block reads all tables at one time, so they get their changes before it takes its snapshot: on a thread."""
    monkeypatch.setattr(deferral, "EAGER_S", 0.0)
    threads: list[int | None] = []
    apply = Mirrors._apply_deferred

    def noted(mirrors: Mirrors, relations: Collection[int] | None) -> None:
        threads.append(threading.current_thread().ident)
        apply(mirrors, relations)

    monkeypatch.setattr(Mirrors, "_apply_deferred", noted)
    items = [world.model.create(name, COLUMNS, (0,)) for name in "vw"]
    world.tick({})
    for item in items:
        assert world.rows(f"SELECT count(*) FROM {item.name}") == [(0,)]
    threads.clear()
    world.tick({item.id: [((1, "a", None, None), 1)] for item in items})
    with world.client.transaction():
        assert world.rows("SELECT v.id, w.id FROM v JOIN w USING (id)") == [(1, 1)]
    assert threads
    assert world.served._thread.ident not in threads
