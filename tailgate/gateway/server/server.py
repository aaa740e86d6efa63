"""The listening sockets of a gateway process and the connections that they accept. Several gateways of a lake may share a port.

listen (on loopback by default) ──► Connection ──► Session
stop ──► 57P01 to all clients, connections closed
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence

from tailgate.gateway.execute.monitoring.alert_queries import AlertQueries
from tailgate.gateway.execute.monitoring.sink_queries import SinkQueries
from tailgate.gateway.server import listening
from tailgate.gateway.server.addresses import is_loopback
from tailgate.gateway.server.connection import Connection, Connections
from tailgate.gateway.session.gateway import Gateway
from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import FeatureNotSupported

BACKLOG = 1024  # connections waiting in the kernel: a burst of 300 must not be refused
SOCKET_NUMBER = 5432  # in the name of the Unix socket, as of PostgreSQL's port
STOP_S = 2.0  # limits the wait for clients to receive the last message
STOP_POLL_S = 0.02


class Server:
    """The PostgreSQL server of a gateway process, with one event loop."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        gateway.peers.queries |= {"alert": AlertQueries(gateway).answer, "sink": SinkQueries(gateway).answer}
        self.connections = Connections()
        self._servers: list[asyncio.Server] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    async def listen(self, host: str, port: int, others: Sequence[tuple[str, int]] = ()) -> list[tuple[str, int]]:
        """Starts to listen. Returns the addresses, with the chosen port if `port` is 0. Raises 55006 if the port is in use.

        `others`: further addresses of this gateway, which gateways of the lake may share.
        """
        gateway = self._gateway
        if not gateway.insecure and not is_loopback(host):
            check_address(host, gateway.tls is not None, gateway.lake.catalog())
        loop = asyncio.get_running_loop()
        sockets = await listening.sockets(gateway.lake, host, port, BACKLOG)
        addresses = [s.getsockname()[:2] for s in sockets]
        await gateway.peers.start([*addresses, *others])
        self._servers = [await loop.create_server(self._connection, sock=s, backlog=BACKLOG) for s in sockets]
        return addresses

    def _connection(self) -> Connection:
        return Connection(self._gateway, self.connections)

    async def listen_locally(self) -> tuple[str, int]:
        """Starts to listen on a Unix socket for this process's own clients. Returns its folder and the number in its name."""
        self._folder = tempfile.TemporaryDirectory(prefix="tailgate-")  # for the owner of this process only
        path = f"{self._folder.name}/.s.PGSQL.{SOCKET_NUMBER}"
        self._servers.append(await asyncio.get_running_loop().create_unix_server(self._connection, path, backlog=BACKLOG))
        return self._folder.name, SOCKET_NUMBER

    async def stop(self) -> None:
        """Stops listening, sends 57P01 to all clients and closes their connections."""
        gateway = self._gateway
        gateway.sessions.closed = True
        gateway.peers.stop()
        for server in self._servers:
            server.close()
        for connection in list(self.connections):
            connection.session.fatal("57P01", "terminating connection due to administrator command")
        waited = 0.0
        while self.connections and waited < STOP_S:
            await asyncio.sleep(STOP_POLL_S)
            waited += STOP_POLL_S
        for connection in list(self.connections):
            connection.abort()
        await gateway.background.stop(STOP_S)
        if self._folder is not None:
            self._folder.cleanup()
        gateway.control.close()


def check_address(host: str, tls: bool, catalog: Catalog) -> None:
    """Raises 0A000 for an address that other machines can reach, unless there are TLS and roles with a password."""
    where = f"listening on {host or 'all addresses'}"
    if not tls:
        raise FeatureNotSupported(f"{where} without TLS is refused", hint="Give --tls-cert and --tls-key, or use --insecure.")
    if not any(role.login and role.verifier for role in catalog.roles.values()):
        raise FeatureNotSupported(
            f"{where} without roles is refused",
            hint="Listen on 127.0.0.1 first, and CREATE ROLE … LOGIN PASSWORD …; or use --insecure.",
        )
