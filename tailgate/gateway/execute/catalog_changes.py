"""Statements that the engine executes: changes of the catalog, and requests for information.

text ──► names resolved and ownership checked in one catalog ──► engine, with the resolution ──► durable ──► mirrors ──► answer
                 ▲                                                 └── 40001: a resolved name has changed
                 └─────────────────────────────────────────────────┘
in a transaction: the engine plans the statement over its changes ──► the session's catalog; its end sends all (`blocks.commits`)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from tailgate.gateway.control import NoticeHandler
from tailgate.gateway.execute import committing
from tailgate.gateway.execute.temporary import relations as temporary_relations
from tailgate.gateway.security.ownership import check_change
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.parsing import LongWrite
from tailgate.gateway.session.statements.portals import Bound
from tailgate.lake import errors as e
from tailgate.lake.catalog import Subscription
from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.control import Notice, StatementResult
from tailgate.lake.passwords import kept
from tailgate.lake.types import TIMESTAMPTZ
from tailgate.lake.uncommitted import Uncommitted
from tailgate.sql import statements as s
from tailgate.sql.ksqldb.declared.defaults import DEFAULTS
from tailgate.sql.ksqldb.dialect import HTTP
from tailgate.sql.ksqldb.limits import LIMITS
from tailgate.sql.name_resolution import resolve
from tailgate.sql.statements.kinds import Place, running_at
from tailgate.values.codec.style import Style
from tailgate.values.registry import read_text
from tailgate.values.times.dates import write_timestamptz

Result = TypeVar("Result")

CHANGING = running_at(Place.CATALOG)
KSQLDB = (s.FollowKsqldb, s.CreateKsqldbItem, s.AlterKsqldbItem, s.CreateKsqldbType, s.DropKsqldbType, s.InsertMessage, s.InsertStream)
OPTIONS = frozenset("GLOBAL LOCAL OR RECURSIVE REPLACE TEMP TEMPORARY UNIQUE UNLOGGED".split())  # words before the kind of an object
ATTEMPTS_MAX = 5  # executions of a statement, if its names change between the check and the execution
SUBSCRIPTIONS_EACH = 100  # subscriptions per role, except superusers
MIRROR_TIMEOUT_S = 5.0  # a statement's entry is normally in this gateway's mirrors within milliseconds


async def run(session: Session, bound: Bound, statement: s.Statement, values: Sequence[object]) -> str:
    """Executes a change of the catalog and returns its tag.

    Statements about temporary relations are executed by the session, all others by the engine. Waits until the change is in the mirrors.
        For the HTTP API, the tag ends with the number of the statement's log entry. Inside a transaction, the change is part of it.
    Raises 25001 there for statements that have other effects than on the catalog.
    """
    _check_alone(session, statement)
    session.settings.check_writable(verb(bound.text))
    if session.transaction.pending:
        if (tag := await temporary_relations.answer(session, bound)) is not None:
            return tag
        return (await define(session, bound)).tag
    session.out.flush()
    await caught_up(session)
    if (tag := await temporary_relations.answer(session, bound)) is not None:
        return tag
    if isinstance(statement, s.CreateSubscription):
        _check_subscriptions(session)

    tell = partial(send_notice, session)
    result = await send(session, bound, tell)
    for notice in result.notices:
        tell(notice)
    if result.time:
        await session.serving.progress.wait(result.time - 1, MIRROR_TIMEOUT_S)
    return _numbered(result) if session.settings.dialect == HTTP else result.tag


def _numbered(result: StatementResult) -> str:
    """Returns the tag of a statement with the number of its log entry at the end. That of INSERT has it in place of the number of rows."""
    words = result.tag.split()
    return " ".join([*(words[:-1] if words[-1].isdigit() else words), str(result.n)])


def send_notice(session: Session, notice: Notice) -> None:
    """Sends a notice of the engine to the client at once."""
    session.notice(notice.message, notice.severity, notice.sqlstate, notice.hint, notice.detail)
    session.out.flush()


async def define(session: Session, bound: Bound, text: str | None = None) -> StatementResult:
    """Adds a change of the catalog to the session's transaction and returns the engine's answer.

    `text`: for the engine, in place of the statement that was typed, whose names `bound` has.
    """
    session.settings.check_writable(verb(bound.text))
    await committing.settle(session)
    await caught_up(session)
    transaction = session.transaction
    block = (transaction.definitions or Uncommitted()).moved(transaction.sequences)
    result = await send(session, bound, text=text, block=block)
    assert result.block is not None
    if session.portals:
        before, after = session.naming.durable.items, result.block.applied(session.serving.progress.catalog).items
        session.portals.check_unused((item for id, item in before.items() if id not in after), "DROP TABLE")
    await session.serving.progress.wait(result.time - 1, MIRROR_TIMEOUT_S)
    await session.naming.define(result.block)
    for notice in result.notices:
        session.notice(notice.message, notice.severity, notice.sqlstate, notice.hint, notice.detail)
    return result


def check_outside_block(session: Session, words: str) -> None:
    """Raises 25001 in a transaction, also in an implicit one. `words`: the statement."""
    if session.transaction.pending:
        raise e.ActiveSqlTransaction(f"{words} cannot run inside a transaction block")


def check_concurrently(session: Session, statement: s.Statement) -> None:
    """Raises 25001 in a transaction for CREATE and DROP INDEX CONCURRENTLY, which otherwise are as without the word."""
    if isinstance(statement, s.CreateIndex | s.Drop) and statement.concurrently:
        check_outside_block(session, f"{'DROP' if isinstance(statement, s.Drop) else 'CREATE'} INDEX CONCURRENTLY")


def _check_alone(session: Session, statement: s.Statement) -> None:
    """Raises 25001 in a transaction for statements with effects outside of the catalog: DELETE TOPIC, and connectors."""
    if isinstance(statement, s.Drop) and statement.delete_topic:
        check_outside_block(session, "DROP … DELETE TOPIC")
    if isinstance(statement, s.ChangeConnector):
        check_outside_block(session, "CREATE and DROP CONNECTOR")


def verb(text: str) -> str:
    """Returns the words that name a statement in messages."""
    words = [word for word in text.upper().split(None, 7) if word not in OPTIONS][:3]
    return " ".join(words[: 3 if "MATERIALIZED" in words else 1 if words[0] in ("COMMENT", "GRANT", "REVOKE") else 2])


def _check_subscriptions(session: Session) -> None:
    """Raises 53400 if the role has too many subscriptions. Each of them prevents the removal of log entries."""
    role = session.access.role
    count = sum(item.owner == role.id for item in session.serving.progress.catalog.each(Subscription))
    if count >= SUBSCRIPTIONS_EACH and not role.superuser:
        raise e.ConfigurationLimitExceeded(
            "too many subscriptions", detail=f"A role can own {SUBSCRIPTIONS_EACH}.", hint="Drop subscriptions that are not used."
        )


async def send(
    session: Session, bound: Bound, tell: NoticeHandler | None = None, *, text: str | None = None, block: Uncommitted | None = None
) -> StatementResult:
    """Sends a statement to the engine and returns its answer.

    `text`: in place of the statement's own. `block`: the uncommitted changes of the session's block, over which the engine plans it.

    Resolves the names and checks ownership first. If the engine finds that a name has changed since (40001), tries again up to
    ATTEMPTS_MAX times. `tell` receives notices while the statement runs.
    """
    assert not isinstance(bound.statement, LongWrite)
    statement, sent = bound.statement, with_stored_values(bound, session.settings.style) if text is None else text

    async def execute(resolution: Resolution) -> StatementResult:
        return await withdrawable(session, session.control.statement(sent, settings_of(session, statement), resolution, tell, block))

    return await resolved(session, statement, bound.text, execute)


async def resolved(
    session: Session, statement: s.Statement, text: str, execute: Callable[[Resolution], Coroutine[Any, Any, Result]]
) -> Result:
    """Executes a statement with the resolution of the names in its text, up to ATTEMPTS_MAX times. See `send`."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        await session.naming.catch_up()
        catalog, base = session.catalog, session.naming.durable
        resolution = await session.serving.workers.run_bounded(resolve, text, catalog, base)
        check_change(statement, session.access.role, base.with_resolution(resolution), session.client.database)
        try:
            return await execute(resolution)
        except e.SerializationFailure:
            if attempt == ATTEMPTS_MAX or session.naming.conflicting:
                raise
        await caught_up(session)
    raise AssertionError("the last attempt returns or raises")


async def withdrawable(session: Session, execution: Coroutine[Any, Any, Result]) -> Result:
    """Returns the result of an execution in the engine. If the statement is canceled, waits until the engine has undone it.

    As in PostgreSQL, a statement that has taken effect succeeds although it was canceled.
    """
    task = asyncio.ensure_future(execution)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        reason = session.execution.interruption()
        await asyncio.wait((task,))
        if reason is None:
            raise
        if task.cancelled():
            raise e.QueryCanceled(reason) from None
        return task.result()


def settings_of(session: Session, statement: s.Statement | None = None) -> dict[str, str]:
    """Returns the settings and the role on which a statement's meaning depends, for the engine."""
    values = {name: session.settings[name] for name in ("timezone", "datestyle", "intervalstyle", "auto.offset.reset", *LIMITS, *DEFAULTS)}
    # INSERT and ALTER TABLE are ksqlDB's by their table, not by their words. Without a statement, the text is Tailgate's own.
    explains = isinstance(statement, s.Explain) and isinstance(statement.target, s.QueryId | s.KsqldbQuery)
    dialect = HTTP if explains else "ksqldb" if isinstance(statement, KSQLDB) else session.settings.dialect
    dialect = "postgresql" if statement is None else dialect
    return {**values, "tailgate.dialect": dialect, "role": session.access.role.name}


async def caught_up(session: Session) -> None:
    """Waits until the mirrors contain the newest log entry, which another gateway may have caused."""
    newest = session.gateway.lake.log.look()
    if newest is not None:
        await session.serving.progress.wait(newest.time - 1, MIRROR_TIMEOUT_S)


def with_stored_values(bound: Bound, style: Style) -> str:
    """Returns the statement's text with the values of a role that are stored.

    A verifier is in place of the password, which never leaves this process, and the timestamp of VALID UNTIL has its time zone.
    """
    options, text = getattr(bound.statement, "options", None), bound.text
    if not isinstance(options, s.RoleOptions):
        return text
    values: dict[tuple[int, int], str] = {}
    if options.password and options.password_at is not None:
        values[options.password_at] = kept(options.password)
    if options.until is not None and options.until_at is not None:
        values[options.until_at] = zoned(options.until, style)
    for (begin, end), value in sorted(values.items(), reverse=True):
        text = f"{text[:begin]}'{value}'{text[end:]}"
    return text


def zoned(text: str, style: Style) -> str:
    """Returns a timestamp of a session's style in UTC. Raises 22007."""
    moment = read_text(text, TIMESTAMPTZ, style)
    assert isinstance(moment, int)
    return write_timestamptz(moment, "UTC").decode()
