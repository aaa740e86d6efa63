"""CREATE, ALTER and DROP of temporary tables, views and sequences, which the session executes without the engine.

    CREATE VIEW v AS SELECT … FROM a temporary one     the view is temporary, too, with a notice, as in PostgreSQL
    CREATE MATERIALIZED VIEW, CREATE SINK over one     0A000
    DROP of a relation that a temporary view reads     2BP01 in the view's session; other sessions may drop it

Source: PostgreSQL 15, src/backend/commands/view.c (DefineView), src/backend/catalog/namespace.c.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tailgate.gateway.execute.temporary import tables as temporary_tables
from tailgate.gateway.security.ownership import check_change
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.lake import errors as e
from tailgate.lake.catalog import Catalog, Change, DroppedWithOwner, Index, Item, Sequence, View
from tailgate.lake.catalog.custom_types import check_no_column
from tailgate.lake.catalog.dropping import dropping
from tailgate.lake.catalog.item_fields import namespace_of
from tailgate.lake.catalog.names import Name
from tailgate.lake.catalog.schemas import TEMPORARY, TEMPORARY_ID, Schema
from tailgate.lake.types import Field
from tailgate.lake.uncommitted import is_local
from tailgate.sql import statements as s
from tailgate.sql.authorization import Demand
from tailgate.sql.bind import bind_query, bind_view
from tailgate.sql.binder.writes.updatable_views import check_option
from tailgate.sql.comments import comment
from tailgate.sql.definitions import rename_references, stored_view
from tailgate.sql.drop import drop, find_of_kind
from tailgate.sql.new_items import with_article
from tailgate.sql.numeric_types import MAINTAINED
from tailgate.sql.sequence_definitions import alter_sequence, create_sequence
from tailgate.sql.tables.constraints import PERMANENT_ONLY
from tailgate.sql.tables.definition import with_name
from tailgate.sql.tables.owners import given
from tailgate.sql.tables.storage.changes import with_parameters
from tailgate.sql.view_replacement import check_columns


async def answer(session: Session, bound: Bound) -> str | None:
    """Executes a statement about temporary relations and returns its tag, or None if the engine must execute the statement.

    Raises 0A000 or 42809 for statements that do not apply to them.
    """
    statement = bound.statement
    if namespace_of(getattr(statement, "kind", None)) != "relation":
        return None  # endpoints and types have namespaces without temporary objects
    match statement:
        case s.CreateTable() if temporary_tables.is_temporary(session, statement):
            return await temporary_tables.create(session, bound, statement)
        case s.CreateTable(foreign_keys=keys) if any(_find(session, key.table) is not None for key in keys):
            raise e.InvalidTableDefinition(PERMANENT_ONLY)
        case s.CreateView():
            return await _create(session, statement, bound.text) if await _is_temporary(session, statement) else None
        case s.CreateSink(from_item=source) if await _reads_temporary(session, source):
            raise e.FeatureNotSupported("a sink of a temporary relation is not supported", hint="Create a materialized view of its query.")
        case s.CreateSubscription(from_item=name) if _find(session, name) is not None:
            raise e.FeatureNotSupported("a subscription to a temporary relation is not supported", hint="Use TAIL.")
        case s.CreateObjective(from_item=name) if _find(session, name) is not None:
            raise e.FeatureNotSupported("an objective of a temporary relation is not supported", hint="Create a view.")
        case s.CreateSequence() if temporary_tables.is_temporary(session, statement):
            return _create_sequence(session, statement)
        case s.AlterSequence(name=name) if _find(session, name) is not None:
            return _alter_sequence(session, statement)
        case s.Drop():
            return _drop(session, statement)
        case s.DropSchema(names=names):
            catalog = session.catalog
            _check_own(session, [schema for n in names if (schema := catalog.find_schema(n.name)) is not None], statement.cascade)
        case s.AlterItem():
            return await _alter(session, statement)
        case s.AlterType(name=name, action=tuple()):
            _check_unused(session, name)
        case s.Pause() | s.RetryDeadLetters() | s.DeleteDeadLetters() | s.RefreshSchema() | s.ResumeSource():
            _check_kind(session, statement)
        case s.AlterSecret() | s.ValidateConnection():
            _check_kind(session, statement)
        case s.Grant(kind="secret" | "connection" as kind, objects=names):
            for item in filter(None, (_find(session, n) for n in names)):
                raise e.WrongObjectType(f'"{item.name}" is not a {kind}')
        case s.Comment(kind=kind, name=name) if kind not in ("schema", "database", "role") and _find(session, name) is not None:
            _check_owner(session, statement)
            session.naming.put(*comment(statement, session.catalog).put)
            return "COMMENT"
        case s.Grant(kind="relation", objects=names) if any(_find(session, n) is not None for n in names):
            raise e.FeatureNotSupported("privileges on temporary relations are not supported", hint="No other session sees them.")
        case s.Explain(target=Name() as name) if _find(session, name) is not None:
            raise e.FeatureNotSupported("EXPLAIN VIEW of a temporary view is not supported", hint="Use EXPLAIN SELECT * FROM its name.")
        case s.Explain(target=s.CreateView() as inner):
            await _is_temporary(session, inner)
    return None


def _check_owner(session: Session, statement: s.Statement) -> None:
    """Raises 42501 if the role does not own a temporary relation of the statement, or may not do this with it."""
    check_change(statement, session.access.role, session.catalog, session.client.database)


def _find(session: Session, name: Name) -> Item | None:
    """Returns the temporary relation with this name, or None."""
    if not session.naming.has_temporary:
        return None
    item = session.catalog.find(name)
    return item if item is not None and session.naming.is_temporary(item) else None


def _check_kind(
    session: Session,
    statement: s.Pause | s.RetryDeadLetters | s.DeleteDeadLetters | s.RefreshSchema | s.ResumeSource | s.AlterSecret | s.ValidateConnection,
) -> None:
    """Raises 42809 if the statement, which needs another kind of object, names a temporary relation."""
    kind = {s.AlterSecret: "secret", s.ValidateConnection: "connection"}.get(type(statement), "source")
    for name in statement.names if isinstance(statement, s.Pause) else (statement.name,):
        if (item := _find(session, name)) is not None:
            raise e.WrongObjectType(f'"{item.name}" is not a {kind}', position=name.position)


async def _reads_temporary(session: Session, source: Name | s.QueryText) -> bool:
    if isinstance(source, Name) or not session.naming.has_temporary:
        return isinstance(source, Name) and _find(session, source) is not None
    query = await session.serving.workers.run_bounded(described_query, source, session.catalog)
    return any(id in session.naming.temporary for id in query.depends)


async def _is_temporary(session: Session, statement: s.CreateView) -> bool:
    """Returns whether the view is temporary: the statement says so, or the view reads a temporary view (with a notice)."""
    if statement.temporary or session.naming.is_own(statement.name):
        if statement.materialized:
            raise e.FeatureNotSupported("temporary materialized views are not supported", hint="Create a temporary view.")
        return True
    if not session.naming.has_temporary:
        return False
    query = await session.serving.workers.run_bounded(described_view, statement, session.catalog)
    if not any(id in session.naming.temporary for id in query.depends):
        return False
    if statement.materialized:
        raise e.FeatureNotSupported("materialized views must not use temporary tables or views")
    session.notice(f'view "{statement.name.name}" will be a temporary view')
    return True


async def _create(session: Session, statement: s.CreateView, text: str) -> str:
    if statement.name.schema is not None and statement.name.schema not in (TEMPORARY, session.naming.own.name):
        raise e.InvalidTableDefinition("cannot create temporary relation in non-temporary schema", position=statement.name.position)
    if statement.options:
        raise e.FeatureNotSupported(f'option "{statement.options[0][0]}" of a view is not supported')
    id, catalog = session.naming.room()
    name = statement.name.name
    old = catalog.find(Name(name, TEMPORARY))
    if old is not None and statement.if_not_exists:
        session.notice(f'relation "{name}" already exists, skipping', sqlstate="42P07")
        return "CREATE VIEW"
    if old is not None and not statement.replace:
        raise e.DuplicateTable(f'relation "{name}" already exists')
    query = session.access.authorize(await session.serving.workers.run_bounded(described_view, statement, catalog)).plan
    if any(map(is_local, query.depends)):
        raise e.ActiveSqlTransaction("a temporary view over an object that is not committed is not supported", hint="COMMIT first.")
    stored, text = stored_view(statement, text)
    item = View(id, name, query.columns, depends=query.depends, sql=text, query=stored.query.text, owner=session.access.role.id)
    item = replace(item, schema=TEMPORARY_ID, numeric_rules=MAINTAINED, check_option=statement.check_option)
    if old is not None:
        item = replace(item, id=old.id)
        check_columns(old.columns, item.columns)
        if old.id in catalog.below(item):
            raise e.InvalidObjectDefinition(f'infinite recursion detected in rules for relation "{name}"')
    after = catalog.stored.apply(Change(put=(item,)))
    item = await session.serving.workers.run_bounded(rename_references, item, catalog, after, stored)
    check_option(item, catalog.stored.apply(Change(put=(item,))))
    session.naming.put(item)
    return "CREATE VIEW"


@dataclass(frozen=True, slots=True)
class DescribedView:
    """The query of a view or sink: its columns, the ids of the items that it names, and the privileges that it needs."""

    columns: tuple[Field, ...]
    depends: tuple[int, ...]
    demands: tuple[Demand, ...]


def described_view(statement: s.CreateView, catalog: Catalog) -> DescribedView:
    query = bind_view(statement, catalog)
    return DescribedView(query.columns, query.depends, query.demands)


def described_query(text: s.QueryText, catalog: Catalog) -> DescribedView:
    query = bind_query(text, catalog, view=True)
    return DescribedView(query.columns, query.depends, query.demands)


def all_restated(items: Iterable[Item], before: Catalog, after: Catalog) -> list[Item]:
    return [rename_references(item, before, after) for item in items]


def _create_sequence(session: Session, statement: s.CreateSequence) -> str:
    if not temporary_tables.exists(session, statement):
        id, catalog = session.naming.room()
        own = replace(statement, name=replace(statement.name, schema=TEMPORARY))
        session.naming.put(create_sequence(own, replace(catalog, next_id=id), session.access.role.id))
    return "CREATE SEQUENCE"


def _alter_sequence(session: Session, statement: s.AlterSequence) -> str:
    _check_owner(session, statement)
    sequence = find_of_kind("sequence", statement.name, session.catalog, word="relation")
    assert isinstance(sequence, Sequence)
    altered = alter_sequence(statement, session.sequences.at_position(sequence), session.catalog)
    session.sequences.redefine(altered)
    session.naming.put(altered)
    return "ALTER SEQUENCE"


def _drop(session: Session, statement: s.Drop) -> str | None:
    catalog = session.catalog
    targets = {i.id: i for i in (catalog.find(n) for n in statement.names) if i is not None}
    own = [i for i in targets.values() if session.naming.is_temporary(i)]
    if not own:
        _check_own(session, list(targets.values()), statement.cascade)
        return None
    if len(own) < len(statement.names):
        raise e.FeatureNotSupported("DROP of temporary relations and others at once is not supported", hint="Drop them one after another.")
    _check_owner(session, statement)
    change, notices = drop(statement, catalog)
    session.portals.check_unused((catalog[id] for id in change.drop), "DROP TABLE")
    for notice in notices:
        assert notice["message"] is not None
        session.notice(notice["message"], detail=notice.get("detail"))
    session.naming.apply(change)
    if not session.transaction.pending:
        session.keep_temporary(session.transaction.writes)
    return f"DROP {statement.kind.upper()}"


def _check_own(session: Session, roots: list[Item | Schema], cascade: bool) -> None:
    """Raises 2BP01 if one of the session's temporary relations, which the engine does not know, depends on `roots`."""
    if session.naming.has_temporary and roots:
        dropping(session.catalog, roots, cascade=cascade)


def _check_unused(session: Session, name: Name) -> None:
    """Raises 0A000 if a column of one of the session's temporary tables has values of a composite type."""
    if (type := session.catalog.find(name, "type")) is not None:
        check_no_column(type, session.naming.temporary.values())


async def _alter(session: Session, statement: s.AlterItem) -> str | None:
    item = _find(session, statement.name)
    if item is None:
        return None
    if statement.kind not in (item.kind, "table"):
        raise e.WrongObjectType(f'"{item.name}" is not {with_article(statement.kind)}')
    _check_owner(session, statement)
    catalog = session.catalog
    if statement.owner:
        session.naming.put(*given(item, catalog.role(statement.owner).id, catalog).put)
        return f"ALTER {statement.kind.upper()}"
    if statement.options and isinstance(item, Index):
        session.naming.put(with_parameters(item, statement.options))
        return "ALTER INDEX"
    if statement.options:
        raise e.WrongObjectType(f'"{item.name}" is not stored, so it has no history')
    if statement.schema:
        if catalog.find_schema(statement.schema) is None:
            raise e.InvalidSchemaName(f'schema "{statement.schema}" does not exist')
        raise e.FeatureNotSupported("cannot move objects into or out of temporary schemas")
    if catalog.find(Name(statement.rename, TEMPORARY)) is not None:
        raise e.DuplicateTable(f'relation "{statement.rename}" already exists')
    before, after = catalog.stored, catalog.stored.apply(Change(put=(with_name(item, statement.rename),)))
    others = catalog.dependents(item.id)
    changed = [after[i.id] for i in (item, *others) if not isinstance(i, DroppedWithOwner)]
    session.naming.put(after[item.id], *await session.serving.workers.run_bounded(all_restated, changed, before, after))
    return f"ALTER {statement.kind.upper()}"
