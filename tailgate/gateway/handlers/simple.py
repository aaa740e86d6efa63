"""The simple query protocol: a text of one or more statements, each answered completely before the next one runs.

Query ──► [an answer in memory] ──► send
             └─ no ──► statements ──► dispatch.bind, dispatch.begin ──► delivery ──► … ──► ReadyForQuery
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from tailgate.gateway.execute import queries
from tailgate.gateway.execute.blocks import commits
from tailgate.gateway.handlers import delivery, dispatch, statement_log, texts
from tailgate.gateway.protocol import backend
from tailgate.gateway.protocol import messages as m
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.lanes import lane_of
from tailgate.gateway.session.statements.parsing import ParsedStatement
from tailgate.gateway.session.transactions import State
from tailgate.sql import statements as s


def ready_answer(session: Session, raw: bytes) -> bytes | None:
    """Returns the complete response to a Query if it is in memory, or None.

    May be called only while the session is idle and outside a transaction.
    """
    return session.gateway.answers.ready(raw, session.settings.style, session.naming.seen.scope, session.access.may)


def query(session: Session, message: m.Query) -> Awaitable[None]:
    session.execution.activity.asked(message.text)
    return _query(session, message.text)


async def _query(session: Session, raw: bytes) -> None:
    position = 0
    try:
        parts = await texts.statements(session, raw)
        logged = statement_log.started(session, (statement for statement, _ in parts), "statement", raw)
        if not parts:
            session.out.write(backend.EMPTY_QUERY_RESPONSE)
        session.portals.drop("")
        session.statements.pop("", None)
        for statement, text in parts:
            position = text.position
            await session.naming.catch_up()  # with changes of the previous statement
            if len(parts) > 1:
                session.execution.activity.part = text.text.encode()
                session.imply()
            await _run(session, statement, text, raw)
            session.statement_ended()
        if session.transaction.state is State.IMPLICIT:
            position = 0
            await commits.commit(session)
        if logged is not None:
            logged.ended()
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # sent to the client; logged if it is a bug
        # For a syntax error, `position` is 0: the parser reports the position in the whole text.
        session.fail(session.execution.reported(error), position)
    session.ready()


async def _run(session: Session, statement: ParsedStatement, text: s.StatementText, raw: bytes) -> None:
    """Runs one statement of a Query and sends its result."""
    bound = await dispatch.bind(session, statement, text, ())
    session.execution.activity.lane = lane_of(bound)
    dispatch.check_no_parameters(bound)
    if queries.reads_newest(session, bound):
        await delivery.deliver_newest(session, bound, raw)
        return
    result = await dispatch.begin(session, bound, ())
    formats = (0,) * len(bound.columns or ())
    if isinstance(statement, s.Fetch) and bound.columns is not None:
        formats = session.portals.formats(statement.cursor) or formats
    await delivery.deliver(session, result, formats, describe=True)
