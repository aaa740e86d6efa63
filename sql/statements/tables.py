"""CREATE TABLE, INSERT, UPDATE, DELETE, TRUNCATE: text to values.

Source: PostgreSQL 15, the statements' own pages; gram.y, InsertStmt, UpdateStmt, DeleteStmt, columnDef, ConstraintElem.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from sqlglot import exp

from lake.errors import FeatureNotSupported, InvalidTableDefinition, SyntaxError_, TailgateError
from sql.grammar import expressions as grammar
from sql.grammar import names, queries
from sql.grammar import tables as joins
from sql.grammar.types import type_name
from sql.statements.pieces import column_names, if_not_exists, query, relation_name
from sql.statements.values import Name, QueryText
from sql.statements.written import (
    Assignment,
    ColumnName,
    CreateTable,
    Default,
    Delete,
    Expression,
    Given,
    Insert,
    OnConflict,
    Returned,
    TableColumn,
    Truncate,
    Update,
)
from sql.tokens import Cursor
from sql.typenames import resolve


def _unsupported(what: str, position: int, hint: str | None = None) -> TailgateError:
    return FeatureNotSupported(f"{what} is not supported", hint=hint, position=position)


# ---- CREATE TABLE --------------------------------------------------------------------------------------------------------------

# constraints and column clauses that are known and refused: first words → what they are called
_REFUSED: dict[tuple[str, ...], tuple[str, str | None]] = {
    ("unique",): ("UNIQUE", "Only a primary key is checked: make these columns the PRIMARY KEY."),
    ("check",): ("CHECK", "Check the values where they are read: a view with WHERE."),
    ("references",): ("REFERENCES", None),
    ("foreign", "key"): ("FOREIGN KEY", None),
    ("exclude",): ("EXCLUDE", None),
    ("generated",): ("GENERATED", "Compute the column in a view, or give numbers in INSERT."),
    ("like",): ("LIKE", "Write the columns out."),
    ("collate",): ("COLLATE", "Text is compared in C order."),
    ("compression",): ("COMPRESSION", None),
    ("storage",): ("STORAGE", None),
}
_BEHIND = {
    ("inherits",): "INHERITS",
    ("partition", "by"): "PARTITION BY",
    ("using",): "USING",
    ("with",): "WITH",
    ("on", "commit"): "ON COMMIT",
    ("tablespace",): "TABLESPACE",
    ("as",): "CREATE TABLE … AS",
}


class _Key:
    """The primary key, as it is found."""

    def __init__(self) -> None:
        self.columns: tuple[str, ...] = ()
        self.constraint: str | None = None
        self.position: int | None = None

    def set(self, columns: tuple[str, ...], constraint: str | None, table: Name, at: int) -> None:
        if self.columns:
            raise InvalidTableDefinition(f'multiple primary keys for table "{table.name}" are not allowed', position=at)
        self.columns, self.constraint, self.position = columns, constraint, at


def create_table(cursor: Cursor) -> CreateTable:
    """After CREATE TABLE."""
    absent = if_not_exists(cursor)
    this = relation_name(cursor)
    if cursor.at_word("of") or cursor.at_word("partition", "of"):
        raise _unsupported("CREATE TABLE … " + ("OF" if cursor.at_word("of") else "PARTITION OF"), cursor.position)
    if cursor.at_word("as"):
        raise _unsupported("CREATE TABLE … AS", cursor.position, "Create the table and INSERT INTO it, or create a materialized view.")
    cursor.expect("(")
    columns: list[TableColumn] = []
    key = _Key()
    if not cursor.at(")"):
        while True:
            if not _table_constraint(cursor, this, key):
                columns.append(_column(cursor, this, key))
            if not cursor.sign(","):
                break
    cursor.expect(")")
    for words, what in _BEHIND.items():
        if cursor.at_word(*words):
            raise _unsupported(what, cursor.position)
    return CreateTable(this, tuple(columns), key.columns, key.constraint, absent, key.position)


def _table_constraint(cursor: Cursor, table: Name, key: _Key) -> bool:
    """PRIMARY KEY (…) and its like, if one stands here."""
    at = cursor.position
    named = None
    if cursor.word("constraint"):
        named = names.name(cursor).name
    if cursor.word("primary", "key"):
        key.set(column_names(cursor), named, table, at)
        _modes(cursor)
        return True
    for words in (("unique",), ("check",), ("foreign", "key"), ("exclude",), ("like",)):
        if cursor.at_word(*words):
            what, hint = _REFUSED[words]
            raise _unsupported(f"{what} of a table", cursor.position, hint)
    if named is not None:
        raise cursor.error()
    return False


def _modes(cursor: Cursor) -> None:
    """NOT DEFERRABLE and INITIALLY IMMEDIATE are how it is."""
    while True:
        if cursor.at_word("deferrable") or cursor.at_word("initially", "deferred"):
            raise _unsupported("DEFERRABLE", cursor.position)
        if not (cursor.word("not", "deferrable") or cursor.word("initially", "immediate")):
            return


def _column(cursor: Cursor, table: Name, key: _Key) -> TableColumn:
    at = cursor.position
    this = names.name(cursor).name
    type_at = cursor.position
    if cursor.token.value in ("serial", "bigserial", "smallserial", "serial2", "serial4", "serial8"):
        raise _unsupported(f"type {cursor.token.value}", type_at, "There are no sequences: give the numbers in INSERT.")
    type = resolve(type_name(cursor))
    nullable: bool | None = None
    default: str | None = None
    default_at: int | None = None
    constraint: str | None = None
    while True:
        here = cursor.position
        if cursor.word("constraint"):
            constraint = names.name(cursor).name
        elif cursor.word("not", "null"):
            if nullable is True:
                raise _conflicting(this, table, here)
            nullable = False
        elif cursor.word("null"):
            if nullable is False:
                raise _conflicting(this, table, here)
            nullable = True
        elif cursor.word("default"):
            if default is not None:
                raise _syntax(f'multiple default values specified for column "{this}" of table "{table.name}"', here)
            start = default_at = cursor.position
            grammar.expression(cursor, boolean=False)
            default = _since(cursor, start)
        elif cursor.word("primary", "key"):
            key.set((this,), constraint, table, here)
            _modes(cursor)
        else:
            refused = next((words for words in _REFUSED if cursor.at_word(*words)), None)
            if refused is not None:
                what, hint = _REFUSED[refused]
                raise _unsupported(f"{what} of a column", here, hint)
            return TableColumn(this, type, nullable is not False, default, at, default_at)


def _conflicting(column: str, table: Name, at: int) -> TailgateError:
    return _syntax(f'conflicting NULL/NOT NULL declarations for column "{column}" of table "{table.name}"', at)


def _syntax(message: str, at: int) -> TailgateError:
    return SyntaxError_(message, position=at)


def _since(cursor: Cursor, start: int) -> str:
    return cursor.text[start : cursor.row[cursor.index - 1].end]


def after_with(cursor: Cursor) -> Insert | Update | Delete | None:
    """WITH … INSERT, UPDATE or DELETE, if that is what stands here; otherwise the cursor has not moved."""
    start = cursor.index
    clause = queries.with_clause(cursor)
    for word, reader in (("insert", insert), ("update", update), ("delete", delete)):
        if cursor.at_word(word):
            return replace(reader(cursor), ctes=clause)
    cursor.index = start
    return None


# ---- INSERT --------------------------------------------------------------------------------------------------------------------


def insert(cursor: Cursor) -> Insert:
    cursor.expect_word("insert", "into")
    this = relation_name(cursor)
    alias = names.name(cursor).name if cursor.word("as") else None
    columns: tuple[ColumnName, ...] = ()
    if cursor.at("(") and not queries.at_query(cursor):
        columns = _columns(cursor)
    if cursor.at_word("overriding"):
        raise _unsupported("OVERRIDING", cursor.position)
    given: tuple[tuple[Given, ...], ...] | QueryText | None = None
    if cursor.word("default", "values"):
        pass
    elif cursor.at_word("values"):
        start = cursor.index
        cursor.advance()
        given = _rows(cursor)
        if cursor.any_word("union", "intersect", "except", "order", "limit", "offset", "fetch") is not None:
            cursor.index = start
            given = query(cursor)
    else:
        given = query(cursor)
    return Insert(this, given, columns, alias, _conflict(cursor), _returning(cursor))


def _columns(cursor: Cursor) -> tuple[ColumnName, ...]:
    cursor.expect("(")
    found = []
    while True:
        at = cursor.position
        found.append(ColumnName(names.name(cursor).name, at))
        if cursor.at("[") or cursor.at("."):
            raise _unsupported("assigning to a part of a column", cursor.position)
        if not cursor.sign(","):
            break
    cursor.expect(")")
    return tuple(found)


def _given(cursor: Cursor) -> Given:
    at = cursor.position
    if cursor.word("default"):
        return Default(at)
    tree = grammar.expression(cursor)
    return Expression(tree, _since(cursor, at))


def _rows(cursor: Cursor) -> tuple[tuple[Given, ...], ...]:
    found: list[tuple[Given, ...]] = []
    while True:
        cursor.expect("(")
        row = [_given(cursor)]
        while cursor.sign(","):
            row.append(_given(cursor))
        cursor.expect(")")
        found.append(tuple(row))
        if not cursor.sign(","):
            return tuple(found)


def _conflict(cursor: Cursor) -> OnConflict | None:
    at = cursor.position
    if not cursor.word("on", "conflict"):
        return None
    columns: tuple[ColumnName, ...] = ()
    constraint = None
    if cursor.word("on", "constraint"):
        constraint = names.name(cursor).name
    elif cursor.at("("):
        opens = cursor.position  # where PostgreSQL says a column of it is missing
        columns = tuple(ColumnName(c.name, opens) for c in _columns(cursor))
        if cursor.at_word("where"):
            raise _unsupported("a condition of a conflict's key", cursor.position)
    cursor.expect_word("do")
    if cursor.word("nothing"):
        return OnConflict(columns, constraint, None, None, at)
    cursor.expect_word("update", "set")
    assignments = _assignments(cursor)
    return OnConflict(columns, constraint, assignments, _where(cursor), at)


def _returning(cursor: Cursor) -> tuple[Returned, ...]:
    if not cursor.word("returning"):
        return ()
    found = []
    for tree in queries.targets(cursor):
        found.append(Returned(tree, tree.sql("postgres")))
    return tuple(found)


# ---- UPDATE, DELETE, TRUNCATE --------------------------------------------------------------------------------------------------


def update(cursor: Cursor) -> Update:
    cursor.expect_word("update")
    cursor.word("only")
    this = relation_name(cursor)
    alias = _alias(cursor, "set")
    cursor.expect_word("set")
    assignments = _assignments(cursor)
    sources = _sources(cursor) if cursor.word("from") else ()
    return Update(this, assignments, alias, sources, _where(cursor), _returning(cursor))


def _assignments(cursor: Cursor) -> tuple[Assignment, ...]:
    """column = value, … ; (column, …) = (value, …) or ROW (value, …)."""
    found: list[Assignment] = []
    while True:
        at = cursor.position
        if cursor.at("("):
            columns = _columns(cursor)
            cursor.expect("=")
            cursor.word("row")
            values_at = cursor.position
            if queries.at_query(cursor):
                raise _unsupported("assigning the columns of a query", values_at, "Use UPDATE … FROM.")
            cursor.expect("(")
            values = [_given(cursor)]
            while cursor.sign(","):
                values.append(_given(cursor))
            cursor.expect(")")
            if len(values) != len(columns):
                raise _syntax("number of columns does not match number of values", values_at)
            found += [Assignment(c.name, v, c.position) for c, v in zip(columns, values, strict=True)]
        else:
            column = names.name(cursor).name
            if cursor.at("[") or cursor.at("."):
                raise _unsupported("assigning to a part of a column", cursor.position)
            cursor.expect("=")
            found.append(Assignment(column, _given(cursor), at))
        if not cursor.sign(","):
            return tuple(found)


def _where(cursor: Cursor) -> Expression | None:
    if not cursor.word("where"):
        return None
    if cursor.at_word("current", "of"):
        raise _unsupported("WHERE CURRENT OF", cursor.position)
    at = cursor.position
    return Expression(grammar.expression(cursor), _since(cursor, at))


def _sources(cursor: Cursor) -> tuple[exp.Expr, ...]:
    found = [joins.table(cursor)]
    while cursor.sign(","):
        found.append(joins.table(cursor))
    return tuple(found)


def _alias(cursor: Cursor, *ending: str) -> str | None:
    """[AS] alias; a word of `ending` is none."""
    if cursor.word("as"):
        return names.name(cursor).name
    token = cursor.token
    if names.is_name(token) and not (token.kind == "word" and token.value in ending):
        return names.name(cursor).name
    return None


def delete(cursor: Cursor) -> Delete:
    cursor.expect_word("delete", "from")
    cursor.word("only")
    this = relation_name(cursor)
    alias = _alias(cursor, "using", "where", "returning")
    sources = _sources(cursor) if cursor.word("using") else ()
    return Delete(this, alias, sources, _where(cursor), _returning(cursor))


def truncate(cursor: Cursor) -> Truncate:
    cursor.expect_word("truncate")
    cursor.word("table")
    cursor.word("only")
    found = [relation_name(cursor)]
    while cursor.sign(","):
        found.append(relation_name(cursor))
    cursor.word("continue", "identity") or cursor.word("restart", "identity")
    if cursor.any_word("cascade", "restrict") == "cascade":
        raise _unsupported("TRUNCATE … CASCADE", cursor.row[cursor.index - 1].position)
    return Truncate(tuple(found))


Written: TypeAlias = Insert | Update | Delete | Truncate
