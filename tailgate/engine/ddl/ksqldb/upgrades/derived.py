"""CREATE OR REPLACE {STREAM | TABLE} … AS: the query continues with another projection or filter.

    rows and messages that exist    stay as they are, with NULL in columns that are added at the end
    records that arrive later       are processed by the new query

The operators of a query, its joins and aggregates, stay the same: their state belongs to them. A table that groups one stream without
windows may get another filter. A table that reads tables only is filled again, so all its rows are those of the new query. Another
table may only get its own query again. The same statement keeps the query, although a later version may translate it otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tailgate.engine.ddl.kafka.known_columns import check_no_backfill, readers_with_width, with_recorded_width
from tailgate.engine.ddl.kafka.registry import SchemaLookup
from tailgate.engine.ddl.ksqldb.endpoints import Endpoints
from tailgate.engine.ddl.ksqldb.items import Replaced, derived_view
from tailgate.engine.ddl.ksqldb.upgrades.checks import check_same_topic, check_schema, check_type
from tailgate.engine.ddl.ksqldb.upgrades.filtered import with_kept_state
from tailgate.engine.ddl.replace import check_ready
from tailgate.engine.ddl.view import check_maintained
from tailgate.engine.plan.rules.change import stateful
from tailgate.engine.plan.views.digest import digest
from tailgate.engine.plan.views.inserts import target_of
from tailgate.engine.plan.views.replacements import readers
from tailgate.engine.plan.views.streams import Streams, joins_in_order
from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView, Sink, Source, ViewErrors, ksqldb_of
from tailgate.lake.catalog.dropping import inserted_rows
from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.lake.errors import FeatureNotSupported, WrongObjectType
from tailgate.sql.ksqldb.expressions import FunctionCall, walk
from tailgate.sql.ksqldb.limits import COLLECTING
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.parser import parse
from tailgate.sql.ksqldb.queries.scopes import position_columns
from tailgate.sql.ksqldb.statements import CreateAs


def upgraded_view(
    statement: CreateAs, text: str, old: Item, catalog: Catalog, registry: SchemaLookup, endpoints: Endpoints
) -> tuple[Item, ...]:
    """Returns the items that CREATE OR REPLACE … AS changes: the view, its sink and the items that read it.

    `text`: the statement as typed. Raises 42P07, 42809, 42P16, 55000 or 0A000 if the query cannot be replaced by the statement's.
    """
    view, ksqldb = _replaced(statement, old)
    companions = [item for item in catalog.dependents(view.id) if isinstance(item, ViewErrors) or (isinstance(item, Sink) and item.of_view)]
    check_ready([view], catalog)
    check_maintained(view)
    check_no_backfill(view, catalog)
    if inserting := [i for i in catalog.each(MaterializedView) if target_of(i, catalog) == view]:
        raise FeatureNotSupported(
            f'CREATE OR REPLACE of a stream into which "{inserting[0].name}" inserts is not supported',
            hint="TERMINATE its query first.",
            position=statement.position,
        )
    if inserted_rows(view, catalog) is not None:
        raise FeatureNotSupported(
            "CREATE OR REPLACE of a stream with inserted rows is not supported",
            hint=f"DROP STREAM {ksqldb_name(view.name)}, and create it again.",
            position=statement.position,
        )
    without = catalog.apply(Change(drop=(view.id, *(item.id for item in companions))))
    hidden = position_columns(view)
    new = derived_view(statement, text, without, ksqldb.reset, registry, endpoints, Replaced((), hidden))
    check_same_topic(view, ksqldb, ksqldb_of(new))
    added = check_schema(view, new, statement.position)
    names = [column.name for column in view.columns]
    if [column.name for column in new.columns[: len(names)]] != names:
        new = derived_view(statement, text, without, ksqldb.reset, registry, endpoints, Replaced(names, hidden))
    assert new.ksqldb is not None
    changed = replace(
        view,
        columns=new.columns,
        depends=new.depends,
        sql=new.sql,
        query=new.query,
        known_columns=new.known_columns,
        ksqldb=replace(new.ksqldb, query=ksqldb.query, number=ksqldb.number),
    )
    if _is_same(text, view) and (changed.columns, changed.depends) == (view.columns, view.depends):
        changed = replace(changed, query=view.query, sql=view.sql)
    changed = _checked(view, changed, catalog, statement.position)
    put: list[Item] = [changed]
    for item in companions:
        if isinstance(item, Sink):
            put.append(with_recorded_width(replace(item, known_columns={}), changed))
        else:
            put.append(replace(item, sql=changed.sql))
    ids = {item.id for item in put}
    return (*put, *(item for item in readers_with_width(view, catalog) if added and item.id not in ids))


def _is_same(text: str, view: MaterializedView) -> bool:
    """Returns whether a statement is that of a view, other than by OR REPLACE and EMIT CHANGES.

    One with COLLECT_LIST or COLLECT_SET is another one, because the limits of these are settings.
    """
    assert view.ksqldb is not None
    new, old = parse(text), parse(view.ksqldb.statement)
    if not isinstance(new, CreateAs) or not isinstance(old, CreateAs):
        return False
    limited = any(isinstance(part, FunctionCall) and part.name in COLLECTING for part in walk(new.query))
    return not limited and _plain(new) == _plain(old)


def _plain(statement: CreateAs) -> CreateAs:
    query = replace(statement.query, emit="") if statement.query.emit == "changes" else statement.query
    return replace(statement, query=query, replace=False, if_not_exists=False)


def _replaced(statement: CreateAs, old: Item) -> tuple[MaterializedView, KsqldbItem]:
    """Returns the derived item that the statement names, with its properties. Raises 42809, 42P07 or 0A000."""
    ksqldb = ksqldb_of(old)
    if ksqldb is None or ksqldb.into:
        raise WrongObjectType(f'"{old.name}" is not a {statement.type} of ksqlDB', position=statement.position)
    check_type(statement.type, old, ksqldb, statement.position)
    if not isinstance(old, MaterializedView):
        raise FeatureNotSupported(
            f"CREATE OR REPLACE … AS of a declared {ksqldb.type} is not supported",
            hint=f"Use CREATE OR REPLACE {ksqldb.type.upper()} with columns.",
            position=statement.position,
        )
    return old, ksqldb


def _checked(old: MaterializedView, new: MaterializedView, catalog: Catalog, position: int) -> MaterializedView:
    """Returns the view with its operators. Raises 0A000 unless the new query reads the same topics with the same operators."""
    if old.depends != new.depends:
        before, after = (_topics(item.depends, catalog) for item in (old, new))
        kind = "StreamSource" if all(_is_stream(catalog[id]) for id in old.depends) else "TableSource"
        raise FeatureNotSupported(
            f"Query is not upgradeable. Plan step of type {kind} must have matching topicName. Values differ: {before} vs. {after}",
            position=position,
        )
    if (old.query, old.columns) == (new.query, new.columns):
        return new
    assert new.ksqldb is not None
    after_change = catalog.apply(Change(put=(new,)))
    of_old, of_new = Streams(catalog)(old), Streams(after_change)(new)
    filtered = None
    if new.ksqldb.type == "table" and all(_is_stream(catalog[id]) for id in new.depends):
        filtered = with_kept_state(new, of_old, of_new, after_change)
    if (
        filtered is None
        and not _reads_tables_only(new, catalog)
        and (
            new.ksqldb.type == "table"
            or [digest(o, old, catalog) for o in stateful(of_old)] != [digest(o, new, after_change) for o in stateful(of_new)]
        )
    ):
        raise FeatureNotSupported(
            f"Query is not upgradeable. {ksqldb_name(old.name)} has state that belongs to its query"
            if new.ksqldb.type == "stream"
            else f"CREATE OR REPLACE of a table with another query is not supported: {ksqldb_name(old.name)}",
            hint=f"DROP {new.ksqldb.type.upper()} {ksqldb_name(old.name)}, and create it again.",
            position=position,
        )
    for above in readers([old.id], catalog):
        if isinstance(above, MaterializedView) and joins_in_order(above, catalog):
            raise FeatureNotSupported(
                f'CREATE OR REPLACE of a {new.ksqldb.type} below "{above.name}", which joins streams in their order, is not supported',
                hint="Drop that first.",
                position=position,
            )
    return filtered or new


def filled_again(items: Sequence[Item], catalog: Catalog) -> tuple[MaterializedView, ...]:
    """Returns the views that CREATE OR REPLACE with these items fills again: a table that reads tables only, and those that read it."""
    changed = [i for i in items if isinstance(i, MaterializedView) and _reads_tables_only(i, catalog) and i.query != _query(catalog[i.id])]
    above = readers([item.id for item in changed], catalog)
    return tuple(item for item in (*changed, *above) if isinstance(item, MaterializedView))


def _query(item: Item) -> str:
    return item.query if isinstance(item, MaterializedView) else ""


def _reads_tables_only(view: MaterializedView, catalog: Catalog) -> bool:
    """Returns whether the rows of a derived table follow from the present rows of others."""
    ksqldb = view.ksqldb
    return ksqldb is not None and ksqldb.type == "table" and not any(_is_stream(catalog[id]) for id in view.depends)


def _is_stream(item: Item) -> bool:
    ksqldb = ksqldb_of(item)
    return ksqldb is not None and ksqldb.type == "stream"


def _topics(ids: Sequence[int], catalog: Catalog) -> str:
    """Returns the topics of relations; for one of PostgreSQL's dialect, its name."""
    items = [catalog[id] for id in ids]
    return ", ".join(i.topic if isinstance(i, Source) else k.topic if (k := ksqldb_of(i)) is not None else i.name for i in items)
