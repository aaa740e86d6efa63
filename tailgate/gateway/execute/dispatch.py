"""The dispatch of statements by kind: `bind` resolves their names, `begin` runs them.

    SELECT, VALUES …            serving, or the catalog's tables         ──► rows
    TAIL, COPY, cursors         tail, encode.copying, portals            ──► rows, possibly without an end
    SHOW, EXPLAIN               show, control                            ──► rows
    INSERT, UPDATE, DELETE, …   writing                                  ──► rows of RETURNING, or a tag
    CREATE, DROP                the engine, by control                   ──► a tag
    SET, BEGIN, PREPARE, …      the session itself                       ──► a tag

Errors have positions in the statement's own text. The session adds the statement's position in the query string.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from tailgate.gateway.catalog.catalog_query import CatalogQuery
from tailgate.gateway.encode.copying import CopyEncoder
from tailgate.gateway.execute import (
    catalog_changes,
    commands,
    committing,
    copy_in,
    cursors,
    show,
    subscriptions,
    temporary_views,
    time_expressions,
)
from tailgate.gateway.execute import table_writes as writes
from tailgate.gateway.handlers import extended
from tailgate.gateway.results import tail
from tailgate.gateway.results.copying import CopyOut, copy_options
from tailgate.gateway.results.envelopes import shape_of
from tailgate.gateway.serving.prepared import explained
from tailgate.gateway.session.portals import Bound, CatalogBound, Rows, TableRows, Tagged, check_result
from tailgate.gateway.session.statement_cache import Known, LongWrite
from tailgate.gateway.session.transactions import State
from tailgate.gateway.settings.settings import milliseconds
from tailgate.lake import errors as e
from tailgate.lake.failed import failure
from tailgate.lake.types import TEXT, UNKNOWN, Field, Type
from tailgate.sql import statements as s
from tailgate.sql.authorization import Followed
from tailgate.sql.statements.kinds import KINDS

if TYPE_CHECKING:
    from tailgate.gateway.serving.prepared import Prepared
    from tailgate.gateway.session.session import Session

Result = Rows | str | CopyOut


def check_failed(session: Session, statement: Known) -> None:
    """Raises 25P02 in a failed block, unless the statement ends it or returns to a savepoint."""
    if session.transaction.state is State.FAILED and not (type(statement) in KINDS and KINDS[type(statement)].ends_failed_block):
        raise e.InFailedSqlTransaction("current transaction is aborted, commands ignored until end of transaction block")


# --- bind ----------------------------------------------------------------------------------------------------------------


async def bind(session: Session, statement: Known, text: s.StatementText, oids: Sequence[int]) -> Bound:
    """Resolves the names of a statement, and determines the columns and parameters that Describe returns."""
    bound = Bound(statement, text.text, text.position, catalog=session.catalog)
    match statement:
        case s.Select():
            return await _bind_select(session, bound, statement, oids)
        case s.Tail():
            return await _bind_tail(session, bound, statement, oids)
        case s.CopyTo(statement=inner):
            body = await bind(session, inner, text, oids)
            return replace(bound, parameters=body.parameters, body=body)
        case s.Insert() | s.Update() | s.Delete() | s.Truncate() | LongWrite():
            return await writes.bind(session, bound, statement, oids)
        case s.CopyFrom():
            return copy_in.bind(session, bound, statement)
        case s.DeclareCursor(statement=inner):
            body = await bind(session, inner, text, oids)
            return replace(bound, parameters=body.parameters, body=body)
        case s.Fetch(cursor=name):
            portal = session.portals.get(name)
            return bound if portal is None or statement.move else replace(bound, columns=portal.bound.columns)
        case s.FetchSubscription():
            return replace(bound, **await subscriptions.bind(session, bound, statement, oids))
        case s.Acknowledge():
            bound = replace(bound, **await subscriptions.bind(session, bound, statement, oids))
            return bound if bound.prepared is None else replace(bound, parameters=_declared(bound.prepared.parameters, oids))
        case s.Execute(name=name):
            prepared = session.statements.get(name)
            if prepared is None:
                raise e.InvalidSqlStatementName(f'prepared statement "{name}" does not exist')
            return replace(bound, columns=prepared.bound.columns)
        case s.Show():
            return replace(bound, columns=show.columns(statement, session.settings))
        case s.Explain():
            return replace(bound, columns=(Field("QUERY PLAN", TEXT),))
        case s.Print():
            return replace(bound, columns=(Field("record", TEXT),))
        case _:
            return bound


async def _bind_select(session: Session, bound: Bound, statement: s.Select, oids: Sequence[int]) -> Bound:
    serving = session.serving
    seen = session.naming.seen
    found = await serving.analyzed(statement, oids, seen)
    if isinstance(found, CatalogQuery):
        told = await serving.describe_catalog(session.access.authorize(found), session, seen.catalog)
        return replace(bound, columns=told.fields, parameters=found.parameters, is_catalog=True, body=CatalogBound(found, told))
    return replace(bound, columns=found.columns, parameters=_declared(found.parameters, oids), prepared=found)


def _declared(types: Sequence[Type], oids: Sequence[int]) -> tuple[Type, ...]:
    """Replaces unknown parameter types by text, as PostgreSQL does."""
    return tuple(TEXT if t == UNKNOWN else t for t in types)


async def _bind_tail(session: Session, bound: Bound, statement: s.Tail, oids: Sequence[int]) -> Bound:
    target = statement.target
    if isinstance(target, s.Name):
        item = session.catalog.relation(target)
        if item.stored:
            if not item.ready:
                raise e.ObjectNotInPrerequisiteState(
                    f'{item.kind} "{item.name}" is still being filled', hint="It can be read when its CREATE statement has answered."
                )
            shape = shape_of(item.columns, statement.envelope, statement.order)
            return replace(bound, columns=tail.columns(shape, statement.progress), body=tail.Target(item, shape))
        target = time_expressions.of_relation(target)
    prepared = await session.serving.prepared(target, oids, session.naming.seen)
    parameters = _declared(prepared.parameters, oids)
    shape = shape_of(prepared.columns, statement.envelope, statement.order)
    columns = tail.columns(shape, statement.progress)
    return replace(bound, columns=columns, parameters=parameters, prepared=prepared, body=tail.Target(None, shape))


# --- begin ---------------------------------------------------------------------------------------------------------------


async def begin(session: Session, bound: Bound, values: Sequence[object], formats: Sequence[int], at: int | None = None) -> Result:
    """Runs a statement. Returns its rows, or the command tag if it has none.

    `formats`: the format codes of the result. `at`: for the TAIL of a cursor, the time of DECLARE.
    """
    statement = bound.statement
    match statement:
        case s.Select():
            return await _select(session, bound, statement, values)
        case s.Tail():
            return await _tail(session, bound, statement, values, at)
        case s.CopyTo():
            encoder = CopyEncoder(bound.body.columns or (), copy_options(statement), session.settings.style)
            rows = await begin(session, bound.body, values, ())
            assert not isinstance(rows, (str, CopyOut))
            return CopyOut(encoder, rows)
        case s.Show(what="errors"):
            serving = session.serving
            views = show.failing(statement, session.catalog, session.access)
            table = await asyncio.to_thread(show.errors, views, session.gateway.lake, session.catalog, serving.time)
            return Tagged(TableRows(bound.columns or (), table), "SHOW", counted=False)
        case s.Show(what="topics") | s.Print():
            session.access.check_superuser("look into topics")
            lines = (await catalog_changes.sent(session, bound)).lines
            said = (
                show.topics(statement, lines) if isinstance(statement, s.Show) else pa.table([pa.array(lines, pa.string())], names=["c0"])
            )
            return Tagged(TableRows(bound.columns or (), said), "SHOW" if isinstance(statement, s.Show) else "PRINT", counted=False)
        case s.Show(what="subscriptions"):
            status = {"subscriptions": await asyncio.to_thread(session.subscriptions)}
            table = show.answer(statement, session.catalog, session.settings, session.database, status, session.may_see)
            return Tagged(TableRows(bound.columns or (), table), "SHOW", counted=False)
        case s.Show():
            status = await session.control.status() if show.needs_engine(statement) else {}
            table = show.answer(statement, session.catalog, session.settings, session.database, status, session.may_see)
            return Tagged(TableRows(bound.columns or (), table), "SHOW", counted=False)
        case s.Explain():
            lines = pa.table([pa.array(await _explain(session, bound, statement), pa.string())], names=["c0"])
            return Tagged(TableRows(bound.columns or (), lines), "EXPLAIN", counted=False)
        case s.Fetch():
            return await cursors.fetch(session, bound, statement)
        case s.FetchSubscription():
            return await subscriptions.fetch(session, bound, statement)
        case s.Execute():
            return await _execute(session, bound, statement, formats)
        case s.Insert() | s.Update() | s.Delete() | s.Truncate() | s.CopyFrom() | LongWrite() if session.settings.as_of is not None:
            raise e.ReadOnlySqlTransaction("rows cannot be written while tailgate.as_of is set", hint="RESET tailgate.as_of.")
        case s.Insert() | s.Update() | s.Delete() | s.Truncate() | LongWrite():
            return await writes.begin(session, bound, values)
        case s.CopyFrom():
            return await copy_in.run(session, bound, values)
        case _ if isinstance(statement, catalog_changes.CHANGING):
            return await catalog_changes.change_catalog(session, bound)
        case _:
            command = commands.COMMANDS.get(type(statement))
            if command is None:
                raise e.FeatureNotSupported(f"{type(statement).__name__} is not supported")
            answer = command(session, bound, statement, values)
            return answer if isinstance(answer, str) else await answer


async def _explain(session: Session, bound: Bound, statement: s.Explain) -> Sequence[str]:
    """Returns the lines of EXPLAIN: for a query the plan that is run, for views and other statements the engine's answer."""
    target = statement.target
    if isinstance(target, s.Tail):
        target = (
            s.Select(target.target) if isinstance(target.target, s.QueryText) else s.Select(time_expressions.of_relation(target.target))
        )
    if isinstance(target, s.Select):
        found = await session.serving.analyzed(target, (), session.naming.seen)
        if isinstance(found, CatalogQuery):
            raise e.FeatureNotSupported("EXPLAIN of a query of the system catalog is not supported")
        return await session.serving.workers.aside(explained, session.access.authorize(found).plan.packed)
    await temporary_views.answer(session, bound)
    return (await catalog_changes.sent(session, bound)).lines


def is_poll(bound: Bound) -> bool:
    """Returns whether the statement is a SELECT without AS OF that reads no failed view, so its result may be cached."""
    prepared = bound.prepared
    return isinstance(bound.statement, s.Select) and prepared is not None and bound.statement.as_of is None and prepared.failed_at is None


def reads_newest(session: Session, bound: Bound) -> bool:
    """Returns whether the statement is a poll that reads at the newest time, so a cached result may answer it."""
    return session.reads_newest and is_poll(bound)


def _failed_at(session: Session, prepared: Prepared) -> int | None:
    """Returns the time of the last tick before a view of the query failed, or None. Sends a WARNING for each failed view.

    In a block that has not read anything before, this becomes the time of the whole block.
    """
    if prepared.failed_at is None or session.transaction.time is not None:
        return None
    for item in prepared.items:
        if (why := failure(item)) is not None:
            message = why.message if session.may_see(item) else f'{item.kind} "{item.name}" has failed'
            session.notice(message, "WARNING", "01000", detail=f"The query reads all relations as of {prepared.failed_at}.")
    if session.transaction.state is not State.IDLE:
        session.transaction.read_at(session.serving, prepared.failed_at)
        return None
    return prepared.failed_at


async def _select(session: Session, bound: Bound, statement: s.Select, values: Sequence[object]) -> Rows:
    serving = session.serving
    columns = bound.columns or ()
    if bound.is_catalog:
        body: CatalogBound = bound.body
        query = session.access.authorize(body.query)
        status = await session.control.status() if body.query.asks_engine else None
        return TableRows(columns, await serving.run_catalog(query, body.told, values, session, session.catalog, status))
    assert bound.prepared is not None
    plan = session.access.authorize(bound.prepared)
    at = session.settings.as_of
    if statement.as_of is not None:
        at = await time_expressions.as_of(session, statement.as_of, bound.prepared.relations)
    elif at is not None:
        await time_expressions.check_readable(serving, at, bound.prepared.relations)
    else:
        at = _failed_at(session, bound.prepared)
    if at is not None:
        while serving.time < at:
            await serving.wait(serving.time, 1.0)
        snapshot = serving.snapshot(at)
        try:
            return TableRows(columns, await serving.run(plan, values, at=snapshot))
        finally:
            snapshot.close()
    if session.settings["real_time_recency"] == "on" and session.transaction.time is None:
        await _recent(session, bound.prepared)
    if session.transaction.state is not State.IDLE:
        await committing.before_read(session, bound.prepared.relations)
    snapshot = session.transaction.snapshot(serving)
    return TableRows(columns, await serving.run(plan, values, at=snapshot))


async def _recent(session: Session, prepared: Prepared) -> None:
    """Waits until the records that are in Kafka at the call are in the mirrors."""
    timeout = milliseconds(session.settings["real_time_recency_timeout"]) / 1000
    time = await session.control.recent(prepared.relations, timeout)
    while session.serving.time < time:
        await session.serving.wait(session.serving.time, 1.0)


async def _tail(session: Session, bound: Bound, statement: s.Tail, values: Sequence[object], at: int | None) -> Rows:
    serving = session.serving
    target, prepared = bound.body, bound.prepared
    plan = session.access.authorize(Followed(target.item) if prepared is None else prepared)
    after = session.settings.as_of or session.transaction.time or at or serving.time
    read = (target.item.id,) if prepared is None else prepared.relations
    if statement.as_of is not None:
        after = await time_expressions.as_of(session, statement.as_of, read, strict=statement.subscribes)
    elif session.settings.as_of:
        await time_expressions.check_readable(serving, after, read)
    up_to = None
    if statement.up_to is not None:
        up_to = await time_expressions.as_of(session, statement.up_to, None, strict=True)
    if up_to is not None and up_to < after:
        raise e.DataException(f"subscription lower bound (`AS OF`) is greater than its upper bound (`UP TO`): {after} > {up_to}")
    return tail.TailRows(
        serving,
        plan,
        target.shape,
        values=values,
        after=after,
        snapshot=statement.snapshot,
        progress=statement.progress,
        up_to=up_to,
        constant=prepared is not None and not prepared.relations,
        begins=statement.subscribes,
    )


async def _execute(session: Session, described: Bound, statement: s.Execute, formats: Sequence[int]) -> Result:
    prepared = session.statements.get(statement.name)
    if prepared is None:
        raise e.InvalidSqlStatementName(f'prepared statement "{statement.name}" does not exist')
    check_failed(session, prepared.bound.statement)
    values: list[object] = []
    if statement.arguments is not None:
        values = await time_expressions.arguments(session, statement.arguments)
    wanted = prepared.bound.parameters
    if len(values) != len(wanted):
        raise e.SyntaxError_(
            f'wrong number of parameters for prepared statement "{statement.name}"',
            detail=f"Expected {len(wanted)} parameters but got {len(values)}.",
        )
    values = [time_expressions.converted(v, t, session.settings.style) for v, t in zip(values, wanted, strict=True)]
    bound = await extended.rebound(session, prepared)
    check_result(described, bound)
    return await begin(session, bound, values, formats)
