"""A TAIL that ends while its error is on the way: the error is nobody's, and is not logged."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

from tailgate.gateway.results.envelopes import Plain
from tailgate.gateway.results.tail import TailOptions, TailRows
from tailgate.gateway.serving.following import Batch
from tailgate.lake.catalog import Table
from tailgate.lake.errors import SystemError_
from tailgate.lake.types import INT8, Field
from tailgate.sql.authorization import Followed, shared

COLUMNS = (Field("n", INT8),)
ITEM = Table(16384, "t", COLUMNS, stored=True)


class Failing:
    """A query service whose changes end with an error when `fail` is set."""

    time = 0

    def __init__(self) -> None:
        self.fail = asyncio.Event()
        self.followers = self.progress = self

    async def changes(self, *arguments: Any, **words: Any) -> AsyncIterator[Batch]:
        await self.fail.wait()
        raise SystemError_("the lake is gone")
        yield


async def ended() -> list[dict[str, Any]]:
    """Returns what asyncio logs if an error arrives after a fetch and the TAIL's end are canceled."""
    logged: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: logged.append(context))
    serving = Failing()
    rows = TailRows(serving, shared(Followed(ITEM)), Plain(COLUMNS), TailOptions(1, snapshot=False, progress=False))  # type: ignore[arg-type]
    for step in (rows.fetch(None), rows.close()):
        task = asyncio.ensure_future(step)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait((task,))
    serving.fail.set()
    for _ in range(10):
        await asyncio.sleep(0)
    del rows, task, step, serving
    gc.collect()
    await asyncio.sleep(0)
    return logged


def test_the_error_of_an_ended_tail_is_not_logged() -> None:
    assert [c["message"] for c in asyncio.run(ended())] == []


def test_a_tail_whose_close_is_canceled_leaves_no_task() -> None:
    async def remaining() -> int:
        options, serving = TailOptions(1, snapshot=False, progress=False), Failing()
        rows = TailRows(serving, shared(Followed(ITEM)), Plain(COLUMNS), options)  # type: ignore[arg-type]  # a stand-in
        await rows.fetch(1, timeout=0)
        closing = asyncio.ensure_future(rows.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait((closing,))
        for _ in range(10):
            await asyncio.sleep(0)
        return len(asyncio.all_tasks()) - 1

    assert asyncio.run(remaining()) == 0
