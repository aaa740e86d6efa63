"""Parses ALTER of catalog items (RENAME, SET SCHEMA, SET, RESET, REFRESH SCHEMA, RESUME) and COMMENT ON.

Source: PostgreSQL 15, "ALTER TABLE", "ALTER VIEW", "ALTER MATERIALIZED VIEW", "COMMENT".
"""

from __future__ import annotations

from typing import Literal

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.definitions import AlterItem, AlterSequence, Comment, CommentOnFunction, ObjectKind
from tailgate.sql.statements.kafka_statements import RefreshSchema, ResumeSource
from tailgate.sql.statements.parsers.clauses import options, relation_name
from tailgate.sql.statements.parsers.functions import function_name
from tailgate.sql.statements.parsers.roles.roles import role_name
from tailgate.sql.statements.parsers.sequences import alter_sequence
from tailgate.sql.statements.parsers.tables.alter_table import alter_table, at_parameters, parameters
from tailgate.sql.statements.parsers.types.domains import alter_domain
from tailgate.sql.statements.parsers.types.enums import alter_type
from tailgate.sql.statements.session_statements import CommentOnExtension
from tailgate.sql.statements.tables import AlterTable
from tailgate.sql.statements.types import AlterDomain, AlterType

KINDS: dict[str, ObjectKind] = {
    "source": "source", "table": "table", "view": "view", "sink": "sink", "index": "index", "sequence": "sequence",
    "subscription": "subscription", "secret": "secret", "connection": "connection", "endpoint": "endpoint",
    "objective": "objective", "alert": "alert", "type": "type", "domain": "domain",
}  # fmt: skip


OWNED = ("table", "view", "materialized view", "sequence")  # kinds of items with OWNER TO; ALTER TABLE accepts any relation
STORED = ("source", "table", "materialized view")  # kinds of items with a history


def _only_owner(cursor: Parser) -> str:
    """Parses OWNER TO role. Returns "" and consumes nothing for other actions, and if other actions of ALTER TABLE follow."""
    start = cursor.index
    if not cursor.accept_word("owner", "to"):
        return ""
    role = role_name(cursor).name
    if cursor.at(","):
        cursor.index = start
        return ""
    return role


def kind_of(cursor: Parser) -> ObjectKind | None:
    """Parses the kind of an item. Returns None if there is none."""
    if cursor.accept_word("materialized", "view"):
        return "materialized view"
    word = cursor.any_word(*KINDS)
    return None if word is None else KINDS[word]


def alter_item(cursor: Parser) -> AlterItem | AlterTable | AlterSequence | AlterType | AlterDomain | RefreshSchema | ResumeSource | None:
    """Parses the rest of ALTER for a catalog item.

    Returns None if the statement alters something else.
    """
    kind = kind_of(cursor)
    if kind is None:
        return None
    exists = kind not in ("type", "domain") and cursor.accept_word("if", "exists")
    if kind == "table":
        cursor.accept_word("only")
    this = relation_name(cursor)
    if kind in OWNED and (owner := _only_owner(cursor)):
        return AlterItem(kind, this, exists, owner=owner)
    if kind == "table" and (altered := alter_table(cursor, this, exists)) is not None:
        return altered
    if kind == "sequence" and (sequence := alter_sequence(cursor, this, exists)) is not None:
        return sequence
    if kind == "type" and (enum := alter_type(cursor, this)) is not None:
        return enum
    if kind == "domain" and (domain := alter_domain(cursor, this)) is not None:
        return domain
    if cursor.accept_word("rename", "to"):
        return AlterItem(kind, this, exists, rename=name(cursor).name)
    if cursor.accept_word("set", "schema"):
        return AlterItem(kind, this, exists, schema=name(cursor).name)
    if kind == "index" and at_parameters(cursor):
        return AlterItem(kind, this, exists, options=parameters(cursor))
    if kind in STORED and cursor.at_word("set") and cursor.at("(", 1):
        cursor.advance()
        return AlterItem(kind, this, exists, options=options(cursor))
    if kind in STORED and cursor.at_word("reset") and cursor.at("(", 1):
        cursor.advance()
        return AlterItem(kind, this, exists, options=_reset(cursor))
    if kind == "source" and cursor.accept_word("refresh", "schema"):
        return RefreshSchema(this, exists)
    if kind == "source" and cursor.accept_word("resume", "at", "earliest"):
        return ResumeSource(this, exists)
    if cursor.token.kind == "end" or (kind in ("type", "domain") and cursor.token.value not in ("add", "alter", "drop", "rename", "set")):
        raise cursor.error()
    what = f"ALTER {kind.upper()} … {cursor.token.text.upper()}"
    others = "ADD, ALTER and DROP COLUMN, ADD and DROP CONSTRAINT, OWNER TO, RENAME" if kind == "table" else "RENAME TO"
    raise FeatureNotSupported(f"{what} is not supported", hint=f"{others} and SET SCHEMA are.", position=cursor.position)


def _reset(cursor: Parser) -> tuple[tuple[str, None], ...]:
    """Parses (RETAIN HISTORY), after RESET."""
    cursor.expect("(")
    cursor.expect_word("retain")
    cursor.expect_word("history")
    cursor.expect(")")
    return (("retain history for", None),)


def comment(cursor: Parser) -> Comment | CommentOnExtension | CommentOnFunction:
    """Parses COMMENT ON kind name IS {text | NULL}."""
    start = cursor.position
    cursor.expect_word("comment")
    cursor.expect_word("on")
    if cursor.accept_word("function"):
        return CommentOnFunction(function_name(cursor), _comment_text(cursor))
    if cursor.accept_word("extension"):
        return CommentOnExtension(name(cursor).name, _comment_text(cursor))
    if cursor.accept_word("constraint"):
        constraint = name(cursor).name
        cursor.expect_word("on")
        return Comment("constraint", relation_name(cursor), constraint, _comment_text(cursor))
    if cursor.accept_word("database"):
        return Comment("database", role_name(cursor), "", _comment_text(cursor))
    if cursor.accept_word("role"):
        return Comment("role", role_name(cursor), "", _comment_text(cursor))
    column = ""
    kind: ObjectKind | Literal["schema"] | None = "schema" if cursor.accept_word("schema") else kind_of(cursor)
    if kind is None and not cursor.accept_word("column"):
        raise FeatureNotSupported(f"COMMENT ON {cursor.token.text.upper()} is not supported", position=start)
    at = cursor.position
    parts = [name(cursor).name]
    while cursor.accept("."):
        parts.append(name(cursor).name)
    if kind is None:
        if len(parts) == 1:
            raise cursor.error()
        column = parts.pop()
    if kind == "schema" and len(parts) > 1:
        raise cursor.error()
    this = Name(parts[-1], parts[-2] if len(parts) > 1 else None, at)
    return Comment(kind, this, column, _comment_text(cursor))


def _comment_text(cursor: Parser) -> str | None:
    """Parses IS {text | NULL}."""
    cursor.expect_word("is")
    return None if cursor.accept_word("null") else cursor.string()
