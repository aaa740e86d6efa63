"""CREATE TABLE … AS and SELECT … INTO: the gateway evaluates the query of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from tailgate.gateway.execute import committing, sequences
from tailgate.gateway.execute.blocks import single
from tailgate.gateway.execute.monitoring import system_relations
from tailgate.gateway.execute.tables import changes
from tailgate.gateway.execute.tables.changes import TableChange
from tailgate.gateway.execute.temporary import tables as temporary_tables
from tailgate.gateway.serving.prepared import readable
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.gateway.writes import new_tables
from tailgate.gateway.writes.conflicts import could_not_serialize
from tailgate.gateway.writes.constraints.shown_values import ShownValues
from tailgate.gateway.writes.evaluation import Evaluation
from tailgate.gateway.writes.new_tables import NewTable
from tailgate.gateway.writes.plans import WithPlan
from tailgate.gateway.writes.rows.modifiers import fitted
from tailgate.lake import errors as e
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.schemas import TEMPORARY
from tailgate.lake.control import NEW_TABLE
from tailgate.lake.tables.weights import weighted
from tailgate.lake.types import arrow_schema
from tailgate.sql import statements as s

TAG = "CREATE TABLE AS"  # also the tag of a statement that creates no table or no rows


async def bind(session: Session, bound: Bound, statement: s.CreateTableAs, oids: Sequence[int]) -> Bound:
    """Binds the query; the plan becomes `body`. That of EXECUTE is bound when it runs."""
    if isinstance(statement.query, s.Execute):
        return bound
    catalog = session.catalog
    table = await session.serving.workers.run_bounded(new_tables.bound, statement, tuple(oids), catalog)
    return replace(bound, parameters=table.parameters, body=table, catalog=catalog)


async def of_prepared(session: Session, bound: Bound, statement: s.CreateTableAs, prepared: Bound) -> tuple[s.CreateTableAs, Bound]:
    """Returns the statement with the query of a prepared statement, and its plan. Raises 42809 if that is not a SELECT."""
    match prepared.statement:
        case s.Select(query=query, as_of=None):
            statement = replace(statement, query=query)
        case s.WithWrites(body=s.QueryText()) as writing:
            statement = replace(statement, query=writing)
        case _:
            raise e.WrongObjectType("prepared statement is not a SELECT")
    bound = replace(bound, statement=statement, text=f"{bound.text} {prepared.text}")  # the text says which names are looked up
    return statement, await bind(session, bound, statement, tuple(type.oid for type in prepared.parameters))


async def run(session: Session, bound: Bound, statement: s.CreateTableAs, values: Sequence[object]) -> str:
    """Creates the table and returns the command tag. A query that writes is committed with the table."""
    create = partial(_run, session, bound, statement, values)
    return await (single.run(session, create) if isinstance(statement.query, s.WithWrites) else create())


async def _run(session: Session, bound: Bound, statement: s.CreateTableAs, values: Sequence[object]) -> str:
    command = "SELECT INTO" if statement.select_into else TAG
    if temporary_tables.is_temporary(session, statement):
        session.settings.check_writable(command)
        return await _temporary(session, bound, statement, values)
    return await changes.run(session, bound, statement, command, partial(_created, session, bound, statement, values))


async def _temporary(session: Session, bound: Bound, statement: s.CreateTableAs, values: Sequence[object]) -> str:
    """Creates a temporary table with its rows, which are pending in a block, and returns the command tag."""
    transaction = session.transaction
    await committing.settle(session)
    if not transaction.pending:
        await session.serving.progress.wait_inbox(session.last_write)
    if exists(session, statement):
        return TAG
    table, rows = await _evaluated(session, bound, statement, values)
    session.temporary.charge(transaction.writes.temporary, rows.nbytes)
    text = table.definition(Name(statement.name.name, TEMPORARY), statement.options)
    creation = s.parse(text)
    assert isinstance(creation, s.CreateTable)
    created = await temporary_tables.define(session, creation, text, statement.on_commit)
    snapshot = transaction.snapshot(session.serving)
    base = session.serving.progress.inbox if snapshot is None else snapshot.inbox
    await changes.add_rows(session, created, weighted(rows, 1), table.relations, base)
    if not transaction.pending:
        session.keep_temporary(transaction.writes)
    return f"SELECT {rows.num_rows}" if statement.with_data else TAG


async def _created(session: Session, bound: Bound, statement: s.CreateTableAs, values: Sequence[object]) -> TableChange | str:
    """Returns the table with its rows, or the command tag if the table exists."""
    if exists(session, statement):
        return TAG
    table, rows = await _evaluated(session, bound, statement, values)
    sql = table.definition(statement.name, statement.options)
    if not statement.with_data:
        return TableChange(sql, NEW_TABLE, weighted(rows, 1), (), TAG)
    return TableChange(sql, NEW_TABLE, weighted(rows, 1), table.relations, f"SELECT {rows.num_rows}")


async def _evaluated(session: Session, bound: Bound, statement: s.CreateTableAs, values: Sequence[object]) -> tuple[NewTable, pa.Table]:
    """Returns the plan of the table, bound again if the catalog has changed, and its rows."""
    while bound.catalog is not session.catalog:  # it may change again while the statement is bound
        bound = await bind(session, bound, statement, tuple(t.oid for t in bound.parameters))
    table: NewTable = bound.body
    authorized = session.access.authorize(table)
    if not statement.with_data:
        return table, arrow_schema(table.columns).empty_table()
    if isinstance(table.rows, WithPlan):
        written = (await committing.run(session, table.rows, values)).returned
        assert written is not None
        return table, fitted(written, table.columns)
    query, style, names, calls = table.rows, session.settings.style, session.catalog, sequences.evaluator(session)
    system = await system_relations.changes(session, table.relations)
    async with session.transaction.reading(session.serving, table.relations, system) as at:
        try:
            rows = await session.serving.queries.write(
                authorized,
                [readable(names[relation]) for relation in table.relations],
                lambda cursor: fitted(Evaluation(cursor, values, style, ShownValues(names), calls).query(query), table.columns),
                at=at,
            )
        except e.UndefinedTable:
            if session.transaction.pending:  # another session has dropped a table since the statement was bound
                raise could_not_serialize() from None
            raise
    return table, rows


def exists(session: Session, statement: s.CreateTableAs) -> bool:
    """Tells, with a notice, whether the relation exists and may. Raises 42P07 if it may not."""
    if temporary_tables.is_temporary(session, statement):
        return temporary_tables.exists(session, statement)
    schema = session.catalog.home(Name(statement.name.name, statement.name.schema))  # PostgreSQL reports no position either
    if session.catalog.find(Name(statement.name.name, schema.name)) is None:
        return False
    message = f'relation "{statement.name.name}" already exists'
    if not statement.if_not_exists:
        raise e.DuplicateTable(message)
    session.notice(f"{message}, skipping", "NOTICE", e.DuplicateTable.sqlstate)
    return True
