"""A server of an application, over sockets that listen already: uvicorn for HTTP/1.1, Hypercorn for HTTP/2 (ADR 0016).

connection ──► TLS with ALPN h2, or HTTP/2's preface as the first bytes ──► `http2`
               everything else                                          ──► `http1`
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, cast

from starlette.types import ASGIApp, Receive, Scope, Send

from tailgate.gateway.asgi import limits
from tailgate.gateway.asgi.http1 import Http1
from tailgate.gateway.asgi.http2 import PREFACE, Http2
from tailgate.gateway.security.tls import Tls
from tailgate.gateway.server.handshake import TlsListener

ALPN = ("h2", "http/1.1")
log = logging.getLogger("tailgate.http")


class AsgiServer:
    """A server of `app`. `before_stop` ends the streams, for which it would wait. `websockets`: as of Http1."""

    def __init__(
        self, app: ASGIApp, tls: Tls | None, before_stop: Callable[[], Awaitable[None]], websockets: Collection[bytes] = ()
    ) -> None:
        logged = _logged(app)
        self._http1, self._http2 = Http1(logged, websockets), Http2(logged)
        self._new: set[_NewConnection] = set()
        self._tls, self._before_stop = tls, before_stop
        self._listeners: list[TlsListener] = []
        self._servers: list[asyncio.Server] = []

    async def start(self, sockets: Iterable[socket.socket]) -> None:
        """Serves the clients of listening sockets, which belong to the server from now on."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_connection_failed)
        tls = self._tls
        for listening in sockets:
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # ends a connection whose client does not read
                listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(limits.SLOW_S * 1000))
            if tls is None:
                self._servers.append(await loop.create_server(lambda: self._connection(refused=self._is_full()), sock=listening))
            else:
                self._listeners.append(TlsListener(listening, lambda: _context(tls), self._connection, self._is_full))

    def _connection(self, *, refused: bool = False) -> asyncio.Protocol:
        return _NewConnection(self._http1, self._http2, self._new, refused=refused)

    @property
    def _open(self) -> int:
        return len(self._new) + self._http1.count + self._http2.count

    def _is_full(self) -> bool:
        """Returns whether there are as many connections as there may be, with those in their TLS handshake."""
        return self._open + sum(each.count for each in self._listeners) >= limits.CONNECTIONS_MAX

    async def stop(self) -> None:
        """Ends all streams, and closes connections when their responses are sent, after STOP_S at the latest."""
        for server in self._servers:
            server.close()
        for listener in self._listeners:
            listener.close()
        await self._before_stop()
        for connection in list(self._new):
            connection.close()
        self._http1.stop()
        await self._http2.stop()
        end = asyncio.get_running_loop().time() + limits.STOP_S
        while self._open and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(limits.STOP_POLL_S)
        self._http1.abort()
        self._http2.abort()


class _NewConnection(asyncio.Protocol):
    """A connection whose protocol is not known. One that sends nothing for IDLE_S is closed."""

    def __init__(self, http1: Http1, http2: Http2, all: set[_NewConnection], *, refused: bool) -> None:
        self._http1, self._http2, self._all, self._refused = http1, http2, all, refused
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._refused:
            log.warning("more than %d connections", limits.CONNECTIONS_MAX)
            self._transport.abort()
            return
        self._all.add(self)
        self._impatience = asyncio.get_running_loop().call_later(limits.IDLE_S, self._transport.close)
        encrypted = transport.get_extra_info("ssl_object")
        if encrypted is not None and encrypted.selected_alpn_protocol() == "h2":
            self._become(self._http2.protocol())

    def data_received(self, data: bytes) -> None:
        self._data += data
        if self._data.startswith(PREFACE):
            self._become(self._http2.protocol())
        elif not PREFACE.startswith(self._data):
            self._become(self._http1.protocol())

    def connection_lost(self, error: Exception | None) -> None:
        if self in self._all:
            self._leave()

    def close(self) -> None:
        """Closes the connection."""
        self._transport.close()

    def _leave(self) -> None:
        self._impatience.cancel()
        self._all.discard(self)

    def _become(self, protocol: asyncio.Protocol) -> None:
        """Passes the connection, with its first bytes, to a protocol."""
        self._leave()
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        if self._data:
            protocol.data_received(self._data)


def _context(tls: Tls) -> ssl.SSLContext:
    """Returns the context of a new connection."""
    context = tls.current().context
    context.set_alpn_protocols(list(ALPN))
    return context


def _logged(app: ASGIApp) -> ASGIApp:
    """Returns an application that logs its errors, which servers answer with status 500."""

    async def logged(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except Exception:
            log.exception("%s", scope.get("path"))

    return logged


def _connection_failed(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Logs an exception of a connection, which no server handles. A connection that ends is not an error."""
    if isinstance(context.get("exception"), OSError):
        log.info("connection ended: %s", context["exception"])
    else:
        loop.default_exception_handler(context)
