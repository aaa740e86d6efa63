"""The connection of one HTTP client: bytes to requests in order, and responses in the same order.

    data_received ──► httptools ──► queue of requests ──► answer, one at a time ──► write

A client may send requests without waiting for responses (pipelining). It is not read while REQUESTS_MAX requests wait, or while it
does not read its responses.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import cast

import httptools

from tailgate.gateway.http.messages import Request, Response, encoded, error_response
from tailgate.gateway.resources.budgets import Budget, Charge
from tailgate.gateway.security.authentication import Peer
from tailgate.gateway.server.connection import peer_of
from tailgate.lake.errors import FeatureNotSupported, OutOfMemory, ProgramLimitExceeded, ProtocolViolation, TailgateError

REQUESTS_MAX = 64  # requests of a connection that wait
TARGET_BYTES_MAX = 8 * 1024  # of path and query string, as in nginx
HEADER_BYTES_MAX = 16 * 1024  # of all header fields of a request
HEADERS_MAX = 100
BODY_BYTES_MAX = 1024 * 1024  # as in nginx
CONNECTIONS_MAX = 10_000  # of a gateway; further ones are closed at once
IDLE_S = 75.0  # without a complete request, as nginx's keepalive_timeout
WRITE_BYTES_HIGH = 256 * 1024  # unsent bytes at which the next request of the connection waits
SLOW_READER_S = 30.0  # a stream whose reader has left WRITE_BYTES_HIGH unread for this time ends

Answer = Callable[[Request, Peer], Awaitable[Response]]


class HttpConnection(asyncio.Protocol):
    """The connection of one client. `answer` returns the response to a request and raises nothing."""

    def __init__(self, answer: Answer, connections: set[HttpConnection], bodies: Budget, *, insecure: bool, tls: bool) -> None:
        self._answer, self._connections, self._insecure, self._tls = answer, connections, insecure, tls
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._queue: deque[Request | Response] = deque()  # a response instead of a request that is not valid; then the connection closes
        self._task: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._paused = False
        self._bodies = Charge(bodies)
        self._refused = False
        self._streaming = False
        self._steps = 0  # steps of the parser, which keeps a header field until it is complete
        self._in_head = True
        self._ended = False  # the client has closed its side of the connection
        self._began = self._loop.time()
        self._reset()

    # --- asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BYTES_HIGH)
        self._writable.set()
        peer = transport.get_extra_info("socket")
        if peer is not None and peer.family != getattr(socket, "AF_UNIX", None):
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peer = peer_of(transport, self._insecure, tls=self._tls)
        if len(self._connections) >= CONNECTIONS_MAX:
            self._transport.abort()
        self._connections.add(self)
        self._impatience = self._loop.call_later(IDLE_S, self._close_idle)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        steps = self._steps
        try:
            self._parser.feed_data(data)
            if self._steps == steps:  # a part of a header field, a trailer or the size of a chunk
                self._count(len(data))
        except _Refused as refused:
            self._refuse(refused.status, refused.error)
        except httptools.HttpParserUpgrade:
            self._refuse(501, FeatureNotSupported("protocol upgrades are not supported"))
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            if not isinstance(cause, _Refused):
                raise
            self._refuse(cause.status, cause.error)
        except httptools.HttpParserError:
            self._refuse(400, ProtocolViolation("invalid HTTP request"))
        self._pump()

    def eof_received(self) -> bool:
        self._ended = True
        return self._task is not None and not self._streaming  # answers the requests that were received

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._impatience.cancel()
        self._queue.clear()
        self._bodies.set(0)
        self._connections.discard(self)
        if self._task is not None:
            self._task.cancel()

    def close(self) -> None:
        """Closes the connection after the responses that were written."""
        if self._transport is not None:
            self._transport.close()

    def _close_idle(self) -> None:
        """Closes the connection if no request is complete for IDLE_S."""
        remaining = self._began + IDLE_S - self._loop.time()
        if self._task is None and remaining <= 0:
            self.close()
        else:
            self._impatience = self._loop.call_later(max(remaining, 1.0), self._close_idle)

    # --- httptools

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._header_bytes = 0
        self._body = bytearray()

    def on_message_begin(self) -> None:
        self._reset()
        self._steps, self._in_head = self._steps + 1, True

    def _count(self, size: int) -> None:
        """Counts bytes of a head. Raises _Refused above a limit."""
        self._header_bytes += size
        if self._header_bytes > HEADER_BYTES_MAX or len(self._headers) >= HEADERS_MAX:
            raise _Refused(431, f"header fields may have at most {HEADER_BYTES_MAX} bytes, and there may be {HEADERS_MAX}")

    def on_url(self, url: bytes) -> None:
        self._steps += 1
        self._url += url
        if len(self._url) > TARGET_BYTES_MAX:
            raise _Refused(414, f"a path and query string may have at most {TARGET_BYTES_MAX} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._steps += 1
        name = name.lower()
        self._count(len(name) + len(value))
        if not self._in_head:
            return  # a trailer, which no endpoint reads
        if name in (b"content-length", b"authorization", b"host") and name in self._headers:
            raise _Refused(400, f"more than one header field {name.decode()}")
        if name == b"transfer-encoding" and value.lower() != b"chunked":
            raise _Refused(501, "transfer encodings other than chunked are not supported")
        self._headers[name] = self._headers[name] + b", " + value if name in self._headers else value

    def on_headers_complete(self) -> None:
        self._steps, self._in_head = self._steps + 1, False
        size, self._chunked = int(self._headers.get(b"content-length", b"0")), b"transfer-encoding" in self._headers
        if not size and not self._chunked:
            return
        if self._parser.get_method() in (b"GET", b"HEAD", b"OPTIONS"):
            raise _Refused(413, "requests of this method with a body are not supported")
        self._take(size, size)
        if self._headers.get(b"expect", b"").lower() == b"100-continue" and self._task is None and not self._queue:
            self._write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _take(self, size: int, more: int) -> None:
        """Charges `more` bytes of a body with `size` bytes. Raises _Refused above a limit."""
        if size > BODY_BYTES_MAX:
            raise _Refused(413, f"a body may have at most {BODY_BYTES_MAX} bytes")
        try:
            self._bodies.add(more)
        except OutOfMemory:
            raise _Refused(503, "too many bodies of requests wait") from None

    def on_body(self, data: bytes) -> None:
        self._steps += 1
        if self._chunked:
            self._take(len(self._body) + len(data), len(data))
        self._body += data

    def on_message_complete(self) -> None:
        self._steps += 1
        method = self._parser.get_method().decode("latin-1")
        path, _, query = self._url.decode("latin-1").partition("?")
        keep_alive = self._parser.should_keep_alive()
        self._queue.append(Request(method, path, query, self._headers, keep_alive, bytes(self._body)))

    # --- answering

    def _refuse(self, status: int, error: TailgateError) -> None:
        """Answers a request that is not valid, after those before it, and closes the connection."""
        self._refused = True
        self._queue.append(error_response(status, error))

    def _pump(self) -> None:
        if self._queue and self._task is None and self._transport is not None:
            self._task = self._loop.create_task(self._run())
        if not self._paused and len(self._queue) >= REQUESTS_MAX and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    async def _run(self) -> None:
        """Answers the requests of the queue in order."""
        try:
            while self._queue and self._transport is not None:
                request = self._queue.popleft()
                if isinstance(request, Response):
                    self._write(encoded(request, head=False, keep_alive=False))
                    self.close()
                    return
                response = await self._answer(request, self._peer)
                self._bodies.add(-len(request.body))
                if response.stream is not None:
                    await self._send(response, response.stream)
                    return
                self._write(encoded(response, head=request.method == "HEAD", keep_alive=request.keep_alive))
                self._began = self._loop.time()
                if not request.keep_alive:
                    self.close()
                    return
                await self._writable.wait()
                if self._queue:
                    await asyncio.sleep(0)  # other connections have a turn
                if self._paused and len(self._queue) < REQUESTS_MAX // 2 and self._transport is not None:
                    self._paused = False
                    self._transport.resume_reading()
            if self._ended:
                self.close()
        finally:
            self._task = None

    async def _send(self, response: Response, stream: AsyncGenerator[bytes, None]) -> None:
        """Sends a stream until it ends, and closes the connection. A reader that is slower than SLOW_READER_S is disconnected."""
        self._streaming = True
        async with contextlib.aclosing(stream):
            self._write(encoded(response, head=False, keep_alive=False))
            async for part in stream:
                if self._transport is None:
                    return
                self._write(part)
                if not self._writable.is_set():
                    slow = self._loop.call_later(SLOW_READER_S, self._transport.abort)
                    await self._writable.wait()
                    slow.cancel()
        self.close()

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)


_ERRORS = {
    413: ProgramLimitExceeded, 414: ProgramLimitExceeded, 431: ProgramLimitExceeded, 501: FeatureNotSupported, 503: OutOfMemory,
}  # fmt: skip


class _Refused(Exception):
    """A request that is above a limit, or that is not supported."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.error = _ERRORS.get(status, ProtocolViolation)(message)
