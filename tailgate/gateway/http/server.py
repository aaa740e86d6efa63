"""The HTTP server of a gateway process. With `--tls-cert` it serves HTTPS only."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from tailgate.gateway.http import connection as limits
from tailgate.gateway.http.connection import HttpConnection
from tailgate.gateway.http.service import HttpService
from tailgate.gateway.resources.budgets import Budget
from tailgate.gateway.server import listening
from tailgate.gateway.server.addresses import is_loopback
from tailgate.gateway.server.handshake import TlsListener
from tailgate.gateway.server.server import check_address
from tailgate.gateway.session.gateway import Gateway
from tailgate.lake.host.process_tls import split

BACKLOG = 1024
STOP_S = 2.0  # limits the wait for responses in progress
STOP_POLL_S = 0.02
BODIES_BYTES_MAX = 64 << 20  # of all requests of a gateway that wait or are answered


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """The address of the HTTP service and its rules.

    `origins`: the CORS list. `rate`: requests per second of a role, `streams`: streams of events of a role; None for the default. `logs`:
    logs each request.
    """

    host: str
    port: int
    origins: frozenset[str] = frozenset()
    rate: float | None = None
    streams: int | None = None
    logs: bool = False

    @classmethod
    def at(cls, address: str, origins: Iterable[str], rate: float | None, streams: int | None, *, logs: bool) -> HttpOptions:
        """Returns the options for an address HOST:PORT."""
        return cls(*split(address), frozenset(origins), rate, streams, logs)


class HttpServer:
    """The HTTP server of a gateway."""

    name = "serving"

    def __init__(self, gateway: Gateway, options: HttpOptions) -> None:
        self._gateway, self._options = gateway, options
        self._sockets: list[socket.socket] = []
        self._service = HttpService(gateway, options.origins, options.rate, options.streams, logs=options.logs)
        if gateway.settings is not None:
            self._service.follow(gateway.settings)
        self._bodies = Budget("HTTP requests", BODIES_BYTES_MAX, gateway.budget)
        self._expiry: asyncio.Task[None] | None = None
        self._connections: set[HttpConnection] = set()
        self._listeners: list[TlsListener] = []
        self._servers: list[asyncio.Server] = []

    async def listen(self) -> list[tuple[str, int]]:
        """Opens the sockets and returns their addresses. Raises 55006 if the port is in use, 0A000 for an address that is not safe."""
        gateway, host = self._gateway, self._options.host
        if not gateway.insecure and not is_loopback(host):
            check_address(host, gateway.tls is not None, gateway.lake.catalog())
        self._sockets = await listening.sockets(gateway.lake, host, self._options.port, BACKLOG)
        return [s.getsockname()[:2] for s in self._sockets]

    async def start(self) -> None:
        """Begins to accept connections."""
        loop = asyncio.get_running_loop()
        tls = self._gateway.tls
        for each in self._sockets:
            if tls is None:
                self._servers.append(await loop.create_server(self._connection, sock=each, backlog=BACKLOG))
            else:
                self._listeners.append(TlsListener(each, lambda: tls.current().context, self._connection, self._is_full))
        self._expiry = loop.create_task(self._service.writer.expire())

    def _connection(self) -> HttpConnection:
        gateway = self._gateway
        tls = gateway.tls is not None
        return HttpConnection(self._service.answer, self._connections, self._bodies, insecure=gateway.insecure, tls=tls)

    def _is_full(self) -> bool:
        """Returns whether there are as many connections as there may be, with those in their TLS handshake."""
        return len(self._connections) + sum(each.count for each in self._listeners) >= limits.CONNECTIONS_MAX

    async def stop(self) -> None:
        """Stops listening, and closes connections when their responses are written, after STOP_S at the latest."""
        if self._expiry is not None:
            self._expiry.cancel()
        for server in self._servers:
            server.close()
        for listener in self._listeners:
            listener.close()
        for connection in list(self._connections):
            connection.close()
        waited = 0.0
        while self._connections and waited < STOP_S:
            await asyncio.sleep(STOP_POLL_S)
            waited += STOP_POLL_S
