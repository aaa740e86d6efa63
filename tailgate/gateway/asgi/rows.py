"""The rows of a query as they arrive from the gateway, one at a time, so that a slow client slows down the gateway.

`started` returns the columns before the first row: the statement is prepared, described, and executed in libpq's single-row mode.
`answered` returns them with the first row, in one round trip.

A wait that is canceled cancels the query, and leaves the connection with its answer: the session must be closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.adapt import Transformer
from psycopg.generators import send
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from tailgate.gateway.asgi.limits import CONNECT_S
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
        return Rows(session, _columns(await _start(session.connection, text.encode())))

    @staticmethod
    async def answered(session: Session, text: str) -> Rows:
        """Runs a query and waits for its first row, or for its end. Raises psycopg.Error."""
        first = await _run(session.connection, text.encode())
        return Rows(session, _columns(first), first)

    async def next(self) -> Row | None:
        """Waits for the next row; None at the end. Raises psycopg.Error."""
        result, self._first = self._first, None
        if result is None:
            result = await _result(self._connection)
        if result is None:
            return None
        _check(result)
        if result.status != ExecStatus.SINGLE_TUPLE:
            self.tag = (result.command_status or b"").decode()
            await _end(self._connection)
            return None
        self._transformer.set_pgresult(result, set_loaders=not self._has_loaders)
        self._has_loaders = True
        row: Row = self._transformer.load_row(0, tuple)
        return row

    @property
    def waiting(self) -> bool:
        """Returns whether the next row has not arrived yet."""
        return bool(self._connection.pgconn.is_busy())


async def _start(connection: AsyncConnection[Any], text: bytes) -> PGresult:
    """Prepares, describes and executes a statement. Returns its description."""
    pgconn = connection.pgconn
    pgconn.send_prepare(b"", text)
    await _only_result(connection)
    pgconn.send_describe_prepared(b"")
    described = await _only_result(connection)
    pgconn.send_query_prepared(b"", None)
    pgconn.set_single_row_mode()
    await _flush(connection)
    return described


async def _run(connection: AsyncConnection[Any], text: bytes) -> PGresult:
    """Executes a statement. Returns its first result: a row, or its end."""
    connection.pgconn.send_query(text)
    connection.pgconn.set_single_row_mode()
    await _flush(connection)
    result = await _result(connection)
    assert result is not None
    if result.status not in ROWS:
        await _end(connection)
    _check(result)
    return result


async def _only_result(connection: AsyncConnection[Any]) -> PGresult:
    """Sends what waits to be sent, and returns the result of a command that has only one."""
    await _flush(connection)
    result = await _result(connection)
    assert result is not None
    await _end(connection)
    _check(result)
    return result


async def _flush(connection: AsyncConnection[Any]) -> None:
    """Sends the rest of a command that the socket has not taken."""
    if connection.pgconn.flush():
        await connection.wait(send(connection.pgconn))


async def _result(connection: AsyncConnection[Any]) -> PGresult | None:
    """Waits for the next result of a command; None at its end. psycopg's own wait takes three times as long."""
    pgconn = connection.pgconn
    try:
        while pgconn.is_busy():
            await _readable(pgconn.socket)
            pgconn.consume_input()
    except asyncio.CancelledError:
        with suppress(psycopg.Error):
            await connection.cancel_safe(timeout=CONNECT_S)
        raise
    return pgconn.get_result()


async def _end(connection: AsyncConnection[Any]) -> None:
    """Waits for the end of a command."""
    while await _result(connection) is not None:
        pass


async def _readable(socket: int) -> None:
    """Waits until a socket can be read."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()

    def read() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(socket, read)
    try:
        await ready
    finally:
        loop.remove_reader(socket)


def _columns(described: PGresult) -> tuple[Column, ...]:
    return tuple(((described.fname(i) or b"").decode(), described.ftype(i)) for i in range(described.nfields))


def _check(result: PGresult) -> None:
    """Raises the error of a result."""
    if result.status not in (*ROWS, ExecStatus.COMMAND_OK):
        raise psycopg.errors.error_from_result(result)
