"""The handlers of a session's messages, by type.

    Message ──► Machine.accept ──► HANDLERS: startup, simple, extended ──► dispatch ──► delivery ──► out

`receive` answers some messages immediately: start-up, Bind, Sync, and a poll whose result is cached. For all others it returns a
coroutine. The connection runs one coroutine at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from tailgate.gateway.execute.blocks import commits
from tailgate.gateway.handlers import extended, simple, startup
from tailgate.gateway.protocol import messages as m
from tailgate.gateway.protocol.states import Phase, ProtocolError, Verdict
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.transactions import State
from tailgate.lake import errors as e

NAMING = (m.Parse, m.Bind, m.Execute)  # messages that refer to catalog objects; a Query catches up before each of its statements

Work = Coroutine[Any, Any, None]
Handler = Callable[[Session, Any], "Awaitable[None] | None"]


def receive(session: Session, message: m.Message) -> Work | None:
    """Handles a message. Returns a coroutine if the rest of the work takes time."""
    session.execution.stop_idle()
    if isinstance(message, m.Malformed):
        _malformed(session, message)
        return None
    try:
        if session.machine.accept(message) is Verdict.IGNORE:
            return None
    except ProtocolError as error:
        session.fatal(error.sqlstate, str(error))
        return None
    handler = HANDLERS[type(message)]
    if session.naming.behind and isinstance(message, NAMING):
        return session.run(_caught_up(session, handler, message))
    try:
        rest = handler(session, message)
    except Exception as error:  # noqa: BLE001  # sent to the client; logged if it is a bug
        session.fail(error)
        return None
    return None if rest is None else session.run(rest)


async def _caught_up(session: Session, handler: Handler, message: m.Message) -> None:
    await session.naming.catch_up()
    rest = handler(session, message)
    if rest is not None:
        await rest


def _malformed(session: Session, message: m.Malformed) -> None:
    if session.machine.malformed(message) is Verdict.IGNORE:
        return
    if message.fatal or session.machine.phase is Phase.CLOSED:
        session.fatal(message.sqlstate, message.reason)
        return
    session.fail(e.of(message.sqlstate, message.reason))
    if message.letter in ("Q", "F", "S"):
        session.ready()


def terminate(session: Session, message: m.Terminate) -> None:
    session.out.close()


def sync(session: Session, message: m.Sync) -> Awaitable[None] | None:
    if session.transaction.state is State.IMPLICIT:
        return _commit(session)
    session.ready()
    return None


async def _commit(session: Session) -> None:
    """Commits an implicit transaction, at Sync."""
    try:
        await commits.commit(session)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # sent to the client; logged if it is a bug
        session.fail(session.execution.reported(error))
    session.ready()


def flush(session: Session, message: m.Flush) -> None:
    session.out.flush()


def function_call(session: Session, message: m.FunctionCall) -> None:
    session.fail(e.FeatureNotSupported("fastpath function calls are not supported"))
    session.ready()


HANDLERS: dict[type[m.Message], Handler] = {
    m.SSLRequest: startup.encrypt,
    m.GSSENCRequest: startup.refuse_encryption,
    m.CancelRequest: startup.cancel,
    m.StartupMessage: startup.start,
    m.PasswordMessage: startup.password,
    m.Terminate: terminate,
    m.Query: simple.query,
    m.Parse: extended.parse,
    m.Bind: extended.bind,
    m.Describe: extended.describe,
    m.Execute: extended.execute,
    m.Close: extended.close,
    m.Flush: flush,
    m.Sync: sync,
    m.FunctionCall: function_call,
}
