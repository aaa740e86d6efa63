"""The session as queries of the system catalog see it, for functions such as pg_stat_activity and pg_cancel_backend."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pyarrow as pa

from tailgate.gateway.execute.monitoring import own_objects, system_relations
from tailgate.gateway.resources.concurrency import Requester
from tailgate.gateway.session.registry import PUSH_QUERY
from tailgate.gateway.session.session import Session
from tailgate.gateway.settings.settings import Settings
from tailgate.lake.catalog.roles import Role
from tailgate.lake.errors import InsufficientPrivilege

LOOP_TIMEOUT_S = 10.0  # limits the wait for the event loop: one that is shutting down never answers
Result = TypeVar("Result")


class CatalogSession:
    """A session, as an implementation of `gateway.catalog.functions.object_names.Session`. Its methods run on a thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        client = session.client
        self.database, self.database_oid, self.user, self.process = client.database, client.database_oid, client.user, client.process
        self._loop = asyncio.get_running_loop()

    @property
    def settings(self) -> Settings:
        return self._session.settings

    @property
    def role(self) -> Role:
        return self._session.access.role

    @property
    def _requester(self) -> Requester:
        return Requester(self.role.id, self.role.superuser)

    def _on_loop(self, work: Callable[[], Result]) -> Result:
        """Calls a function on the event loop, and waits for its result."""

        async def call() -> Result:
            return work()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(LOOP_TIMEOUT_S)

    def computed(self, relation: str) -> list[dict[str, Any]]:
        """Returns the rows of a relation of the system catalog that are computed for each query."""
        match relation:
            case "pg_stat_activity":
                return self._activity()
            case "pg_settings":
                return self._settings_rows()
        return own_objects.ROWS[relation](self._session)

    def _activity(self) -> list[dict[str, Any]]:
        """Returns the rows of pg_stat_activity, including those of other gateways."""
        gateway = self._session.gateway
        rows = [*gateway.sessions.rows(self._requester, self.process), *gateway.peers.sessions(self._requester)]
        return [{name: value for name, value in row.items() if name != PUSH_QUERY} for row in rows]

    def _settings_rows(self) -> list[dict[str, Any]]:
        """Returns Tailgate's own settings of sessions, and for superusers those of processes."""
        rows = self.settings.own_rows()
        return [*rows, *self._session.gateway.processes.rows()] if self.role.superuser else rows

    def reload_settings(self) -> bool:
        """Makes all processes of this machine read their settings again: pg_reload_conf()."""
        if not self.role.superuser:
            raise InsufficientPrivilege("permission denied for function pg_reload_conf")
        return self._session.gateway.processes.reload()

    def listing(self, relation: str, status: Mapping[str, Any]) -> list[dict[str, Any]] | pa.Table:
        """Returns the rows of a relation of the schema tailgate that the role may see. `status`: the engine's, or empty."""
        return system_relations.of_session(self._session).rows(relation, status)

    def export_snapshot(self) -> str:
        """Exports the transaction's snapshot and returns its id. Waits for the event loop."""
        return self._on_loop(lambda: self._session.transaction.export(self._session.serving, self.process))

    def release_advisory_locks(self) -> str:
        """Releases the advisory locks of the session before the statement is answered. Returns the empty text of type void."""
        self._session.call_soon(self._session.transaction.advisory_locks.release_all)
        return ""

    def notify(self, channel: str, payload: str) -> str:
        """Sends a notification when the transaction is committed. Returns the empty text of type void. Raises 22023, 53200, 54000."""
        self._on_loop(lambda: self._session.notifications.notify(channel, payload, self.process))
        return ""

    def listening_channels(self) -> list[str]:
        """Returns the channels of LISTEN."""
        return sorted(self._session.notifications.channels)

    def notification_queue_usage(self) -> float:
        """Returns the part of the queue of notifications to other gateways that is in use."""
        return self._session.gateway.exchange.usage

    def signal(self, process: int, *, terminate: bool) -> bool:
        """Implements pg_cancel_backend and pg_terminate_backend.

        Sends a warning and returns False if no session has the process id. Raises 42501 if the role may not signal it.
        """
        gateway, requester = self._session.gateway, self._requester
        if gateway.sessions.signal(process, requester, terminate=terminate) or gateway.peers.signal(
            process, requester, terminate=terminate
        ):
            return True
        self._session.call_soon(self._session.notice, f"PID {process} is not a PostgreSQL server process", "WARNING", "01000")
        return False
