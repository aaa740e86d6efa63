"""The push queries of ksqlDB that sessions of the gateways on this machine follow without a view."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from tailgate.gateway.resources.concurrency import Requester
from tailgate.gateway.session.registry import PUSH_QUERY
from tailgate.gateway.session.session import Session


@dataclass(frozen=True, slots=True)
class FollowedQuery:
    """A running push query: its id, the process id of its session, and its text."""

    id: str
    process: int
    text: str


async def running(session: Session) -> list[FollowedQuery]:
    """Returns those of sessions that the session's role may see. Those with a view are in the catalog, and are left out."""
    gateway, requester = session.gateway, _requester(session)
    rows: list[dict[str, Any]] = [*gateway.sessions.rows(requester), *await asyncio.to_thread(gateway.peers.sessions, requester)]
    queries = (FollowedQuery(row[PUSH_QUERY], row["pid"], row["query"]) for row in rows if row.get(PUSH_QUERY))
    return sorted((query for query in queries if query.id not in session.catalog.queries), key=lambda query: query.id)


async def cancel(session: Session, process: int) -> None:
    """Cancels the statement of a session. Raises 42501 if the session's role may not."""
    gateway, requester = session.gateway, _requester(session)
    if not gateway.sessions.signal(process, requester, terminate=False):
        await asyncio.to_thread(gateway.peers.signal, process, requester, terminate=False)


def _requester(session: Session) -> Requester:
    return Requester(session.access.role.id, session.access.role.superuser)
