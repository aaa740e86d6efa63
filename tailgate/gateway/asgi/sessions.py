"""Sessions of the gateway: PostgreSQL connections on behalf of a user, kept for later requests of the same user.

    Authorization: Basic …   ──► the role's password, by SCRAM-SHA-256
    no Authorization         ──► the role `tailgate` without a password, if `access` allows it

The gateway sees connections from this machine. Without a password it admits only roles that have none, as it admits local clients.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
import os
import re
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import AsyncConnection

from tailgate.gateway.asgi import limits, refusals
from tailgate.gateway.asgi.refusals import Refused
from tailgate.lake.catalog.roles import OPERATOR
from tailgate.lake.keywords import quoted_text

NO_FILE = os.path.join(os.devnull, "none")  # cannot exist; libpq warns of a password file that is a device
# libpq takes missing parameters from the environment and files of this process's owner. They are not the user's.
NO_CREDENTIALS: dict[str, Any] = {"gssencmode": "disable", "passfile": NO_FILE, "sslmode": "disable"}
# psycopg warns when a client leaves while it cancels the client's query, which is usual here
logging.getLogger("psycopg").setLevel(logging.ERROR)
# Statuses and messages by parts of the gateway's errors: libpq gives no SQLSTATE for errors of a new connection.
REFUSALS = {
    **dict.fromkeys(
        (
            "password authentication failed", "no password supplied", "authentication method requirement", "no entry for host",
            "is not permitted to log in",
        ),
        (refusals.UNAUTHORIZED, "Unauthorized"),
    ),
    "permission denied for database": (refusals.FORBIDDEN, "The role has no CONNECT privilege on the database"),
    "too many connections for role": (refusals.TOO_MANY, "The role has as many sessions as its CONNECTION LIMIT allows"),
}  # fmt: skip
BASIC = re.compile(r"basic\s+(\S+)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Gateway:
    """The address of a gateway: a host and a port, or the folder of a Unix socket and the number in its name."""

    host: str
    port: int

    @staticmethod
    def at(address: str) -> Gateway:
        """Returns the gateway at HOST:PORT."""
        host, _, port = address.rpartition(":")
        return Gateway(host, int(port))


@dataclass(frozen=True, slots=True)
class Application:
    """The properties of all sessions of a server: their name, their settings (`-c name=value`), and how values are loaded."""

    name: str
    settings: str
    register: Callable[[AsyncConnection[Any]], None]


@dataclass(frozen=True, slots=True)
class Caller:
    """The user of a request. `password` None: one without a password."""

    user: str = OPERATOR.name
    password: str | None = None

    @property
    def key(self) -> bytes:
        """Returns a key of the credentials."""
        return hashlib.sha256(repr((self.user, self.password)).encode()).digest()


def caller(header: str | None) -> Caller:
    """Returns the user of an Authorization header, or the one without a password. Raises 401."""
    if header is None:
        return Caller()
    match = BASIC.fullmatch(header)
    try:
        user, colon, password = base64.b64decode(match[1], validate=True).decode().partition(":") if match else ("", "", "")
    except (binascii.Error, UnicodeDecodeError):
        user, colon, password = "", "", ""
    if not colon or not user or "\0" in user + password:
        raise Refused(refusals.UNAUTHORIZED, "Unauthorized: use Basic authentication")
    return Caller(user, password)


class Session:
    """A connection to the gateway. `notices`: the messages since they were last taken."""

    def __init__(self, connection: AsyncConnection[Any], caller: Caller) -> None:
        self.connection, self.caller, self.key = connection, caller, caller.key
        self.changed = False  # whether statements have changed the settings
        self.began = time.monotonic()
        self.idle_since = 0.0
        self._notices: list[str] = []
        connection.add_notice_handler(self._noticed)

    async def execute(self, text: str) -> tuple[list[tuple[Any, ...]], str]:
        """Executes a statement. Returns its rows, with values as JSON, and its tag. Raises psycopg.Error."""
        cursor = self.connection.cursor()
        await cursor.execute(text.encode())
        return (await cursor.fetchall() if cursor.description is not None else []), cursor.statusmessage or ""

    async def set(self, name: str, value: str) -> None:
        """Sets a property of the session. Raises psycopg.Error."""
        self.changed = True
        await self.execute(f"SET {quoted_text(name)} = {quoted_text(value)}")

    def interrupt(self) -> None:
        """Ends the statement that runs with an error, also if the gateway has not begun it; a cancel request would be lost then.

        If the connection were closed, a wait for its rows would not end.
        """
        if self.connection.closed:
            return
        with suppress(OSError), socket.socket(fileno=os.dup(self.connection.fileno())) as own:
            own.shutdown(socket.SHUT_RDWR)

    def notices(self) -> list[str]:
        notices, self._notices = self._notices, []
        return notices

    def _noticed(self, notice: psycopg.errors.Diagnostic) -> None:
        if len(self._notices) < limits.NOTICES_MAX:
            self._notices.append((notice.message_primary or "")[: limits.NOTICE_CHARACTERS_MAX])


class Sessions:
    """The sessions of a gateway."""

    def __init__(self, gateway: Gateway, application: Application) -> None:
        self._gateway, self._application = gateway, application
        self._idle: list[Session] = []  # the longest idle first
        self._closed_at = 0.0  # when idle sessions were last closed

    @asynccontextmanager
    async def session(self, caller: Caller) -> AsyncIterator[Session]:
        """Returns a session of a user, which is kept for later requests unless the block fails. Raises 401, 403, 429, 503."""
        session = await self._taken(caller)
        try:
            yield session
            if session.changed and not session.connection.closed:
                await session.execute("DISCARD ALL")
        except BaseException as error:
            # an error of a statement leaves the session usable, anything else does not
            if isinstance(error, Exception) and await self._discarded(session):
                await self._keep(session)
            else:
                await session.connection.close()
            raise
        await self._keep(session)

    @asynccontextmanager
    async def stream(self, caller: Caller) -> AsyncIterator[Session]:
        """Returns a session for one stream, which is closed at its end."""
        session = await self._taken(caller)
        try:
            yield session
        finally:
            await session.connection.close()

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for session in idle:
            await session.connection.close()

    async def _taken(self, caller: Caller) -> Session:
        await self._close_idle()
        key = caller.key
        for index in range(len(self._idle) - 1, -1, -1):
            if self._idle[index].key == key:
                session = self._idle.pop(index)
                if not session.connection.closed and session.began > time.monotonic() - limits.SESSION_S:
                    return session
                await session.connection.close()
        return Session(await self._connected(caller), caller)

    async def _connected(self, caller: Caller) -> AsyncConnection[Any]:
        password: dict[str, Any] = {"require_auth": "none"}
        if caller.password is not None:  # so that a role without a password is not admitted with any
            password = {"require_auth": "scram-sha-256", "password": caller.password}
        try:
            connection: AsyncConnection[Any] = await AsyncConnection.connect(
                host=self._gateway.host, port=self._gateway.port, user=caller.user, dbname="tailgate", autocommit=True,
                prepare_threshold=None, connect_timeout=limits.CONNECT_S, application_name=self._application.name,
                options=self._application.settings, **NO_CREDENTIALS, **password,
            )  # fmt: skip
        except psycopg.OperationalError as error:
            raise _refusal(error) from None
        self._application.register(connection)
        return connection

    async def _discarded(self, session: Session) -> bool:
        """Returns whether a session is as a new one after an error."""
        session.notices()
        if session.connection.closed or session.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            return False
        try:
            await session.execute("DISCARD ALL")
        except psycopg.Error:
            return False
        return True

    async def _keep(self, session: Session) -> None:
        if session.connection.closed:
            return
        session.changed, session.idle_since = False, time.monotonic()
        session.notices()
        self._idle.append(session)
        await self._close_idle()

    async def _close_idle(self) -> None:
        """Closes sessions that have been idle or open for too long, at most once in CLOSE_EVERY_S, and those above the limit."""
        now = time.monotonic()
        if now < self._closed_at + limits.CLOSE_EVERY_S and len(self._idle) <= limits.SESSIONS_IDLE_MAX:
            return
        self._closed_at = now
        young = [s for s in self._idle if s.idle_since > now - limits.SESSION_IDLE_S and s.began > now - limits.SESSION_S]
        young = young[-limits.SESSIONS_IDLE_MAX :]
        ended, self._idle = [session for session in self._idle if session not in young], young
        for session in ended:
            await session.connection.close()


def _refusal(error: psycopg.OperationalError) -> Refused:
    """Returns the response to a request for which the gateway has refused a connection."""
    status, message = next((refusal for part, refusal in REFUSALS.items() if part in str(error)), (refusals.UNAVAILABLE, ""))
    return Refused(status, message or f"The gateway is not reachable: {error}")
