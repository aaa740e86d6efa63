"""Statements that define a table and its rows together: the gateway computes the rows, and the engine appends one entry with both.

names resolved ──► rows ──► POST /table ──conflict c──► wait until the mirrors have c ──► once more
├──40001: a name has changed──► once more
└──durable──► wait until the mirrors have the entry ──► answer
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from tailgate.gateway.execute import committing
from tailgate.gateway.execute.catalog_changes import MIRROR_TIMEOUT_S, caught_up, settings_of, withdrawable
from tailgate.gateway.security.ownership import check_change
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.gateway.writes import added_columns
from tailgate.gateway.writes.evaluation import Evaluation
from tailgate.gateway.writes.pending import Pending, tables_below
from tailgate.lake import errors as e
from tailgate.lake.control import FilledTable, Part, StatementRequest, StatementResult, Write
from tailgate.lake.errors import DuplicateColumn
from tailgate.lake.log.entry import stream
from tailgate.lake.tables.weights import net
from tailgate.lake.types import arrow_schema
from tailgate.sql import statements as s
from tailgate.sql.name_resolution import resolve
from tailgate.sql.table_changes import altered_table, table_to_alter


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


async def run(
    session: Session, bound: Bound, statement: s.CreateTableAs | s.AlterTable, tag: str, compute: Callable[[], Awaitable[TableChange | str]]
) -> str:
    """Carries out the change that `compute` returns, unless it returns the command tag of a statement that changes nothing.

    Raises 25001 inside a block.
    """
    if session.settings["transaction_read_only"] == "on":
        raise e.ReadOnlySqlTransaction(f"cannot execute {tag} in a read-only transaction")
    if session.transaction.in_block:
        raise e.ActiveSqlTransaction(f"{tag} cannot run inside a transaction block")
    await committing.commit(session)
    session.transaction.writes = Pending()
    progress, reserve = session.serving.progress, ""
    for _ in range(committing.EVALUATIONS_MAX):
        await caught_up(session)
        await progress.wait_inbox(session.last_write)
        base, inbox = progress.catalog, progress.inbox
        resolution = await session.serving.workers.run_bounded(resolve, bound.text, session.catalog, base)
        check_change(statement, session.access.role, base.with_resolution(resolution), session.client.database)
        change = await compute()
        if isinstance(change, str):
            return change
        section = await asyncio.to_thread(_section, change.rows) if change.rows.num_rows else b""
        reads = set[int]().union(*(tables_below(relation, base) for relation in change.reads))
        write = Write(inbox, tuple(sorted(reads)), (Part(change.table, section, memoryview(b"").cast("Q")),), reserve)
        request = FilledTable(StatementRequest(change.sql, settings_of(session), resolution), write)
        try:
            result = await withdrawable(session, session.control.filled_table(request))
        except e.SerializationFailure:
            continue  # a name has changed
        if isinstance(result, StatementResult):
            for notice in result.notices:
                session.notice(notice.message, notice.severity, notice.sqlstate, notice.hint, notice.detail)
            await progress.wait(result.time - 1, MIRROR_TIMEOUT_S)
            return change.tag
        reserve = reserve or secrets.token_hex(8)
        await progress.wait_inbox(result)
    raise committing.could_not_serialize()


def _section(rows: pa.Table) -> bytes:
    """Returns the net of weighted rows, as bytes."""
    return stream(net(rows))


# ---- ALTER TABLE

ALTER_TABLE = "ALTER TABLE"  # the command tag


async def alter(session: Session, bound: Bound, statement: s.AlterTable, values: Sequence[object]) -> str:
    """Alters the table and returns the command tag."""
    return await run(session, bound, statement, ALTER_TABLE, partial(_altered, session, bound.text, statement))


async def _altered(session: Session, text: str, statement: s.AlterTable) -> TableChange | str:
    """Returns the changes of the table's rows, or the command tag if there is nothing to change."""
    table = table_to_alter(statement, session.catalog)
    if table is None:
        session.notice(f'relation "{statement.name.name}" does not exist, skipping')
        return ALTER_TABLE
    altered, notices = altered_table(table, statement, session.catalog)
    if altered == table:
        for notice in notices:
            session.notice(notice, "NOTICE", DuplicateColumn.sqlstate)
        return ALTER_TABLE
    plan = added_columns.plan(table, altered)
    if plan is None:
        return TableChange(text, table.id, arrow_schema(altered.columns, weight=True).empty_table(), (table.id,), ALTER_TABLE)
    style, names = session.settings.style, session.catalog
    rows = await session.serving.queries.write(
        session.access.authorize(plan),
        [table],
        lambda cursor: added_columns.changes(plan, Evaluation(cursor, (), style, names).query(plan.rows), names),
    )
    return TableChange(text, table.id, rows, (table.id,), ALTER_TABLE)
