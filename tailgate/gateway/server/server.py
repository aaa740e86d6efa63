"""A gateway process: its listening sockets, its sessions, and the caches that they share.

A gateway has one event loop. Several gateways of a lake may share a port.

listen (on loopback by default) ──► Connection ──► Session
CancelRequest(process, secret) ──► the session with this key
stop ──► 57P01 to all clients, connections closed

"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import os
import secrets
from collections.abc import Coroutine, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from tailgate.gateway.answers.lookups import Lookups
from tailgate.gateway.answers.polls import Polls
from tailgate.gateway.control import Control
from tailgate.gateway.resources.budgets import Budget, Cache
from tailgate.gateway.server import listening
from tailgate.gateway.server.connection import Connection
from tailgate.gateway.serving.prepared import Seen
from tailgate.gateway.session.peers import Peers
from tailgate.gateway.session.portals import Bound
from tailgate.gateway.session.statement_cache import Texts
from tailgate.lake import peers
from tailgate.lake.errors import FeatureNotSupported, TooManyConnections
from tailgate.lake.internal_errors import InternalErrors
from tailgate.sql.lexer.literal_masking import masked

if TYPE_CHECKING:
    from tailgate.gateway.security.tls import Tls
    from tailgate.gateway.serving.service import Serving
    from tailgate.gateway.session.session import Session
    from tailgate.lake import Lake
    from tailgate.lake.catalog import Catalog

log = logging.getLogger("tailgate.gateway")

BACKLOG = 1024  # connections waiting in the kernel: a burst of 300 must not be refused
SESSIONS_MAX = 10_000  # an idle one costs about 30 KB
PATHS_MAX = 1_000  # cached catalogs, one per search path
BOUND_BYTES = 32 << 20  # of cached bound statements
STOP_S = 2.0  # limits the wait for clients to receive the last message


class Gateway:
    """The state that all sessions of a process share."""

    def __init__(self, lake: Lake, serving: Serving, tls: Tls | None = None, *, insecure: bool = False) -> None:
        """`insecure`: clients on other machines are trusted like local ones."""
        self.lake = lake
        self.serving = serving
        self.tls = tls
        self.insecure = insecure
        self.control = Control(lake)
        self.internal_errors = InternalErrors(masked)
        self.polls = Polls(serving)
        self.peers = Peers(self)
        self.secret = peers.secret(lake)
        self.lookups = Lookups(serving, self.aside)
        self.memory = serving.memory
        self.budget = serving.budget
        self.texts = Texts(serving.workers, self.budget)
        self.connections: set[Connection] = set()
        self.strangers: dict[Connection, None] = {}  # unauthenticated connections, oldest first
        self.sessions: dict[int, Session] = {}
        self.bound: Cache[tuple[bytes, tuple[int, ...], Hashable], Bound] = Cache(self.budget, BOUND_BYTES)
        self._role_budgets: dict[int, Budget] = {}
        self._seen: dict[tuple[str, ...], Seen] = {}  # by path
        self._aside: set[asyncio.Task[Any]] = set()
        self._servers: list[asyncio.Server] = []
        self._stopping = False

    async def listen(self, host: str, port: int) -> list[tuple[str, int]]:
        """Starts to listen. Returns the addresses, with the chosen port if `port` is 0. Raises 55006 if the port is in use."""
        if not self.insecure and not is_loopback(host):
            check_address(host, self.tls is not None, self.lake.catalog())
        loop = asyncio.get_running_loop()
        sockets = await listening.sockets(self.lake, host, port, BACKLOG)
        addresses = [s.getsockname()[:2] for s in sockets]
        await self.peers.start(addresses)
        self._servers = [await loop.create_server(lambda: Connection(self), sock=s, backlog=BACKLOG) for s in sockets]
        return addresses

    async def stop(self) -> None:
        """Stops listening, sends 57P01 to all clients and closes their connections."""
        self._stopping = True
        self.peers.stop()
        for server in self._servers:
            server.close()
        for connection in list(self.connections):
            connection.session.fatal("57P01", "terminating connection due to administrator command")
        waited = 0.0
        while self.connections and waited < STOP_S:
            await asyncio.sleep(0.02)
            waited += 0.02
        for connection in list(self.connections):
            connection.abort()
        for task in self._aside:
            task.cancel()
        if self._aside:
            await asyncio.wait(self._aside, timeout=STOP_S)

    # --- sessions

    def admit(self, session: Session) -> None:
        """Registers a session with a process id and a secret. Raises 53300 if there are too many."""
        if self._stopping or len(self.sessions) >= SESSIONS_MAX:
            raise TooManyConnections("sorry, too many clients already")
        # The high half of the process id identifies the gateway among those that share a port.
        while not session.process or session.process in self.sessions:
            session.process = (os.getpid() & 0x7FFF) << 16 | secrets.randbelow(1 << 16)
        session.secret = secrets.token_bytes(session.secret_bytes)
        self.sessions[session.process] = session

    def forget(self, session: Session) -> None:
        self.sessions.pop(session.process, None)

    def cancel(self, process: int, secret: bytes, *, here: bool = False) -> None:
        """Handles a cancel request. Forwards it to the other gateways on the port if no session here has the id, unless `here`."""
        session = self.sessions.get(process)
        if session is None and not here:
            self.peers.cancel(process, secret)
        elif session is not None and hmac.compare_digest(session.secret, secret):
            session.interrupt("canceling statement due to user request")

    def aside(self, work: Coroutine[Any, Any, Any]) -> None:
        """Runs a coroutine in the background."""
        task = asyncio.ensure_future(work)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    def seen(self, base: Catalog, n: int, path: tuple[str, ...]) -> Seen:
        """Returns the catalog as seen along a search path: one object for all sessions with this path."""
        known = self._seen.get(path)
        if known is None or known.catalog.items is not base.items or known.catalog_n != n:
            if len(self._seen) >= PATHS_MAX:
                self._seen.clear()
            catalog = base.along(path)
            known = self._seen[path] = Seen(catalog, n, None if catalog is base else path)
        return known

    def remember(self, text: bytes, oids: Sequence[int], scope: Hashable, bound: Bound) -> None:
        """Caches a bound statement by its text, parameter types and scope."""
        self.bound.put((text, tuple(oids), scope), bound, len(text) + bound.size)

    def budget_of(self, role: int, superuser: bool) -> Budget:
        """Returns the budget of all sessions of a role. Superusers share the budget of the gateway."""
        if superuser:
            return self.budget
        return self._role_budgets.setdefault(role, Budget("the role", self.memory.role, self.budget))


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_address(host: str, tls: bool, catalog: Catalog) -> None:
    """Raises 0A000 for an address that other machines can reach, unless there are TLS and roles with a password."""
    where = f"listening on {host or 'all addresses'}"
    if not tls:
        raise FeatureNotSupported(f"{where} without TLS is refused", hint="Give --tls-cert and --tls-key, or say --insecure.")
    if not any(role.login and role.verifier for role in catalog.roles.values()):
        raise FeatureNotSupported(
            f"{where} without roles is refused",
            hint="Listen on 127.0.0.1 first, and CREATE ROLE … LOGIN PASSWORD …; or say --insecure.",
        )
