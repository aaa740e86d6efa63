"""The process of the HTTP API: Hypercorn with the application, until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import ssl
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config
from hypercorn.typing import Framework

from tailgate.gateway.ksqldb.server.access import Access
from tailgate.gateway.ksqldb.server.app import Api
from tailgate.gateway.ksqldb.server.http import limits
from tailgate.gateway.ksqldb.server.options import Options
from tailgate.gateway.ksqldb.server.sessions import Sessions
from tailgate.gateway.security.tls import Files, Tls

ALPN = ("h2", "http/1.1")
log = logging.getLogger("tailgate.ksqldb")


class HypercornConfig(Config):
    """Hypercorn's configuration with our limits, and TLS from the gateway's files, which may be replaced."""

    def __init__(self, files: Files | None) -> None:
        super().__init__()
        self._tls = Tls(files) if files is not None else None
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


class HttpServer:
    """The server. `start` returns when it listens."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._sessions = Sessions(options.gateway)
        self._api = Api(self._sessions, Access(options.insecure))
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.port = options.port

    async def start(self) -> None:
        """Listens and serves in a task. Raises OSError if the address is in use."""
        config, options = HypercornConfig(self._options.tls), self._options
        family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
        listening = socket.create_server((options.host, options.port), family=family, backlog=config.backlog)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # ends a connection whose client does not read, which Hypercorn would wait for
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(limits.SLOW_S * 1000))
        self.port = listening.getsockname()[1]
        config.bind = [f"fd://{listening.detach()}"]
        asyncio.get_running_loop().set_exception_handler(_connection_failed)
        app: Framework = self._api.app()  # type: ignore[assignment]  # both are ASGI 3
        self._task = asyncio.ensure_future(serve(app, config, shutdown_trigger=self._stopped, mode="asgi"))
        await asyncio.sleep(0)

    async def _stopped(self) -> None:
        await self._stopping.wait()
        await self._api.queries.close_all()

    async def stop(self) -> None:
        """Ends all streams and closes the sessions."""
        self._stopping.set()
        if self._task is not None:
            await self._task
        await self._sessions.close()

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


def run(options: Options) -> int:
    """Serves until SIGTERM or SIGINT. Returns the exit code."""
    runner: Any = asyncio
    with contextlib.suppress(ImportError):
        import uvloop

        runner = uvloop
    runner.run(_serve(options))
    return 0


async def _serve(options: Options) -> None:
    server = HttpServer(options)
    await server.start()
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    scheme = "https" if options.tls is not None else "http"
    host = f"[{options.host}]" if ":" in options.host else options.host
    print(f"ready ksqldb={scheme}://{host}:{server.port}", flush=True)
    waits = [asyncio.ensure_future(stop.wait()), asyncio.ensure_future(server.wait())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    await server.stop()
