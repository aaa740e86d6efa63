"""CREATE TABLE … AS and SELECT … INTO: the gateway evaluates the query, the engine creates the table with its rows in one entry.

bind ──► rows ──► POST /table ──conflict c──► wait until the mirrors have c ──► evaluate again
├──40001: a name has changed──► bind again
└──durable──► wait until the mirrors have the table ──► SELECT n
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from tailgate.gateway.execute import committing
from tailgate.gateway.execute.catalog_changes import MIRROR_TIMEOUT_S, caught_up, settings_of, withdrawable
from tailgate.gateway.security.ownership import check_change
from tailgate.gateway.serving.prepared import readable
from tailgate.gateway.session.portals import Bound
from tailgate.gateway.session.session import Session
from tailgate.gateway.writes import new_tables
from tailgate.gateway.writes.evaluation import Evaluation, weighted
from tailgate.gateway.writes.modifiers import fitted
from tailgate.gateway.writes.new_tables import NewTable
from tailgate.gateway.writes.pending import Pending, tables_below
from tailgate.lake import errors as e
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.control import NEW_TABLE, FilledTable, Part, StatementRequest, StatementResult, Write
from tailgate.lake.log.entry import stream
from tailgate.lake.tables.weights import net
from tailgate.lake.types import arrow_schema
from tailgate.sql import statements as s
from tailgate.sql.name_resolution import resolve

TAG = "CREATE TABLE AS"  # also the tag of a statement that creates no table or no rows


async def bind(session: Session, bound: Bound, statement: s.CreateTableAs, oids: Sequence[int]) -> Bound:
    """Binds the query; the plan becomes `body`."""
    table = await session.serving.workers.run_bounded(new_tables.bound, statement, tuple(oids), session.catalog)
    return replace(bound, parameters=table.parameters, body=table, catalog=session.catalog)


async def run(session: Session, bound: Bound, statement: s.CreateTableAs, values: Sequence[object]) -> str:
    """Creates the table and returns the command tag. Raises 25001 inside a block."""
    if session.settings["transaction_read_only"] == "on":
        raise e.ReadOnlySqlTransaction(f"cannot execute {TAG} in a read-only transaction")
    if session.transaction.in_block:
        raise e.ActiveSqlTransaction(f"{TAG} cannot run inside a transaction block")
    await committing.commit(session)
    session.transaction.writes = Pending()
    reserve = ""
    for _ in range(committing.EVALUATIONS_MAX):
        await caught_up(session)
        await session.serving.progress.wait_inbox(session.last_write)
        base = session.serving.progress.catalog
        resolution = await session.serving.workers.run_bounded(resolve, bound.text, session.catalog, base)
        check_change(statement, session.access.role, base.with_resolution(resolution), session.client.database)
        if _exists(session, statement):
            return TAG
        if bound.catalog is not session.catalog:
            bound = await bind(session, bound, statement, tuple(t.oid for t in bound.parameters))
        try:
            result, count = await _create(session, bound, statement, values, resolution, reserve)
        except e.SerializationFailure:
            continue  # a name has changed
        if isinstance(result, StatementResult):
            await session.serving.progress.wait(result.time - 1, MIRROR_TIMEOUT_S)
            return f"SELECT {count}" if statement.with_data else TAG
        reserve = reserve or secrets.token_hex(8)
        await session.serving.progress.wait_inbox(result)
    raise committing.could_not_serialize()


def _exists(session: Session, statement: s.CreateTableAs) -> bool:
    """Tells, with a notice, whether the relation exists and may. Raises 42P07 if it may not."""
    schema = session.catalog.home(Name(statement.name.name, statement.name.schema))  # PostgreSQL reports no position either
    if session.catalog.find(Name(statement.name.name, schema.name)) is None:
        return False
    message = f'relation "{statement.name.name}" already exists'
    if not statement.if_not_exists:
        raise e.DuplicateTable(message)
    session.notice(f"{message}, skipping", "NOTICE", e.DuplicateTable.sqlstate)
    return True


async def _create(
    session: Session, bound: Bound, statement: s.CreateTableAs, values: Sequence[object], resolution: Resolution, reserve: str
) -> tuple[StatementResult | int, int]:
    """Evaluates the query and sends the table.

    Returns the engine's answer, or the entry of the inbox that the rows conflict with, and the number of rows.
    """
    table: NewTable = bound.body
    authorized = session.access.authorize(table)
    progress = session.serving.progress
    inbox, catalog = progress.inbox, progress.catalog
    rows = arrow_schema(table.columns).empty_table()
    scans = sorted(set(table.rows.scans)) if statement.with_data else []
    if statement.with_data:
        style, names = session.settings.style, session.catalog
        items = [readable(catalog[relation]) for relation in scans]
        rows = await session.serving.queries.write(
            authorized, items, lambda cursor: fitted(Evaluation(cursor, values, style, names).query(table.rows), table.columns)
        )
    changes = await asyncio.to_thread(_section, rows) if rows.num_rows else b""
    reads = set[int]().union(*(tables_below(relation, catalog) for relation in scans))
    write = Write(inbox, tuple(sorted(reads)), (Part(NEW_TABLE, changes, memoryview(b"").cast("Q")),), reserve)
    request = StatementRequest(table.definition(statement.name, statement.options), settings_of(session), resolution)
    return await withdrawable(session, session.control.filled_table(FilledTable(request, write))), rows.num_rows


def _section(rows: pa.Table) -> bytes:
    """Returns the net changes that insert the rows, as bytes."""
    return stream(net(weighted(rows, 1)))
