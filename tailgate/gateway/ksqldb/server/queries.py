"""POST /query and /query-stream: a pull or push query or a PRINT, whose rows are sent as they arrive. POST /close-query ends a push query.

text ──► one query ──► a session of the gateway, row by row ──► form ──► chunks of about ROWS_BYTES
                                                    ▲ LIMIT, /close-query, disconnection, an error
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psycopg

from tailgate.gateway.asgi import limits as shared
from tailgate.gateway.asgi.responses import begun, completed
from tailgate.gateway.asgi.rows import Rows
from tailgate.gateway.asgi.sessions import Caller, Session, Sessions
from tailgate.gateway.ksqldb.server.http import errors, limits, media
from tailgate.gateway.ksqldb.server.http.errors import ApiError, StatementError, of_sql
from tailgate.gateway.ksqldb.server.http.forms import LIMIT_REACHED, QUERY_COMPLETED, Column, Delimited, Form
from tailgate.gateway.ksqldb.server.http.requests import StatementRequest
from tailgate.gateway.ksqldb.server.nested_values import Converter, converter
from tailgate.gateway.ksqldb.server.printing import print_text, printed
from tailgate.gateway.ksqldb.server.pull_texts import PullTexts
from tailgate.gateway.ksqldb.server.statements import Parsed, prepare, texts_of
from tailgate.sql.ksqldb import statements as k
from tailgate.sql.statements import split

LEADING = 2  # columns of a push query's result: the time, whose name is the id of the query, and tombstone


@dataclass(slots=True, eq=False)
class Push:
    """A running push query or PRINT of a user.

    `id`: as SHOW QUERIES lists it, '' before the start and of a PRINT. `closed`: whether /close-query or the server has ended it.
    """

    caller: Caller
    session: Session
    id: str = ""
    closed: bool = False

    def close(self) -> None:
        """Ends the query."""
        self.closed = True
        self.session.interrupt()


class Queries:
    """The queries of a server."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._push: list[Push] = []
        self._pulls = 0
        self._texts = PullTexts()

    @property
    def running(self) -> int:
        """Returns the number of running queries."""
        return len(self._push) + self._pulls

    async def run(
        self, caller: Caller, request: StatementRequest, form: Form, *, prints: bool = True
    ) -> bytes | AsyncGenerator[bytes, None]:
        """Starts a query and returns its result, or the parts of a long one. Raises ApiError for a query that does not start.

        `prints`: whether the media type of the response is one of PRINT, whose lines are not JSON.
        """
        if (text := self._texts.find(request)) is not None:
            return await self._pulled(caller, request, text, form)
        if (text := print_text(request)) is not None:
            if not prints:
                raise ApiError(errors.NOT_ACCEPTABLE, f"Not Acceptable. Supported media types of PRINT: {media.DELIMITED}")
            self._check_running()
            return await begun(self._printed(caller, request, text))
        part = one_query(request)
        assert isinstance(part.statement, k.PushQuery)
        if not part.statement.query.emit:
            self._texts.add(request, part.text)
            return await self._pulled(caller, request, part.text, form)
        self._check_running()
        return await begun(self._pushed(caller, request, part, form))

    def _check_running(self) -> None:
        """Raises 429 if STREAMS_MAX queries run."""
        if self.running >= limits.STREAMS_MAX:
            raise ApiError(errors.TOO_MANY, f"The server runs at most {limits.STREAMS_MAX} queries")

    async def close(self, caller: Caller, id: str) -> None:
        """Ends a push query of the same user. Raises 400 if there is none."""
        push = next((push for push in self._push if id and push.id == id and push.caller.key == caller.key), None)
        if push is None:
            raise ApiError(errors.BAD_REQUEST, f"No query with id {id}")
        push.close()

    async def close_all(self) -> None:
        """Ends all push queries and PRINTs."""
        for push in list(self._push):
            push.close()

    async def _pulled(self, caller: Caller, request: StatementRequest, text: str, form: Form) -> bytes | AsyncGenerator[bytes, None]:
        self._check_running()
        return await completed(self._pull(caller, request, text, form))

    async def _pull(self, caller: Caller, request: StatementRequest, text: str, form: Form) -> AsyncGenerator[bytes, None]:
        self._pulls += 1
        try:
            async with self._sessions.session(caller) as session:
                await prepare(session, request)
                try:
                    rows = await Rows.answered(session, text)
                    row = await rows.next()
                except psycopg.Error as error:
                    raise StatementError(of_sql(error, text), text) from None
                columns, converted = _columns(rows, 0)
                data = form.header(None, columns)
                while row is not None:
                    try:
                        data += form.row(converted(row), tombstone=False)
                        if len(data) >= shared.ROWS_BYTES:
                            yield data
                            data = b""
                        row = await rows.next()
                    except (psycopg.Error, ApiError) as error:
                        await session.connection.close()
                        yield data + form.error(_failure(error))
                        return
                yield data + form.end(QUERY_COMPLETED)
        finally:
            self._pulls -= 1

    async def _pushed(self, caller: Caller, request: StatementRequest, part: Parsed, form: Form) -> AsyncGenerator[bytes, None]:
        async with self._started(caller, request, part.text) as (push, rows):
            push.id = rows.columns[0][0]
            columns, converted = _columns(rows, LEADING)
            yield form.header(push.id, columns)
            async for data in _changes(rows, push, form, converted):
                yield data

    async def _printed(self, caller: Caller, request: StatementRequest, text: str) -> AsyncGenerator[bytes, None]:
        async with self._started(caller, request, text) as (push, rows):
            try:
                await rows.next()
            except psycopg.Error as error:
                raise StatementError(of_sql(error, text), text) from None
            yield b""  # the response begins before the first record
            try:
                async for data in printed(rows):
                    yield data
            except psycopg.Error as error:
                if not push.closed:
                    yield f"{of_sql(error).message}\n".encode()

    @asynccontextmanager
    async def _started(self, caller: Caller, request: StatementRequest, text: str) -> AsyncIterator[tuple[Push, Rows]]:
        """Starts a query that continues, and ends it with the block. Raises ApiError if it does not start."""
        async with self._sessions.stream(caller) as session:
            push = Push(caller, session)
            self._push.append(push)
            try:
                await prepare(session, request)
                try:
                    rows = await Rows.started(session, text)
                except psycopg.Error as error:
                    raise StatementError(of_sql(error, text), text) from None
                yield push, rows
            finally:
                self._push.remove(push)


async def _changes(rows: Rows, push: Push, form: Form, converted: Converter) -> AsyncGenerator[bytes, None]:
    """Returns the changes of a push query and its end.

    In the delimited form, each row is a part of the response: npm's ksqldb-client parses each DATA frame of HTTP/2 as one row.
    """
    data, apart = b"", isinstance(form, Delimited)
    try:
        while (row := await rows.next()) is not None:
            data += form.row(converted(row[LEADING:]), tombstone=row[LEADING - 1] == b"true")
            if data and (apart or rows.waiting or len(data) >= shared.ROWS_BYTES):
                yield data
                data = b""
                if apart:
                    await asyncio.sleep(0)  # the server sends this row as one frame
    except (psycopg.Error, ApiError) as error:
        if not push.closed:
            yield data + form.error(_failure(error))
            return
    yield data + form.end(QUERY_COMPLETED if push.closed else LIMIT_REACHED)


def _failure(error: psycopg.Error | ApiError) -> ApiError:
    """Returns the error of a query that fails after its header was sent: one of the gateway, or of a value that the form lacks."""
    return error if isinstance(error, ApiError) else of_sql(error)


def _columns(rows: Rows, skipped: int) -> tuple[tuple[Column, ...], Converter]:
    """Returns the columns of a result without the leading ones, and the function that writes the values of its rows."""
    columns = tuple(Column.of(name) for name, _ in rows.columns[skipped:])
    return columns, converter(columns, [oid for _, oid in rows.columns[skipped:]])


def one_query(request: StatementRequest) -> Parsed:
    """Returns the query of a request. Raises 400 for another statement, or for several of them."""
    try:
        parts = texts_of(request.text, request.variables)
    except StatementError as error:
        if error.code == errors.QUERY_ENDPOINT:  # a PRINT among other statements
            raise _several(len(split(request.text, "ksqldb"))) from None
        raise
    if len(parts) != 1:
        raise _several(len(parts))
    if not isinstance(parts[0].statement, k.PushQuery):
        name = type(parts[0].statement).__name__
        raise StatementError(ApiError(errors.BAD_STATEMENT, f"Statement type `{name}` not supported for this resource"), parts[0].shown)
    return parts[0]


def _several(count: int) -> ApiError:
    """Returns the error for a request with another number of statements than one."""
    return ApiError(errors.BAD_STATEMENT, f"Expected exactly one KSQL statement; found {count} instead")
