"""ALTER TABLE and CREATE INDEX for a temporary table.

The session changes the table's item, its rows and its indexes, which the engine does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tailgate.gateway.execute import committing
from tailgate.gateway.execute.tables import changes
from tailgate.gateway.execute.temporary.tables import check_references
from tailgate.gateway.security.ownership import check_change
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.gateway.writes import altered_rows
from tailgate.lake.catalog import Change, Table
from tailgate.lake.tables.weights import count_added
from tailgate.sql import statements as s
from tailgate.sql.statements.tables import RenameColumn, RenameConstraint
from tailgate.sql.tables import indexes
from tailgate.sql.tables.alterations import Alteration, alteration
from tailgate.sql.tables.altered_table import table_to_alter
from tailgate.sql.time_zones import in_zone


async def alter(session: Session, bound: Bound, statement: s.AlterTable, values: Sequence[object]) -> str:
    """Alters a table, which may be a temporary one, and returns the command tag."""
    table = session.catalog.find(statement.name)
    if table is not None and not isinstance(statement.actions[0], RenameColumn | RenameConstraint):
        session.portals.check_unused((table,), changes.ALTER_TABLE)
    if table is None or not session.naming.is_temporary(table):
        return await changes.alter(session, bound, statement, values)
    await _begin(session, changes.ALTER_TABLE)
    id, catalog = session.naming.room()
    before = table_to_alter(statement, catalog)
    assert before is not None
    check_change(statement, session.access.role, catalog, session.client.database)
    with in_zone(catalog.time_zone):
        altered = alteration(before, statement, replace(catalog, next_id=id))
    check_references(session, altered.after, session.temporary.on_commit.get(before.id))
    for message, sqlstate in altered.notices:
        session.notice(message, "NOTICE", sqlstate)
    if altered.change == Change():
        return changes.ALTER_TABLE
    with in_zone(catalog.time_zone):
        plan = altered_rows.plan(altered, catalog)
    change = await changes.with_rows(session, bound.text, changes.ALTER_TABLE, before.id, altered.after, plan)
    altered = altered.numbered(count_added(change.rows))
    transaction = session.transaction
    session.temporary.charge(transaction.writes.temporary, change.rows.nbytes)
    session.naming.apply(altered.change)
    if altered.rewrites and before.id in session.temporary.on_commit:
        session.temporary.on_commit[altered.after.id] = session.temporary.on_commit[before.id]
    snapshot = transaction.snapshot(session.serving)
    base = session.serving.progress.inbox if snapshot is None else snapshot.inbox
    await changes.add_rows(session, altered.after, change.rows, (), base)
    if not transaction.pending:
        session.keep_temporary(transaction.writes)
    return changes.ALTER_TABLE


async def create_index(session: Session, bound: Bound, statement: s.CreateIndex, values: Sequence[object]) -> str:
    """Creates an index, which may be one of a temporary table, and returns the command tag. The rows of a unique index are checked.

    The rows of a temporary table are in memory, so only the catalog shows the index.
    """
    relation = session.catalog.find(statement.relation)
    if relation is not None:
        session.portals.check_unused((relation,), changes.CREATE_INDEX)
    if relation is None or not session.naming.is_temporary(relation):
        return await changes.create_index(session, bound, statement, values)
    await _begin(session, changes.CREATE_INDEX)
    id, catalog = session.naming.room()
    check_change(statement, session.access.role, catalog, session.client.database)
    index, notices = indexes.create_index(statement, replace(catalog, next_id=id))
    for notice in notices:
        session.notice(notice.message, notice.severity, notice.sqlstate, notice.hint)
    if index is not None:
        table = catalog.expect(Table, relation.id)
        plan = altered_rows.plan(Alteration(table, table, Change(put=(index,))), catalog)
        await changes.with_rows(session, bound.text, changes.CREATE_INDEX, table.id, table, plan)
        session.naming.put(index)
    return changes.CREATE_INDEX


async def _begin(session: Session, command: str) -> None:
    """Evaluates collected INSERTs of a transaction. Raises 25006."""
    session.settings.check_writable(command)
    await committing.settle(session)
