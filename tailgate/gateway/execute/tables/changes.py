"""Statements that define a table and its rows together: the gateway computes the rows, and the engine appends one entry with both.

names resolved ──► rows ──► POST /table ──conflict c──► wait until the mirrors have c ──► once more
├──40001: a name has changed──► once more
└──durable──► wait until the mirrors have the entry ──► answer
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from collections.abc import Sequence as Values
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from tailgate.gateway.execute import catalog_changes, committing, sequences
from tailgate.gateway.execute.catalog_changes import MIRROR_TIMEOUT_S, caught_up, define, settings_of, withdrawable
from tailgate.gateway.security.ownership import check_change
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.gateway.writes import altered_rows
from tailgate.gateway.writes.conflicts import Conflict, accepted
from tailgate.gateway.writes.constraints.rules import Rules
from tailgate.gateway.writes.constraints.shown_values import ShownValues
from tailgate.gateway.writes.effects import Effect
from tailgate.gateway.writes.evaluation import Evaluation
from tailgate.gateway.writes.pending import tables_below
from tailgate.lake import errors as e
from tailgate.lake.catalog import Change, Sequence, Table
from tailgate.lake.control import NEW_TABLE, FilledTable, Part, StatementRequest, StatementResult, Write
from tailgate.lake.log.entry import stream
from tailgate.lake.tables.weights import count_added, net
from tailgate.lake.types import arrow_schema
from tailgate.lake.uncommitted import is_local
from tailgate.sql import statements as s
from tailgate.sql.name_resolution import resolve
from tailgate.sql.sequence_definitions import advanced
from tailgate.sql.statements.tables import AddColumn
from tailgate.sql.tables import indexes
from tailgate.sql.tables.alterations import Alteration, alteration
from tailgate.sql.tables.altered_table import table_to_alter
from tailgate.sql.tables.domains import alteration as alteration_of_domain
from tailgate.sql.tables.domains import concerned_columns
from tailgate.sql.time_zones import in_zone


@dataclass(frozen=True, slots=True)
class TableChange:
    """A change of a table that the gateway has computed.

    `sql`: the statement for the engine. `rows`: weighted rows of the table `table`. `reads`: the relations that the rows depend on.
    `tag`: the command tag.
    """

    sql: str
    table: int
    rows: pa.Table
    reads: Iterable[int]
    tag: str


Changing: TypeAlias = s.CreateTableAs | s.AlterTable | s.CreateIndex | s.AlterDomain
Compute: TypeAlias = Callable[[], Awaitable[TableChange | str]]


async def run(session: Session, bound: Bound, statement: Changing, command: str, compute: Compute) -> str:
    """Carries out the change that `compute` returns, unless it returns the command tag of a statement that changes nothing.

    Inside a transaction, the change is part of it. `command`: the name of the statement in the error of a read-only transaction.
    """
    session.settings.check_writable(command)
    if session.transaction.pending:
        return await _in_transaction(session, bound, statement, compute)
    progress = session.serving.progress

    async def attempt(reserve: str) -> str | Conflict:
        await caught_up(session)
        await progress.wait_inbox(session.last_write)
        base, inbox = progress.catalog, progress.inbox
        resolution = await session.serving.workers.run_bounded(resolve, bound.text, session.catalog, base)
        check_change(statement, session.access.role, base.with_resolution(resolution), session.client.database)
        change = await compute()
        if isinstance(change, str):
            return change
        if change.sql != bound.text:  # the definition of CREATE TABLE AS names the types of the columns
            resolution = await session.serving.workers.run_bounded(resolve, change.sql, session.catalog, base)
        section = await asyncio.to_thread(_section, change.rows) if change.rows.num_rows else b""
        reads = set[int]().union(*(tables_below(relation, base) for relation in change.reads))
        write = Write(inbox, tuple(sorted(reads)), (Part(change.table, section, memoryview(b"").cast("Q")),), reserve)
        request = FilledTable(StatementRequest(change.sql, settings_of(session), resolution.with_versions(reads, base.items)), write)
        try:
            result = await withdrawable(session, session.control.filled_table(request))
        except e.SerializationFailure:
            return Conflict(0)  # a name has changed
        if not isinstance(result, StatementResult):
            return Conflict(result)
        for notice in result.notices:
            session.notice(notice.message, notice.severity, notice.sqlstate, notice.hint, notice.detail)
        await progress.wait(result.time - 1, MIRROR_TIMEOUT_S)
        return change.tag

    return await accepted(progress.wait_inbox, attempt)


async def _in_transaction(session: Session, bound: Bound, statement: Changing, compute: Compute) -> str:
    """Adds the change to the transaction: its definition, and its rows as pending writes."""
    await committing.settle(session)
    names, durable = session.catalog, session.naming.durable
    resolution = await session.serving.workers.run_bounded(resolve, bound.text, names, durable)
    check_change(statement, session.access.role, durable.with_resolution(resolution), session.client.database)
    change = await compute()
    if isinstance(change, str):
        return change
    before = session.naming.durable.items
    await define(session, bound, change.sql)
    after = session.naming.durable  # may also have tables that other transactions have committed meanwhile
    if change.table == NEW_TABLE:
        table = next(table for table in after.each(Table) if is_local(table.id) and table.id not in before)
    else:
        table = after.expect(Table, change.table)
    if isinstance(statement, s.AlterTable):
        copies = count_added(change.rows)
        columns = {action.column.name for action in statement.actions if isinstance(action, AddColumn)}
        for sequence in after.each(Sequence):
            if sequence.id not in before and table.id in sequence.depends and sequence.column in columns:
                session.transaction.move_sequence(sequence, advanced(sequence, copies))
    snapshot = session.transaction.snapshot(session.serving)
    assert snapshot is not None
    await add_rows(session, table, change.rows, change.reads, snapshot.inbox)
    return change.tag


async def add_rows(session: Session, table: Table, rows: pa.Table, reads: Iterable[int], base: int) -> None:
    """Adds weighted rows of a table that no other transaction knows to the pending writes."""
    changes = await asyncio.to_thread(net, rows)
    rules = Rules(table, (), (), (), (), "")  # the rows satisfy those of the table
    effect = Effect(changes.num_rows, {table.id: changes}, reads=frozenset(reads), rules={table.id: rules})
    session.transaction.writes.add(effect, base)


def _section(rows: pa.Table) -> bytes:
    """Returns the net of weighted rows, as bytes."""
    return stream(net(rows))


# ---- ALTER TABLE, CREATE UNIQUE INDEX and ALTER DOMAIN

ALTER_TABLE, CREATE_INDEX, ALTER_DOMAIN = "ALTER TABLE", "CREATE INDEX", "ALTER DOMAIN"  # command tags


async def alter(session: Session, bound: Bound, statement: s.AlterTable, values: Values[object]) -> str:
    """Alters the table and returns the command tag."""
    return await run(session, bound, statement, ALTER_TABLE, partial(_altered, session, bound.text, statement))


async def _altered(session: Session, text: str, statement: s.AlterTable) -> TableChange | str:
    """Returns the changes of the table's rows, or the command tag if there is nothing to change."""
    table = table_to_alter(statement, session.catalog)
    if table is None:
        session.notice(f'relation "{statement.name.name}" does not exist, skipping')
        return ALTER_TABLE
    with in_zone(session.catalog.time_zone):
        altered = alteration(table, statement, session.catalog)
        plan = altered_rows.plan(altered, session.catalog) if altered.change != Change() else None
    if altered.change == Change():
        for message, sqlstate in altered.notices:
            session.notice(message, "NOTICE", sqlstate)
        return ALTER_TABLE
    return await with_rows(session, text, ALTER_TABLE, NEW_TABLE if altered.rewrites else table.id, altered.after, plan)


async def create_index(session: Session, bound: Bound, statement: s.CreateIndex, values: Values[object]) -> str:
    """Creates an index and returns the command tag. For a unique index of a table, the rows are checked."""
    relation = session.catalog.find(statement.relation)
    if not statement.unique or not isinstance(relation, Table):
        return await catalog_changes.run(session, bound, statement, values)
    return await run(session, bound, statement, CREATE_INDEX, partial(_indexed, session, bound.text, statement))


async def _indexed(session: Session, text: str, statement: s.CreateIndex) -> TableChange | str:
    index, notices = indexes.create_index(statement, session.catalog)
    if index is None:
        for notice in notices:
            session.notice(notice.message, notice.severity, notice.sqlstate)
        return CREATE_INDEX
    table = session.catalog.expect(Table, index.depends[0])
    plan = altered_rows.plan(Alteration(table, table, Change(put=(index,))), session.catalog)
    return await with_rows(session, text, CREATE_INDEX, table.id, table, plan)


async def alter_domain(session: Session, bound: Bound, statement: s.AlterDomain, values: Values[object]) -> str:
    """Alters a domain and returns the command tag. For a new constraint, the rows of tables are checked."""
    altered = alteration_of_domain(statement, session.catalog)
    if not altered.concerns_rows or altered.change == Change():
        return await catalog_changes.run(session, bound, statement, values)
    session.settings.check_writable(ALTER_DOMAIN)
    catalog_changes.check_outside_block(session, ALTER_DOMAIN)
    return await run(session, bound, statement, ALTER_DOMAIN, partial(_altered_domain, session, bound.text, statement))


async def _altered_domain(session: Session, text: str, statement: s.AlterDomain) -> TableChange:
    altered = alteration_of_domain(statement, session.catalog)
    tables = {table.id for table, _ in concerned_columns(altered, session.catalog)}
    for plan in altered_rows.domain_plans(altered, session.catalog):
        await with_rows(session, text, ALTER_DOMAIN, plan.table.id, plan.altered, plan)
    return TableChange(text, NEW_TABLE, arrow_schema((), weight=True).empty_table(), tables, ALTER_DOMAIN)


async def with_rows(session: Session, text: str, tag: str, target: int, table: Table, plan: altered_rows.AlteredRows | None) -> TableChange:
    """Returns a change of a table with the changes of its rows, which satisfy its new constraints.

    `target`: the id of the table, or NEW_TABLE if its rows are written to a new relation. `table`: after the change.
    """
    if plan is None:
        return TableChange(text, target, arrow_schema(table.columns, weight=True).empty_table(), (table.id,), tag)
    style, catalog, calls = session.settings.style, session.catalog, sequences.evaluator(session)
    names = {"s": catalog.schema_of(plan.table).name, "t": table.name}
    async with session.transaction.reading(session.serving, [table.id for table in plan.relations]) as at:
        rows = await session.serving.queries.write(
            session.access.authorize(plan),
            list(plan.relations),
            lambda cursor: altered_rows.changes(plan, Evaluation(cursor, (), style, ShownValues(catalog), calls), names),
            at=at,
        )
    return TableChange(text, target, rows, tuple(t.id for t in plan.relations), tag)
