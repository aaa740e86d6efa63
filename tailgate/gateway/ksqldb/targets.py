"""Statements of ksqlDB whose meaning depends on the catalog.

INSERT is ksqlDB's if its target is a stream or table of ksqlDB, CREATE TABLE … AS if it reads one. SELECT … EMIT CHANGES is a TAIL of
the query, whose expressions get the types of the relation's columns.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tailgate.gateway.session.statements.parsing import ParsedStatement
from tailgate.lake.catalog import Catalog, ksqldb_of
from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql import statements as s
from tailgate.sql.ksqldb.dialect import Dialect
from tailgate.sql.ksqldb.expressions import SelectQuery
from tailgate.sql.ksqldb.queries import aggregation, from_clause, projection


def in_dialect(statement: ParsedStatement, text: str, catalog: Catalog, dialect: Dialect) -> ParsedStatement:
    """Returns the statement, parsed again if its relations belong to ksqlDB."""
    match statement:
        case s.Insert(table=name):
            names = [name]
        case s.CreateTableAs(query=query):
            tables = query.tree.find_all(exp.Table)
            names = [Name(t.name, t.db or None) for t in tables if isinstance(t.this, exp.Identifier)]
        case _:
            return statement
    if dialect == "postgresql" or not any(ksqldb_of(catalog.find(name)) is not None for name in names):
        return statement
    return s.parse(text, "ksqldb")


def followed(query: SelectQuery, catalog: Catalog, *, snapshot: bool) -> s.Tail:
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
    text = translate(query, from_clause(query, catalog)).text
    tail = s.parse(f"TAIL ({text})", "postgresql")
    assert isinstance(tail, s.Tail)
    return replace(tail, snapshot=snapshot, limit=query.limit)
