"""The rows of a query as they arrive from the gateway, one at a time, so that a slow client slows down the gateway.

`started` returns the columns before the first row: the statement is prepared, described, and executed in libpq's single-row mode.
`answered` returns them with the first row, in one round trip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.abc import PQGen
from psycopg.adapt import Transformer
from psycopg.generators import fetch, fetch_many, send
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from tailgate.gateway.asgi.sessions import Session

Row = Sequence[Any]  # values as the session's loaders return them, None for NULL
Column = tuple[str, int]  # name, and oid of the type
ROWS = (ExecStatus.SINGLE_TUPLE, ExecStatus.TUPLES_OK)


class Rows:
    """The rows of one statement. `columns`: none if it returns no rows. `tag`: its command tag, known at its end.

    `first`: a result that has arrived.
    """

    def __init__(self, session: Session, columns: tuple[Column, ...], first: PGresult | None = None) -> None:
        self.columns = columns
        self._connection: AsyncConnection[Any] = session.connection
        self._transformer = Transformer.from_context(session.connection)
        self._has_loaders = False
        self._first = first
        self.tag = ""

    @staticmethod
    async def started(session: Session, text: str) -> Rows:
        """Starts a query whose first row may arrive late. Raises psycopg.Error."""
        connection = session.connection
        return Rows(session, _columns(await connection.wait(_start(connection.pgconn, text.encode()))))

    @staticmethod
    async def answered(session: Session, text: str) -> Rows:
        """Runs a query and waits for its first row, or for its end. Raises psycopg.Error."""
        connection = session.connection
        first = await connection.wait(_run(connection.pgconn, text.encode()))
        return Rows(session, _columns(first), first)

    async def next(self) -> Row | None:
        """Waits for the next row; None at the end. Raises psycopg.Error."""
        result, self._first = self._first, None
        if result is None:
            pgconn = self._connection.pgconn
            result = await self._connection.wait(fetch(pgconn)) if self.waiting else pgconn.get_result()  # waiting costs 10 µs
        if result is None:
            return None
        _check(result)
        if result.status != ExecStatus.SINGLE_TUPLE:
            self.tag = (result.command_status or b"").decode()
            await self._connection.wait(fetch_many(self._connection.pgconn))
            return None
        self._transformer.set_pgresult(result, set_loaders=not self._has_loaders)
        self._has_loaders = True
        row: Row = self._transformer.load_row(0, tuple)
        return row

    @property
    def waiting(self) -> bool:
        """Returns whether the next row has not arrived yet."""
        return bool(self._connection.pgconn.is_busy())


def _start(connection: PGconn, text: bytes) -> PQGen[PGresult]:
    """Prepares, describes and executes a statement. Returns its description."""
    connection.send_prepare(b"", text)
    yield from send(connection)
    _check((yield from fetch_many(connection))[0])
    connection.send_describe_prepared(b"")
    yield from send(connection)
    described: PGresult = (yield from fetch_many(connection))[0]
    _check(described)
    connection.send_query_prepared(b"", None)
    connection.set_single_row_mode()
    yield from send(connection)
    return described


def _run(connection: PGconn, text: bytes) -> PQGen[PGresult]:
    """Executes a statement. Returns its first result: a row, or its end."""
    connection.send_query(text)
    connection.set_single_row_mode()
    yield from send(connection)
    result: PGresult | None = yield from fetch(connection)
    assert result is not None
    if result.status not in ROWS:
        yield from fetch_many(connection)
    _check(result)
    return result


def _columns(described: PGresult) -> tuple[Column, ...]:
    return tuple(((described.fname(i) or b"").decode(), described.ftype(i)) for i in range(described.nfields))


def _check(result: PGresult) -> None:
    """Raises the error of a result."""
    if result.status not in (*ROWS, ExecStatus.COMMAND_OK):
        raise psycopg.errors.error_from_result(result)
