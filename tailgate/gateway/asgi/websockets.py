"""Messages of a WebSocket that are sent as they become available.

A client that does not read for SLOW_S, or that is gone, ends the stream, as one of a response. Messages of the client are ignored.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress

import anyio
from starlette.websockets import WebSocket, WebSocketDisconnect

from tailgate.gateway.asgi import limits
from tailgate.gateway.asgi.responses import gone, sent

NORMAL, FAILED = 1000, 1011  # codes of RFC 6455 with which a WebSocket is closed
REASON_BYTES_MAX = 123  # of the reason in a Close frame


async def send_messages(socket: WebSocket, messages: AsyncGenerator[str, None]) -> bool:
    """Sends messages to a client. Returns whether all were sent."""
    return await sent(_send(socket, messages), gone(socket.receive), messages, socket.url.path)


async def close(socket: WebSocket, code: int, reason: str) -> None:
    """Closes a WebSocket. The end of a long reason is left out."""
    with suppress(WebSocketDisconnect):
        await socket.close(code, reason.encode()[:REASON_BYTES_MAX].decode(errors="ignore"))


async def _send(socket: WebSocket, messages: AsyncGenerator[str, None]) -> None:
    try:
        async for message in messages:
            with anyio.fail_after(limits.SLOW_S):
                await socket.send_text(message)
    except WebSocketDisconnect as error:
        raise ConnectionResetError from error
