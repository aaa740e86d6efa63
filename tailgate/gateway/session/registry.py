"""The sessions of a gateway process: their process ids, the rows of pg_stat_activity, cancel requests and signals.

This module covers the sessions of this process. `peers` asks the other gateways of the lake.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any, Protocol

from tailgate.gateway.mirrors.snapshots import Snapshot
from tailgate.gateway.resources.concurrency import Requester
from tailgate.gateway.session.activity import QUERY_BYTES_MAX
from tailgate.gateway.session.client import Client
from tailgate.gateway.session.execution import Execution
from tailgate.gateway.session.transactions import State, Transaction
from tailgate.gateway.settings.settings import Settings
from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import InsufficientPrivilege, TooManyConnections
from tailgate.lake.peers import random_number
from tailgate.sql.lexer.secret_masking import mask_secrets

SESSIONS_MAX = 10_000  # an idle one costs about 30 KB

PUSH_QUERY = "push_query"  # the field of a row that pg_stat_activity does not show

Row = dict[str, Any]

IDLE_STATES = {
    State.IDLE: "idle",
    State.IMPLICIT: "idle",
    State.BLOCK: "idle in transaction",
    State.FAILED: "idle in transaction (aborted)",
}


class RegisteredSession(Protocol):
    """The part of a session that other sessions can see or signal."""

    client: Client
    settings: Settings
    transaction: Transaction
    execution: Execution
    push_query: str | None

    def fatal(self, sqlstate: str, message: str) -> None:
        """Sends a FATAL error and closes the connection."""

    def call_soon(self, function: Callable[..., object], *arguments: object) -> None:
        """Schedules a call in the event loop, from another thread."""


class Sessions(dict[int, RegisteredSession]):
    """The sessions of a gateway by process id. `catalog` returns the newest catalog. `number`: of the gateway."""

    def __init__(self, catalog: Callable[[], Catalog]) -> None:
        super().__init__()
        self._catalog = catalog
        self.closed = False  # the gateway is stopping
        self.number = random_number()

    def admit(self, session: RegisteredSession) -> None:
        """Registers a session with a process id and a secret. Raises 53300 if there are too many."""
        if self.closed or len(self) >= SESSIONS_MAX:
            raise TooManyConnections("sorry, too many clients already")
        client = session.client
        # The high half of the process id identifies the gateway among those of the lake.
        while not client.process or client.process in self:
            client.process = self.number << 16 | secrets.randbelow(1 << 16)
        client.secret = secrets.token_bytes(client.secret_bytes)
        self[client.process] = session

    def cancel(self, process: int, secret: bytes) -> bool:
        """Cancels a session's statement if the secret is right. Returns whether the session exists."""
        session = self.get(process)
        if session is not None and hmac.compare_digest(session.client.secret, secret):
            session.execution.interrupt("canceling statement due to user request")
        return session is not None

    def count_of(self, role: int) -> int:
        """Returns the number of sessions that have signed in as a role."""
        return sum(session.client.role == role for session in self.values())

    def exported(self, name: str) -> Snapshot | None:
        """Returns an exported snapshot, or None if there is none of this name."""
        snapshots = (session.transaction.exported.get(name) for session in self.values())
        return next((snapshot for snapshot in snapshots if snapshot is not None), None)

    def rows(self, requester: Requester, own: int = 0) -> list[Row]:
        """Returns the rows of pg_stat_activity. Hides details of sessions whose role `requester` may not see.

        `own`: the process id of the session that runs the query, which is shown as active.
        """
        return [self._row(session, requester, own) for session in list(self.values())]

    def _row(self, session: RegisteredSession, requester: Requester, own: int) -> Row:
        activity, client = session.execution.activity, session.client
        row: Row = {
            "datid": client.database_oid, "datname": client.database, "pid": client.process, "usesysid": client.role,
            "usename": client.user, "application_name": session.settings["application_name"], "query": "<insufficient privilege>",
            "backend_type": "client backend",
        }  # fmt: skip
        if not self._may_see(session, requester):
            return row
        idle = session.transaction.state
        state = "active" if activity.running or client.process == own else IDLE_STATES[idle]
        query = activity.query[:QUERY_BYTES_MAX].decode("utf-8", "replace")
        return row | {
            "client_addr": client.peer.host or None,
            "client_port": client.peer.port,
            "backend_start": moment(activity.began),
            "xact_start": moment(activity.block_at or (activity.asked_at if state == "active" else None)),
            "query_start": moment(activity.asked_at),
            "state_change": moment(activity.changed_at),
            "state": state,
            "wait_event_type": None if state == "active" else "Client",
            "wait_event": None if state == "active" else "ClientRead",
            "query": mask_secrets(query),
            PUSH_QUERY: session.push_query if session.execution.following else None,
        }

    def _may_see(self, session: RegisteredSession, requester: Requester) -> bool:
        return requester.superuser or session.client.role in self._catalog().acting(requester.role)

    def signal(self, process: int, requester: Requester, *, terminate: bool) -> bool:
        """Cancels or terminates a session of this gateway. Returns False if none has the process id. Raises 42501. Runs on any thread."""
        session = self.get(process)
        if session is None:
            return False
        target = self._catalog().all_roles().get(session.client.role)
        verb, noun, ended = ("terminate", "process", "terminated") if terminate else ("cancel", "query", "canceled")
        if not requester.superuser:
            if target is not None and target.superuser:
                raise InsufficientPrivilege(f"must be a superuser to {verb} superuser {noun}")
            if not self._may_see(session, requester):
                raise InsufficientPrivilege(f"must be a member of the role whose {noun} is being {ended} or member of pg_signal_backend")
        if terminate:
            session.call_soon(session.fatal, "57P01", "terminating connection due to administrator command")
        else:
            session.call_soon(session.execution.interrupt, "canceling statement due to user request")
        return True


def moment(seconds: float | None) -> datetime | None:
    """Returns a time since the epoch as a value of timestamptz."""
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)
