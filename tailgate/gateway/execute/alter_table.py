"""ALTER TABLE … ADD COLUMN and ALTER COLUMN … SET DEFAULT: the gateway computes the values of existing rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tailgate.gateway.execute import table_changes
from tailgate.gateway.execute.table_changes import TableChange
from tailgate.gateway.session.portals import Bound
from tailgate.gateway.session.session import Session
from tailgate.gateway.writes import added_columns
from tailgate.gateway.writes.evaluation import Evaluation
from tailgate.lake.errors import DuplicateColumn
from tailgate.lake.types import arrow_schema
from tailgate.sql import statements as s
from tailgate.sql.table_changes import altered_table, table_to_alter

TAG = "ALTER TABLE"


async def run(session: Session, bound: Bound, statement: s.AlterTable, values: Sequence[object]) -> str:
    """Alters the table and returns the command tag."""
    return await table_changes.run(session, bound, statement, TAG, partial(_altered, session, bound.text, statement))


async def _altered(session: Session, text: str, statement: s.AlterTable) -> TableChange | str:
    """Returns the changes of the table's rows, or the command tag if there is nothing to change."""
    table = table_to_alter(statement, session.catalog)
    if table is None:
        session.notice(f'relation "{statement.name.name}" does not exist, skipping')
        return TAG
    altered, notices = altered_table(table, statement)
    if altered == table:
        for notice in notices:
            session.notice(notice, "NOTICE", DuplicateColumn.sqlstate)
        return TAG
    plan = added_columns.plan(table, altered)
    if plan is None:
        return TableChange(text, table.id, arrow_schema(altered.columns, weight=True).empty_table(), (table.id,), TAG)
    style, names = session.settings.style, session.catalog
    rows = await session.serving.queries.write(
        session.access.authorize(plan),
        [table],
        lambda cursor: added_columns.changes(plan, Evaluation(cursor, (), style, names).query(plan.rows), names),
    )
    return TableChange(text, table.id, rows, (table.id,), TAG)
