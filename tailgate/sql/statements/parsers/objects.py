"""Parses CREATE, ALTER, DROP, SHOW and EXPLAIN. Forms for specific kinds are in other modules."""

from __future__ import annotations

from typing import TypeAlias

from tailgate.lake.catalog.items import CheckOption
from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.definitions import (
    AlterFunction,
    AlterItem,
    AlterSchema,
    AlterSequence,
    CancelBackfill,
    CreateFunction,
    CreateIndex,
    CreateView,
    Drop,
    DropAbsent,
    DropFunction,
    DropSchema,
    ObjectKind,
)
from tailgate.sql.statements.kafka_statements import (
    AlterSecret,
    CreateSource,
    RefreshSchema,
    ResumeSource,
)
from tailgate.sql.statements.parsers.absent import drop_absent
from tailgate.sql.statements.parsers.alter import KINDS, alter_item
from tailgate.sql.statements.parsers.clauses import column_names, if_not_exists, query, relation_name, setting_name, with_options
from tailgate.sql.statements.parsers.functions import alter_function, drop_function, function_name
from tailgate.sql.statements.parsers.kafka.connections import alter_secret
from tailgate.sql.statements.parsers.roles.roles import KINDS as ROLES
from tailgate.sql.statements.parsers.roles.roles import alter_role, drop_role
from tailgate.sql.statements.parsers.schemas import alter_schema, drop_schema, schema_name
from tailgate.sql.statements.parsers.unsupported import refuse, refuse_create, refuse_drop, refuse_show
from tailgate.sql.statements.queries import Show
from tailgate.sql.statements.session_statements import AlterRole, AlterSettings, CreateRole, DropRole
from tailgate.sql.statements.tables import AlterTable
from tailgate.sql.statements.types import AlterDomain, AlterType
from tailgate.sql.statements.values import QueryText

Creation: TypeAlias = CreateSource | CreateView | CreateRole | CreateFunction | CreateIndex

VIEWS = (("view",), ("materialized", "view"), ("recursive", "view"), ("or", "replace"), ("temporary",), ("temp",), ("local",), ("global",))
INDEXES = (("index",), ("unique", "index"), ("default", "index"))
REPLACED = ("view", "materialized", "recursive", "temporary", "temp", "local", "global")  # words that may follow OR REPLACE


def create(cursor: Parser) -> CreateView:
    """Parses CREATE … VIEW. Raises the error for kinds of objects that nothing else parses."""
    start = cursor.position
    cursor.expect_word("create")
    if cursor.at_word("or", "replace") and cursor.peek(2).value in ("source", "sink"):
        what = cursor.peek(2).text.upper()
        raise FeatureNotSupported(f"CREATE OR REPLACE {what} is not supported", hint="Drop it first.", position=start)
    replace = cursor.at_word("or", "replace") and cursor.peek(2).value in REPLACED and cursor.accept_word("or", "replace")
    if cursor.token.value in ("temporary", "temp", "local", "global") and (temporary := _temporary(cursor, replace)) is not None:
        return temporary
    if cursor.accept_word("recursive", "view"):
        return _recursive_view(cursor, replace=replace)
    materialized = cursor.accept_word("materialized")
    if cursor.accept_word("view"):
        return create_view(cursor, materialized=materialized, replace=replace)
    raise refuse_create(cursor, start)


def _temporary(cursor: Parser, replace: bool) -> CreateView | None:
    """Parses [LOCAL | GLOBAL] TEMPORARY VIEW, after CREATE.

    Returns None and consumes nothing for other temporary objects, which the caller rejects.
    """
    start = cursor.index
    cursor.any_word("local", "global")
    if cursor.any_word("temporary", "temp") is None or not cursor.at_word("view"):
        if cursor.at_word("materialized"):
            raise cursor.error()  # as PostgreSQL does
        if cursor.accept_word("recursive", "view"):
            return _recursive_view(cursor, replace=replace, temporary=True)
        cursor.index = start
        return None
    cursor.advance()
    return create_view(cursor, materialized=False, replace=replace, temporary=True)


def _recursive_view(cursor: Parser, *, replace: bool, temporary: bool = False) -> CreateView:
    """Parses the rest of CREATE … RECURSIVE VIEW: the view is WITH RECURSIVE name (columns) AS (query) SELECT columns FROM name."""
    begin = cursor.position
    this = relation_name(cursor)
    list_begin = cursor.position
    columns = column_names(cursor)
    list_text, target = cursor.since(list_begin), cursor.since(begin)
    settings, clause = with_options(cursor)
    cursor.expect_word("as")
    body = query(cursor)
    if cursor.at_word("with"):
        raise FeatureNotSupported("WITH CHECK OPTION not supported on recursive views", position=cursor.position)
    name = quoted(this.name)
    start = f"WITH RECURSIVE {name} {list_text} AS ("
    # the text before the body is shorter than in the statement, so the body can keep its position
    text = QueryText(f"{start}{body.text}) SELECT {', '.join(map(quoted, columns))} FROM {name}", body.offset - len(start))
    plain = f"CREATE {'OR REPLACE ' * replace}{'TEMPORARY ' * temporary}VIEW {target} AS {text.text}"
    return CreateView(this, text, False, columns, settings, False, replace, temporary, clause, plain)


def create_view(cursor: Parser, *, materialized: bool, replace: bool = False, temporary: bool = False) -> CreateView:
    """Parses the rest of CREATE … VIEW."""
    absent = not replace and if_not_exists(cursor)
    this = relation_name(cursor)
    columns = column_names(cursor) if cursor.at("(") else ()
    settings, clause = with_options(cursor)
    cursor.expect_word("as")
    text = query(cursor)
    check_option = _check_option(cursor) if not materialized else ""
    if materialized and not cursor.accept_word("with", "data"):
        cursor.accept_word("with", "no", "data")  # as pg_dump writes, and REFRESH later; the rows are there from the start
    return CreateView(this, text, materialized, columns, settings, absent, replace, temporary, clause, check_option=check_option)


def _check_option(cursor: Parser) -> CheckOption:
    """Parses [WITH [CASCADED | LOCAL] CHECK OPTION]."""
    if cursor.at_word("with", "data") or not cursor.accept_word("with"):
        return ""
    word = cursor.any_word("cascaded", "local")
    cursor.expect_word("check", "option")
    return "local" if word == "local" else "cascaded"


def alter(
    cursor: Parser,
) -> (
    AlterItem
    | AlterTable
    | AlterFunction
    | AlterSequence
    | AlterType
    | AlterDomain
    | AlterRole
    | AlterSettings
    | AlterSchema
    | AlterSecret
    | RefreshSchema
    | ResumeSource
):
    """Parses ALTER."""
    start = cursor.index
    cursor.expect_word("alter")
    if cursor.token.kind == "word" and cursor.token.value in ROLES:
        return alter_role(cursor)
    if cursor.accept_word("schema"):
        return alter_schema(cursor)
    if (secret := alter_secret(cursor)) is not None:
        return secret
    if (function := alter_function(cursor)) is not None:
        return function
    altered = alter_item(cursor)
    if altered is not None:
        return altered
    cursor.index = start
    refuse(cursor)
    raise cursor.error()


def cancel_backfill(cursor: Parser) -> CancelBackfill:
    """Parses CANCEL BACKFILL view."""
    cursor.expect_word("cancel", "backfill")
    return CancelBackfill(relation_name(cursor))


def drop(cursor: Parser) -> Drop | DropAbsent | DropRole | DropFunction | DropSchema:
    """Parses DROP kind [IF EXISTS] name, … [CASCADE | RESTRICT]."""
    start = cursor.position
    cursor.expect_word("drop")
    if cursor.token.kind == "word" and cursor.token.value in ROLES:
        return drop_role(cursor)
    if cursor.accept_word("function"):
        return drop_function(cursor)
    if cursor.accept_word("schema"):
        return drop_schema(cursor)
    kind: ObjectKind
    if cursor.accept_word("materialized", "view"):
        kind = "materialized view"
    elif (word := cursor.any_word(*KINDS)) is not None:
        kind = KINDS[word]
    else:
        if (absent := drop_absent(cursor)) is not None:
            return absent
        raise refuse_drop(cursor, start)
    concurrently = kind == "index" and cursor.accept_word("concurrently")
    exists = cursor.accept_word("if", "exists")
    names = cursor.listed(relation_name)
    cascade = cursor.any_word("cascade", "restrict") == "cascade"
    if concurrently and len(names) > 1:
        raise FeatureNotSupported("DROP INDEX CONCURRENTLY does not support dropping multiple objects")
    if concurrently and cascade:
        raise FeatureNotSupported("DROP INDEX CONCURRENTLY does not support CASCADE")
    return Drop(kind, tuple(names), exists, cascade, concurrently)


OF_SCHEMA = (
    "sources", "views", "materialized views", "sinks", "subscriptions", "tables", "functions", "objects", "secrets", "connections",
    "endpoints", "objectives", "alerts",
)  # fmt: skip
LISTS = (
    "sources", "topics", "views", "sinks", "subscriptions", "tables", "functions", "objects", "schemas", "databases", "secrets",
    "connections", "endpoints", "objectives", "alerts", "tokens",
)  # fmt: skip
CREATED = ("source", "view", "sink", "table", "index", "subscription", "connection", "endpoint", "objective", "alert")


def show(cursor: Parser) -> Show:
    """Parses SHOW."""
    cursor.expect_word("show")
    at = cursor.position
    if cursor.at(".", 1):
        return Show("setting", setting=setting_name(cursor))
    if cursor.any_word("full", "extended"):
        pass
    what = "materialized views" if cursor.accept_word("materialized", "views") else cursor.any_word(*LISTS)
    if what is not None:
        schema = schema_name(cursor) if what in OF_SCHEMA and cursor.any_word("from", "in") is not None else None
        if cursor.at_word("from") or cursor.at_word("in") or cursor.at_word("where"):
            raise FeatureNotSupported(f"SHOW … {cursor.token.value.upper()} is not supported", position=cursor.position)
        return Show(what, like=cursor.string() if cursor.accept_word("like") else None, schema=schema)
    if cursor.accept_word("columns"):
        if cursor.any_word("from", "in") is None:
            raise cursor.error()
        return Show("columns", relation_name(cursor))
    if cursor.any_word("indexes", "index", "keys") is not None:
        return Show("indexes", relation_name(cursor) if cursor.any_word("from", "in", "on") is not None else None)
    if cursor.accept_word("errors"):
        return Show("errors", relation_name(cursor) if cursor.any_word("from", "in") is not None else None)
    if cursor.accept_word("create", "function"):
        function = function_name(cursor)
        return Show("create function", function.name, types=function.types)
    if cursor.accept_word("create", "materialized", "source"):
        return Show("create source", relation_name(cursor))
    if cursor.accept_word("create"):
        kind = "materialized view" if cursor.accept_word("materialized", "view") else cursor.any_word(*CREATED)
        if kind is None:
            raise cursor.error()
        return Show("create " + kind, relation_name(cursor))
    if cursor.accept_word("all"):
        return Show("all")
    if cursor.accept_word("time", "zone"):
        return Show("setting", setting="timezone")
    if cursor.accept_word("transaction", "isolation", "level"):
        return Show("setting", setting="transaction_isolation")
    if cursor.accept_word("session", "authorization"):
        return Show("setting", setting="session_authorization")
    refuse_show(cursor, at)
    return Show("setting", setting=setting_name(cursor))
