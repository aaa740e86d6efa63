"""A statement and its result as server-sent events.

    columns   names and types              rows     arrays of texts, as they arrive
    end       command tag, notices         error    SQLSTATE, message, detail, hint, position

The rows of TAIL and SUBSCRIBE arrive without end; the client ends them when it closes the response. Other results have at most ROWS_MAX
rows and BYTES_MAX bytes.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncGenerator
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.adapt import Loader
from psycopg.pq import TransactionStatus

from tailgate.gateway.asgi.limits import ROWS_BYTES
from tailgate.gateway.asgi.rows import Rows
from tailgate.gateway.asgi.sessions import Application, Caller, Session, Sessions
from tailgate.gateway.console import limits
from tailgate.lake.types import BY_OID
from tailgate.sql.lexer.literal_masking import mask_literals

READING = re.compile(
    r"\s*(select|values|table|show|describe|tail|subscribe|(with|explain)\b(?!.*\b(insert|update|delete|merge|execute)\b))\b",
    re.IGNORECASE | re.DOTALL,
)
FOLLOWING = re.compile(r"\s*(tail|subscribe)\b", re.IGNORECASE)
log = logging.getLogger("tailgate.console")


class TextLoader(Loader):
    """A loader that returns a value as the text that the gateway has sent."""

    def load(self, data: Any) -> str:
        return bytes(data).decode("utf-8", "replace")


def _register(connection: AsyncConnection[Any]) -> None:
    for oid in {0, *(info.oid for info in psycopg.postgres.types), *(info.array_oid for info in psycopg.postgres.types)}:
        connection.adapters.register_loader(oid, TextLoader)


APPLICATION = Application("tailgate console", "-c TimeZone=UTC -c DateStyle=ISO -c client_min_messages=notice", _register)


async def events(sessions: Sessions, caller: Caller, text: str, running: set[Session]) -> AsyncGenerator[bytes, None]:
    """Executes a statement as a user and yields its events. Raises Refused if the user cannot sign in.

    The session is in `running` meanwhile.
    """
    async with sessions.session(caller) as session:
        running.add(session)
        if not READING.match(text):
            log.info("role %s executes %s", caller.user, mask_literals(text))
        try:
            async for event in _result(session, text):
                yield event
        except psycopg.Error as error:
            yield _event("error", _document(error))
        finally:
            running.discard(session)
        await _finish(session)


async def _result(session: Session, text: str) -> AsyncGenerator[bytes, None]:
    rows = await Rows.started(session, text)
    yield _event("columns", [{"name": name, "type": _type_name(oid)} for name, oid in rows.columns])
    follows = FOLLOWING.match(text) is not None
    batch: list[Any] = []
    batch_bytes = sent_bytes = sent = 0
    while (row := await rows.next()) is not None:
        batch.append(row)
        batch_bytes += sum(len(value) for value in row if value is not None)
        if not follows and (sent + len(batch) >= limits.ROWS_MAX or sent_bytes + batch_bytes >= limits.BYTES_MAX):
            yield _event("rows", batch)
            yield _event("end", {"tag": "", "truncated": True, "notices": session.notices()})
            await session.connection.close()  # ends the statement
            return
        if rows.waiting or batch_bytes >= ROWS_BYTES:
            yield _event("rows", batch)
            sent, sent_bytes = sent + len(batch), sent_bytes + batch_bytes
            batch, batch_bytes = [], 0
    if batch:
        yield _event("rows", batch)
    yield _event("end", {"tag": rows.tag, "truncated": False, "notices": session.notices()})


async def _finish(session: Session) -> None:
    """Leaves the session as a new one, or closes it if it is inside of a transaction."""
    session.changed = True
    if session.connection.closed or session.connection.info.transaction_status != TransactionStatus.IDLE:
        await session.connection.close()


def _type_name(oid: int) -> str:
    return BY_OID[oid].name if oid in BY_OID else "text"


def _document(error: psycopg.Error) -> dict[str, Any]:
    sqlstate = error.sqlstate or ("08006" if isinstance(error, psycopg.OperationalError) else "XX000")
    diagnosis = error.diag
    members = {
        "sqlstate": sqlstate,
        "message": diagnosis.message_primary or str(error).strip(),
        "detail": diagnosis.message_detail,
        "hint": diagnosis.message_hint,
        "position": int(diagnosis.statement_position) if diagnosis.statement_position else None,
    }
    return {name: value for name, value in members.items() if value is not None}


def _event(kind: str, data: Any) -> bytes:
    r"""Returns the bytes of an event. JSON has no line ends, so its data is one line.

    >>> _event("rows", [["a\nb", None]])
    b'event: rows\ndata: [["a\\nb",null]]\n\n'
    """
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), json.dumps(data, separators=(",", ":")).encode())
