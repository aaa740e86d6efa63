"""Statements whose words do not tell the dialect: their relations do.

INSERT is ksqlDB's if its target is a stream or table of ksqlDB, CREATE TABLE … AS if it reads one.
"""

from __future__ import annotations

from sqlglot import exp

from tailgate.gateway.session.statement_cache import ParsedStatement
from tailgate.lake.catalog import Catalog, ksqldb_of
from tailgate.lake.catalog.names import Name
from tailgate.sql import statements as s
from tailgate.sql.ksqldb.dialect import Dialect


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
