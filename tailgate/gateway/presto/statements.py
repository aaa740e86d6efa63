"""Open statements: started by POST, read in pages, ended by the last page, DELETE, an error or a timeout."""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tailgate.gateway.presto.backend import Backend, Result, Session
from tailgate.lake.errors import TailgateError

STATEMENTS_MAX = 100  # open at a time; each is a session of the gateway
PAGE_ROWS = 1000
IDLE_S = 300.0  # seconds that a statement waits for its client
DONE_S = 30.0  # seconds that the last page is kept, in case the response was lost
DONE_MAX = 100  # ended statements whose last pages are kept, the newest ones

# SQLSTATE or its class → Presto's error code, name and type
ERRORS: dict[str, tuple[int, str, str]] = {
    "42601": (1, "SYNTAX_ERROR", "USER_ERROR"),
    "42501": (4, "PERMISSION_DENIED", "USER_ERROR"),
    "22012": (8, "DIVISION_BY_ZERO", "USER_ERROR"),
    "0A000": (13, "NOT_SUPPORTED", "USER_ERROR"),
    "57014": (3, "USER_CANCELED", "USER_ERROR"),
    "22003": (19, "NUMERIC_VALUE_OUT_OF_RANGE", "USER_ERROR"),
    "42883": (6, "FUNCTION_NOT_FOUND", "USER_ERROR"),
    "42P01": (46, "TABLE_NOT_FOUND", "USER_ERROR"),
    "42703": (47, "COLUMN_NOT_FOUND", "USER_ERROR"),
    "42804": (58, "TYPE_MISMATCH", "USER_ERROR"),
    "53": (131072, "GENERIC_INSUFFICIENT_RESOURCES", "INSUFFICIENT_RESOURCES"),
    "54": (131072, "GENERIC_INSUFFICIENT_RESOURCES", "INSUFFICIENT_RESOURCES"),
    "08": (65536, "GENERIC_INTERNAL_ERROR", "INTERNAL_ERROR"),
    "58": (65536, "GENERIC_INTERNAL_ERROR", "INTERNAL_ERROR"),
    "XX": (65536, "GENERIC_INTERNAL_ERROR", "INTERNAL_ERROR"),
}
OTHER = (0, "GENERIC_USER_ERROR", "USER_ERROR")

COUNTS = (
    "nodes", "totalSplits", "queuedSplits", "runningSplits", "completedSplits", "cpuTimeMillis", "wallTimeMillis", "queuedTimeMillis",
    "processedRows", "processedBytes", "physicalInputBytes", "peakMemoryBytes", "spilledBytes",
)  # fmt: skip

Document = dict[str, Any]


class TooMany(Exception):
    """The limit on open statements is reached."""


@dataclass
class Statement:
    """An open statement.

    `token` is that of the next page; a request for the previous page returns `last` again.
    """

    id: str
    slug: str
    text: str
    user: str
    schema: str | None
    started: float = field(default_factory=time.monotonic)
    touched: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)
    session: Session | None = None
    result: Result | None = None
    token: int = 0
    last: Document | None = None
    closed: bool = False


class Statements:
    """All open statements. Thread-safe. `base` is the base URL of pages."""

    def __init__(self, backend: Backend, base: str) -> None:
        self._backend, self._base = backend, base
        self._open: dict[str, Statement] = {}
        self._lock = threading.Lock()

    def begin(self, text: str, user: str, schema: str | None) -> Document:
        """Opens a statement; returns the first document, which has no rows. Raises TooMany."""
        self._forget()
        statement = Statement(f"{time.strftime('%Y%m%d_%H%M%S')}_{secrets.token_hex(4)}", secrets.token_urlsafe(16), text, user, schema)
        with self._lock:
            if sum(not m.closed for m in self._open.values()) >= STATEMENTS_MAX:
                raise TooMany
            self._open[statement.id] = statement
        return self._document(statement, "QUEUED", next_token=0)

    def page(self, id: str, slug: str, token: int) -> Document | None:
        """Returns a page; None if the statement or page does not exist."""
        statement = self._find(id, slug)
        if statement is None:
            return None
        with statement.lock:
            statement.touched = time.monotonic()
            if statement.last is not None and token == statement.token - 1:
                return statement.last  # a repeated request: the response was lost
            if token != statement.token or statement.closed:
                return None
            statement.last = self._next(statement)
            statement.token += 1
            statement.touched = time.monotonic()
            return statement.last

    def cancel(self, id: str, slug: str) -> bool:
        """Cancels a statement. Returns False if it does not exist."""
        statement = self._find(id, slug)
        if statement is None:
            return False
        if statement.session is not None:
            with contextlib.suppress(psycopg.Error):
                statement.session.cancel()
        if statement.lock.acquire(timeout=5.0):
            self._end(statement)
            statement.lock.release()
        return True

    def close(self) -> None:
        for statement in list(self._open.values()):
            self.cancel(statement.id, statement.slug)

    def _find(self, id: str, slug: str) -> Statement | None:
        statement = self._open.get(id)
        return statement if statement is not None and secrets.compare_digest(statement.slug.encode(), slug.encode()) else None

    def _next(self, statement: Statement) -> Document:
        """Reads the next page, or the error; starts the statement at the first page."""
        try:
            if statement.session is None or statement.result is None:
                statement.session = self._backend.session(statement.user, statement.schema)
                statement.result = statement.session.execute_sql(statement.text)
            result = statement.result
            rows = [] if result.ended else result.page(PAGE_ROWS)
        except (psycopg.Error, TailgateError) as error:
            self._end(statement)
            return {**self._document(statement, "FAILED"), "error": _error(error)}
        document = self._document(statement, "FINISHED" if result.ended else "RUNNING", None if result.ended else statement.token + 1)
        if result.has_results():
            document["columns"] = [
                {"name": n, "type": t.name, "typeSignature": t.signature} for n, t in zip(result.names, result.types, strict=True)
            ]
            if rows:
                document["data"] = rows
        else:
            document["updateType"] = " ".join(word for word in result.status().split() if not word.isdigit())
            if result.changed is not None:
                document["updateCount"] = result.changed
        if result.ended:
            self._end(statement)
        return document

    def _end(self, statement: Statement) -> None:
        """Closes the session; the last page remains available for DONE_S seconds."""
        statement.closed, statement.result = True, None
        if statement.session is not None:
            statement.session.close()
            statement.session = None
        with self._lock:
            ended = [id for id, other in self._open.items() if other.closed]
            for id in ended[:-DONE_MAX]:
                del self._open[id]

    def _forget(self) -> None:
        now = time.monotonic()
        for statement in [m for m in list(self._open.values()) if now - m.touched > (DONE_S if m.closed else IDLE_S)]:
            self.cancel(statement.id, statement.slug)
            with self._lock:
                self._open.pop(statement.id, None)

    def _document(self, statement: Statement, state: str, next_token: int | None = None) -> Document:
        """Returns a document without rows."""
        elapsed = round((time.monotonic() - statement.started) * 1000)
        counts = dict.fromkeys(COUNTS, 0)
        document: Document = {
            "id": statement.id,
            "infoUri": f"{self._base}/ui/query.html?{statement.id}",
            "stats": {"state": state, "queued": state == "QUEUED", "scheduled": state != "QUEUED", "elapsedTimeMillis": elapsed, **counts},
            "warnings": [],
        }
        if next_token is not None:
            document["nextUri"] = f"{self._base}/v1/statement/executing/{statement.id}/{statement.slug}/{next_token}"
        return document


def _error(error: psycopg.Error | TailgateError) -> Document:
    """Returns Presto's error document."""
    states = {psycopg.OperationalError: "08006", psycopg.DataError: "0A000"}  # of psycopg; a DataError is a date that Python lacks
    state = error.sqlstate or next((state for type, state in states.items() if isinstance(error, type)), "XX000")
    code, name, kind = ERRORS.get(state) or ERRORS.get(state[:2], OTHER)
    if isinstance(error, TailgateError):
        message, hint = error.message, error.hint
    else:
        message, hint = error.diag.message_primary or str(error).strip(), error.diag.message_hint
    text = f"{message} (SQLSTATE {state})" + (f". {hint}" if hint else "")
    return {"message": text, "errorCode": code, "errorName": name, "errorType": kind, "failureInfo": {"type": name, "message": text}}


def encoded(document: Document) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
