"""The bodies of requests, with limits of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import Request

from tailgate.gateway.asgi import limits, refusals
from tailgate.gateway.asgi.refusals import Refused


async def body(request: Request, most: int = limits.BODY_BYTES_MAX) -> bytes:
    """Returns the body of a request with at most `most` bytes. Raises 413."""
    data = bytearray()
    async for part in parts(request, limits.BODY_S):
        data += part
        if len(data) > most:
            raise Refused(refusals.TOO_LARGE, f"A request body may have at most {most} bytes")
    return bytes(data)


async def parts(request: Request, wait: float) -> AsyncIterator[bytes]:
    """Returns the parts of a body as they arrive. Raises 400 if the next one does not arrive for `wait` seconds."""
    stream = request.stream()
    while True:
        try:
            yield await asyncio.wait_for(anext(stream), wait)
        except StopAsyncIteration:
            request.state.body_read = True
            return
        except asyncio.TimeoutError:
            raise Refused(400, f"The request body did not arrive within {wait:g} s") from None
