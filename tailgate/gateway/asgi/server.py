"""A server: Hypercorn with an application, over sockets that listen already."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config
from hypercorn.typing import Framework
from starlette.types import ASGIApp

from tailgate.gateway.asgi import limits
from tailgate.gateway.security.tls import Tls

ALPN = ("h2", "http/1.1")
log = logging.getLogger("tailgate.http")


class HypercornConfig(Config):
    """Hypercorn's configuration with our limits, and TLS from the gateway's files, which may be replaced."""

    def __init__(self, tls: Tls | None) -> None:
        super().__init__()
        self._tls = tls
        self.accesslog = None
        self.errorlog = "-"
        self.loglevel = "WARNING"
        self.include_server_header = False
        self.keep_alive_timeout = limits.IDLE_S
        self.h11_max_incomplete_size = limits.HEADER_BYTES_MAX
        self.h2_max_header_list_size = limits.HEADER_BYTES_MAX
        self.h2_max_concurrent_streams = limits.HTTP2_STREAMS_MAX
        self.keep_alive_max_requests = 2**31
        self.graceful_timeout = limits.STOP_S
        self.shutdown_timeout = limits.STOP_S

    @property
    def ssl_enabled(self) -> bool:
        return self._tls is not None

    def create_ssl_context(self) -> ssl.SSLContext | None:
        """Returns a context that takes the current certificate for each connection."""
        if self._tls is None:
            return None
        tls, context = self._tls, self._tls.current().context
        context.set_alpn_protocols(list(ALPN))

        def current(connection: ssl.SSLObject, name: str | None, of: ssl.SSLContext) -> None:
            latest = tls.current().context
            latest.set_alpn_protocols(list(ALPN))
            connection.context = latest

        context.sni_callback = current
        return context


class AsgiServer:
    """A server of `app`. `before_stop` ends the streams, for which Hypercorn would wait."""

    def __init__(self, app: ASGIApp, tls: Tls | None, before_stop: Callable[[], Awaitable[None]]) -> None:
        self._app, self._tls, self._before_stop = app, tls, before_stop
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self, sockets: Iterable[socket.socket]) -> None:
        """Serves in a task the clients of listening sockets, which belong to the server from now on."""
        config = HypercornConfig(self._tls)
        names = []
        for listening in sockets:
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # ends a connection whose client does not read, which Hypercorn would wait for
                listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(limits.SLOW_S * 1000))
            names.append(f"fd://{listening.detach()}")
        config.bind = names
        asyncio.get_running_loop().set_exception_handler(_connection_failed)
        app: Framework = self._app  # type: ignore[assignment]  # both are ASGI 3
        self._task = asyncio.ensure_future(serve(app, config, shutdown_trigger=self._stopped, mode="asgi"))
        await asyncio.sleep(0)

    async def _stopped(self) -> None:
        await self._stopping.wait()
        await self._before_stop()

    async def stop(self) -> None:
        """Ends all streams and stops serving."""
        self._stopping.set()
        if self._task is not None:
            await self._task

    async def wait(self) -> None:
        """Waits until the server ends, which only an error causes."""
        assert self._task is not None
        await asyncio.shield(self._task)


def _connection_failed(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Logs an exception of a connection, which Hypercorn does not handle. A connection that ends is not an error."""
    if isinstance(context.get("exception"), OSError):
        log.info("connection ended: %s", context["exception"])
    else:
        loop.default_exception_handler(context)
