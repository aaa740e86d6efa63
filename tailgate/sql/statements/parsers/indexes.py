"""Parses CREATE INDEX.

Source: PostgreSQL 15, "CREATE INDEX"; gram.y IndexStmt, index_elem. Materialize, "CREATE INDEX": DEFAULT, IN CLUSTER.
"""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from sqlglot import exp

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported, UndefinedObject
from tailgate.sql.grammar.names import is_name, name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.grammar.primaries import operand
from tailgate.sql.statements.definitions import CreateIndex, IndexMethod
from tailgate.sql.statements.parsers.clauses import collation, column_names, if_not_exists, relation_name, where, with_options
from tailgate.sql.statements.writes import Expression, IndexColumn

METHODS: tuple[IndexMethod, ...] = get_args(IndexMethod)
OTHER_METHODS = ("bloom", "rum", "hnsw", "ivfflat")  # of extensions
FOLLOWING_WORDS = ("asc", "desc", "nulls")  # behind a column, where they are not the name of an operator class


def create_index(cursor: Parser) -> CreateIndex:
    """Parses [DEFAULT | UNIQUE] INDEX …, after CREATE."""
    default = cursor.accept_word("default")
    unique = cursor.accept_word("unique")
    cursor.expect_word("index")
    concurrently = cursor.accept_word("concurrently")
    at = cursor.position
    absent = if_not_exists(cursor)
    this: Name | None = None
    if not cursor.at_word("on") and not cursor.at_word("in", "cluster"):
        identifier = name(cursor)
        this = Name(identifier.name, None, at)
    elif absent:
        raise cursor.error()
    if cursor.at_word("in", "cluster"):
        raise FeatureNotSupported("IN CLUSTER is not supported", hint="Leave it out: there are no clusters.", position=cursor.position)
    cursor.expect_word("on")
    if cursor.at_word("only"):
        raise FeatureNotSupported("ON ONLY is not supported", position=cursor.position)
    relation = relation_name(cursor)
    method = _method(cursor)
    columns: tuple[IndexColumn, ...] = ()
    if not default:
        cursor.expect("(")
        columns = tuple(cursor.listed(_column))
        cursor.expect(")")
    include = column_names(cursor) if cursor.accept_word("include") else ()
    distinct = True
    if cursor.accept_word("nulls"):
        distinct = not cursor.accept_word("not")
        cursor.expect_word("distinct")
    options, _ = with_options(cursor, parameters=True)
    if cursor.at_word("tablespace"):
        raise FeatureNotSupported("TABLESPACE of an index is not supported", position=cursor.position)
    condition = where(cursor)
    return CreateIndex(this, relation, columns, include, unique, method, default, absent, distinct, concurrently, condition, options)


def _method(cursor: Parser) -> IndexMethod:
    """Parses [USING method]. The default is btree."""
    at = cursor.position
    if not cursor.accept_word("using"):
        return "btree"
    word = name(cursor).name
    if word in OTHER_METHODS:
        raise FeatureNotSupported(f"USING {word} is not supported", hint=f"Methods are {', '.join(METHODS)}.", position=at)
    if (method := next((m for m in METHODS if m == word), None)) is None:
        raise UndefinedObject(f'access method "{word}" does not exist')
    return method


def _column(cursor: Parser) -> IndexColumn:
    """Parses a column of an index with [ASC | DESC] [NULLS {FIRST | LAST}]."""
    column = element(cursor)
    descending = cursor.any_word("asc", "desc") == "desc"
    first = cursor.any_word("first", "last") == "first" if cursor.accept_word("nulls") else descending
    return replace(column, descending=descending, nulls_first=first)


def element(cursor: Parser) -> IndexColumn:
    """Parses {name | call | (expression)} [COLLATE …] [operator class]."""
    at, following = cursor.position, cursor.peek()
    if cursor.at("("):
        cursor.expect("(")
        at = cursor.position
        tree = cursor.expression()
        column = _of_tree(tree, cursor.since(at), at)
        cursor.expect(")")
    elif not is_name(cursor.token) or (following.kind == "operator" and following.value in ("(", ".")):
        tree = operand(cursor)
        if not isinstance(tree, exp.Anonymous | exp.Cast):
            raise cursor.error()
        column = _of_tree(tree, cursor.since(at), at)
    else:
        column = IndexColumn(name(cursor).name, position=at)
    if collate := collation(cursor):
        column = replace(column, collation=collate)
    if is_name(cursor.token) and cursor.token.value not in FOLLOWING_WORDS:
        column = replace(column, operator_class=name(cursor).name)
    return column


def _of_tree(tree: exp.Expr, text: str, at: int) -> IndexColumn:
    """Returns the column for an expression. As in PostgreSQL, a column in parentheses is not an expression."""
    bare, collate = tree, ""
    while isinstance(bare, exp.Paren | exp.Collate):
        if isinstance(bare, exp.Collate):
            collate = collate or bare.args["expression"].name
        bare = bare.this
    if isinstance(bare, exp.Column) and not bare.table:
        return IndexColumn(bare.name, position=at, collation=collate)
    return IndexColumn("", position=at, expression=Expression(tree, text))
