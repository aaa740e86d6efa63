"""buenavista's `Connection`, `Session` and `QueryResult` for a gateway: a session is a PostgreSQL connection.

Rows are read in pages with a cursor. The cursor of a TAIL returns the changes so far and never ends.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import psycopg
from buenavista import core
from psycopg.types.string import TextLoader

from tailgate.gateway.presto.types import PrestoType, presto_type
from tailgate.lake.errors import FeatureNotSupported, TailgateError
from tailgate.lake.ranges import ALL_RANGES
from tailgate.sql import statements as s

CONNECT_TIMEOUT_S = 10
FOLLOW_S = 1.0  # seconds that a page of a TAIL waits for rows
CURSOR = "presto"
NO_FILE = os.path.join(os.devnull, "none")  # cannot exist; libpq warns of a password file that is a device
# libpq sends a password only if the server may ask for one (require_auth), and certificates and tickets only with TLS and GSSAPI.
NO_CREDENTIALS: dict[str, Any] = {"require_auth": "none", "sslmode": "disable", "gssencmode": "disable", "passfile": NO_FILE}
AS_TEXT = ("interval", "jsonb", "json", "inet", "cidr", "timetz", *ALL_RANGES)
# statements that need a session of several statements
OF_SESSIONS = (s.Begin, s.Commit, s.Rollback, s.Set, s.Prepare, s.Execute, s.DeclareCursor, s.Listen, s.CopyTo, s.CopyFrom)
READING = ("select", "with", "values", "table", "(")  # first words of queries that our parser may refuse: those of the system catalog


class Backend(core.Connection):  # type: ignore[misc]  # buenavista has no types
    """Connections to a gateway at HOST:PORT. Users have no password; roles with a password are refused.

    libpq takes missing connection parameters from the environment and the home folder of the
    process's owner: passwords, client certificates, Kerberos tickets. They are not the user's, so
    `NO_CREDENTIALS` disables all of them.
    """

    def __init__(self, gateway: str) -> None:
        super().__init__()
        self._host, _, self._port = gateway.rpartition(":")

    def session(self, user: str, schema: str | None) -> Session:
        """Opens a session. Raises psycopg.OperationalError."""
        options = "-c application_name=presto"  # never empty, because libpq would then use PGOPTIONS
        if schema:
            options += " -c search_path=" + re.sub(r"([\\\s])", r"\\\1", schema)
        connection = psycopg.connect(
            host=self._host, port=self._port, user=user, dbname="tailgate", autocommit=True, connect_timeout=CONNECT_TIMEOUT_S,
            application_name="presto", options=options, **NO_CREDENTIALS,
        )  # fmt: skip
        for name in AS_TEXT:
            connection.adapters.register_loader(name, TextLoader)
        return Session(connection)


class Session(core.Session):  # type: ignore[misc]  # buenavista has no types
    """A connection to the gateway, for one statement."""

    def __init__(self, connection: psycopg.Connection) -> None:
        super().__init__()
        self._connection = connection

    def execute_sql(self, sql: str, params: Any = None) -> Result:
        """Starts a statement. Raises psycopg.Error, or 0A000 for statements that need a longer session."""
        assert params is None
        text = sql.strip().rstrip(";")
        statement = _parsed(text)
        if isinstance(statement, OF_SESSIONS):
            what = type(statement).__name__.upper()
            raise FeatureNotSupported(f"{what} over Presto's protocol is not supported", hint="Each statement is a session of its own.")
        reads = isinstance(statement, (s.Select, s.Tail, s.FollowKsqldb)) or (statement is None and text.lower().startswith(READING))
        return Result(self._connection, text, reads=reads, follows=isinstance(statement, (s.Tail, s.FollowKsqldb)))

    def in_transaction(self) -> bool:
        return False

    def cancel(self) -> None:
        """Cancels the statement; called from another thread."""
        self._connection.cancel_safe(timeout=CONNECT_TIMEOUT_S)

    def close(self) -> None:
        self._connection.close()


class Result(core.QueryResult):  # type: ignore[misc]  # buenavista has no types
    """The result of a statement. Call `page` until `ended`.

    `status` returns the command tag of a statement without rows.
    """

    def __init__(self, connection: psycopg.Connection, text: str, *, reads: bool, follows: bool) -> None:
        super().__init__()
        self._follows = follows
        self._cursor = connection.cursor()
        self._reads = reads
        if reads:
            self._cursor.execute("BEGIN")
            self._cursor.execute(f"DECLARE {CURSOR} CURSOR FOR {text}".encode())
            self._cursor.execute(f"FETCH 0 FROM {CURSOR}")
        else:
            self._cursor.execute(text.encode())
        self.types: list[PrestoType] = [presto_type(c) for c in self._cursor.description or ()]
        self.names = [c.name for c in self._cursor.description or ()]
        self.ended = not self.types

    def has_results(self) -> bool:
        return bool(self.types)

    def column_count(self) -> int:
        return len(self.types)

    def column(self, index: int) -> tuple[str, core.BVType]:
        return self.names[index], self.types[index].kind

    def page(self, rows: int) -> list[list[Any]]:
        """Returns the next rows, at most `rows`."""
        if self._reads:
            wait = f" WITH (timeout = '{FOLLOW_S}s')" if self._follows else ""
            self._cursor.execute(f"FETCH {rows} FROM {CURSOR}{wait}".encode())
        rows_fetched = self._cursor.fetchmany(rows)
        self.ended = len(rows_fetched) < rows and not self._follows
        return [[None if v is None else t.convert(v) for v, t in zip(row, self.types, strict=True)] for row in rows_fetched]

    def rows(self) -> Iterator[list[Any]]:
        while not self.ended:
            yield from self.page(1000)

    def status(self) -> str:
        return self._cursor.statusmessage or ""

    @property
    def changed(self) -> int | None:
        """Returns the number of rows that a write changed, or None."""
        return self._cursor.rowcount if not self.types and self._cursor.rowcount >= 0 else None


def _parsed(text: str) -> s.Statement | None:
    """Parses a statement; returns None if our parser refuses it, as for the system catalog."""
    try:
        return s.parse(text)
    except (TailgateError, RecursionError):
        return None
