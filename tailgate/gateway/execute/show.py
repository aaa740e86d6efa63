"""SHOW: results from the catalog, the engine's status, the lake and a session's settings."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tailgate.gateway.catalog.relations import item_status
from tailgate.gateway.catalog.relations import rows as catalog_rows
from tailgate.gateway.catalog.relations.constraint_rows import beyond_rows
from tailgate.gateway.catalog.relations.item_status import LISTS, NAME
from tailgate.gateway.execute import catalog_changes
from tailgate.gateway.execute.monitoring import push_queries
from tailgate.gateway.execute.monitoring.states import objective_states, subscription_states
from tailgate.gateway.ksqldb import connectors, entities, figures, other_entities
from tailgate.gateway.ksqldb import lists as ksqldb_lists
from tailgate.gateway.ksqldb.fields import Entity
from tailgate.gateway.ksqldb.query_errors import waiting
from tailgate.gateway.results.rows import TableRows, Tagged
from tailgate.gateway.session.access import Access
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.gateway.settings.settings import Settings
from tailgate.ksql.entities import entity as entity_text
from tailgate.lake.catalog import Alert, Catalog, Function, Index, Item, Objective, Table, is_transient, ksqldb_of
from tailgate.lake.catalog import functions as routines
from tailgate.lake.catalog.indexes import definition as index_definition
from tailgate.lake.catalog.indexes import names as element_names
from tailgate.lake.catalog.item_fields import namespace_of
from tailgate.lake.catalog.roles import Role
from tailgate.lake.catalog.schemas import ENDPOINTS_ID, TAILGATE_ID, TEMPORARY_ID, TRANSIENT_ID
from tailgate.lake.errors import InsufficientPrivilege, UndefinedObject, UndefinedTable, WrongObjectType
from tailgate.lake.folder import Lake
from tailgate.lake.readers import reading
from tailgate.lake.types import BOOL, INT8, TEXT, TIMESTAMPTZ, WEIGHT, Field
from tailgate.sql.authorization import Authorized, Followed
from tailgate.sql.compute.regexp import likes
from tailgate.sql.definitions import for_search_path
from tailgate.sql.ksqldb.dialect import HTTP
from tailgate.sql.ksqldb.names import catalog_name, quoted
from tailgate.sql.statements import Explain, Name, QueryId, Show
from tailgate.sql.tables.definition import definition
from tailgate.values.times.calendar import INFINITE_TIME

_CREATE = (
    "create source",
    "create view",
    "create materialized view",
    "create sink",
    "create table",
    "create function",
    "create index",
    "create subscription",
    "create connection",
    "create endpoint",
    "create objective",
    "create alert",
)

HIDDEN_SCHEMAS = (ENDPOINTS_ID, TAILGATE_ID, TEMPORARY_ID, TRANSIENT_ID)
DESCRIPTION = (Field("description", TEXT),)
TOPICS = ("topics", "topics extended")
QUERIES_EXTENDED = "queries extended"
ENTITIES = (*entities.KINDS, *entities.DESCRIBED, *other_entities.KINDS, *connectors.COLUMNS, QUERIES_EXTENDED)

SINGLE: dict[str, tuple[Field, ...]] = {
    "topics": (NAME, Field("partitions", INT8), Field("replicas", INT8), Field("records", INT8)),
    "topics extended": (NAME, *(Field(n, INT8) for n in ("partitions", "replicas", "consumers", "consumer_groups"))),
    "objects": (NAME, Field("type", TEXT)),
    "functions": (NAME, Field("arguments", TEXT), Field("result", TEXT)),
    "columns": (NAME, Field("nullable", BOOL), Field("type", TEXT)),
    "schemas": (NAME,),
    "databases": (NAME,),
    "indexes": (NAME, Field("on_name", TEXT), Field("key", TEXT)),
    "tokens": (NAME, Field("role", TEXT), Field("valid_until", TIMESTAMPTZ)),
    "alerts": (
        NAME,
        Field("objective", TEXT),
        Field("severity", TEXT),
        Field("for_ms", INT8),
        *(Field(n, INT8) for n in ("webhooks", "commands", "topics")),
    ),
    "errors": (Field("view", TEXT), Field("sqlstate", TEXT), Field("message", TEXT), Field("count", INT8)),
    "all": (NAME, Field("setting", TEXT), Field("description", TEXT)),
    **ksqldb_lists.COLUMNS,
    **connectors.COLUMNS,
    **dict.fromkeys((what for what in entities.DESCRIBED if what != "describe"), DESCRIPTION),
    QUERIES_EXTENDED: DESCRIPTION,
}


def bind(session: Session, bound: Bound, statement: Show, oids: Sequence[int]) -> Bound:
    if _as_entity(session, statement):
        return replace(bound, columns=entities.COLUMNS)
    return replace(bound, columns=columns(statement, session.settings))


async def run(session: Session, bound: Bound, statement: Show, values: Sequence[object]) -> Tagged:
    return Tagged(TableRows(bound.columns or (), await _table_of(session, bound, statement)), "SHOW", counted=False)


def _as_entity(session: Session, statement: Show) -> bool:
    """Returns whether the result is an entity of ksqlDB's HTTP API."""
    return session.settings.dialect == HTTP and statement.what in ENTITIES


async def _described(session: Session, bound: Bound, statement: Show) -> pa.Table:
    """Returns the result of DESCRIBE: an entity, or its text."""
    catalog, measured = session.catalog, None
    items = entities.described_items(statement, catalog)
    if statement.what.endswith("extended"):
        status = await session.control.status()
        lines = (await catalog_changes.send(session, bound, text="SHOW TOPICS")).lines
        failed = await asyncio.to_thread(figures.last_failed, items, catalog, session.gateway.lake, session.serving.progress.time)
        measured = figures.Measured(catalog, status, lines, failed)
    entity = entities.descriptions(statement, catalog, measured, session.access.may_see)
    return _shown(session, statement, entity)


async def _of_connectors(session: Session, bound: Bound, statement: Show) -> pa.Table:
    """Returns the result of a statement that Kafka Connect answers."""
    entity = json.loads((await catalog_changes.send(session, bound)).lines[0])
    if statement.what == "describe connector":
        entity = connectors.described(entity, session.catalog, session.access.may_see)
        return _shown(session, statement, entity)
    if _as_entity(session, statement):
        return _entity(session, entity)
    return _table(connectors.COLUMNS[statement.what], connectors.rows(entity))


async def _described_queries(session: Session, bound: Bound, statement: Show) -> pa.Table:
    """Returns the result of SHOW QUERIES EXTENDED. The plan of a query is shown to its owner."""
    plans = list[tuple[Item, Sequence[str]]]()
    for item in entities.running(session.catalog):
        ksqldb = ksqldb_of(item)
        assert ksqldb is not None
        explain = replace(bound, statement=Explain(QueryId(ksqldb.query)), text=f"EXPLAIN {quoted(catalog_name(ksqldb.query))}")
        try:
            lines = (await catalog_changes.send(session, explain)).lines
        except InsufficientPrivilege:
            lines = ()
        plans.append((item, lines))
    broken = waiting(await session.control.status(lags=False), session.catalog)
    entity = entities.query_descriptions(plans, session.catalog, session.access.may_see, broken)
    return _shown(session, statement, entity)


def _shown(session: Session, statement: Show, entity: Entity) -> pa.Table:
    """Returns an entity, or its text for other dialects than that of the HTTP API."""
    if _as_entity(session, statement):
        return _entity(session, entity)
    return _table(DESCRIPTION, [(line,) for line in entity_text(entity).split("\n")])


def _entity(session: Session, entity: Entity) -> pa.Table:
    """Returns an entity as the rows of a result."""
    return _table(entities.COLUMNS, [(json.dumps(entity, ensure_ascii=False), session.serving.progress.state.n)])


async def _table_of(session: Session, bound: Bound, statement: Show) -> pa.Table:
    if statement.what in entities.DESCRIBED and (_as_entity(session, statement) or statement.what != "describe"):
        return await _described(session, bound, statement)
    if statement.what in connectors.COLUMNS:
        return await _of_connectors(session, bound, statement)
    if statement.what == QUERIES_EXTENDED:
        return await _described_queries(session, bound, statement)
    if _as_entity(session, statement):
        lines = await _topic_lines(session, bound) if statement.what in TOPICS else ()
        if statement.what in other_entities.KINDS:
            entity = other_entities.entity(statement, session.settings.__getitem__)
        else:
            entity = entities.entity(statement, session.catalog, lines, session.access.may_see)
        if statement.what == "queries":
            broken = waiting(await session.control.status(lags=False), session.catalog)
            running = [entities.push_query(f.id, f.text) for f in await push_queries.running(session)]
            entity["queries"] = [*entities.with_errors(entity["queries"], broken), *running]
        return _entity(session, entity)
    catalog, lake = session.catalog, session.gateway.lake
    status: Mapping[str, Any] = {}
    match statement.what:
        case "errors":
            views = failing(statement, catalog, session.access)
            return await asyncio.to_thread(errors, views, lake, catalog, session.serving.progress.time)
        case "tokens":
            return tokens(statement, catalog, session.access.role)
        case "variables":
            return _table(SINGLE["variables"], session.variables.listed())
        case what if what in TOPICS:
            return topics(statement, await _topic_lines(session, bound))
        case "create alert":
            session.access.check_superuser("look into alerts")  # a webhook's URL may contain its credentials
        case "subscriptions":
            status = {"subscriptions": await asyncio.to_thread(subscription_states, lake, catalog)}
        case "objectives":
            status = {"objectives": await asyncio.to_thread(objective_states, lake, catalog)}
        case "queries":
            status = await session.control.status(lags=False)
            listed = answer(statement, catalog, session.settings, session.client.database, status, session.access.may_see)
            push_rows = [(f.id, "PUSH", "RUNNING", "", "", f.text) for f in await push_queries.running(session)]
            return pa.concat_tables([listed, _table(ksqldb_lists.COLUMNS["queries"], push_rows)])
        case _ if needs_engine(statement):
            status = await session.control.status()
    return answer(statement, catalog, session.settings, session.client.database, status, session.access.may_see)


async def _topic_lines(session: Session, bound: Bound) -> Sequence[str]:
    session.access.check_superuser("look into topics")
    return (await catalog_changes.send(session, bound)).lines


def columns(show: Show, settings: Settings) -> tuple[Field, ...]:
    """Returns the columns of the result. Raises 42704 for an unknown setting."""
    if show.what == "setting":
        return (Field(settings.get(show.setting)[0], TEXT),)
    if show.what in _CREATE:
        return (NAME, Field("create_sql", TEXT))
    return LISTS[show.what][1] if show.what in LISTS else SINGLE[show.what]


def needs_engine(show: Show) -> bool:
    """Returns whether the result contains the engine's status."""
    return show.what in item_status.TOLD


def failing(show: Show, catalog: Catalog, access: Access) -> list[Authorized[Followed]]:
    """Returns the views of SHOW ERRORS: the named one, or all that the role may read."""
    if show.name is None:
        views = sorted(catalog.visible, key=lambda item: item.name)
        return [access.authorize(Followed(i)) for i in views if i.errors and i.ready and access.may_read(i)]
    item = catalog.relation(show.name)
    if not item.errors:
        raise WrongObjectType(f'"{item.name}" is not a materialized view', position=show.name.position)
    view = access.authorize(Followed(item))
    return [view] if item.ready else []


def errors(views: Sequence[Authorized[Followed]], lake: Lake, catalog: Catalog, at: int) -> pa.Table:
    """Returns the errors of views at a time, for SHOW ERRORS. Blocks."""
    rows = [
        (catalog.name_of(item).sql, row["sqlstate"], row["message"], row[WEIGHT])
        for item in (view.plan.item for view in views)
        for row in sorted(reading.snapshot(lake, item.errors, at).to_pylist(), key=lambda row: (row["sqlstate"], row["message"]))
    ]
    return _table(SINGLE["errors"], rows)


def tokens(show: Show, catalog: Catalog, role: Role) -> pa.Table:
    """Returns the result of SHOW TOKENS: the tokens of the role and of those that it is a member of; superusers see all."""
    shown = [r for r in catalog.all_roles().values() if role.superuser or r.id in catalog.acting(role.id)]
    rows = [(name, r.name, _timestamp(r.token_ends_ms.get(name))) for r in shown for name in r.tokens]
    return _table(SINGLE["tokens"], _liked(sorted(rows, key=lambda row: (row[0], row[1])), show.like))


def _timestamp(ms: int | None) -> int | None:
    """Returns milliseconds as µs since 1970. Infinity in milliseconds stays infinity."""
    infinities = {time // 1000: time for time in (INFINITE_TIME, -INFINITE_TIME)}
    return None if ms is None else infinities.get(ms, ms * 1000)


def topics(show: Show, lines: Sequence[str]) -> pa.Table:
    """Returns the result of SHOW TOPICS [EXTENDED]. `lines`: the engine's answer, one line per topic with columns separated by tabs."""
    rows = [(name, *map(int, counts)) for name, *counts in (line.split("\t") for line in lines)]
    return _table(SINGLE[show.what], _liked(rows, show.like))


def answer(
    show: Show, catalog: Catalog, settings: Settings, database: str, status: Mapping[str, Any], may_see: item_status.MaySee
) -> pa.Table:
    """Returns the result of all other forms of SHOW. `status`: the engine's status, empty if it is not running."""
    fields = columns(show, settings)
    return _table(fields, _liked(list(_rows(show, catalog, settings, database, status, may_see)), show.like))


def _liked(rows: Sequence[Sequence[Any]], pattern: str | None) -> Sequence[Sequence[Any]]:
    """Returns the rows whose first column matches the LIKE pattern."""
    if pattern is None:
        return rows
    return [row for row, fits in zip(rows, likes.matches([str(row[0]) for row in rows], pattern), strict=True) if fits]


def _table(fields: Sequence[Field], rows: Sequence[Sequence[Any]]) -> pa.Table:
    values = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in fields]
    return pa.table([pa.array(v, f.type.arrow) for f, v in zip(fields, values, strict=True)], names=[f"c{i}" for i in range(len(fields))])


def _rows(
    show: Show, catalog: Catalog, settings: Settings, database: str, status: Mapping[str, Any], may_see: item_status.MaySee
) -> Iterable[Sequence[Any]]:
    what = show.what
    items = sorted(_listed(show, catalog), key=lambda item: item.name)
    match what:
        case "setting":
            return [(settings.get(show.setting)[1],)]
        case "all":
            return settings.all()
        case "properties":
            return ksqldb_lists.properties(lambda name: settings[name])
        case "schemas":
            return [(name,) for name in sorted(s.name for s in catalog.all_schemas().values() if s.id not in HIDDEN_SCHEMAS)]
        case "databases":
            return [(database,)]
        case "objects":
            return [(i.name, i.kind) for i in items]
        case "functions":
            return [(i.name, routines.arguments_of(i), routines.result_of(i)) for i in items if isinstance(i, Function)]
        case "alerts":
            objectives = {i.id: catalog.name_of(i).sql for i in catalog.each(Objective)}
            return [
                (i.name, objectives.get(i.objective), i.severity, i.hold_ms, len(i.webhooks), len(i.commands), len(i.topics))
                for i in items
                if isinstance(i, Alert)
            ]
        case "indexes":
            of = None if show.name is None else catalog.relation(show.name).id
            listed = {i.id for i in items}
            indexes = [i for i in catalog_rows.indexed(catalog) if of == i.relation.id or (of is None and i.relation.id in listed)]
            indexes.sort(key=lambda i: i.index.name)
            return [(i.index.name, i.relation.name, ", ".join(element_names(i.index, i.relation))) for i in indexes]
        case "columns":
            assert show.name is not None
            item = catalog.relation(show.name)
            return [(f.name, f.nullable, str(f.type)) for f in item.columns if not f.is_dropped]
    if what == "describe function":
        return ksqldb_lists.described_function(show.setting)
    if what in ksqldb_lists.COLUMNS:
        return ksqldb_lists.rows(what, show.name, items, catalog, may_see, status)
    if what in _CREATE:
        assert show.name is not None
        if what == "create function":
            function = routines.find(show.name, show.types, catalog)
            return [(function.display_name, for_search_path(function, catalog).sql)]
        return [_create(catalog, show.name, what.removeprefix("create "))]
    return item_status.rows(what, items, catalog, status, may_see)


def _listed(show: Show, catalog: Catalog) -> list[Item]:
    """Returns the items to list: those of the given schema, or those that can be named without one.

    The session's catalog contains its own temporary views only.
    """
    if show.schema is None:
        pushed = is_transient if show.what == "queries" else (lambda item: False)
        return [i for i in catalog.visible if catalog.name_of(i).schema is None or pushed(i)]
    schema = catalog.schema(show.schema.name, show.schema.position)
    return [i for i in catalog.visible if i.schema == schema.id]


def _create(catalog: Catalog, name: Name, kind: str) -> tuple[str, str]:
    item = catalog.find(name, namespace_of(kind))
    if item is None and kind == "endpoint":
        raise UndefinedObject(f'endpoint "{name}" does not exist', position=name.position)
    if item is None:
        raise UndefinedTable(f'relation "{name}" does not exist', position=name.position)
    if item.kind != kind:
        article = "an" if kind == "index" else "a"
        raise WrongObjectType(f'"{name.name}" is not {article} {kind}', hint=f"It is a {item.kind}.", position=name.position)
    if isinstance(item, Index):
        relation = catalog[item.depends[0]]
        return item.name, index_definition(item, Name(relation.name, catalog.schema_of(relation).name).sql, relation)
    if not item.sql:
        raise UndefinedObject(f'no statement created "{name.name}"')
    shown = for_search_path(item, catalog)
    others = beyond_rows(item, catalog) if isinstance(item, Table) else ()
    return item.name, definition(shown, others) if isinstance(shown, Table) and others else shown.sql
