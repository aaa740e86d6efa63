"""The rows of pg_stat_activity, and the functions that cancel a statement or terminate a session.

This module covers the sessions of this process. `peers` asks the other gateways of the lake on this machine.
"""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Protocol

from tailgate.gateway.session.transactions import State
from tailgate.lake.errors import InsufficientPrivilege
from tailgate.sql.lexer.tokens import Token, tokens

if TYPE_CHECKING:
    from tailgate.gateway.server.server import Gateway
    from tailgate.gateway.session.session import Session

QUERY_BYTES_MAX = 1024  # PostgreSQL's track_activity_query_size
PASSWORD, SECRET = "password", "secret"  # the value after these words is never shown; names of options may end in the first
LITERALS = ("string", "bits", "integer", "decimal", "error")  # kinds of tokens that are values
NO_VALUES = ("=", "null", SECRET, ";", ")", ",")  # tokens that are not a value, in the place of one
STARS = "'********'"

Row = dict[str, Any]


class Activity:
    """The current activity of one session. Times are in seconds since the epoch.

    `asked` is called at the start of each statement and `ended` after it.
    """

    __slots__ = ("asked_at", "began", "block_at", "changed_at", "query", "running")

    def __init__(self) -> None:
        self.began = self.asked_at = self.changed_at = time.time()
        self.block_at: float | None = None
        self.query: bytes = b""
        self.running = False

    def asked(self, query: bytes) -> None:
        """Records the start of a statement."""
        self.query, self.running = query[:QUERY_BYTES_MAX], True
        self.asked_at = self.changed_at = time.time()

    def polled(self, query: bytes) -> None:
        """Records a statement that was answered immediately."""
        self.query = query[:QUERY_BYTES_MAX]
        self.asked_at = self.changed_at = time.time()

    def ended(self, in_block: bool) -> None:
        """Records the end of a statement."""
        self.running = False
        self.changed_at = time.time()
        if not in_block:
            self.block_at = None
        elif self.block_at is None:
            self.block_at = self.asked_at


class Asking(Protocol):
    """The role of a session of this gateway or another one, for which rights are checked."""

    @property
    def id(self) -> int: ...

    @property
    def superuser(self) -> bool: ...


def rows(gateway: Gateway, asking: Asking, own: Session | None = None) -> list[Row]:
    """Returns the rows of pg_stat_activity. Hides details of sessions whose role `asking` may not see.

    `own`: the session that runs the query, which is shown as active.
    """
    return [_row(session, asking, own) for session in list(gateway.sessions.values())]


def _row(session: Session, asking: Asking, own: Session | None) -> Row:
    activity = session.activity
    known: Row = {
        "datid": 5 if session.database == "postgres" else 16384,  # as in pg_database
        "datname": session.database, "pid": session.process, "usesysid": session.access.identity,
        "usename": session.user, "application_name": session.settings["application_name"], "query": "<insufficient privilege>",
        "backend_type": "client backend",
    }  # fmt: skip
    if not _may_see(session, asking):
        return known
    idle = session.transaction.state
    state = "active" if activity.running or session is own else IDLE_STATES[idle]
    query = activity.query[:QUERY_BYTES_MAX].decode("utf-8", "replace")
    return known | {
        "client_addr": session.peer.host or None,
        "client_port": session.peer.port,
        "backend_start": _moment(activity.began),
        "xact_start": _moment(activity.block_at or (activity.asked_at if state == "active" else None)),
        "query_start": _moment(activity.asked_at),
        "state_change": _moment(activity.changed_at),
        "state": state,
        "wait_event_type": None if state == "active" else "Client",
        "wait_event": None if state == "active" else "ClientRead",
        "query": shown(query),
    }


def shown(query: str) -> str:
    """Masks secrets in the text of a query.

    If the text contains the words password or secret, stars replace all its literals, and any token in the place of a literal after
    these words. Text that cannot be tokenized, up to its end, is replaced by stars, too.

    >>> shown("ALTER ROLE ann PASSWORD/**/'x'"), shown("CREATE SECRET s AS/**/'x'"), shown("SELECT 'x'")
    ("ALTER ROLE ann PASSWORD/**/'********'", "CREATE SECRET s AS/**/'********'", "SELECT 'x'")
    """
    row = tokens(query)
    if not any(map(_is_sensitive, row)):
        return query
    out, at, begun, value_next = "", 0, False, False
    for token in row:
        begun = begun or token.value == SECRET
        hidden = token.kind in LITERALS or (value_next and token.kind != "end" and token.value not in NO_VALUES)
        out += query[at : token.position] + (STARS if hidden else token.text)
        at = token.end
        value_next = token.value.endswith(PASSWORD) or (begun and token.value == "as") or (value_next and token.value == "=")
    return out


def _is_sensitive(token: Token) -> bool:
    return any(word in (token.text if token.kind == "error" else token.value).lower() for word in (PASSWORD, SECRET))


IDLE_STATES = {
    State.IDLE: "idle",
    State.IMPLICIT: "idle",
    State.BLOCK: "idle in transaction",
    State.FAILED: "idle in transaction (aborted)",
}


def _may_see(session: Session, asking: Asking) -> bool:
    return asking.superuser or session.access.identity in session.serving.catalog.acting(asking.id)


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)


def signal(asking: Session, process: int, *, terminate: bool) -> bool:
    """Implements pg_cancel_backend and pg_terminate_backend. Runs on a thread.

    Sends a warning and returns False if no session has the process id. Raises 42501 if the role may not signal it.
    """
    role = asking.access.role
    if signalled(asking.gateway, process, role, terminate=terminate) or asking.gateway.peers.signal(process, role, terminate=terminate):
        return True
    asking.call_soon(asking.notice, f"PID {process} is not a PostgreSQL server process", "WARNING", "01000")
    return False


def signalled(gateway: Gateway, process: int, asking: Asking, *, terminate: bool) -> bool:
    """Signals a session of this gateway. Returns False if none has the process id, and raises 42501 if the role may not."""
    session = gateway.sessions.get(process)
    if session is None:
        return False
    target = gateway.serving.catalog.all_roles().get(session.access.identity)
    verb, noun, done = ("terminate", "process", "terminated") if terminate else ("cancel", "query", "canceled")
    if not asking.superuser:
        if target is not None and target.superuser:
            raise InsufficientPrivilege(f"must be a superuser to {verb} superuser {noun}")
        if session.access.identity not in gateway.serving.catalog.acting(asking.id):
            raise InsufficientPrivilege(f"must be a member of the role whose {noun} is being {done} or member of pg_signal_backend")
    if terminate:
        session.call_soon(session.fatal, "57P01", "terminating connection due to administrator command")
    else:
        session.call_soon(session.interrupt, "canceling statement due to user request")
    return True
