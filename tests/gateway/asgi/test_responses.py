"""Responses that are sent in parts: the end of the connection ends the parts, whatever the response is doing at this moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from starlette.types import Message, Scope

from tailgate.gateway.asgi.responses import Streamed

SCOPE: Scope = {"type": "http", "path": "/query-stream", "asgi": {"spec_version": "2.0"}}


class Connection:
    """A connection that accepts one part of a body, and then nothing until it is lost, as uvicorn's."""

    def __init__(self, *, reports_first: bool) -> None:
        self._lost, self._writable, self._reports_first = asyncio.Event(), asyncio.Event(), reports_first
        self._sent = 0

    async def receive(self) -> Message:
        await self._lost.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self._sent += 1
        if self._sent > 2:  # the head and one part
            asyncio.get_running_loop().call_soon(self._lose)
            await self._writable.wait()

    def _lose(self) -> None:
        events = (self._lost, self._writable) if self._reports_first else (self._writable, self._lost)
        for event in events:
            event.set()


@pytest.mark.parametrize("reports_first", [True, False])
def test_a_connection_that_is_lost_while_a_part_waits(reports_first: bool) -> None:
    """The query ends, also if the part was accepted at the same moment: otherwise its next row may never arrive."""
    ended: list[bool] = []

    async def parts() -> AsyncGenerator[bytes, None]:
        try:
            yield b"1"
            yield b"2"
            await asyncio.Event().wait()  # the next row
        finally:
            ended.append(True)

    async def respond() -> None:
        connection = Connection(reports_first=reports_first)
        await Streamed(parts(), "application/json")(SCOPE, connection.receive, connection.send)

    asyncio.run(asyncio.wait_for(respond(), 10))
    assert ended == [True]
