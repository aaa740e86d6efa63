"""buenavista's `Connection`, `Session` and `QueryResult` over a gateway: a session is a connection of the wire protocol.

Rows are read a page at a time, by a cursor of the gateway's; a TAIL's cursor gives what has come, and never ends.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import psycopg
from buenavista import core
from psycopg.types.string import TextLoader

from gateway.presto.types import PrestoType, presto_type
from lake.errors import FeatureNotSupported, TailgateError
from sql import statements as s

CONNECT_TIMEOUT_S = 10
FOLLOW_S = 1.0  # how long a page of a TAIL waits for rows
CURSOR = "presto"
NO_FILE = os.path.join(os.devnull, "none")  # cannot exist; libpq warns of a password file that is a device
# libpq sends a password only where the server may ask for one (require_auth), and certificates and tickets only inside TLS and GSSAPI.
NO_CREDENTIALS = {"require_auth": "none", "sslmode": "disable", "gssencmode": "disable", "passfile": NO_FILE}
AS_TEXT = ("interval", "jsonb", "json")
READING = ("select", "with", "values", "table", "(")  # what begins a query that only the system catalog's grammar reads


class Backend(core.Connection):  # type: ignore[misc]
    """`gateway`: HOST:PORT. A user signs in without a password, as one does on loopback; a role that has one is refused.

    libpq takes what a connection string leaves out from the environment and from files in the home folder of whoever started this
    process: passwords, client certificates, Kerberos tickets. None of them is the user's, so none is used (`NO_CREDENTIALS`).
    """

    def __init__(self, gateway: str) -> None:
        super().__init__()
        self._host, _, self._port = gateway.rpartition(":")

    def session(self, user: str, schema: str | None) -> Session:
        """Raises psycopg.OperationalError."""
        options = "-c application_name=presto"  # never empty, which would let PGOPTIONS in
        if schema:
            options += " -c search_path=" + re.sub(r"([\\\s])", r"\\\1", schema)
        connection = psycopg.connect(
            host=self._host, port=self._port, user=user, dbname="tailgate", autocommit=True, connect_timeout=CONNECT_TIMEOUT_S,
            application_name="presto", options=options, **NO_CREDENTIALS,
        )  # fmt: skip
        for name in AS_TEXT:
            connection.adapters.register_loader(name, TextLoader)
        return Session(connection)


class Session(core.Session):  # type: ignore[misc]
    def __init__(self, connection: psycopg.Connection) -> None:
        super().__init__()
        self._connection = connection

    def execute_sql(self, sql: str, params: Any = None) -> Result:
        """Begins a statement; raises psycopg.Error, or 0A000 for what belongs to a session that goes on."""
        assert params is None
        text = sql.strip().rstrip(";")
        statement = _parsed(text)
        if isinstance(statement, (s.Begin, s.Commit, s.Rollback, s.Set, s.Prepare, s.Execute, s.DeclareCursor, s.CopyTo, s.CopyFrom)):
            what = type(statement).__name__.upper()
            raise FeatureNotSupported(f"{what} over Presto's protocol is not supported", hint="Each statement is a session of its own.")
        reads = isinstance(statement, (s.Select, s.Tail)) or (statement is None and text.lower().startswith(READING))
        return Result(self._connection, text, reads=reads, follows=isinstance(statement, s.Tail))

    def in_transaction(self) -> bool:
        return False

    def cancel(self) -> None:
        """From another thread."""
        self._connection.cancel_safe(timeout=CONNECT_TIMEOUT_S)

    def close(self) -> None:
        self._connection.close()


class Result(core.QueryResult):  # type: ignore[misc]
    """`page` until `ended`. `status`: the command tag, of what has no rows."""

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
        """The next rows, at most so many."""
        if self._reads:
            wait = f" WITH (timeout = '{FOLLOW_S}s')" if self._follows else ""
            self._cursor.execute(f"FETCH {rows} FROM {CURSOR}{wait}".encode())
        found = self._cursor.fetchmany(rows)
        self.ended = len(found) < rows and not self._follows
        return [[None if v is None else t.convert(v) for v, t in zip(row, self.types, strict=True)] for row in found]

    def rows(self) -> Iterator[list[Any]]:
        while not self.ended:
            yield from self.page(1000)

    def status(self) -> str:
        return self._cursor.statusmessage or ""

    @property
    def changed(self) -> int | None:
        """How many rows a write wrote."""
        return self._cursor.rowcount if not self.types and self._cursor.rowcount >= 0 else None


def _parsed(text: str) -> s.Statement | None:
    """None for what only the gateway reads, or refuses."""
    try:
        return s.parse(text)
    except (TailgateError, RecursionError):
        return None
