"""Statements of ksqlDB whose meaning depends on the catalog.

INSERT and ALTER TABLE … ADD COLUMN are ksqlDB's if their target is a stream or table of ksqlDB, CREATE TABLE … AS if it reads one.
SELECT … EMIT CHANGES is a TAIL of the query, whose expressions get the types of the relation's columns. `pull` has SELECT without EMIT.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from tailgate.gateway.session.statements.parsing import ParsedStatement
from tailgate.lake.catalog import Catalog, Item, ksqldb_of
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql import statements as s
from tailgate.sql.ksqldb.dialect import Dialect
from tailgate.sql.ksqldb.expressions import ColumnReference, SelectQuery, TypeName
from tailgate.sql.ksqldb.queries import aggregation, from_clause, is_stream, key_names, projection
from tailgate.sql.ksqldb.queries.items import name_of
from tailgate.sql.ksqldb.queries.translation import Scope


@dataclass(frozen=True, slots=True)
class Followed:
    """The TAIL of a push query, with the columns of its rows.

    `key`: the names of the columns that identify a row, if rows can be replaced and the projection has these columns.
    """

    tail: s.Tail
    columns: tuple[tuple[str, TypeName], ...]
    key: tuple[str, ...]


def in_dialect(statement: ParsedStatement, text: str, catalog: Catalog, dialect: Dialect) -> ParsedStatement:
    """Returns the statement, parsed again if its relations belong to ksqlDB."""
    match statement:
        case s.Insert(table=name):
            names = [name]
        case s.AlterTable(name=name, actions=actions) if all(isinstance(action, s.AddColumn) for action in actions):
            names = [name]
        case s.CreateTableAs(query=query):
            tables = query.tree.find_all(exp.Table)
            names = [Name(t.name, t.db or None) for t in tables if isinstance(t.this, exp.Identifier)]
        case _:
            return statement
    if dialect == "postgresql" or not any(ksqldb_of(catalog.find(name)) is not None for name in names):
        return statement
    return s.parse(text, "ksqldb")


def followed(query: SelectQuery, catalog: Catalog, *, snapshot: bool) -> Followed:
    """Returns the TAIL of SELECT … EMIT CHANGES [LIMIT n]. `snapshot`: whether it begins with the rows that exist.

    Raises 0A000 for a relation whose rows are not stored.
    """
    item = catalog.relation(Name(query.source.name, position=query.source.position))
    if not item.stored:
        raise FeatureNotSupported(
            f'EMIT CHANGES of "{item.name}" is not supported, because its rows are not stored',
            hint="Use CREATE STREAM … AS SELECT, and EMIT CHANGES of that stream.",
            position=query.source.position,
        )
    translate = aggregation if query.group_by else projection
    if query.partition_by:
        raise FeatureNotSupported("PARTITION BY with EMIT CHANGES is not supported", position=query.partition_by[0].position)
    if query.joins:
        raise FeatureNotSupported(
            "JOIN with EMIT CHANGES is not supported here",
            hint="Use CREATE STREAM … AS or CREATE TABLE … AS, and EMIT CHANGES of that.",
            position=query.joins[0].position,
        )
    if query.window is not None:
        raise FeatureNotSupported(
            "WINDOW with EMIT CHANGES is not supported here",
            hint="Use CREATE TABLE … AS SELECT, and EMIT CHANGES of that table.",
            position=query.window.position,
        )
    clause = from_clause(query, catalog)
    translation = translate(query, clause)
    tail = s.parse(f"TAIL ({translation.text})", "postgresql")
    assert isinstance(tail, s.Tail)
    key = translation.message_key if query.group_by else _projected_key(query, item, clause.scope)
    return Followed(replace(tail, snapshot=snapshot, limit=query.limit), translation.columns, key)


def key_of(item: Item) -> tuple[str, ...]:
    """Returns the names of the columns that identify a row of a table; none for a stream."""
    return () if is_stream(item) else key_names(item)


def _projected_key(query: SelectQuery, item: Item, scope: Scope) -> tuple[str, ...]:
    """Returns the names that the key columns have in the projection; none if one is missing."""
    names: dict[str, str] = {}
    for part in query.items:
        if part.expression is None:
            names |= {name: name for name in key_of(item)}
        elif isinstance(part.expression, ColumnReference):
            names.setdefault(part.expression.column, name_of(part, scope))
    return tuple(names[name] for name in key_of(item)) if all(name in names for name in key_of(item)) else ()
