"""Responses that are sent as their parts become available.

A client that does not read for SLOW_S, or that is gone, ends the stream. The parts' generator is always closed, which frees its session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

import anyio
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from tailgate.gateway.asgi import limits

log = logging.getLogger("tailgate.http")


class Streamed(StreamingResponse):
    """A response with parts. `duplex`: the parts read the body of the request, and so notice themselves that the client is gone."""

    def __init__(
        self, parts: AsyncGenerator[bytes, None], type: str, headers: Mapping[str, str] | None = None, *, duplex: bool = False
    ) -> None:
        super().__init__(parts, media_type=type, headers=headers)
        self._parts, self._duplex = parts, duplex

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        watch = None if self._duplex else gone(receive)

        async def bounded(message: Message) -> None:
            with anyio.fail_after(limits.SLOW_S):
                await send(message)

        await sent(self.stream_response(bounded), watch, self._parts, scope["path"])


class Failure(Response):
    """The response of a request whose body may not have been read: it ends after the body.

    Otherwise HTTP/1.1 clients would lose the connection, and Hypercorn fails at the next part of an HTTP/2 body.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with anyio.move_on_after(limits.BODY_S):
            await _drained(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def sent(
    sending: Coroutine[Any, Any, None], watch: Coroutine[Any, Any, None] | None, parts: AsyncGenerator[Any, None], path: str
) -> bool:
    """Sends parts until the end of `watch`, and closes their generator. Returns whether all were sent."""
    tasks = [asyncio.ensure_future(sending), *([] if watch is None else [asyncio.ensure_future(watch)])]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(Exception):
            await parts.aclose()
    match results[0]:
        case TimeoutError():
            log.info("%s: the client does not read", path)
        case OSError():
            log.info("%s: the client is gone", path)
        case Exception() as error:
            log.error("%s", path, exc_info=error)
    return results[0] is None


async def begun(parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Waits for the first part, so that an error before it becomes the response. Returns all parts."""
    return _joined((await anext(parts),), parts)


async def completed(parts: AsyncGenerator[bytes, None]) -> bytes | AsyncGenerator[bytes, None]:
    """Waits for the first two parts. Returns the bytes of a response that has only one, otherwise all parts."""
    first, second = await anext(parts), await anext(parts, None)
    return first if second is None else _joined((first, second), parts)


async def _joined(first: Sequence[bytes], parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Returns the first parts and the others. Closes the generator of the others."""
    try:
        for part in first:
            yield part
        async for part in parts:
            yield part
    finally:
        await parts.aclose()


async def _drained(receive: Receive) -> None:
    """Waits for the end of a body, or for more bytes than a body may have."""
    size = 0
    while size <= limits.BODY_BYTES_MAX and (message := await receive()).get("more_body", False):
        size += len(message["body"])


async def gone(receive: Receive) -> None:
    """Waits until the client is gone."""
    while (await receive())["type"] not in ("http.disconnect", "websocket.disconnect"):
        pass
