"""Parses CREATE INDEX.

Source: PostgreSQL 15, "CREATE INDEX"; gram.y IndexStmt, index_elem. Materialize, "CREATE INDEX": DEFAULT, IN CLUSTER.
"""

from __future__ import annotations

from typing import Literal

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported, UndefinedObject
from tailgate.sql.grammar.names import is_name, name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.definitions import CreateIndex, IndexColumn
from tailgate.sql.statements.parsers.clauses import column_names, if_not_exists, relation_name

OTHER_METHODS = ("gin", "gist", "spgist", "brin", "bloom", "rum", "hnsw", "ivfflat")
CLASSES = "_ops"  # the suffix of operator classes
PATTERN_CLASSES = ("text_pattern_ops", "varchar_pattern_ops", "bpchar_pattern_ops", "text_ops", "varchar_ops")  # have no effect in C order
CLAUSES = {
    ("with",): "WITH",
    ("tablespace",): "TABLESPACE",
    ("where",): "WHERE",
}
PARTIAL = "An index is of all rows: create a materialized view of those with this condition, and an index on it."


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
    for words, what in CLAUSES.items():
        if cursor.at_word(*words):
            hint = PARTIAL if what == "WHERE" else None
            raise FeatureNotSupported(f"{what} of an index is not supported", hint=hint, position=cursor.position)
    return CreateIndex(this, relation, columns, include, unique, method, default, absent, distinct, concurrently)


def _method(cursor: Parser) -> Literal["btree", "hash"]:
    """Parses [USING method]. The default is btree."""
    at = cursor.position
    if not cursor.accept_word("using"):
        return "btree"
    method = name(cursor).name
    if method == "hash":
        return "hash"
    if method == "btree":
        return "btree"
    if method in OTHER_METHODS:
        raise FeatureNotSupported(f"USING {method} is not supported", hint="Indexes look values up: btree and hash.", position=at)
    raise UndefinedObject(f'access method "{method}" does not exist')


def _column(cursor: Parser) -> IndexColumn:
    """Parses a column of an index: name [COLLATE …] [ASC | DESC] [NULLS {FIRST | LAST}]."""
    at = cursor.position
    following = cursor.peek()
    if not is_name(cursor.token) or (following.kind == "operator" and following.value in ("(", ".")):
        cursor.expression()
        hint = "Create a materialized view with the expression as a column, and an index on that."
        raise FeatureNotSupported("an index on an expression is not supported", hint=hint, position=at)
    column = name(cursor).name
    if cursor.accept_word("collate"):
        collation = name(cursor).name
        if collation not in ("C", "POSIX", "default", "ucs_basic"):
            raise FeatureNotSupported(f'collation "{collation}" is not supported', position=at)
    if cursor.token.kind == "word" and cursor.token.value in PATTERN_CLASSES:
        cursor.advance()
    if cursor.token.kind == "word" and cursor.token.value.endswith(CLASSES):
        raise FeatureNotSupported(f"operator class {cursor.token.value} is not supported", hint="Leave it out.", position=cursor.position)
    descending = cursor.any_word("asc", "desc") == "desc"
    first = cursor.any_word("first", "last") == "first" if cursor.accept_word("nulls") else descending
    return IndexColumn(column, descending, first, at)
