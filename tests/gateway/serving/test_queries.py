"""Tests queries over the mirrors: one binding, one time, PostgreSQL's errors, cancellation."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

import duckdb
import pytest

from tailgate.gateway.mirrors import snapshots, tables
from tailgate.gateway.mirrors.mirrors import Mirrors
from tailgate.gateway.serving import jobs, queries
from tailgate.gateway.serving.jobs import Job, Jobs
from tailgate.gateway.serving.service import Serving
from tailgate.lake import errors
from tailgate.lake.catalog import Source
from tailgate.lake.types import INT8, TEXT, Field
from tailgate.sql.authorization import shared
from tailgate.sql.statements import Select, parse
from testing.engine_process import until
from tests.gateway.serving.model_lake import ModelLake, bag, serving, unready

NARROW = {"id": INT8, "name": TEXT}


def select(text: str) -> Select:
    statement = parse(text)
    assert isinstance(statement, Select)
    return statement


async def ask(server: Serving, text: str, *values: object, **more: object) -> list[tuple[object, ...]]:
    table = await server.queries.run(shared(server.binder.prepare(select(text))), values, **more)  # type: ignore[arg-type]
    return sorted(zip(*(c.to_pylist() for c in table.columns), strict=True), key=repr)


def test_rows_by_name_type_and_copy(model: ModelLake, run) -> None:
    """Duplicate rows of a relation without a key are repeated.

    Names and types are those of the view.
    """

    async def work() -> None:
        keyed, plain = model.create("v", NARROW), model.create("d", NARROW, None)
        model.tick({keyed.id: [((1, "a"), 1)], plain.id: [((1, "x"), 3), ((2, None), 1)]})
        async with serving(model) as server:
            prepared = server.binder.prepare(select("SELECT * FROM d"))
            assert [(f.name, str(f.type)) for f in prepared.columns] == [("id", "bigint"), ("name", "text")]
            assert prepared.relations == {plain.id}
            assert bag(await server.queries.run(shared(prepared))) == {(1, "x"): 3, (2, None): 1}
            assert await ask(server, "SELECT count(*) FROM d") == [(4,)]
            assert await ask(server, "SELECT v.name, d.name FROM v JOIN d ON d.id = v.id") == [("a", "x")] * 3
            assert server.queries.run_now(shared(prepared)).equals(await server.queries.run(shared(prepared)))
            assert server.binder.prepare(select("SELECT * FROM d")) is prepared

    run(work)


def test_a_few_rows_of_a_relation_that_is_not_mirrored(model: ModelLake, run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that needs any rows reads them from the lake before the mirror is filled. Another one waits for the mirror."""
    fill, may_fill = tables.Tables.fill, threading.Event()

    def late(self: tables.Tables, *arguments: Any, **options: Any) -> Any:
        assert may_fill.wait(60)
        return fill(self, *arguments, **options)

    async def work() -> None:
        item = model.create("v", NARROW)
        model.tick({item.id: [((i, f"n{i}"), 1) for i in range(100)]})
        model.tick({item.id: [((i, f"n{i}"), -1) for i in range(90)]})
        async with serving(model) as server, contextlib.AsyncExitStack() as ending:
            ending.callback(may_fill.set)
            left = {(i, f"n{i}") for i in range(90, 100)}
            few = await ask(server, "SELECT id, name, mz_now() > 0 FROM v LIMIT 3")
            assert len({(i, name) for i, name, _ in few} & left) == 3
            assert set(await ask(server, "SELECT id, name FROM v LIMIT 1000")) == left
            assert not server.queries.ready(server.binder.prepare(select("SELECT * FROM v")))
            waiting = asyncio.create_task(ask(server, "SELECT id FROM v ORDER BY id LIMIT 2"))
            failed = model.tick({item.errors: [(("22012", "division by zero"), 1)]})
            await server.progress.wait(failed - 1, 5)
            with pytest.raises(errors.DivisionByZero):
                await ask(server, "SELECT id FROM v LIMIT 3")
            healed = model.tick({item.errors: [(("22012", "division by zero"), -1)]})
            await server.progress.wait(healed - 1, 5)
            assert not waiting.done()
            may_fill.set()
            assert await waiting == [(90,), (91,)]
            assert set(await ask(server, "SELECT id, name FROM v LIMIT 3")) < left

    monkeypatch.setattr(tables.Tables, "fill", late)
    run(work)


def test_parameters(model: ModelLake, run) -> None:
    async def work() -> None:
        item = model.create("v", NARROW)
        model.tick({item.id: [((i, f"n{i}"), 1) for i in range(10)]})
        async with serving(model) as server:
            prepared = server.binder.prepare(select("SELECT name FROM v WHERE id = $1 OR name = $2"))
            assert [str(t) for t in prepared.parameters] == ["bigint", "text"]
            assert await ask(server, "SELECT name FROM v WHERE id = $1 OR name = $2", 3, "n5") == [("n3",), ("n5",)]
            assert await ask(server, "SELECT name FROM v WHERE id = $1", None) == []

    run(work)


def test_errors_of_the_text(model: ModelLake, run) -> None:
    async def work() -> None:
        model.create("v", NARROW)
        async with serving(model) as server:
            with pytest.raises(errors.UndefinedTable) as table:
                server.binder.prepare(select("SELECT * FROM nonsense"))
            assert table.value.position == 14
            with pytest.raises(errors.UndefinedColumn):
                server.binder.prepare(select("SELECT nonsense FROM v"))

    run(work)


def test_a_failing_view_raises_its_error(model: ModelLake, run) -> None:
    """SELECT fails while a view has errors; other views still work.

    It works again after the errors are gone.
    """

    async def work() -> None:
        bad, good = model.create("bad", NARROW), model.create("good", NARROW)
        model.tick({bad.id: [((1, "a"), 1)], good.id: [((1, "a"), 1)]})
        async with serving(model) as server:
            assert await ask(server, "SELECT id FROM bad") == [(1,)]
            failed = model.tick({bad.errors: [(("22012", "division by zero"), 2)]})
            await server.progress.wait(failed - 1, 5)
            for _ in range(2):
                with pytest.raises(errors.DivisionByZero, match="division by zero") as caught:
                    await ask(server, "SELECT id FROM bad")
                assert '"bad"' in (caught.value.hint or "")
            assert await ask(server, "SELECT id FROM good") == [(1,)]
            with server.queries.snapshot() as block, pytest.raises(errors.DivisionByZero):
                await ask(server, "SELECT id FROM bad", at=block)
            with server.queries.snapshot(failed - 1) as before:
                assert await ask(server, "SELECT id FROM bad", at=before) == [(1,)]
            healed = model.tick({bad.errors: [(("22012", "division by zero"), -2)]})
            await server.progress.wait(healed - 1, 5)
            assert await ask(server, "SELECT id FROM bad") == [(1,)]

    run(work)


def test_a_view_that_failed_before_its_first_query(model: ModelLake, run) -> None:
    async def work() -> None:
        bad = model.create("bad", NARROW)
        model.tick({bad.errors: [(("22003", "out of range"), 1)]})
        async with serving(model) as server:
            with pytest.raises(errors.NumericValueOutOfRange):
                await ask(server, "SELECT id FROM bad")
            with server.queries.snapshot() as block, pytest.raises(errors.NumericValueOutOfRange):
                await ask(server, "SELECT id FROM bad", at=block)

    run(work)


def test_not_filled_and_not_stored(model: ModelLake, run) -> None:
    async def work() -> None:
        model.put(unready(model.create("filling", NARROW)))
        columns = tuple(Field(name, type) for name, type in NARROW.items())
        id = model.writer.catalog.next_id
        model.put(Source(id, "topic", columns, errors=id + 1))
        async with serving(model) as server:
            with pytest.raises(errors.ObjectNotInPrerequisiteState, match='"filling" is still being filled'):
                server.binder.prepare(select("SELECT * FROM filling"))
            with pytest.raises(errors.ObjectNotInPrerequisiteState):
                server.binder.prepare(select("SELECT * FROM topic"))

    run(work)


def test_a_block_reads_at_one_time(model: ModelLake, run) -> None:
    """A block reads all relations at its time: mirrored before, first used in it, or dropped meanwhile."""

    async def work() -> None:
        one, two, three = (model.create(name, NARROW) for name in ("one", "two", "three"))
        model.tick({i.id: [((1, "old"), 1)] for i in (one, two, three)})
        async with serving(model) as server:
            assert await ask(server, "SELECT name FROM one") == [("old",)]
            assert await ask(server, "SELECT name FROM three") == [("old",)]
            block = server.queries.snapshot()
            later = model.tick({i.id: [((1, "old"), -1), ((1, "new"), 1)] for i in (one, two, three)})
            await server.progress.wait(later - 1, 5)
            three_prepared = server.binder.prepare(select("SELECT name FROM three"))
            model.drop(three)
            while "three" in {i.name for i in server.progress.catalog.items.values()}:
                await server.progress.wait(server.progress.time, 5)
            assert await ask(server, "SELECT name FROM one", at=block) == [("old",)]
            assert await ask(server, "SELECT name FROM two", at=block) == [("old",)]
            assert (await server.queries.run(shared(three_prepared), at=block)).to_pylist() == [{"name": "old"}]
            block.close()
            assert await ask(server, "SELECT name FROM one") == [("new",)]
            assert await ask(server, "SELECT name FROM two") == [("new",)]
            with pytest.raises(errors.UndefinedTable):
                server.binder.prepare(select("SELECT name FROM three"))
            with pytest.raises(errors.UndefinedTable):
                await server.queries.run(shared(three_prepared))

    run(work)


def test_the_past(model: ModelLake, run) -> None:
    async def work() -> None:
        item = model.create("v", NARROW)
        times = [model.tick({item.id: [((i, "x"), 1)]}) for i in range(5)]
        async with serving(model) as server:
            for i, time in enumerate(times):
                with server.queries.snapshot(time) as past:
                    assert past.time == time
                    assert await ask(server, "SELECT count(*) FROM v", at=past) == [(i + 1,)]
            assert server.progress.oldest() <= times[0]

    run(work)


SLOW = "SELECT count(*) FROM v a, v b, v c, v d WHERE a.id + b.id * c.id + d.id = 7777"
MANY_ROWS = "SELECT a.id FROM v a, v b, v c, v d"


def test_cancel_and_timeout(model: ModelLake, run) -> None:
    """Cancellation and timeout take effect quickly, and later queries work."""

    async def work() -> None:
        item = model.create("v", NARROW)
        model.tick({item.id: [((i, "x"), 1) for i in range(3000)]})
        async with serving(model) as server:
            loop = asyncio.get_running_loop()
            await ask(server, "SELECT count(*) FROM v")
            for block in (None, server.queries.snapshot()):
                began = loop.time()
                with pytest.raises(errors.QueryCanceled, match="statement timeout"):
                    await ask(server, SLOW, timeout=0.3, at=block)
                task = asyncio.create_task(ask(server, SLOW, at=block))
                await asyncio.sleep(0.3)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert await ask(server, "SELECT count(*) FROM v", at=block) == [(3000,)]
                assert loop.time() - began < 30  # SLOW would take hours

    run(work)


def test_an_interrupt_before_the_statement_is_repeated() -> None:
    """DuckDB ignores an interrupt before a statement has started."""

    def work(cursor: duckdb.DuckDBPyConnection, job: Job, has_started: threading.Event) -> None:
        job.running(cursor)
        has_started.set()
        until(lambda: job.cancelled)
        cursor.execute("SELECT sum(range) FROM range(1000000000000)")

    async def canceled() -> None:
        jobs, has_started = Jobs("canceled"), threading.Event()
        with duckdb.connect() as cursor:
            task = asyncio.ensure_future(jobs.run(lambda job: work(cursor, job, has_started)))
            await asyncio.to_thread(has_started.wait)
            task.cancel()
            await asyncio.wait((task,))
            while jobs.running:
                await asyncio.sleep(0.01)
        jobs.close()

    asyncio.run(asyncio.wait_for(canceled(), 30))


@pytest.mark.parametrize("point", ["before it reads", "while it reads", "before its statement", "before its rows"])
def test_a_cancel_at_each_point_ends_the_statement(model: ModelLake, run, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB may get the interrupt before the statement that it is for. Nothing else holds the thread."""
    reached, threads = threading.Event(), set[int]()

    def held(function: Callable[..., Any], *arguments: Any) -> Any:
        if threading.get_ident() not in threads:  # the thread of the event loop
            reached.set()
            until(lambda: jobs.current().cancelled)
        return function(*arguments)

    @contextlib.contextmanager
    def reading(mirrors: Mirrors, relations: Collection[int] | None = None) -> Iterator[None]:
        if point == "before it reads":
            held(int)
        with original(mirrors, relations):
            if point == "while it reads":
                held(int)
            yield

    async def work() -> None:
        item = model.create("v", NARROW)
        model.tick({item.id: [((i, "x"), 1) for i in range(3000)]})
        threads.add(threading.get_ident())
        async with serving(model) as server:
            await ask(server, "SELECT count(*) FROM v")
            prepared = shared(server.binder.prepare(select(MANY_ROWS if point == "before its rows" else SLOW)))
            monkeypatch.setattr(Mirrors, "reading", reading)
            if point == "before its statement":
                monkeypatch.setattr(queries, "execute", partial(held, queries.execute))
            if point == "before its rows":
                monkeypatch.setattr(queries, "fetched", partial(held, queries.fetched))
            run_now = partial(server.queries.write, prepared, [item], lambda cursor: queries.execute(cursor, prepared.plan, ()))
            for start in (partial(server.queries.run, prepared), partial(server.queries.run_at_entry, prepared), run_now):
                reached.clear()
                task = asyncio.ensure_future(start())
                assert await asyncio.to_thread(reached.wait, 10)
                task.cancel()
                await asyncio.wait((task,))
                assert task.cancelled()
                while server.queries.jobs.running:
                    await asyncio.sleep(0.001)

    original = Mirrors.reading
    run(lambda: asyncio.wait_for(work(), 30))


def test_a_transaction_continues_after_an_error(model: ModelLake, run) -> None:
    """After an error the block continues at its time, as ROLLBACK TO a savepoint needs."""

    async def work() -> None:
        item = model.create("v", NARROW)
        model.tick({item.id: [((0, "x"), 1)]})
        async with serving(model) as server:
            await ask(server, "SELECT count(*) FROM v")
            with server.queries.snapshot() as block:
                later = model.tick({item.id: [((1, "x"), 1)]})
                await server.progress.wait(later - 1, 5)
                for _ in range(2):
                    with pytest.raises(errors.DivisionByZero):
                        await ask(server, "SELECT 1 / id FROM v", at=block)
                    assert await ask(server, "SELECT count(*) FROM v", at=block) == [(1,)]
            assert await ask(server, "SELECT count(*) FROM v") == [(2,)]

    run(work)


def test_changed_since(model: ModelLake, run) -> None:
    """Cached results stay valid while no relation that they read has changed."""

    async def work() -> None:
        one, two = model.create("one", NARROW), model.create("two", NARROW)
        time = model.tick({one.id: [((1, "a"), 1)], two.id: [((1, "a"), 1)]})
        async with serving(model) as server:
            first, second = (server.binder.prepare(select(f"SELECT * FROM {n}")) for n in ("one", "two"))
            times: list[int] = []
            server.progress.on_advance(times.append)
            later = model.tick({one.id: [((2, "b"), 1)]})
            assert await server.progress.wait(time, 5) == later
            await asyncio.sleep(0)
            assert times == [later]
            assert server.progress.changed_since(first, time)
            assert not server.progress.changed_since(first, later)
            assert not server.progress.changed_since(second, time)
            model.create("three", NARROW)
            await server.progress.wait(later, 5)
            assert server.progress.changed_since(second, later)

    run(work)


def test_too_many_blocks(model: ModelLake, run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        model.create("v", NARROW)
        monkeypatch.setattr(snapshots, "OPEN_AT_MOST", 3)
        async with serving(model) as server:
            opened = [server.queries.snapshot() for _ in range(3)]
            with pytest.raises(errors.ConfigurationLimitExceeded):
                server.queries.snapshot()
            opened[0].close()
            server.queries.snapshot().close()
            monkeypatch.setattr(snapshots, "AGE_AT_MOST", 0.0)
            server.queries.snapshot()
            await asyncio.sleep(0.1)
            with pytest.raises(errors.TailgateError, match="snapshot too old"):
                await ask(server, "SELECT * FROM v", at=opened[1])

    run(work)
