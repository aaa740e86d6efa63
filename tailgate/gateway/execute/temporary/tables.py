"""CREATE TEMPORARY TABLE: the session makes the table's item, which the engine does not know.

Source: PostgreSQL 15, src/backend/catalog/namespace.c (RangeVarGetCreationNamespace), src/backend/commands/tablecmds.c (DefineRelation).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from tailgate.gateway.security.ownership import check_change
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.lake import errors as e
from tailgate.lake.catalog import Table
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.schemas import TEMPORARY
from tailgate.sql import statements as s
from tailgate.sql.authorization import SELECT, Demand, Required
from tailgate.sql.statements.writes import OnCommit
from tailgate.sql.tables.creation import new_table

Creation: TypeAlias = s.CreateTable | s.CreateTableAs | s.CreateSequence


def is_temporary(session: Session, statement: Creation) -> bool:
    """Returns whether the statement creates a temporary relation. Raises 42P16 for another schema than pg_temp."""
    own = session.naming.is_own(statement.name)
    if statement.temporary and statement.name.schema is not None and not own:
        at = None if isinstance(statement, s.CreateSequence) else statement.name.position
        raise e.InvalidTableDefinition("cannot create temporary relation in non-temporary schema", position=at)
    return statement.temporary or own


def exists(session: Session, statement: Creation) -> bool:
    """Tells, with a notice, whether the session has such a relation and may. Raises 42P07 if it may not."""
    name = statement.name.name
    if session.catalog.find(Name(name, TEMPORARY)) is None:
        return False
    if not statement.if_not_exists:
        raise e.DuplicateTable(f'relation "{name}" already exists')
    session.notice(f'relation "{name}" already exists, skipping', sqlstate=e.DuplicateTable.sqlstate)
    return True


async def create(session: Session, bound: Bound, statement: s.CreateTable) -> str:
    """Creates a temporary table and returns the command tag."""
    if not exists(session, statement):
        await define(session, statement, bound.text, statement.on_commit)
        if not session.transaction.pending:
            session.keep_temporary(session.transaction.writes)
    return "CREATE TABLE"


async def define(session: Session, statement: s.CreateTable, text: str, on_commit: OnCommit) -> Table:
    """Adds a temporary table to the session's catalog. `text`: the statement."""
    id, catalog = session.naming.room()
    own = replace(statement, name=replace(statement.name, schema=TEMPORARY))
    check_change(own, session.access.role, catalog, session.client.database)
    for like in statement.likes:
        session.access.authorize(Required((Demand(SELECT, catalog.relation(like.relation).id),)))
    if (option := next((name for name, _ in statement.options if " " in name), None)) is not None:
        raise e.FeatureNotSupported(f'option "{option}" of a temporary table is not supported')
    table, indexes = await session.serving.workers.run_bounded(new_table, own, text, replace(catalog, next_id=id))
    role = session.access.role.id
    table = replace(table, owner=role)
    check_references(session, table, on_commit)
    session.naming.put(table, *(replace(index, owner=role) for index in indexes))
    if on_commit != "preserve rows":
        session.temporary.on_commit[table.id] = on_commit
    return table


def check_references(session: Session, table: Table, on_commit: OnCommit | None) -> None:
    """Raises 0A000 if COMMIT would delete rows that this table references, without its own."""
    for key in table.foreign_keys:
        if on_commit != "delete rows" and session.temporary.on_commit.get(key.table) == "delete rows":
            referenced = session.catalog[key.table].name
            raise e.FeatureNotSupported(
                "unsupported ON COMMIT and foreign key combination",
                detail=f'Table "{table.name}" references "{referenced}", but they do not have the same ON COMMIT setting.',
            )
