"""The simple query protocol: a text of one or more statements, each answered completely before the next one runs.

Query ──► [a cached result] ──► send
             └─ no ──► statements ──► routes.bind, routes.begin ──► delivery ──► … ──► ReadyForQuery
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from tailgate.gateway.answers.lookups import answer_rows
from tailgate.gateway.answers.polls import Poll
from tailgate.gateway.encode.parameters import utf8
from tailgate.gateway.encode.rows import description
from tailgate.gateway.execute import committing, dispatch
from tailgate.gateway.handlers import delivery
from tailgate.gateway.protocol import backend
from tailgate.gateway.protocol import messages as m
from tailgate.gateway.session import statement_cache
from tailgate.gateway.session.portals import TableRows
from tailgate.gateway.session.transactions import Move, State
from tailgate.lake import errors as e
from tailgate.sql import statements as s

if TYPE_CHECKING:
    from tailgate.gateway.session.session import Session


def ready_answer(session: Session, raw: bytes) -> bytes | None:
    """Returns the complete response to a Query if it is cached or a look-up can answer it, or None.

    May be called only while the session is idle and outside a transaction.
    """
    style = session.settings.style
    scope = session.naming.seen.scope
    poll = session.gateway.polls.find((raw, style, scope))
    if poll is not None:
        return poll.ready if session.access.may(poll.query.plan) else None
    return session.gateway.lookups.answer(raw, style, scope, session.access)


def query(session: Session, message: m.Query) -> Awaitable[None]:
    session.activity.asked(message.text)
    return _query(session, message.text)


async def _query(session: Session, raw: bytes) -> None:
    position = 0
    try:
        parts = await session.gateway.texts.read(utf8(raw))
        if not parts:
            session.out.write(backend.EMPTY_QUERY_RESPONSE)
        session.drop_portal("")
        session.statements.pop("", None)
        for statement, text in parts:
            position = text.position
            await session.naming.catch_up()  # with changes of the previous statement
            dispatch.check_failed(session, statement)
            if len(parts) > 1:
                session.transaction.move(Move.IMPLY)
            await _simple(session, statement, text, raw)
        if session.transaction.state is State.IMPLICIT:
            position = 0
            await committing.commit(session)
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError):
            reason = session.interruption()
            if reason is None:
                raise
            error = e.QueryCanceled(reason)
        # For a syntax error, `position` is 0: the parser reports the position in the whole text.
        session.fail(error, position)
    session.ready()


async def _simple(session: Session, statement: statement_cache.Known, text: s.StatementText, raw: bytes) -> None:
    bound = await dispatch.bind(session, statement, text, ())
    if bound.parameters:
        raise e.UndefinedParameter("there is no parameter $1", position=_parameter(text.text))
    if dispatch.reads_newest(session, bound):
        assert bound.prepared is not None
        query = session.access.authorize(bound.prepared)
        formats = (0,) * len(bound.prepared.columns)
        lookup = session.gateway.lookups.of(bound.prepared)
        if lookup is not None:
            rows = await session.gateway.lookups.rows_soon(lookup, query, ())
            if rows is not None:
                if text.position == 0:
                    session.gateway.lookups.learn(raw, session.naming.seen.scope, bound.prepared, lookup)
                described = backend.row_description(description(bound.prepared.columns), formats)
                session.out.write(described + answer_rows(rows, lookup, formats, session.settings.style))
                return
        answer = await delivery.poll(session, (raw, session.settings.style, session.naming.seen.scope), bound, query, (), formats)
        if isinstance(answer, Poll):
            session.out.write(answer.description + answer.rows)
            return
        result: dispatch.Result = TableRows(bound.prepared.columns, answer)
    else:
        result = await dispatch.begin(session, bound, (), ())
    formats = (0,) * len(bound.columns or ())
    if isinstance(statement, s.Fetch) and bound.columns is not None:
        cursor = session.portals.get(statement.cursor)
        formats = cursor.formats if cursor is not None else formats
    await delivery.deliver(session, result, formats, describe=True)


def _parameter(text: str) -> int | None:
    at = text.find("$")
    return at if at >= 0 else None
