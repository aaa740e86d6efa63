"""REFRESH MATERIALIZED VIEW, VACUUM, ANALYZE, REINDEX, CLUSTER, CHECKPOINT and LOCK TABLE: PostgreSQL's checks.

REFRESH waits until the view has all changes that were committed before it. LOCK TABLE in a mode that excludes writers makes COMMIT
fail with 40001 if another transaction writes the table meanwhile. The others have no effect: tables are maintained all the time.

Source: PostgreSQL 15, src/backend/commands/matview.c, vacuum.c, indexcmds.c, cluster.c, lockcmds.c; src/backend/tcop/utility.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tailgate.gateway.execute import committing, queries
from tailgate.gateway.execute.catalog_changes import caught_up, check_outside_block
from tailgate.gateway.execute.tables import temporary_changes
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.gateway.session.transactions import State
from tailgate.lake import errors as e
from tailgate.lake.catalog import Catalog, Index, Item, MaterializedView, Source, Table, View
from tailgate.lake.catalog.names import Name
from tailgate.lake.keywords import quoted
from tailgate.lake.readers.failed import failure
from tailgate.sql import statements as s
from tailgate.sql.authorization import OR, Demand, Required, kind_of
from tailgate.sql.statements.tables import SetClustered
from tailgate.sql.tables.storage.changes import clustered_index

READERS = {
    "access share": "SELECT",
    "row exclusive": OR.join(("INSERT", "UPDATE", "DELETE", "TRUNCATE")),
}  # privileges for modes of LOCK TABLE
WRITERS = OR.join(("UPDATE", "DELETE", "TRUNCATE"))  # for its other modes
SHARED = ("access share", "row share", "row exclusive", "share update exclusive")  # modes that do not exclude writers


def _named(catalog: Catalog, name: Name) -> Item:
    """Returns the item of any kind with this name. Raises 3F000 or 42P01, without a position."""
    catalog.check_schema(Name(name.name, name.schema))
    item = catalog.find(Name(name.name, name.schema))
    if item is None:
        raise e.UndefinedTable(f'relation "{name}" does not exist')
    return item


def _check_owner(session: Session, item: Item) -> None:
    if not session.access.owns(item):
        raise e.InsufficientPrivilege(f"must be owner of {kind_of(item)} {item.name}")


def _maintained(session: Session, name: Name) -> Item:
    """Returns the table, source or materialized view with this name, which the role owns. Raises 42P01, 42809 or 42501."""
    item = _named(session.catalog, name)
    if not isinstance(item, Table | Source | MaterializedView):
        raise e.WrongObjectType(f'"{item.name}" is not a table or materialized view')
    _check_owner(session, item)
    return item


async def refresh(session: Session, bound: Bound, statement: s.Refresh, values: Sequence[object]) -> str:
    """Waits until the view has all that was committed before: rows of tables, and messages that Kafka has."""
    session.settings.check_writable("REFRESH MATERIALIZED VIEW")
    view = _maintained(session, statement.view)
    if not isinstance(view, MaterializedView):
        raise e.FeatureNotSupported(f'"{view.name}" is not a materialized view')
    if statement.concurrently and not statement.with_data:
        raise e.SyntaxError_("CONCURRENTLY and WITH NO DATA options cannot be used together")
    if not statement.with_data:
        raise e.FeatureNotSupported("WITH NO DATA is not supported", hint="Materialized views always have their rows.")
    catalog = session.catalog
    indexes = [index for index in catalog.each(Index) if view.id in index.depends]
    if statement.concurrently and not any(index.unique and not index.computed for index in indexes):
        raise e.ObjectNotInPrerequisiteState(
            f'cannot refresh materialized view "{catalog.schema_of(view).name}.{view.name}" concurrently',
            hint="Create a unique index with no WHERE clause on one or more columns of the materialized view.",
        )
    if (why := failure(view)) is not None:
        raise e.ObjectNotInPrerequisiteState(f'materialized view "{view.name}" has failed', detail=why.message)
    await committing.settle(session)
    await caught_up(session)
    await session.serving.progress.wait_inbox(session.last_write)
    if any(isinstance(catalog[id], Source) for id in catalog.below(view)):
        await queries.wait_recent(session, frozenset((view.id,)))
    return "REFRESH MATERIALIZED VIEW"


def vacuum(session: Session, bound: Bound, statement: s.Vacuum, values: Sequence[object]) -> str:
    """Checks the tables and columns of VACUUM or ANALYZE. As in PostgreSQL, a WARNING reports tables that are skipped."""
    command, verb = statement.command, statement.command.lower()
    if command == "VACUUM":
        check_outside_block(session, "VACUUM")
    if not statement.analyzes and any(columns for _, columns in statement.tables):
        raise e.FeatureNotSupported("ANALYZE option must be specified when a column list is provided")
    for name, columns in statement.tables:
        item = _named(session.catalog, name)
        if not session.access.owns(item):
            session.notice(f'skipping "{item.name}" --- only table or database owner can {verb} it', "WARNING", "01000")
        elif not isinstance(item, Table | Source | MaterializedView):
            session.notice(f'skipping "{item.name}" --- cannot {verb} non-tables or special system tables', "WARNING", "01000")
        else:
            _check_columns(item, columns)
    return command


def _check_columns(item: Item, columns: Sequence[str]) -> None:
    existing = [column.name for column in item.columns]
    for i, column in enumerate(columns):
        if column not in existing:
            raise e.UndefinedColumn(f'column "{column}" of relation "{item.name}" does not exist')
        if column in columns[:i]:
            raise e.DuplicateColumn(f'column "{column}" of relation "{item.name}" appears more than once')


def reindex(session: Session, bound: Bound, statement: s.Reindex, values: Sequence[object]) -> str:
    """Checks the object of REINDEX."""
    catalog, name, kind = session.catalog, statement.name, statement.kind
    if statement.concurrently:
        check_outside_block(session, "REINDEX CONCURRENTLY")
    match kind:
        case "index":
            item = _named(catalog, name)
            if not isinstance(item, Index):
                raise e.WrongObjectType(f'"{item.name}" is not an index')
            _check_owner(session, item)
        case "table":
            table = _maintained(session, name)
            if not _has_key(table) and not any(table.id in index.depends for index in catalog.each(Index)):
                session.notice(f'table "{table.name}" has no indexes to reindex')
        case "schema":
            schema = catalog.schema(name.name)
            if not session.access.role.superuser and schema.owner not in catalog.acting(session.access.role.id):
                raise e.InsufficientPrivilege(f"must be owner of schema {schema.name}")
            check_outside_block(session, "REINDEX SCHEMA")
        case _:
            check_outside_block(session, f"REINDEX {kind.upper()}")
            if name.name != session.client.database:
                raise e.FeatureNotSupported("can only reindex the currently open database")
            if not session.access.role.superuser:
                raise e.InsufficientPrivilege(f"must be owner of database {name.name}")
    return "REINDEX"


def _has_key(table: Item) -> bool:
    """Returns whether a relation has a primary key, whose index is not an item of the catalog."""
    return isinstance(table, Table) and table.key is not None


def _is_clustered(table: Item, catalog: Catalog) -> bool:
    """Returns whether the index that CLUSTER has stored still exists."""
    clustered = table.storage.clustered
    return clustered in catalog.items or (clustered == 0 and _has_key(table))


async def cluster(session: Session, bound: Bound, statement: s.Cluster, values: Sequence[object]) -> str:
    """Stores which index CLUSTER names, for the system catalog. The order of a table's rows is not stored."""
    if statement.table is None:
        check_outside_block(session, "CLUSTER")
        return "CLUSTER"
    table = _maintained(session, statement.table)
    if statement.index is None and not _is_clustered(table, session.catalog):
        raise e.UndefinedObject(f'there is no previously clustered index for table "{table.name}"')
    if statement.index is None or clustered_index(table, statement.index, session.catalog) == table.storage.clustered:
        return "CLUSTER"
    if not isinstance(table, Table):
        return "CLUSTER"
    name = session.catalog.name_of(table)
    altering = s.AlterTable(name, (SetClustered(statement.index),))
    text = f"ALTER TABLE {name.sql} CLUSTER ON {quoted(statement.index)}"
    await temporary_changes.alter(session, replace(bound, statement=altering, text=text), altering, values)
    return "CLUSTER"


def checkpoint(session: Session, bound: Bound, statement: s.Checkpoint, values: Sequence[object]) -> str:
    """Checks that the role is a superuser. Rows are durable without a checkpoint."""
    if not session.access.role.superuser:
        raise e.InsufficientPrivilege("must be superuser or have privileges of pg_checkpoint to do CHECKPOINT")
    return "CHECKPOINT"


def lock(session: Session, bound: Bound, statement: s.Lock, values: Sequence[object]) -> str:
    """Makes COMMIT fail with 40001 if the tables change meanwhile, unless the mode allows writers."""
    transaction = session.transaction
    if transaction.state is State.IDLE:
        raise e.NoActiveSqlTransaction("LOCK TABLE can only be used in transaction blocks")
    items = [_named(session.catalog, name) for name in statement.tables]
    for item in items:
        if not isinstance(item, Table | Source | View):
            plural = "indexes" if isinstance(item, Index) else f"{item.kind}s"
            raise e.WrongObjectType(f'cannot lock relation "{item.name}"', detail=f"This operation is not supported for {plural}.")
    privilege = READERS.get(statement.mode, WRITERS)
    session.access.authorize(Required(tuple(Demand(privilege, item.id) for item in items)))
    transaction.locks.update((item.id, statement.mode) for item in items)
    transaction.snapshot(session.serving)  # from here on, the block's reads and writes are checked
    if statement.mode not in SHARED:
        transaction.writes.read(item.id for item in items)
    return "LOCK TABLE"
