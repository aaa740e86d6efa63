"""Parses REFRESH MATERIALIZED VIEW, VACUUM, ANALYZE, REINDEX, CLUSTER, CHECKPOINT and LOCK TABLE.

Source: PostgreSQL 15, gram.y, RefreshMatViewStmt, VacuumStmt, AnalyzeStmt, ReindexStmt, ClusterStmt, CheckPointStmt, LockStmt;
src/backend/commands/vacuum.c (ExecVacuum), indexcmds.c (ExecReindex), cluster.c (cluster).
"""

from __future__ import annotations

from typing import Literal

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported, SyntaxError_
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.parsers.clauses import boolean, column_names, options, relation_name
from tailgate.sql.statements.tables import Checkpoint, Cluster, Lock, Refresh, Reindex, Vacuum

OPTIONS = {
    "VACUUM": (
        "verbose", "skip_locked", "analyze", "analyse", "freeze", "full", "disable_page_skipping", "index_cleanup", "process_toast",
        "truncate", "parallel",
    ),
    "ANALYZE": ("verbose", "skip_locked"),
    "REINDEX": ("verbose", "concurrently", "tablespace"),
    "CLUSTER": ("verbose",),
}  # fmt: skip
KINDS: tuple[Literal["index", "table", "schema", "database", "system"], ...] = ("index", "table", "schema", "database", "system")
MODES = (
    "access share", "row share", "row exclusive", "share update exclusive", "share row exclusive", "share", "access exclusive", "exclusive",
)  # fmt: skip


def _options(cursor: Parser, command: str) -> dict[str, bool]:
    """Parses [( option [value], … )]. Returns the options and whether they are on. Raises 42601 for an unknown one."""
    if not cursor.at("("):
        return {}
    at = cursor.peek().position
    values: dict[str, bool] = {}
    for option, value in options(cursor):
        if option not in OPTIONS[command]:
            raise SyntaxError_(f'unrecognized {command} option "{option}"', position=at)
        switch = option in ("verbose", "analyze", "analyse", "full", "freeze", "concurrently")
        values[option] = boolean(value, option, at) if switch else True
    return values


def refresh(cursor: Parser) -> Refresh:
    """Parses REFRESH MATERIALIZED VIEW."""
    cursor.advance()
    cursor.expect_word("materialized")
    cursor.expect_word("view")
    concurrently = cursor.accept_word("concurrently")
    view = relation_name(cursor)
    with_data = True
    if cursor.accept_word("with"):
        with_data = not cursor.accept_word("no")
        cursor.expect_word("data")
    return Refresh(view, concurrently, with_data)


def vacuum(cursor: Parser) -> Vacuum:
    """Parses VACUUM and ANALYZE."""
    command: Literal["VACUUM", "ANALYZE"] = "VACUUM" if cursor.advance().value == "vacuum" else "ANALYZE"
    analyzes = command == "ANALYZE"
    if cursor.at("("):
        chosen = _options(cursor, command)
        analyzes = analyzes or chosen.get("analyze", False) or chosen.get("analyse", False)
    else:
        for word in ("full", "freeze", "verbose") if command == "VACUUM" else ("verbose",):
            cursor.accept_word(word)
        if command == "VACUUM":
            analyzes = cursor.any_word("analyze", "analyse") is not None
    if cursor.token.kind == "end" or cursor.at(";"):
        return Vacuum(command, (), analyzes)
    return Vacuum(command, tuple(cursor.listed(_table_with_columns)), analyzes)


def _table_with_columns(cursor: Parser) -> tuple[Name, tuple[str, ...]]:
    table = relation_name(cursor)
    return table, column_names(cursor) if cursor.at("(") else ()


def reindex(cursor: Parser) -> Reindex:
    """Parses REINDEX."""
    cursor.advance()
    chosen = _options(cursor, "REINDEX")
    if "tablespace" in chosen:
        raise FeatureNotSupported("TABLESPACE of REINDEX is not supported", position=cursor.position)
    kind = next((kind for kind in KINDS if cursor.accept_word(kind)), None)
    if kind is None:
        raise cursor.error()
    concurrently = cursor.accept_word("concurrently") or chosen.get("concurrently", False)
    if kind in ("index", "table"):
        return Reindex(kind, relation_name(cursor), concurrently)
    return Reindex(kind, Name(name(cursor).name), concurrently)


def cluster(cursor: Parser) -> Cluster:
    """Parses CLUSTER."""
    cursor.advance()
    if cursor.at("("):
        _options(cursor, "CLUSTER")
    else:
        cursor.accept_word("verbose")
    if cursor.token.kind == "end" or cursor.at(";"):
        return Cluster()
    first = relation_name(cursor)
    if first.schema is None and cursor.accept_word("on"):
        return Cluster(relation_name(cursor), first.name)
    return Cluster(first, name(cursor).name if cursor.accept_word("using") else None)


def checkpoint(cursor: Parser) -> Checkpoint:
    """Parses CHECKPOINT."""
    cursor.advance()
    return Checkpoint()


def lock(cursor: Parser) -> Lock:
    """Parses LOCK [TABLE]."""
    cursor.advance()
    cursor.accept_word("table")
    tables = tuple(cursor.listed(_locked))
    mode = "access exclusive"
    if cursor.accept_word("in"):
        chosen = next((mode for mode in MODES if cursor.accept_word(*mode.split())), None)
        if chosen is None:
            raise cursor.error()
        mode = chosen
        cursor.expect_word("mode")
    cursor.accept_word("nowait")
    return Lock(tables, mode)


def _locked(cursor: Parser) -> Name:
    """Parses {name [*] | ONLY name | ONLY (name)}: tables have no children."""
    if not cursor.accept_word("only"):
        table = relation_name(cursor)
        cursor.accept("*")
        return table
    enclosed = cursor.accept("(")
    table = relation_name(cursor)
    if enclosed:
        cursor.expect(")")
    return table
