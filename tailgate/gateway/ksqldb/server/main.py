"""The process of the HTTP API: a server with the application, until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
from typing import Any

from tailgate.gateway.asgi.access import Access
from tailgate.gateway.asgi.server import AsgiServer
from tailgate.gateway.asgi.sessions import Gateway, Sessions
from tailgate.gateway.ksqldb.server.app import WEB_SOCKET, Api
from tailgate.gateway.ksqldb.server.options import Options
from tailgate.gateway.ksqldb.server.values import APPLICATION
from tailgate.gateway.security.tls import Tls
from tailgate.gateway.server.addresses import resolved
from tailgate.lake.host.process_tls import joined

BACKLOG = 100  # connections that wait in the kernel


class HttpServer:
    """The server."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._sessions = Sessions(Gateway.at(options.gateway), APPLICATION)
        self._api = Api(self._sessions, Access(options.insecure))
        tls = Tls(options.tls) if options.tls is not None else None
        self._server = AsgiServer(self._api.app(), tls, self._api.queries.close_all, (WEB_SOCKET.encode(),))
        self.port = options.port

    async def start(self) -> None:
        """Listens and serves. Raises OSError if the address is in use, and 58000 if there is no such host."""
        addresses = await resolved(self._options.host, self._options.port)
        family, address = min(addresses, key=lambda each: each[0] != socket.AF_INET)  # localhost is 127.0.0.1
        listening = socket.create_server(address, family=family, backlog=BACKLOG)
        self.port = listening.getsockname()[1]
        await self._server.start([listening])

    async def stop(self) -> None:
        """Ends all streams and closes the sessions."""
        await self._server.stop()
        await self._sessions.close()


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
    gc.freeze()  # long-lived objects: the garbage collector skips them
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    scheme = "https" if options.tls is not None else "http"
    print(f"ready ksqldb={scheme}://{joined(options.host, server.port)}", flush=True)
    await stop.wait()
    await server.stop()
