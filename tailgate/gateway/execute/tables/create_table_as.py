"""CREATE TABLE … AS and SELECT … INTO: the gateway evaluates the query of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tailgate.gateway.execute.tables import changes
from tailgate.gateway.execute.tables.changes import TableChange
from tailgate.gateway.serving.prepared import readable
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.gateway.writes import new_tables
from tailgate.gateway.writes.evaluation import Evaluation
from tailgate.gateway.writes.new_tables import NewTable
from tailgate.gateway.writes.rows.modifiers import fitted
from tailgate.lake import errors as e
from tailgate.lake.catalog.names import Name
from tailgate.lake.control import NEW_TABLE
from tailgate.lake.tables.weights import weighted
from tailgate.lake.types import arrow_schema
from tailgate.sql import statements as s

TAG = "CREATE TABLE AS"  # also the tag of a statement that creates no table or no rows


async def bind(session: Session, bound: Bound, statement: s.CreateTableAs, oids: Sequence[int]) -> Bound:
    """Binds the query; the plan becomes `body`."""
    table = await session.serving.workers.run_bounded(new_tables.bound, statement, tuple(oids), session.catalog)
    return replace(bound, parameters=table.parameters, body=table, catalog=session.catalog)


async def run(session: Session, bound: Bound, statement: s.CreateTableAs, values: Sequence[object]) -> str:
    """Creates the table and returns the command tag."""
    return await changes.run(session, bound, statement, TAG, partial(_created, session, bound, statement, values))


async def _created(session: Session, bound: Bound, statement: s.CreateTableAs, values: Sequence[object]) -> TableChange | str:
    """Returns the table with its rows, or the command tag if the table exists."""
    if _exists(session, statement):
        return TAG
    if bound.catalog is not session.catalog:
        bound = await bind(session, bound, statement, tuple(t.oid for t in bound.parameters))
    table: NewTable = bound.body
    authorized = session.access.authorize(table)
    sql = table.definition(statement.name, statement.options)
    if not statement.with_data:
        return TableChange(sql, NEW_TABLE, arrow_schema(table.columns, weight=True).empty_table(), (), TAG)
    style, names = session.settings.style, session.catalog
    scans = sorted(set(table.rows.scans))
    rows = await session.serving.queries.write(
        authorized,
        [readable(session.naming.durable[relation]) for relation in scans],
        lambda cursor: fitted(Evaluation(cursor, values, style, names).query(table.rows), table.columns),
        at=session.transaction.block_snapshot(session.serving),
    )
    return TableChange(sql, NEW_TABLE, weighted(rows, 1), scans, f"SELECT {rows.num_rows}")


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
