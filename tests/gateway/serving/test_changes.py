"""Tests following a relation from now or from the past until its end: no change is missing or doubled."""

import asyncio
import gc
import random
import weakref

import pytest

from tailgate.gateway.mirrors.entries import CachedEntry, Entries
from tailgate.gateway.resources.budgets import TASK_BUDGET, Budget
from tailgate.gateway.results.tail import SharedRows
from tailgate.gateway.serving.following import Batch
from tailgate.lake.errors import ObjectNotInPrerequisiteState, OutOfMemory, UndefinedTable, of
from tailgate.lake.log.log import Log
from tailgate.lake.types import INT8, TEXT
from tailgate.sql.authorization import Followed, shared
from tests.gateway.serving.model_lake import ModelLake, bag, serving, unready
from tests.gateway.serving.test_mirrors import Random

NARROW = {"id": INT8, "name": TEXT}


async def take(stream, upto: int) -> list[Batch]:
    """Returns the batches up to the first one with this time or a later one."""
    out = []
    async for batch in stream:
        out.append(batch)
        if batch.time >= upto:
            break
    return out


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("snapshot", [True, False])
def test_the_sum_of_the_batches_is_the_relation(model: ModelLake, run, seed: int, keyed: bool, snapshot: bool) -> None:
    """Followers may start at any time and read past and new entries.

    Each time has one batch with its changes.
    """

    async def work() -> None:
        item = model.create("v", NARROW, (0,) if keyed else None)
        source = Random(random.Random(seed), model, item.id, keyed, False)
        times = [model.tick({item.id: source.changes()}) for _ in range(10)]
        async with serving(model) as server:
            streams = [
                (t, server.followers.changes(shared(Followed(item)), after=t, snapshot=snapshot))
                for t in (times[0], times[4], times[9], times[4] + 0)
            ]
            tasks = []
            final = asyncio.get_running_loop().create_future()

            async def follow(start: int, stream) -> list[Batch]:
                out: list[Batch] = []
                async for batch in stream:
                    out.append(batch)
                    if final.done() and batch.time >= final.result():
                        return out
                raise AssertionError

            tasks = [asyncio.create_task(follow(t, s)) for t, s in streams]
            for _ in range(20):
                last = model.tick({item.id: source.changes()})
                await asyncio.sleep(0.01)
            final.set_result(last)
            model.tick({})
            for (start, _), batches in zip(streams, await asyncio.gather(*tasks), strict=True):
                total = model.at[start][item.id].copy()
                if snapshot:
                    assert batches[0].time == start
                    assert bag(batches[0].table) == total
                    batches = batches[1:]
                assert [b.time for b in batches] == sorted({b.time for b in batches})
                before = start
                for batch in batches:
                    assert batch.time > before
                    if batch.table is None:
                        assert model.at[batch.time][item.id] == total
                    else:
                        assert all(w for w in bag(batch.table).values())
                        for row, weight in bag(batch.table).items():
                            total[row] += weight
                        total = +total
                        assert total == model.at[batch.time][item.id]
                    before = batch.time

    run(work)


def test_entries_that_are_evicted_are_freed_at_once(model: ModelLake, run) -> None:
    """Rows that followers share do not refer to their entry: no garbage collection is needed."""

    async def work() -> None:
        item = model.create("v", NARROW)
        start = model.tick({item.id: [((1, "a"), 1)]})
        async with serving(model) as server:
            stream = server.followers.changes(shared(Followed(item)), after=start, snapshot=False)
            last = [model.tick({item.id: [((i, "b"), 1)]}) for i in range(2, 5)][-1]
            entries = []
            for batch in await take(stream, last):
                if batch.table is not None:
                    rows = batch.shared("rows", lambda batch, grow: SharedRows(batch.table, grow))
                    assert rows.encoded("count", lambda table: b"%d" % len(table))
                    entries.append(weakref.ref(batch.entry))
            await stream.aclose()
            del batch, rows, stream
            model.tick({})
            gc.collect()
            gc.disable()
            try:
                server.followers._entries._evict(1 << 30)
                await asyncio.sleep(0.1)  # the thread of the mirrors lets go of the last one
                assert [entry() for entry in entries if entry() is not None][:-1] == []
            finally:
                gc.enable()

    run(work)


def test_a_follower_that_does_not_read_is_behind(model: ModelLake, run) -> None:
    async def work() -> None:
        item = model.create("v", NARROW)
        start = model.tick({item.id: [((1, "a"), 1)]})
        async with serving(model) as server:
            assert server.followers.entries_behind == 0
            stream = server.followers.changes(shared(Followed(item)), after=start, snapshot=True)
            await anext(stream)
            last = [model.tick({item.id: [((i, "b"), 1)]}) for i in (2, 3)][-1]
            while server.progress.state.time < last:
                await asyncio.sleep(0.01)
            assert server.followers.entries_behind == 2
            await take(stream, last)
            waiting = asyncio.ensure_future(anext(stream))  # as a client that has received all
            await asyncio.sleep(0)
            assert server.followers.entries_behind == 0
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await stream.aclose()
            assert server.followers._received == {}

    run(work)


def test_a_future_time(model: ModelLake, run) -> None:
    """AS OF a future time returns nothing before that time."""

    async def work() -> None:
        item = model.create("v", NARROW)
        time = model.tick({item.id: [((1, "a"), 1)]})
        async with serving(model) as server:
            stream = server.followers.changes(shared(Followed(item)), after=time + 5, snapshot=True)
            task = asyncio.create_task(anext(stream))
            await asyncio.sleep(0.1)
            assert not task.done()
            model.writer.append([(item.id, model.table(item.id, [((2, "b"), 1)]))], time=time + 10)
            batch = await asyncio.wait_for(task, 5)
            assert batch.time == time + 5
            assert bag(batch.table) == {(1, "a"): 1}
            assert bag((await anext(stream)).table) == {(2, "b"): 1}
            await stream.aclose()

    run(work)


def test_a_dropped_relation_ends_it(model: ModelLake, run) -> None:
    """The last changes arrive before the error 42P01."""

    async def work() -> None:
        item = model.create("v", NARROW)
        start = model.tick({item.id: [((1, "a"), 1)]})
        async with serving(model) as server:
            stream = server.followers.changes(shared(Followed(item)), after=start, snapshot=True)
            assert bag((await anext(stream)).table) == {(1, "a"): 1}
            model.tick({item.id: [((2, "b"), 1)]})
            model.drop(item)
            assert bag((await anext(stream)).table) == {(2, "b"): 1}
            with pytest.raises(UndefinedTable, match='relation "v" does not exist'):
                await anext(stream)

    run(work)


def test_an_error_of_the_view_ends_it(model: ModelLake, run) -> None:
    async def work() -> None:
        item = model.create("v", NARROW)
        start = model.tick({item.id: [((1, "a"), 1)]})
        async with serving(model) as server:
            stream = server.followers.changes(shared(Followed(item)), after=start, snapshot=False)
            good = model.tick({item.id: [((2, "b"), 1)]})
            failed = model.tick({item.id: [((3, "c"), 1)], item.errors: [(("22012", "division by zero"), 2)]})
            assert [b.time for b in await take(stream, good)] == [good]
            with pytest.raises(type(of("22012", ""))) as caught:
                await anext(stream)
            assert caught.value.hint and '"v"' in caught.value.hint
            with pytest.raises(type(of("22012", ""))):
                await anext(server.followers.changes(shared(Followed(item)), after=failed, snapshot=True))
            healed = model.tick({item.errors: [(("22012", "division by zero"), -2)]})
            again = server.followers.changes(shared(Followed(item)), after=healed, snapshot=True)
            assert bag((await anext(again)).table) == model.at[healed][item.id]
            await again.aclose()

    run(work)


def test_unready_relations_cannot_be_followed(model: ModelLake, run) -> None:
    async def work() -> None:
        item = model.create("v", NARROW)
        model.put(unready(item))
        async with serving(model) as server:
            with pytest.raises(ObjectNotInPrerequisiteState, match='"v" is still being filled'):
                await anext(server.followers.changes(shared(Followed(item)), after=server.progress.time, snapshot=True))

    run(work)


def test_followers_of_a_relation_that_is_backfilled_again_end(model: ModelLake, run) -> None:
    async def work() -> None:
        item = model.create("v", NARROW)
        start = model.tick({item.id: [((0, "a"), 1)]})
        async with serving(model) as server:
            stream = server.followers.changes(shared(Followed(item)), after=start, snapshot=False)
            time = model.tick({item.id: [((1, "b"), 1)]})
            assert bag((await take(stream, time))[-1].table) == {(1, "b"): 1}
            model.put(unready(item))
            with pytest.raises(ObjectNotInPrerequisiteState, match='"v" is being filled again'):
                await take(stream, time + 1)

    run(work)


def test_many_followers_decode_an_entry_once(model: ModelLake, run, monkeypatch: pytest.MonkeyPatch) -> None:
    from tailgate.lake.log.entry import Entry

    decoded: list[int] = []
    original = Entry.read
    monkeypatch.setattr(Entry, "read", lambda self, section: (decoded.append(section.relation), original(self, section))[1])

    async def work() -> None:
        item = model.create("v", NARROW)
        start = model.tick({item.id: [((0, "a"), 1)]})
        async with serving(model) as server:
            streams = [server.followers.changes(shared(Followed(item)), after=start, snapshot=False) for _ in range(300)]
            waiting = asyncio.Semaphore(0)
            later = server.progress.wait_entry

            async def waits(n: int) -> None:
                waiting.release()
                await later(n)

            monkeypatch.setattr(server.progress, "wait_entry", waits)
            tasks = [asyncio.create_task(anext(s)) for s in streams]
            for _ in streams:
                await asyncio.wait_for(waiting.acquire(), 30)
            decoded.clear()
            model.tick({item.id: [((1, "b"), 1)]})
            batches = await asyncio.gather(*tasks)
            assert decoded.count(item.id) == 1
            assert all(b is batches[0] or b.table is batches[0].table for b in batches)

    run(work)


def test_changes_that_wait_for_a_failing_view_are_charged(model: ModelLake, run) -> None:
    """A subscription that is far behind must not read all changes up to the end of the error into memory."""

    async def work() -> None:
        item = model.create("v", NARROW)
        start = model.tick({item.id: [((0, "a"), 1)]})
        model.tick({item.id: [((i, "b"), 1) for i in range(1, 1000)], item.errors: [(("22012", "division by zero"), 1)]})
        healed = model.tick({item.errors: [(("22012", "division by zero"), -1)]})
        async with serving(model) as server:
            for limit, allowed in ((1 << 20, True), (1 << 10, False)):
                budget = Budget("the session", limit)
                token = TASK_BUDGET.set(budget)
                stream = server.followers.changes(shared(Followed(item)), after=start, snapshot=False, patient=True)
                if allowed:
                    assert sum(bag((await take(stream, healed))[-1].table).values()) == 999
                else:
                    with pytest.raises(OutOfMemory):
                        await take(stream, healed)
                await stream.aclose()
                TASK_BUDGET.reset(token)
                assert budget.used == 0

    run(work)


def test_entries_are_counted_as_they_are_in_memory(model: ModelLake) -> None:
    """An entry that the engine has sent is in memory as a whole, with the parts that no follower reads."""
    item = model.create("v", NARROW)
    budget = Budget("the gateway", 400 << 10)
    entries, log = Entries(model.lake, budget), Log(model.lake.store)
    log.looks = False
    for number in range(40):
        model.tick({item.id: [((number, "x" * 20_000), 1)]})
        n = model.writer.newest.n
        content = model.lake.store.get(f"log/{n}").to_pybytes()
        log.receive(n, content)
        entry = entries.add(log.read(n))
        size = entry.size.bytes
        assert 20_000 < len(content) - 100 < size < len(content) + 10_000
        entry.changes(item.id)
        assert entry.size.bytes == size
    assert 20_000 < budget.used <= budget.limit // 4
    assert entries.recent(n) is not None and entries.recent(n - 10) is None
    stored = CachedEntry(Log(model.lake.store).read(n))
    assert stored.size.bytes < 10_000
    stored.changes(item.id)
    assert stored.size.bytes == size
