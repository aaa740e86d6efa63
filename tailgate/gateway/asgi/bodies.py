"""The bodies of requests, with limits of size and time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import anyio
from starlette.requests import ClientDisconnect, Request

from tailgate.gateway.asgi import limits, refusals
from tailgate.gateway.asgi.refusals import Refused


async def body(request: Request, most: int = limits.BODY_BYTES_MAX) -> bytes:
    """Returns the body of a request with at most `most` bytes. Raises 413, and 400 if it does not arrive within BODY_S."""
    return await _within(_read(request, most), limits.BODY_S)


def json_of(data: bytes) -> Any:
    """Returns the JSON value of a body in UTF-8. Raises ValueError, also for half of a surrogate pair, which is not a character."""
    try:
        value = json.loads(data.decode("utf-8-sig"))  # of bytes, json also reads halves of surrogate pairs and UTF-16
        if b"\\u" in data:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("the JSON value is nested too deeply") from error
    return value


async def _read(request: Request, most: int) -> bytes:
    data = bytearray()
    while not was_read(request):
        data += await _part(request)
        if len(data) > most:
            raise Refused(refusals.TOO_LARGE, f"A request body may have at most {most} bytes")
    return bytes(data)


async def parts(request: Request, wait: float) -> AsyncIterator[bytes]:
    """Returns the parts of a body as they arrive. Raises 400 if the next one does not arrive for `wait` seconds."""
    while not was_read(request):
        yield await _within(_part(request), wait)


def was_read(request: Request) -> bool:
    """Returns whether the last part of a request's body was received."""
    return getattr(request.state, "body_read", False)


async def _part(request: Request) -> bytes:
    """Returns the next part of a body. Raises ClientDisconnect."""
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    request.state.body_read = not message.get("more_body", False)
    part: bytes = message.get("body", b"")
    return part


async def _within(reading: Awaitable[bytes], wait: float) -> bytes:
    """Waits for bytes of a body. Raises 400 if they do not arrive in time."""
    try:
        with anyio.fail_after(wait):
            return await reading
    except TimeoutError:
        raise Refused(400, f"The request body did not arrive within {wait:g} s") from None
