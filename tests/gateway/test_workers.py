"""Work outside the event loop: in slices of a thread, or in a process that can be ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tailgate.gateway.catalog.catalog_query import JOINS_MAX
from tailgate.gateway.resources.budgets import UNLIMITED, Cache
from tailgate.gateway.resources.concurrency import REQUESTER, Limiter, Quota, Requester
from tailgate.gateway.serving.prepared import analyzed
from tailgate.gateway.workers import cpu_limit, messages, pool
from tailgate.gateway.workers.pool import Workers
from tailgate.gateway.workers.searches import Searches
from tailgate.lake.catalog import Catalog, Change, Item, Table, View
from tailgate.lake.errors import ConfigurationLimitExceeded, OutOfMemory, StatementTooComplex, UndefinedTable
from tailgate.lake.types import INT8, Field
from tailgate.sql.compute.regexp.search import find_spans
from tailgate.sql.statements import Select, parse


def run(work: Callable[[Workers], Coroutine[Any, Any, None]], size: int = pool.WORKER_BYTES) -> None:
    async def limited() -> None:
        workers = Workers(size)
        try:
            await asyncio.wait_for(work(workers), 60)
        finally:
            workers.close()

    asyncio.run(limited())


def process(pause: float = 0.0) -> int:
    time.sleep(pause)
    return os.getpid()


def endless() -> None:
    while True:
        pass


def large(size: int) -> int:
    return len(bytearray(size))


def failing(name: str) -> None:
    raise UndefinedTable(f'relation "{name}" does not exist', hint="Look.", position=7)


def named(catalog: Catalog, other: Catalog) -> tuple[str, str, bool]:
    return catalog[16384].name, other.path[0], catalog.items == other.items


def cut(table: pa.Table) -> pa.Table:
    return table.slice(10, 5)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


async def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def test_long_work_is_another_processs() -> None:
    async def work(workers: Workers) -> None:
        assert await workers.run_bounded(process) == os.getpid()
        pids = await asyncio.gather(*(workers.run_bounded(process, 0.05, long=True) for _ in range(3)))
        assert len({*pids, os.getpid()}) == 4
        await until(lambda: not any(map(alive, pids)))

    run(work)


def test_errors_are_transferred_completely() -> None:
    async def work(workers: Workers) -> None:
        with pytest.raises(UndefinedTable, match='relation "t" does not exist') as raised:
            await workers.run_in_worker(failing, "t")
        assert (raised.value.hint, raised.value.position) == ("Look.", 7)

    run(work)


def test_catalogs_and_tables_travel() -> None:
    async def work(workers: Workers) -> None:
        item = Table(16384, "t", (Field("x", INT8, False),), (0,), stored=True)
        catalog = Catalog().apply(Change(put=(item,)))
        assert await workers.run_in_worker(named, catalog, catalog.along(("s",))) == ("t", "s", True)
        table = pa.table({"x": pa.array(range(100_000))})
        assert (await workers.run_in_worker(cut, table)).column(0).to_pylist() == [10, 11, 12, 13, 14]

    run(work)


def test_cancelled_work_ends() -> None:
    async def work(workers: Workers) -> None:
        for pause in (0.0, 0.2):  # before there is a process, and while it works
            task = asyncio.create_task(workers.run_in_worker(endless))
            await asyncio.sleep(pause)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await until(lambda: not any("tailgate.gateway.workers.template" in command for command in children(busy=True)))

    run(work)


def children(*, busy: bool) -> Iterator[str]:
    """Commands of processes forked from the template; `busy`: those that use the processor."""
    template = pool.TEMPLATE._process
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
            if template is not None and int(fields[1]) == template.pid and (not busy or fields[0] == "R"):
                yield path.with_name("cmdline").read_text()
        except (OSError, IndexError):
            continue


def test_late_work_is_too_complex(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "PREPARE_S", 0.3)

    async def work(workers: Workers) -> None:
        with pytest.raises(StatementTooComplex):
            await workers.run_in_worker(endless)

    run(work)


def test_work_that_takes_too_much_memory_is_refused() -> None:
    async def work(workers: Workers) -> None:
        assert await workers.run_in_worker(large, 10 << 20) == 10 << 20
        with pytest.raises(OutOfMemory):
            await workers.run_in_worker(large, 200 << 20)

    run(work, 100 << 20)


def test_a_killed_template_process_restarts() -> None:
    async def work(workers: Workers) -> None:
        assert await workers.run_in_worker(process)
        assert pool.TEMPLATE._process is not None
        before = pool.TEMPLATE._process.pid
        os.kill(before, signal.SIGKILL)
        pool.TEMPLATE._process.wait()
        assert await workers.run_in_worker(process)
        assert pool.TEMPLATE._process.pid != before

    run(work)


def test_a_slice_is_as_long_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    before = signal.getsignal(signal.SIGALRM)
    cpu_limit.enable()
    try:

        async def work(workers: Workers) -> None:
            began = time.thread_time()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(workers.run_bounded(endless), 1.0)
            assert time.thread_time() - began < 0.5  # of this thread: the rest was another process's
            assert await workers.run_bounded(process) == os.getpid()
            assert await workers.run_bounded(spinning, 0.1) != os.getpid()
            assert await workers.run_bounded(finalizing) != os.getpid()

        run(work)
    finally:
        cpu_limit._Slice.enabled = False
        signal.signal(signal.SIGALRM, before)


def spinning(seconds: float) -> int:
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass
    return os.getpid()


class Finalized:
    def __del__(self) -> None:
        spinning(0.1)  # an exception that a signal raises here is printed and ignored


def finalizing() -> int:
    Finalized()
    return spinning(0.1)


# --- turns -----------------------------------------------------------------------------------------------------------------------

LOW, OTHER, SUPER = Requester(1, False), Requester(2, False), Requester(10, True)


def test_turns_of_a_role() -> None:
    async def work() -> None:
        turns = Limiter(3, 2)
        low = [turns.try_take(LOW) for _ in range(3)]
        assert [t is not None for t in low] == [True, True, False]
        third = asyncio.create_task(turns.take(LOW))
        await asyncio.sleep(0)
        other = turns.try_take(OTHER)  # does not wait behind the session that has reached its own limit
        assert other is not None
        assert turns.try_take(Requester(3, False)) is None
        assert turns.try_take(SUPER) is not None
        other.release()
        await asyncio.sleep(0)
        assert not third.done()
        assert low[0] is not None
        low[0].release()
        low[0].release()
        assert (await third).requester is LOW

    asyncio.run(work())


def test_long_ones_make_room() -> None:
    async def work() -> None:
        turns = Limiter(2, 1, 1, 1)
        first = turns.try_take(LOW)
        assert first is not None
        assert turns.try_take(LOW) is None
        waiting = asyncio.create_task(turns.take(LOW))
        await asyncio.sleep(0)
        first.lengthen(0.01)
        second = await waiting
        second.lengthen(0.01)  # all places for long statements are taken
        assert turns.try_take(LOW) is None
        first.release()
        await asyncio.sleep(0.05)
        assert second.long
        assert turns.try_take(LOW) is not None

    asyncio.run(work())


def test_an_abandoned_turn_is_passed_on() -> None:
    async def work() -> None:
        turns = Limiter(1, 1)
        first = turns.try_take(LOW)
        tasks = [asyncio.create_task(turns.take(LOW)) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        assert first is not None
        first.release()
        tasks[1].cancel()  # which has just been given the turn
        assert await tasks[2]
        assert turns.waiting == 0
        assert [task.cancelled() for task in tasks] == [True, True, False]

    asyncio.run(work())


def test_quotas() -> None:
    quota = Quota("things", 4, 2, 1)
    for _ in range(2):
        quota.check(LOW)
        quota.opened(LOW)
    with pytest.raises(ConfigurationLimitExceeded, match="too many things"):
        quota.check(LOW)
    quota.opened(OTHER)
    with pytest.raises(ConfigurationLimitExceeded):
        quota.check(Requester(3, False))
    quota.check(SUPER)
    quota.opened(SUPER)
    with pytest.raises(ConfigurationLimitExceeded):
        quota.check(SUPER)
    quota.closed(LOW)
    quota.check(SUPER)


def test_the_requester_belongs_to_the_task() -> None:
    async def work() -> None:
        async def asking(who: Requester) -> Requester:
            REQUESTER.set(who)
            await asyncio.sleep(0)
            return REQUESTER.get()

        assert await asyncio.gather(*(asyncio.create_task(asking(who)) for who in (LOW, OTHER))) == [LOW, OTHER]

    asyncio.run(work())


def test_more_joins_than_can_be_planned_are_refused() -> None:
    """DuckDB cannot be interrupted while it plans, and planned a hundred for more than a minute."""
    table = Table(20_000, "t", (Field("n", INT8),), stored=True)
    for first, reads in (("t v0", "t"), ("pg_class v0", "pg_class")):
        joined = f"SELECT count(*) FROM {first}" + "".join(f" JOIN {reads} v{i} ON true" for i in range(1, JOINS_MAX + 2))
        statement = parse(joined)
        assert isinstance(statement, Select)
        with pytest.raises(StatementTooComplex):
            analyzed(statement.query, (), Catalog({table.id: table}), 1)


def test_a_search_in_a_process_with_many_clients() -> None:
    """`select` refuses descriptors above 1023."""
    with contextlib.ExitStack() as descriptors:
        for _ in range(1024):
            descriptors.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        searches = Searches(pool.WORKER_BYTES)
        assert searches("b+", "abbc", 0) == find_spans("b+", "abbc", 0)
        searches._idle.pop().end()


def test_cached_pickles_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each version of an item has another, and its definition may be long."""
    pickles: Cache[int, tuple[Item, bytes]] = Cache(UNLIMITED, 100_000)
    monkeypatch.setattr(messages, "_pickled", pickles)
    views = [View(id=1000, name="v", columns=(), query=f"SELECT '{'x' * 10_000}', {n}") for n in range(20)]
    for catalog in [Catalog().apply(Change(put=(view,))) for view in views]:
        assert messages._parts(catalog)[1:] == messages._parts(catalog)[1:]
    assert 50_000 < pickles.bytes <= 100_000
