"""SELECT and TAIL: resolved once, then run at one time or followed.

SELECT   at the time of AS OF, of a setting or of the block, otherwise at the newest time ──► rows
TAIL     the changes after a time                                                         ──► rows, possibly without an end
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.catalog.catalog_query import CatalogQuery
from tailgate.gateway.catalog.system_catalog import Outside
from tailgate.gateway.catalog.tables import readable_columns
from tailgate.gateway.execute import advisory_locks, committing, sequences, time_expressions
from tailgate.gateway.execute.catalog_session import CatalogSession
from tailgate.gateway.execute.monitoring import samples, system_relations
from tailgate.gateway.mirrors.snapshots import Snapshot
from tailgate.gateway.results import tail
from tailgate.gateway.results.envelopes import shape_of
from tailgate.gateway.results.rows import Rows, TableRows
from tailgate.gateway.serving.prepared import Prepared
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound, CatalogBound, declared
from tailgate.gateway.session.transactions import State
from tailgate.gateway.settings.settings import milliseconds
from tailgate.gateway.writes.rows.query import Query, numbered
from tailgate.gateway.writes.rows.row_queries import RowQueries, arguments_of
from tailgate.lake import errors as e
from tailgate.lake.catalog import Item, hidden_positions
from tailgate.lake.catalog.schemas import TAILGATE, is_logged, is_system, is_temporary
from tailgate.lake.keywords import quoted
from tailgate.lake.readers.failed import failure
from tailgate.lake.uncommitted import is_local
from tailgate.sql import statements as s
from tailgate.sql.authorization import Authorized, Followed
from tailgate.sql.functions.advisory_locks import ACTIONS
from tailgate.sql.grammar.queries import strongest_lock
from tailgate.sql.plan.session_calls import SessionCall

OTHER_ROWS_MAX = 10_000  # of a relation that a query of the system catalog reads, which are copied for it


async def bind_select(session: Session, bound: Bound, statement: s.Select, oids: Sequence[int]) -> Bound:
    serving = session.serving
    session_catalog = session.naming.seen
    query = await serving.binder.analyzed(statement, oids, session_catalog)
    if isinstance(query, CatalogQuery):
        description = await serving.system.describe(session.access.authorize(query), CatalogSession(session), session_catalog.catalog)
        return replace(
            bound, columns=description.fields, parameters=query.parameters, is_catalog=True, body=CatalogBound(query, description)
        )
    rows = None
    if query.by_row:
        rows = await serving.workers.run_bounded(partial(numbered, compact=False), query.query.plan, len(query.parameters))
    return replace(bound, columns=query.columns, parameters=declared(query.parameters), prepared=query, body=rows)


async def bind_tail(session: Session, bound: Bound, statement: s.Tail, oids: Sequence[int]) -> Bound:
    target = statement.target
    if isinstance(target, s.Name):
        item = session.catalog.relation(target)
        if item.stored and is_temporary(item.id):
            raise _no_changes()
        if is_local(item.id):
            raise e.FeatureNotSupported(f'TAIL of "{item.name}" in the transaction that creates it is not supported', hint="COMMIT first.")
        if item.stored and is_logged(item.id) and not hidden_positions(item) and not any(column.is_dropped for column in item.columns):
            if not item.ready:
                raise e.ObjectNotInPrerequisiteState(
                    f'{item.kind} "{item.name}" is still being filled', hint="It can be read when its CREATE statement has answered."
                )
            shape = shape_of(item.columns, statement.envelope, statement.order)
            return replace(bound, columns=tail.columns(shape, statement.progress), body=tail.Target(item, shape))
        target = time_expressions.of_relation(target)
    prepared = await session.serving.binder.prepared(target, oids, session.naming.seen, system=True)
    if any(map(is_temporary, prepared.relations)):
        raise _no_changes()
    if prepared.locked:
        raise e.FeatureNotSupported("FOR UPDATE is not supported in TAIL")
    parameters = declared(prepared.parameters)
    shape = shape_of(prepared.columns, statement.envelope, statement.order)
    columns = tail.columns(shape, statement.progress)
    return replace(bound, columns=columns, parameters=parameters, prepared=prepared, body=tail.Target(None, shape))


def _no_changes() -> e.TailgateError:
    return e.FeatureNotSupported("TAIL of a temporary table is not supported", hint="Its changes are not in the log: use CREATE TABLE.")


def is_poll(bound: Bound) -> bool:
    """Returns whether the statement is a SELECT without AS OF and failed views, of relations in the log, so its result may be cached."""
    prepared = bound.prepared
    if not isinstance(bound.statement, s.Select) or prepared is None or prepared.calls or prepared.unlogged:
        return False
    return bound.statement.as_of is None and prepared.failed_at is None


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
            message = why.message if session.access.may_see(item) else f'{item.kind} "{item.name}" has failed'
            session.notice(message, "WARNING", "01000", detail=f"The query reads all relations as of {prepared.failed_at}.")
    if session.transaction.state is not State.IDLE:
        session.transaction.read_at(session.serving, prepared.failed_at)
        return None
    return prepared.failed_at


async def select(session: Session, bound: Bound, statement: s.Select, values: Sequence[object]) -> Rows:
    serving = session.serving
    columns = bound.columns or ()
    if bound.is_catalog:
        body: CatalogBound = bound.body
        query = session.access.authorize(body.query)
        others = [session.catalog.items[id] for id in sorted(body.query.others)]
        status = await session.control.status() if body.query.asks_engine else {}
        outside = Outside(status, await _all_rows(session, others, statement.as_of) if others else {})
        system = CatalogSession(session)
        return TableRows(columns, await serving.system.run(query, body.described, values, system, session.catalog, outside))
    assert bound.prepared is not None
    if not all(map(is_temporary, bound.prepared.locked)):
        session.settings.check_writable(f"SELECT {strongest_lock(statement.query.tree)}")
    plan = session.access.authorize(bound.prepared)
    if bound.prepared.calls and not bound.prepared.by_row:
        values = await _with_values(session, bound.prepared.calls, values)
    at = session.settings.as_of
    logged = frozenset(filter(is_logged, bound.prepared.relations))
    rows = await system_relations.changes(session, bound.prepared.relations, bound.prepared, values)
    if bound.prepared.locked and (at is not None or statement.as_of is not None):
        raise e.FeatureNotSupported("FOR UPDATE is not supported for a query at a time in the past")
    if statement.as_of is not None:
        at = await time_expressions.as_of(session, statement.as_of, logged)
    elif at is not None:
        await time_expressions.check_readable(serving, at, logged)
    else:
        at = _failed_at(session, bound.prepared)
    if at is not None:
        while serving.progress.time < at:
            await serving.progress.wait(serving.progress.time, 1.0)
        rows = {**session.transaction.writes.temporary, **rows}
        with await serving.queries.open_snapshot(rows, at, first=bound.prepared.first) as snapshot:
            return TableRows(columns, await _run(session, plan, bound.body, values, snapshot))
    if session.settings["real_time_recency"] == "on" and session.transaction.time is None:
        await wait_recent(session, logged)
    if session.transaction.state is not State.IDLE:
        await committing.before_read(session, bound.prepared.relations, bound.prepared.locked)
    async with session.transaction.reading(serving, bound.prepared.relations, rows, only=True) as snapshot:
        return TableRows(columns, await _run(session, plan, bound.body, values, snapshot))


async def _all_rows(session: Session, items: Sequence[Item], as_of: s.Time | None) -> dict[int, pa.Table]:
    """Returns the rows of relations at one time, by id, for a query of the system catalog. Raises 54000 if there are too many."""
    fields = [(number, column) for number, item in enumerate(items) for column in readable_columns(item)]
    queries = []
    for number, item in enumerate(items):
        columns = (quoted(column.name) if of == number else f"NULL::{column.type}" for of, column in fields)
        name = s.Name(item.name, session.catalog.schema_of(item).name)
        limited = f"SELECT {number}, {', '.join(columns)} FROM {name.sql} LIMIT {OTHER_ROWS_MAX + 1}"
        queries.append(f"SELECT * FROM ({limited}) AS rows")
    text = " UNION ALL ".join(queries)
    statement = s.parse(text, "postgresql")
    assert isinstance(statement, s.Select)
    bound = await bind_select(session, Bound(statement, statement, text, catalog=session.catalog), statement, ())
    table = await (await select(session, bound, replace(statement, as_of=as_of), ())).fetch(None)
    tables = {}
    for number, item in enumerate(items):
        positions = [1 + place for place, (of, _) in enumerate(fields) if of == number]
        rows = table.filter(pc.equal(table.column(0), number)).select(positions)
        if rows.num_rows > OTHER_ROWS_MAX:
            detail = f"At most {OTHER_ROWS_MAX:,} rows of it are read."
            raise e.ProgramLimitExceeded(f'"{item.name}" is too large for a query of the system catalog', detail=detail)
        tables[item.id] = rows.rename_columns([fields[position - 1][1].name for position in positions])
    return tables


async def _with_values(session: Session, calls: tuple[SessionCall, ...], values: Sequence[object]) -> Sequence[object]:
    """Returns the values of parameters, and of calls that are evaluated once, from left to right: some are arguments of later ones."""
    for call in calls:
        rows = arguments_of((call,), values)
        arguments = rows[0][0] if rows else ()
        lock = call.name in ACTIONS
        value = await (advisory_locks.called(session, call.name, arguments) if lock else sequences.called(session, call, arguments))
        values = (*values, value)
    return values


async def _run(
    session: Session, query: Authorized[Prepared], by_row: Query | None, values: Sequence[object], snapshot: Snapshot | None
) -> pa.Table:
    """Returns the rows of a query, read in a snapshot if there is one. `by_row`: set if it calls sequences for each row."""
    queries = session.serving.queries
    if by_row is None:
        return await queries.run(query, values, at=snapshot)
    evaluator = sequences.evaluator(session)
    return await queries.write(query, query.plan.items, lambda cursor: RowQueries(cursor, values, evaluator).query(by_row), at=snapshot)


async def wait_recent(session: Session, relations: frozenset[int]) -> None:
    """Waits until the records that Kafka has at the call for these relations are in the mirrors. Raises 57014."""
    timeout = milliseconds(session.settings["real_time_recency_timeout"]) / 1000
    time = await session.control.recent(relations, timeout)
    while session.serving.progress.time < time:
        await session.serving.progress.wait(session.serving.progress.time, 1.0)


async def follow(session: Session, bound: Bound, statement: s.Tail, values: Sequence[object], at: int | None = None) -> Rows:
    """Follows a relation or a query. `at`: for a cursor, the time of DECLARE."""
    serving = session.serving
    target, prepared = bound.body, bound.prepared
    plan = session.access.authorize(Followed(target.item) if prepared is None else prepared)
    after = session.settings.as_of or session.transaction.time or at or serving.progress.time
    read = (target.item.id,) if prepared is None else prepared.relations
    is_sampled = prepared is not None and any(map(is_system, prepared.relations))
    if is_sampled:
        if statement.as_of is not None or session.settings.as_of is not None:
            hint = f"The relations of the schema {TAILGATE} have no history."
            raise e.FeatureNotSupported(f"AS OF of relations of the schema {TAILGATE} is not supported", hint=hint)
        after = max(samples.now(), after)
    elif statement.as_of is not None:
        after = await time_expressions.as_of(session, statement.as_of, read, strict=statement.subscribes)
    elif session.settings.as_of:
        await time_expressions.check_readable(serving, after, read)
    up_to = None
    if statement.up_to is not None:
        up_to = await time_expressions.as_of(session, statement.up_to, None, strict=True)
    if up_to is not None and up_to < after:
        raise e.DataException(f"subscription lower bound (`AS OF`) is greater than its upper bound (`UP TO`): {after} > {up_to}")
    constant = prepared is not None and not prepared.relations
    options = tail.TailOptions(after, statement.snapshot, statement.progress, up_to, constant, statement.subscribes, limit=statement.limit)
    sampled = None
    if prepared is not None and is_sampled:
        sampled = samples.changes(session, prepared, values, after, snapshot=statement.snapshot)
    return tail.TailRows(serving, plan, target.shape, options, values, sampled)
