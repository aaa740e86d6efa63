"""HTTP/2, by ALPN or by prior knowledge: Hypercorn's protocol."""

from __future__ import annotations

import asyncio

from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.h11 import H11Protocol
from starlette.types import ASGIApp

from tailgate.gateway.asgi import limits

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # what a client sends first (RFC 9113, section 3.4)


class Http2:
    """The HTTP/2 connections of a server."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = ASGIWrapper(app)  # type: ignore[arg-type]  # both are ASGI 3
        self._config, self._context = _config(), WorkerContext(None)
        self._tasks: set[asyncio.Task[None]] = set()

    def protocol(self) -> asyncio.Protocol:
        """Returns the protocol of a new connection."""
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(), self._serve)

    @property
    def count(self) -> int:
        """Returns the number of open connections."""
        return len(self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await _Connection(self._app, asyncio.get_running_loop(), self._config, self._context, {}, reader, writer)
        finally:
            self._tasks.discard(task)

    async def stop(self) -> None:
        """Closes the connections that are idle. Others are closed when they are."""
        await self._context.terminated.set()

    def abort(self) -> None:
        """Ends the connections."""
        for task in list(self._tasks):
            task.cancel()


class _Connection(TCPServer):
    """A connection of Hypercorn that is HTTP/2 from its first byte.

    Otherwise an unencrypted connection would be one of HTTP/1.1 up to the preface, and its idle time would not be limited.
    """

    async def _read_data(self) -> None:
        p = self.protocol
        if isinstance(p.protocol, H11Protocol):
            self.protocol = ProtocolWrapper(p.app, p.config, p.context, p.task_group, p.state, p.ssl, p.client, p.server, p.send, "h2")
            await self.protocol.initiate()
        await super()._read_data()


def _config() -> Config:
    """Returns Hypercorn's configuration with our limits."""
    config = Config()
    config.accesslog = None
    config.errorlog = "-"
    config.loglevel = "WARNING"
    config.include_server_header = False
    config.keep_alive_timeout = limits.IDLE_S
    config.h2_max_header_list_size = limits.HEADER_BYTES_MAX
    config.h2_max_concurrent_streams = limits.HTTP2_STREAMS_MAX
    config.websocket_max_message_size = limits.BODY_BYTES_MAX
    config.keep_alive_max_requests = 2**31
    return config
