"""HTTP/1.1: uvicorn's protocol over httptools, with limits of header fields and of idle time.

A response has the header field Date. A request for another protocol (Upgrade) is answered as one without it, unless it opens a WebSocket.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection
from email.utils import formatdate

import httptools
from starlette.types import ASGIApp
from uvicorn._types import ASGISendEvent
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol
from uvicorn.server import ServerState
from wsproto.events import Ping

from tailgate.gateway.asgi import limits

UPGRADE = (b"upgrade", b"http2-settings")  # header fields of a request for another protocol
LENGTH_MAX = 2**62  # of a response without Content-Length
logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # it reports errors of clients; the server logs those of the application


class Http1:
    """The HTTP/1.1 connections of a server. `websockets`: the paths at which a client may open a WebSocket."""

    def __init__(self, app: ASGIApp, websockets: Collection[bytes] = ()) -> None:
        self._config = Config(
            app, http="httptools", ws=_WebSocket, interface="asgi3", lifespan="off", log_config=None, access_log=False,
            proxy_headers=False, timeout_keep_alive=limits.IDLE_S, ws_max_size=limits.BODY_BYTES_MAX, ws_per_message_deflate=False,
        )  # fmt: skip
        self._config.load()
        self._state, self._websockets = ServerState(), frozenset(websockets)

    def protocol(self) -> asyncio.Protocol:
        """Returns the protocol of a new connection."""
        return _Connection(self._config, self._state, self._websockets)

    @property
    def count(self) -> int:
        """Returns the number of open connections."""
        return len(self._state.connections)

    def stop(self) -> None:
        """Closes the connections, after the responses that have begun."""
        for connection in list(self._state.connections):
            connection.shutdown()

    def abort(self) -> None:
        """Ends the connections."""
        for connection in list(self._state.connections):
            connection.transport.abort()


class _Connection(HttpToolsProtocol):
    """A connection. One without a complete request for IDLE_S is closed, and so is one with header fields above HEADER_BYTES_MAX.

    One that becomes a WebSocket is no longer a connection of this class.
    """

    def __init__(self, config: Config, state: ServerState, websockets: frozenset[bytes]) -> None:
        super().__init__(config, state, {})
        self._websockets = websockets
        self._head_bytes = 0
        self._steps = 0  # steps of the parser, which keeps a header field until it is complete
        self._in_head = True
        self._idle_since = self.loop.time()
        self._watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does: it is a TCP connection
        super().connection_made(transport)
        self._unjoined = transport
        self.transport = _Joining(transport, self.loop)  # type: ignore[assignment]  # it has the methods that uvicorn calls
        self._watch = self.loop.call_later(limits.IDLE_S, self._close_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._watch is not None:
            self._watch.cancel()

    @property
    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _close_idle(self) -> None:
        remaining = self._idle_since + limits.IDLE_S - self.loop.time()
        if not self._busy and remaining <= 0:
            self.transport.close()
        else:
            self._watch = self.loop.call_later(max(remaining, 1.0), self._close_idle)

    # --- httptools

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes, self._in_head = 0, True
        self._steps += 1

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # otherwise it is a trailer, which no application reads
            super().on_header(name, value)
        self._count(len(name) + len(value))

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._steps += 1

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._steps += 1

    def _count(self, size: int) -> None:
        self._steps += 1
        self._head_bytes += size
        if self._head_bytes > limits.HEADER_BYTES_MAX:
            raise _TooLarge

    def on_headers_complete(self) -> None:
        self._steps, self._in_head = self._steps + 1, False
        self.server_state.default_headers = _date(int(time.time()))
        super().on_headers_complete()
        if self.parser.should_upgrade():
            return
        if self.scope["http_version"] == "1.0":
            self.cycle.send = _Unchunked(self.cycle).send  # type: ignore[method-assign]  # uvicorn calls it by name

    def data_received(self, data: bytes) -> None:
        steps = self._steps
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._opens_websocket:
                self._open_websocket()
            else:
                self._read_without_upgrade(data[upgrade.args[0] :])
            return
        except httptools.HttpParserError:
            self.send_400_response("")
            return
        if self._steps == steps:  # a part of a header field, a trailer or the size of a chunk
            self._head_bytes += len(data)
            if self._head_bytes > limits.HEADER_BYTES_MAX and not self.transport.is_closing():
                self.send_400_response("")

    def send_400_response(self, msg: str) -> None:
        """Refuses a request that is not valid or too large, and closes the connection."""
        if not self._busy:  # otherwise the refusal would be within a response
            status = 431 if self._head_bytes > limits.HEADER_BYTES_MAX else 400
            self.transport.write(STATUS_LINE[status] + b"content-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()

    # --- uvicorn

    def _should_upgrade(self) -> bool:
        return True  # a request with Upgrade does not begin before `_read_without_upgrade`

    @property
    def _opens_websocket(self) -> bool:
        return self._get_upgrade() == b"websocket" and self.scope["method"] == "GET" and self.url.partition(b"?")[0] in self._websockets

    def _open_websocket(self) -> None:
        """Passes the connection to uvicorn's protocol of WebSockets."""
        if self._busy:  # the response that is being sent would not learn that the connection ends
            self.transport.close()
            return
        if self._watch is not None:
            self._watch.cancel()
        self.transport = self._unjoined
        self.handle_websocket_upgrade()

    def _read_without_upgrade(self, rest: bytes) -> None:
        """Reads a request for another protocol as one without Upgrade: the parser does not read the body of the other one."""
        if self.scope["method"] == "CONNECT":
            self.send_400_response("")
            return
        lines = [b"%s %s HTTP/1.1" % (self.scope["method"].encode(), self.url)]
        for name, value in self.headers:
            if name == b"connection":
                value = b",".join(option for option in value.split(b",") if option.strip().lower() not in UPGRADE)
            if name not in UPGRADE:
                lines.append(name + b": " + value)
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"\r\n".join(lines) + b"\r\n\r\n" + rest)

    def on_response_complete(self) -> None:
        """Closes the connection if the request has not ended. Otherwise the client may send the next one."""
        self._idle_since = self.loop.time()
        if self.cycle.more_body and not self.pipeline:
            self.transport.close()
        super().on_response_complete()


class _WebSocket(WSProtocol):
    """A WebSocket. It answers no pings while its client does not read, because the answers would pile up."""

    def handle_ping(self, event: Ping) -> None:
        if self.writable.is_set():
            super().handle_ping(event)


class _Joining:
    """A transport that sends the head of a response together with later writes of the same step of the event loop."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop, self._held = transport, loop, b""
        self.abort, self.is_closing, self.get_extra_info = transport.abort, transport.is_closing, transport.get_extra_info

    def write(self, data: bytes) -> None:
        if self._held:
            self._transport.write(self._held + data)
            self._held = b""
        elif data.startswith(b"HTTP/"):
            self._held = data
            self._loop.call_soon(self._flush)
        else:
            self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._held:
            self._transport.write(self._held)
            self._held = b""


class _Unchunked:
    """A response for a client of HTTP/1.0: one without Content-Length ends with the connection."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle, self._send, self._unbounded = cycle, cycle.send, False

    async def send(self, message: ASGISendEvent) -> None:
        cycle = self._cycle
        if message["type"] == "http.response.start":
            self._unbounded = all(name.lower() != b"content-length" for name, _ in message.get("headers", ()))
            if self._unbounded:
                cycle.chunked_encoding, cycle.expected_content_length = False, LENGTH_MAX
        elif message["type"] == "http.response.body" and self._unbounded and not message.get("more_body", False):
            cycle.expected_content_length = len(message.get("body", b""))
        await self._send(message)


class _TooLarge(Exception):
    """A request with header fields above HEADER_BYTES_MAX."""


_dates: dict[int, list[tuple[bytes, bytes]]] = {}  # of the current second


def _date(second: int) -> list[tuple[bytes, bytes]]:
    """Returns the header field Date."""
    if second not in _dates:
        _dates.clear()
        _dates[second] = [(b"date", formatdate(second, usegmt=True).encode())]
    return _dates[second]
