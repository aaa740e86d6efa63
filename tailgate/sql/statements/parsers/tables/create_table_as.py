"""Parses CREATE TABLE … AS and SELECT … INTO, which creates a table, too.

Source: PostgreSQL 15, "CREATE TABLE AS", "SELECT INTO"; gram.y, CreateAsStmt, into_clause.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from sqlglot import exp

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import InvalidTableDefinition
from tailgate.sql.grammar.names import position
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.parsers.clauses import column_names, execute, query, with_options
from tailgate.sql.statements.parsers.unsupported import unsupported
from tailgate.sql.statements.parsers.writes import after_with
from tailgate.sql.statements.queries import Select
from tailgate.sql.statements.values import QueryText
from tailgate.sql.statements.writes import CreateTableAs, Delete, Insert, Merge, OnCommit, Update, WithWrites

Result = TypeVar("Result", bound=Select | Insert | Update | Delete | Merge | WithWrites)
NAMES = ("word", "quoted")  # kinds of tokens


def at_query_of_table(cursor: Parser) -> bool:
    """Returns whether the rest of CREATE TABLE is [(column names)] [WITH (options)] AS query."""
    names_only = cursor.at("(") and cursor.peek().kind in NAMES and (cursor.at(",", 2) or cursor.at(")", 2))
    return names_only or any(map(cursor.at_word, ("as", "with", "using", "on")))


def on_commit(cursor: Parser, *, temporary: bool) -> OnCommit:
    """Parses [ON COMMIT {PRESERVE ROWS | DELETE ROWS | DROP}], of a temporary table only."""
    if not cursor.accept_word("on", "commit"):
        return "preserve rows"
    if not temporary:
        raise InvalidTableDefinition("ON COMMIT can only be used on temporary tables")
    if cursor.accept_word("drop"):
        return "drop"
    word = cursor.any_word("preserve", "delete")
    if word is None:
        raise cursor.error()
    cursor.expect_word("rows")
    return "delete rows" if word == "delete" else "preserve rows"


def create_table_as(cursor: Parser, name: Name, absent: bool, *, temporary: bool = False) -> CreateTableAs:
    """Parses the rest of CREATE TABLE … AS, after the name of the table."""
    columns = column_names(cursor) if cursor.at("(") else ()
    if cursor.at_word("using"):
        raise unsupported("USING", cursor.position)
    start = cursor.position
    settings, _ = with_options(cursor, parameters=True)
    options = cursor.since(start) if settings else ""
    end_of_transaction = on_commit(cursor, temporary=temporary)
    if cursor.at_word("tablespace"):
        raise unsupported("TABLESPACE", cursor.position)
    cursor.expect_word("as")
    text = execute(cursor) if cursor.at_word("execute") else _query(cursor)
    with_data = True
    if cursor.accept_word("with"):
        with_data = not cursor.accept_word("no")
        cursor.expect_word("data")
    return CreateTableAs(name, text, columns, absent, options, with_data, temporary, end_of_transaction)


def _query(cursor: Parser) -> QueryText | WithWrites:
    """Parses a query, which may have statements that write in WITH."""
    start = cursor.index
    written = after_with(cursor) if cursor.at_word("with") else None
    if isinstance(written, WithWrites) and isinstance(written.body, QueryText):
        return written
    cursor.index = start
    return query(cursor)


def with_new_table(statement: Result) -> Result | CreateTableAs:
    """Returns the statement that creates the table of SELECT … INTO, or a statement without INTO as it is."""
    whole = statement.query if isinstance(statement, Select) else statement.body if isinstance(statement, WithWrites) else None
    if not isinstance(whole, QueryText):
        return statement
    first = whole.tree
    while isinstance(first, (exp.SetOperation, exp.Subquery)):
        first = first.this
    into = first.args.get("into")
    if into is None:
        return statement
    if isinstance(statement, Select) and statement.as_of is not None:
        raise unsupported("SELECT INTO … AS OF", position(into) or 0)
    first.set("into", None)
    text, offset = whole.text, whole.offset
    begin, end = (position(into) or 0) - offset, into.meta["end"] - offset
    table = into.this
    name = Name(table.name, table.text("db") or None, position(table))
    query_text = QueryText(text[:begin] + " " * (end - begin) + text[end:], offset, whole.tree)
    rows = replace(statement, body=query_text) if isinstance(statement, WithWrites) else query_text
    return CreateTableAs(name, rows, temporary=bool(into.args.get("temporary")), select_into=True)
