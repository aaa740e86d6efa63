"""Tests following a query: at every time, its changes add up to its result."""

import asyncio
import random
from collections import Counter

import pytest

from tailgate.gateway.serving import feeds
from tailgate.gateway.serving.following import Batch
from tailgate.gateway.serving.service import Serving
from tailgate.lake.errors import ProgramLimitExceeded
from tailgate.lake.types import INT8, TEXT
from tailgate.sql.authorization import shared
from tests.gateway.serving.model_lake import ModelLake, Row, bag, serving
from tests.gateway.serving.test_mirrors import Random
from tests.gateway.serving.test_queries import select

NARROW = {"id": INT8, "name": TEXT}

LINEAR = [
    "SELECT name FROM d",
    "SELECT id, name FROM v WHERE id > 3",
    "SELECT 1 AS one FROM d WHERE name = 'a'",
    "SELECT name, id, name FROM v",
]
OTHER = [
    "SELECT name, count(*) FROM d GROUP BY name",
    "SELECT count(*) FROM v",
    "SELECT v.id, d.name FROM v JOIN d ON d.id = v.id",
    "SELECT id FROM d ORDER BY id DESC LIMIT 2",
    "SELECT DISTINCT name FROM d",
    "SELECT v.name, d.name FROM v LEFT JOIN d ON d.id = v.id",
]


@pytest.mark.parametrize("text", [*LINEAR, *OTHER])
def test_the_sum_of_the_batches_is_the_answer(model: ModelLake, run, seed: int, text: str) -> None:
    """Followers start now or in the past, alone or together, with or without shared cached changes."""

    async def work() -> None:
        v, d = model.create("v", NARROW), model.create("d", NARROW, None)
        one, two = Random(random.Random(seed), model, v.id, True, False), Random(random.Random(seed + 1), model, d.id, False, False)

        def tick() -> int:
            which = random.random()
            return model.tick(
                {v.id: one.changes()}
                if which < 0.4
                else {d.id: two.changes()}
                if which < 0.8
                else {v.id: one.changes(), d.id: two.changes()}
            )

        times = [tick() for _ in range(8)]
        async with serving(model) as server:
            prepared = server.binder.prepare(select(text))
            assert (prepared.changes is not None) == (text in LINEAR)
            final = asyncio.get_running_loop().create_future()
            starts = [times[-1], times[-1], times[2], times[5]]
            tasks = [asyncio.create_task(followed(server, prepared, start, final)) for start in starts]
            for _ in range(10):
                last = tick()
                await asyncio.sleep(0.01)
                if len(tasks) < 6:
                    starts.append(times[3])
                    tasks.append(asyncio.create_task(followed(server, prepared, times[3], final)))
            final.set_result(last)
            model.tick({})
            answers: dict[int, Counter[Row]] = {}
            for batches in await asyncio.gather(*tasks):
                total: Counter[Row] = Counter()
                for batch in batches:
                    if batch.table is not None:
                        for row, weight in bag(batch.table).items():
                            total[row] += weight
                        assert all(weight > 0 for weight in total.values() if weight)
                    if batch.time not in answers:
                        with server.queries.snapshot(batch.time) as past:
                            answers[batch.time] = bag(await server.queries.run(shared(prepared), at=past))
                    assert +total == answers[batch.time]
            assert not server.followers.feeds

    run(work)


async def followed(server: Serving, prepared: object, start: int, final: "asyncio.Future[int]") -> list[Batch]:
    out: list[Batch] = []
    stream = server.followers.changes(shared(prepared), after=start, snapshot=True)  # type: ignore[arg-type]
    async for batch in stream:
        out.append(batch)
        if final.done() and batch.time >= final.result():
            break
    await stream.aclose()  # type: ignore[attr-defined]
    return out


def test_a_constant_ends(model: ModelLake, run) -> None:
    async def work() -> None:
        time = model.tick({})
        async with serving(model) as server:
            batches = [
                b async for b in server.followers.changes(shared(server.binder.prepare(select("SELECT 1 AS x"))), after=time, snapshot=True)
            ]
            assert [bag(b.table) for b in batches] == [{(1,): 1}]

    run(work)


def test_values(model: ModelLake, run) -> None:
    async def work() -> None:
        item = model.create("v", NARROW)
        time = model.tick({item.id: [((1, "a"), 1), ((2, "b"), 1)]})
        async with serving(model) as server:
            prepared = server.binder.prepare(select("SELECT name FROM v WHERE id = $1"))
            streams = [server.followers.changes(shared(prepared), after=time, snapshot=True, values=[n]) for n in (1, 2)]
            assert [bag((await anext(s)).table) for s in streams] == [{("a",): 1}, {("b",): 1}]
            for stream in streams:
                await stream.aclose()  # type: ignore[attr-defined]

    run(work)


def test_long_literals(model: ModelLake, run) -> None:
    """Long literals are not part of the generated SQL, so two queries may have the same SQL."""

    async def work() -> None:
        item = model.create("v", NARROW)
        time = model.tick({item.id: [((1, "a"), 1)]})
        async with serving(model) as server:
            texts = [c * 100_000 for c in "xy"]
            prepared = [server.binder.prepare(select(f"SELECT '{text}' || name FROM v")) for text in texts]
            streams = [server.followers.changes(shared(p), after=time, snapshot=True) for p in prepared]
            assert [bag((await anext(s)).table) for s in streams] == [{(text + "a",): 1} for text in texts]
            for stream in streams:
                await stream.aclose()  # type: ignore[attr-defined]

    run(work)


def test_too_large(model: ModelLake, run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        item = model.create("v", NARROW)
        time = model.tick({item.id: [((i, "a"), 1) for i in range(100)]})
        monkeypatch.setattr(feeds, "MAINTAINED_ROWS", 50)
        async with serving(model) as server:
            with pytest.raises(ProgramLimitExceeded):
                await anext(
                    server.followers.changes(shared(server.binder.prepare(select("SELECT count(*) FROM v"))), after=time, snapshot=True)
                )

    run(work)
