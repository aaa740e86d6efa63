"""Statements of ksqlDB whose meaning depends on the catalog.

INSERT and ALTER TABLE … ADD COLUMN are ksqlDB's if their target is a stream or table of ksqlDB, CREATE TABLE … AS if it reads one.
"""

from __future__ import annotations

from sqlglot import exp

from tailgate.gateway.session.statements.parsing import LongWrite, ParsedStatement
from tailgate.lake.catalog import Catalog, Item, ksqldb_of
from tailgate.lake.catalog.names import Name
from tailgate.sql import statements as s
from tailgate.sql.ksqldb.dialect import Dialect
from tailgate.sql.ksqldb.queries import is_stream, key_names


def in_dialect(statement: ParsedStatement, text: str, catalog: Catalog, dialect: Dialect) -> ParsedStatement:
    """Returns the statement, parsed again if its relations belong to ksqlDB."""
    match statement:
        case s.Insert(table=name) | LongWrite(table=Name() as name):
            names = [name]
        case s.AlterTable(name=name, actions=actions) if all(isinstance(action, s.AddColumn) for action in actions):
            names = [name]
        case s.CreateTableAs(query=s.QueryText() as query):
            tables = query.tree.find_all(exp.Table)
            names = [Name(t.name, t.db or None) for t in tables if isinstance(t.this, exp.Identifier)]
        case _:
            return statement
    if dialect == "postgresql" or not any(ksqldb_of(catalog.find(name)) is not None for name in names):
        return statement
    return s.parse(text, "ksqldb")


def key_of(item: Item) -> tuple[str, ...]:
    """Returns the names of the columns that identify a row of a table; none for a stream."""
    return () if is_stream(item) else key_names(item)
