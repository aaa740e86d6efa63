"""The console of a gateway process: a server in the gateway's event loop, whose sessions use a Unix socket of the gateway.

A page sends a few statements per second, and each is a statement of a client: it has the limits of its role.
"""

from __future__ import annotations

import contextlib
import socket

from tailgate.gateway.asgi.access import Access
from tailgate.gateway.asgi.server import AsgiServer
from tailgate.gateway.asgi.sessions import Gateway as Address
from tailgate.gateway.asgi.sessions import Sessions
from tailgate.gateway.console.app import Console
from tailgate.gateway.console.statements import APPLICATION
from tailgate.gateway.server import listening
from tailgate.gateway.server.addresses import is_loopback
from tailgate.gateway.server.server import Server, check_address
from tailgate.gateway.session.gateway import Gateway

BACKLOG = 100  # connections that wait in the kernel


class ConsoleServer:
    """The console of a gateway at an address. `server`: the gateway's PostgreSQL server."""

    name = "console"

    def __init__(self, gateway: Gateway, server: Server, host: str, port: int) -> None:
        self._gateway, self._server, self._host, self._port = gateway, server, host, port
        self._sockets: list[socket.socket] = []
        self._web: AsgiServer | None = None
        self._sessions: Sessions | None = None

    async def listen(self) -> list[tuple[str, int]]:
        """Opens the sockets and returns their addresses. Raises as `http.server.HttpServer.listen`."""
        gateway = self._gateway
        if not gateway.insecure and not is_loopback(self._host):
            check_address(self._host, gateway.tls is not None, gateway.lake.catalog())
        self._sockets = await listening.sockets(gateway.lake, self._host, self._port, BACKLOG)
        return [s.getsockname()[:2] for s in self._sockets]

    async def start(self) -> None:
        """Begins to serve."""
        self._sessions = Sessions(Address(*await self._server.listen_locally()), APPLICATION)
        console = Console(self._sessions, Access(self._gateway.insecure))
        self._web = AsgiServer(console.app(), self._gateway.tls, console.close)
        await self._web.start(self._sockets)

    async def stop(self) -> None:
        """Ends all streams and stops serving."""
        if self._web is not None:
            await self._web.stop()
        if self._sessions is not None:
            await self._sessions.close()
        with contextlib.suppress(OSError):
            listening.close(self._sockets)
