"""The view and the sink of INSERT INTO stream SELECT …: they write to the topic of a declared stream.

    INSERTQUERY_n  ──► view insertquery_n ──► sink ──► topic of the declared stream ──► readers of the stream
                                          └─► the view of a derived stream (`engine.plan.views.inserts`)

Several queries can write to one stream. A declared stream reads its topic, so the rows of all of them reach it through Kafka.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from tailgate.engine.ddl.ksqldb.endpoints import Endpoints
from tailgate.engine.ddl.ksqldb.items import view_of, writing_sink
from tailgate.engine.ddl.replace import check_ready
from tailgate.engine.ddl.view import check_maintained
from tailgate.engine.plan.views.inserts import target_of
from tailgate.engine.plan.views.replacements import readers
from tailgate.engine.plan.views.streams import joins_in_order
from tailgate.lake.catalog import Catalog, Change, Item, MaterializedView, Sink, Source, is_transient, ksqldb_of
from tailgate.lake.catalog.formats import KsqldbItem
from tailgate.lake.catalog.names import Name, quoted
from tailgate.lake.errors import (
    DatatypeMismatch,
    DependentObjectsStillExist,
    DuplicateObject,
    FeatureNotSupported,
    InvalidObjectDefinition,
    InvalidParameterValue,
    UndefinedTable,
    WrongObjectType,
)
from tailgate.sql.drop import find_of_kind
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.pseudo_columns import HIDDEN_COLUMNS, WINDOW_BOUNDS
from tailgate.sql.ksqldb.queries import Translation, derivation, from_clause
from tailgate.sql.ksqldb.queries.scopes import column_types, position_columns
from tailgate.sql.ksqldb.queries.timestamps import timed, timestamp_of
from tailgate.sql.ksqldb.statements import InsertQuery
from tailgate.sql.statements import Drop


def inserting_view(
    statement: InsertQuery, text: str, catalog: Catalog, reset: Literal["earliest", "latest"], endpoints: Endpoints
) -> MaterializedView:
    """Returns the view of INSERT INTO … SELECT; `text` is the statement as typed.

    Raises 42809 for a table or a query that produces one, 42804 for other columns than those of the stream, and 42P17, 55000 or 0A000 for a
    derived stream that cannot get rows.
    """
    endpoints.brokers()
    target, properties = _target(statement, catalog)
    if statement.query.group_by:
        raise WrongObjectType("INSERT INTO can only be used to insert the rows of a stream", position=statement.query.position)
    source = from_clause(statement.query, catalog)
    if source.type == "table":
        raise WrongObjectType("INSERT INTO can only be used to insert the rows of a stream", position=statement.query.position)
    if statement.query.limit is not None:
        raise FeatureNotSupported("LIMIT of a persistent query is not supported", position=statement.query.position)
    hidden = None if isinstance(target, Source) else position_columns(target)
    translation = _widened(derivation(statement.query, source, target.name, hidden=hidden), target)
    _check_columns(statement, translation, target, properties)
    translation = timed(translation, timestamp_of(properties), statement.position)
    number = catalog.next_query
    id = _query_id(statement, catalog) or f"INSERTQUERY_{number}"
    ksqldb = replace(properties, statement=text, query=id, number=number, reset=reset, into=target.id)
    view = replace(view_of(f"insertquery_{number}", translation, catalog), ksqldb=ksqldb)
    if isinstance(target, Source):
        return replace(view, depends=tuple(sorted({*view.depends, target.id})))
    _check_derived(statement, view, target, catalog)
    return view


def inserting_sink(view: MaterializedView, catalog: Catalog, endpoints: Endpoints) -> Sink:
    """Returns the sink of INSERT INTO … SELECT, which writes to the Kafka of a declared stream. `catalog` contains the view."""
    target = None if view.ksqldb is None else catalog[view.ksqldb.into]
    return writing_sink(view, [], catalog, endpoints.of(target, catalog) if isinstance(target, Source) else endpoints)


def check_inserts(change: Change, catalog: Catalog) -> None:
    """Raises 2BP01 if a change drops a derived stream, and not a query that inserts into it."""
    for view in catalog.each(MaterializedView):
        target = target_of(view, catalog)
        if target is not None and target.id in change.drop and view.id not in change.drop:
            assert view.ksqldb is not None
            raise _still_used(target, "queries write into", [view.ksqldb.query], "terminate")


def check_no_queries(statement: Drop, catalog: Catalog) -> None:
    """Raises 2BP01, with ksqlDB's message, if DROP names one stream or table of ksqlDB that queries use.

    Raises 42P01 or 42809 if it names no stream or table of its kind.
    """
    if statement.of_ksqldb:
        _check_named(statement, catalog)
    if statement.kind not in ("stream", "table") or len(statement.names) > 1 or statement.cascade:
        return
    item = find_of_kind(statement.kind, statement.names[0], catalog, if_exists=True)
    if item is None or ksqldb_of(item) is None:
        return
    views = [v for v in catalog.dependents(item.id) if isinstance(v, MaterializedView) and not v.replaces and not is_transient(v)]
    persistent = [(view, view.ksqldb) for view in views if view.ksqldb is not None]
    if derived := [ksqldb_name(view.name) for view, ksqldb in persistent if not ksqldb.into]:
        raise _still_used(item, "streams and/or tables read from", derived, "drop")
    if reading := [ksqldb.query for _, ksqldb in persistent if ksqldb.into != item.id]:
        raise _still_used(item, "queries read from", reading, "terminate")
    if writing := [ksqldb.query for _, ksqldb in persistent]:
        raise _still_used(item, "queries write into", writing, "terminate")


def _check_named(statement: Drop, catalog: Catalog) -> None:
    """Raises 42P01 if DROP of ksqlDB names nothing, and 42809 if it names a stream or table of the other kind."""
    (name,) = statement.names
    item, kind = catalog.find(name), statement.kind.upper()
    if item is None and not statement.if_exists:
        raise UndefinedTable(f"Source {ksqldb_name(name.name)} does not exist.", position=name.position)
    ksqldb = None if item is None else ksqldb_of(item)
    if ksqldb is not None and ksqldb.type != statement.kind:
        message = f"Incompatible data source type is {ksqldb.type.upper()}, but statement was DROP {kind}"
        raise WrongObjectType(message, hint=f"Use DROP {ksqldb.type.upper()}.", position=name.position)


def _still_used(item: Item, use: str, users: list[str], action: str) -> DependentObjectsStillExist:
    name = ksqldb_name(item.name)
    return DependentObjectsStillExist(
        f"Cannot drop {name}.\nThe following {use} this source: [{', '.join(users)}].\nYou need to {action} them before dropping {name}."
    )


def _check_derived(statement: InsertQuery, view: MaterializedView, target: MaterializedView, catalog: Catalog) -> None:
    """Raises 42P17 for a query that reads its own rows, 55000 if the stream is not kept up to date, and 0A000 below a join of streams."""
    if target.id in catalog.below(view):
        raise InvalidObjectDefinition(
            f"the query reads {ksqldb_name(target.name)}, into which it inserts", position=statement.query.position
        )
    check_insertable(target, catalog, statement.position)


def check_insertable(target: MaterializedView, catalog: Catalog, position: int) -> None:
    """Raises 55000 if a derived stream is not kept up to date, and 0A000 below a join of streams."""
    check_ready([target], catalog)
    check_maintained(target)
    for above in readers([target.id], catalog):
        if isinstance(above, MaterializedView) and joins_in_order(above, catalog):
            raise FeatureNotSupported(
                f'INSERT into a derived stream below "{above.name}", which joins streams in their order, is not supported',
                hint=f"Execute an INSERT before CREATE of {above.name}.",
                position=position,
            )


def _target(statement: InsertQuery, catalog: Catalog) -> tuple[Source | MaterializedView, KsqldbItem]:
    """Returns the stream that a query writes to, and its properties."""
    item = catalog.find(Name(statement.name))
    if item is None:
        message = f"Sink '{ksqldb_name(statement.name)}' does not exist for the INSERT INTO statement."
        raise UndefinedTable(message, position=statement.position)
    ksqldb = ksqldb_of(item)
    if ksqldb is None or ksqldb.type == "table":
        raise WrongObjectType(
            f"INSERT INTO can only be used to insert into a stream. {ksqldb_name(item.name)} is a table.", position=statement.position
        )
    if isinstance(item, Source) and ksqldb.read_only:
        raise WrongObjectType(f"Cannot insert into read-only stream: {ksqldb_name(item.name)}", position=statement.position)
    if WINDOW_BOUNDS[0] in ksqldb.message_key:
        raise WrongObjectType("Cannot insert values into windowed stream/table!", position=statement.position)
    assert isinstance(item, Source | MaterializedView)
    return item, ksqldb


def _widened(translation: Translation, target: Source | MaterializedView) -> Translation:
    """Returns a query whose numbers have the types of the stream's columns of the same names, if these are wider."""
    of_target = column_types(target)
    wider = {n: of_target[n] for n, type in translation.columns if n in of_target and _widens(type, of_target[n])}
    if not wider:
        return translation
    columns = tuple((name, wider.get(name, type)) for name, type in translation.columns)
    items = [f"try(CAST({quoted(n)} AS {types.postgresql(wider[n])})) AS {quoted(n)}" if n in wider else quoted(n) for n, _ in columns]
    return replace(
        translation, text=f"SELECT {', '.join((*items, *translation.hidden))} FROM ({translation.text}) AS rows", columns=columns
    )


def _widens(type: TypeName, target: TypeName) -> bool:
    """Returns whether a number is cast implicitly to another type; a DECIMAL to one that has as many digits before and after the point."""
    if type.name == target.name == "decimal" and type.numbers and target.numbers:
        (precision, scale), (of_target, scale_of_target) = type.numbers, target.numbers
        return type != target and scale <= scale_of_target and precision - scale <= of_target - scale_of_target
    return type.name in types.NUMBERS and type != target and types.is_coercible(type, target)


def _check_columns(statement: InsertQuery, translation: Translation, target: Source | MaterializedView, properties: KsqldbItem) -> None:
    """Raises 42804 unless the query has the columns of the stream: those of the key, and then the others in order."""
    columns = [(name, type) for name, type in column_types(target).items() if name not in HIDDEN_COLUMNS]
    expected = _split(columns, properties.message_key)
    actual = _split(list(translation.columns), translation.message_key)
    if actual != expected:
        raise DatatypeMismatch(
            f"Incompatible schema between results and sink.\nResult schema is {_shown(actual)}\nSink schema is {_shown(expected)}",
            position=statement.query.position,
        )


Columns = list[tuple[str, TypeName]]


def _split(columns: Columns, keys: tuple[str, ...]) -> tuple[Columns, Columns]:
    """Returns the columns of the key and the others."""
    return [c for c in columns if c[0] in keys], [c for c in columns if c[0] not in keys]


def _shown(columns: tuple[Columns, Columns]) -> str:
    key, others = ([types.column_in_schema(name, type) for name, type in part] for part in columns)
    return ", ".join([*(f"{column} KEY" for column in key), *others])


def _query_id(statement: InsertQuery, catalog: Catalog) -> str:
    """Returns the id in WITH (QUERY_ID = …), or an empty text. Raises 22023 or 42710."""
    for name, value in statement.properties:
        if name != "QUERY_ID" or not isinstance(value, str):
            raise InvalidParameterValue(f"Invalid config variable(s) in the WITH clause: {name}", position=statement.position)
        if value.upper() in catalog.queries:
            raise DuplicateObject(f'query "{value.upper()}" already exists', position=statement.position)
        return value.upper()
    return ""
