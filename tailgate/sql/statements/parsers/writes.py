"""Parses INSERT, UPDATE, DELETE, MERGE and TRUNCATE.

Source: PostgreSQL 15, "INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE"; gram.y, InsertStmt, UpdateStmt, DeleteStmt, MergeStmt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from sqlglot import exp

from tailgate.lake.errors import FeatureNotSupported, InvalidColumnReference, SyntaxError_, TailgateError
from tailgate.sql.grammar import names, queries
from tailgate.sql.grammar import tables as joins
from tailgate.sql.grammar.parentheses import at_query
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.primaries import subscript
from tailgate.sql.statements.parsers.clauses import query, relation_name, where
from tailgate.sql.statements.parsers.indexes import element
from tailgate.sql.statements.values import QueryText
from tailgate.sql.statements.writes import (
    Assignment,
    ColumnName,
    CurrentOf,
    Default,
    Delete,
    Expression,
    IndexColumn,
    Insert,
    InsertValue,
    Merge,
    MergeClause,
    OnConflict,
    QueryColumn,
    ReturningItem,
    Truncate,
    Update,
    WithWrites,
)


def write(cursor: Parser) -> Insert | Update | Delete | Merge | WithWrites | None:
    """Parses a statement that writes, which may begin with WITH. Returns None and consumes nothing for other statements."""
    for word, reader in (("insert", insert), ("update", update), ("delete", delete), ("merge", merge)):
        if cursor.at_word(word):
            return reader(cursor)
    return after_with(cursor) if cursor.at_word("with") else None


def after_with(cursor: Parser) -> Insert | Update | Delete | Merge | WithWrites | None:
    """Parses WITH … before a statement that writes, or with one. Returns None and consumes nothing if all of it are queries."""
    start = cursor.index
    clause = queries.with_clause(cursor, lambda: _part(cursor))
    writes = any(queries.written(cte) is not None for cte in clause.expressions)
    for word, reader in (("insert", insert), ("update", update), ("delete", delete), ("merge", merge)):
        if cursor.at_word(word):
            body = reader(cursor)
            return WithWrites(clause, body) if writes else replace(body, ctes=clause)
    if writes:
        if cursor.at_word("with"):
            raise cursor.error()
        return WithWrites(clause, query(cursor))
    cursor.index = start
    return None


def _part(cursor: Parser) -> Insert | Update | Delete:
    """Parses INSERT, UPDATE or DELETE in WITH."""
    return insert(cursor) if cursor.at_word("insert") else update(cursor) if cursor.at_word("update") else delete(cursor)


def _syntax(message: str, at: int) -> TailgateError:
    return SyntaxError_(message, position=at)


# ---- INSERT --------------------------------------------------------------------------------------------------------------------


def insert(cursor: Parser) -> Insert:
    """Parses INSERT INTO."""
    cursor.expect_word("insert", "into")
    this = relation_name(cursor)
    alias = names.name(cursor).name if cursor.accept_word("as") else None
    columns: tuple[ColumnName, ...] = ()
    if cursor.at("(") and not at_query(cursor):
        columns = _columns(cursor)
    overriding = _overriding(cursor)
    rows: tuple[tuple[InsertValue, ...], ...] | QueryText | None = None
    if cursor.accept_word("default", "values"):
        pass
    elif cursor.at_word("values"):
        start = cursor.index
        cursor.advance()
        rows = _rows(cursor)
        if cursor.any_word("union", "intersect", "except", "order", "limit", "offset", "fetch") is not None:
            cursor.index = start
            rows = query(cursor)
    else:
        rows = query(cursor)
    return Insert(this, rows, columns, alias, _conflict(cursor), _returning(cursor), overriding=overriding)


def _overriding(cursor: Parser) -> Literal["", "system", "user"]:
    """Parses [OVERRIDING {SYSTEM | USER} VALUE]."""
    if not cursor.accept_word("overriding"):
        return ""
    system = cursor.accept_word("system")
    cursor.expect_word(*(() if system else ("user",)), "value")
    return "system" if system else "user"


def _columns(cursor: Parser) -> tuple[ColumnName, ...]:
    """Parses ( column, … )."""
    cursor.expect("(")
    columns = []
    while True:
        at = cursor.position
        columns.append(ColumnName(names.name(cursor).name, _path(cursor), at))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(columns)


def _path(cursor: Parser) -> tuple[Expression | str, ...]:
    """Parses the subscripts and fields behind the name of a column: [index], [from:to], .field."""
    path: list[Expression | str] = []
    while True:
        at = cursor.position
        if cursor.at("["):
            path.append(Expression(subscript(cursor), cursor.since(at)))
        elif cursor.accept("."):
            path.append(names.label(cursor).name)
        else:
            return tuple(path)


def _value_or_default(cursor: Parser) -> InsertValue:
    """Parses an expression or DEFAULT."""
    at = cursor.position
    if cursor.accept_word("default"):
        return Default(at)
    tree = cursor.expression()
    return Expression(tree, cursor.since(at))


def _rows(cursor: Parser) -> tuple[tuple[InsertValue, ...], ...]:
    """Parses the rows of VALUES: (value, …), …"""
    rows: list[tuple[InsertValue, ...]] = []
    while True:
        cursor.expect("(")
        row = cursor.listed(_value_or_default)
        cursor.expect(")")
        rows.append(tuple(row))
        if not cursor.accept(","):
            return tuple(rows)


def _conflict(cursor: Parser) -> OnConflict | None:
    """Parses [ON CONFLICT …]."""
    at = cursor.position
    if not cursor.accept_word("on", "conflict"):
        return None
    columns: tuple[IndexColumn, ...] = ()
    constraint = condition = None
    if cursor.accept_word("on", "constraint"):
        constraint = names.name(cursor).name
    elif cursor.at("("):
        opens = cursor.position  # PostgreSQL reports an unknown column at the parenthesis
        cursor.expect("(")
        columns = tuple(replace(column, position=opens) for column in cursor.listed(lambda c: _inferred(c, opens)))
        cursor.expect(")")
        condition = where(cursor)
    cursor.expect_word("do")
    if cursor.accept_word("nothing"):
        return OnConflict(columns, constraint, None, None, at, condition)
    cursor.expect_word("update", "set")
    assignments = _assignments(cursor)
    return OnConflict(columns, constraint, assignments, where(cursor), at, condition)


def _inferred(cursor: Parser, opens: int) -> IndexColumn:
    """Parses a column of ON CONFLICT. Raises 42P10 for a sort order."""
    column = element(cursor)
    for words, what in (("asc", "desc"), "ASC/DESC"), (("nulls",), "NULLS FIRST/LAST"):
        if any(map(cursor.at_word, words)):
            raise InvalidColumnReference(f"{what} is not allowed in ON CONFLICT clause", position=opens)
    return column


def _returning(cursor: Parser) -> tuple[ReturningItem, ...]:
    """Parses [RETURNING …]."""
    if not cursor.accept_word("returning"):
        return ()
    items = []
    for tree in queries.targets(cursor):
        items.append(ReturningItem(tree, tree.sql("postgres")))
    return tuple(items)


# ---- UPDATE, DELETE, TRUNCATE --------------------------------------------------------------------------------------------------


def update(cursor: Parser) -> Update:
    """Parses UPDATE."""
    cursor.expect_word("update")
    cursor.accept_word("only")
    this = relation_name(cursor)
    alias = _alias(cursor, "set")
    cursor.expect_word("set")
    assignments = _assignments(cursor)
    sources = _sources(cursor) if cursor.accept_word("from") else ()
    return Update(this, assignments, alias, sources, _which(cursor), _returning(cursor))


def _assignments(cursor: Parser) -> tuple[Assignment, ...]:
    """Parses the assignments of SET: column = value, or (column, …) = [ROW] (value, …)."""
    assignments: list[Assignment] = []
    while True:
        at = cursor.position
        if cursor.at("("):
            columns = _columns(cursor)
            cursor.expect("=")
            cursor.accept_word("row")
            values_at = cursor.position
            values: Sequence[InsertValue | QueryColumn]
            if at_query(cursor):
                values = _columns_of_query(cursor, len(columns))
            else:
                cursor.expect("(")
                values = cursor.listed(_value_or_default)
                cursor.expect(")")
            if len(values) != len(columns):
                raise _syntax("number of columns does not match number of values", values_at)
            assignments += [Assignment(c.name, v, c.path, c.position) for c, v in zip(columns, values, strict=True)]
        else:
            column = names.name(cursor).name
            path = _path(cursor)
            cursor.expect("=")
            assignments.append(Assignment(column, _value_or_default(cursor), path, at))
        if not cursor.accept(","):
            return tuple(assignments)


def _columns_of_query(cursor: Parser, count: int) -> list[QueryColumn]:
    """Parses (SELECT …), whose columns are assigned to this number of columns."""
    at = cursor.position
    tree = cursor.expression()
    if not isinstance(tree, exp.Subquery):
        raise FeatureNotSupported("source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression", position=at)
    text = cursor.since(at)
    return [QueryColumn(tree, text, i, count) for i in range(count)]


def _sources(cursor: Parser) -> tuple[exp.Expr, ...]:
    items = cursor.listed(joins.table)
    return tuple(items)


def _alias(cursor: Parser, *ending: str) -> str | None:
    """Parses [[AS] alias]. Without AS, a word of `ending` is not an alias."""
    if cursor.accept_word("as"):
        return names.name(cursor).name
    token = cursor.token
    if names.is_name(token) and not (token.kind == "word" and token.value in ending):
        return names.name(cursor).name
    return None


def delete(cursor: Parser) -> Delete:
    """Parses DELETE FROM."""
    cursor.expect_word("delete", "from")
    cursor.accept_word("only")
    this = relation_name(cursor)
    alias = _alias(cursor, "using", "where", "returning")
    sources = _sources(cursor) if cursor.accept_word("using") else ()
    return Delete(this, alias, sources, _which(cursor), _returning(cursor))


def _which(cursor: Parser) -> Expression | CurrentOf | None:
    """Parses [WHERE {condition | CURRENT OF cursor}]."""
    if cursor.accept_word("where", "current", "of"):
        return CurrentOf(names.name(cursor).name)
    return where(cursor)


def merge(cursor: Parser) -> Merge:
    """Parses MERGE."""
    cursor.expect_word("merge", "into")
    cursor.accept_word("only")
    this = relation_name(cursor)
    alias = _alias(cursor, "using")
    cursor.expect_word("using")
    source = joins.table(cursor)
    cursor.expect_word("on")
    at = cursor.position
    condition = Expression(cursor.expression(), cursor.since(at))
    clauses = [_merge_clause(cursor)]
    while cursor.at_word("when"):
        clauses.append(_merge_clause(cursor))
    return Merge(this, source, condition, tuple(clauses), alias)


def _merge_clause(cursor: Parser) -> MergeClause:
    """Parses WHEN [NOT] MATCHED [AND condition] THEN action."""
    cursor.expect_word("when")
    matched = not cursor.accept_word("not")
    cursor.expect_word("matched")
    condition = None
    if cursor.accept_word("and"):
        at = cursor.position
        condition = Expression(cursor.expression(), cursor.since(at))
    cursor.expect_word("then")
    if cursor.accept_word("do", "nothing"):
        return MergeClause(matched, condition, "nothing")
    if matched and cursor.accept_word("delete"):
        return MergeClause(matched, condition, "delete")
    if matched:
        cursor.expect_word("update")
        cursor.expect_word("set")
        return MergeClause(matched, condition, "update", _assignments(cursor))
    cursor.expect_word("insert")
    columns = _columns(cursor) if cursor.at("(") else ()
    overriding = _overriding(cursor)
    if not columns and not overriding and cursor.accept_word("default", "values"):
        return MergeClause(matched, condition, "insert")
    cursor.expect_word("values")
    cursor.expect("(")
    row = tuple(cursor.listed(_value_or_default))
    cursor.expect(")")
    return MergeClause(matched, condition, "insert", (), columns, row, overriding)


def truncate(cursor: Parser) -> Truncate:
    """Parses TRUNCATE."""
    cursor.expect_word("truncate")
    cursor.accept_word("table")
    cursor.accept_word("only")
    tables = cursor.listed(relation_name)
    restart = not cursor.accept_word("continue", "identity") and cursor.accept_word("restart", "identity")
    cascade = cursor.any_word("cascade", "restrict") == "cascade"
    return Truncate(tuple(tables), restart, cascade)
