"""Parses SELECT, and times such as `10 SECONDS`."""

from __future__ import annotations

from typing import Literal

from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb.expression_parser import KsqldbCursor, expression
from tailgate.sql.ksqldb.names import RESERVED

WINDOWS = ("tumbling", "hopping", "session")
TIMES = {("advance", "by"): "advance", ("retention",): "retention", ("grace", "period"): "grace"}  # of windows, in ksqlDB's order
CLAUSES = RESERVED | {"emit", "partition"}  # words that are not an alias without AS
MILLISECONDS = {
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
}


def query(cursor: KsqldbCursor) -> e.SelectQuery:
    """Parses SELECT … [EMIT …] [LIMIT …]."""
    at = cursor.position
    cursor.expect_word("select")
    items = tuple(cursor.listed(_item))
    cursor.expect_word("from")
    source = source_name(cursor)
    joins = []
    while (join := _join(cursor)) is not None:
        joins.append(join)
    window = _window(cursor) if cursor.accept_word("window") else None
    where = expression(cursor) if cursor.accept_word("where") else None
    group_by = _keys(cursor) if cursor.accept_word("group", "by") else ()
    partition_by = _keys(cursor) if cursor.accept_word("partition", "by") else ()
    having = expression(cursor) if cursor.accept_word("having") else None
    emit: Literal["", "changes", "final"] = ""
    if cursor.accept_word("emit"):
        emit = "final" if cursor.accept_word("final") else "changes"
        if emit == "changes":
            cursor.expect_word("changes")
    limit = cursor.integer() if cursor.accept_word("limit") else None
    return e.SelectQuery(items, source, tuple(joins), window, where, group_by, partition_by, having, emit, limit, at)


def _item(cursor: KsqldbCursor) -> e.SelectItem:
    """Parses an item of the projection."""
    at = cursor.position
    if cursor.accept("*"):
        return e.SelectItem(None, position=at)
    if cursor.token.kind in ("word", "quoted") and cursor.at(".", 1) and cursor.at("*", 2):
        source = cursor.name()
        cursor.index += 2
        return e.SelectItem(None, source=source, position=at)
    item = expression(cursor)
    return e.SelectItem(item, _alias(cursor), position=at)


def _alias(cursor: KsqldbCursor) -> str | None:
    """Parses [[AS] name]."""
    if cursor.accept_word("as"):
        return cursor.name()
    token = cursor.token
    if token.kind == "quoted" or (token.kind == "word" and token.value not in CLAUSES):
        return cursor.advance().value
    return None


def source_name(cursor: KsqldbCursor) -> e.SourceName:
    """Parses name [[AS] alias]."""
    at = cursor.position
    name = cursor.name()
    return e.SourceName(name, _alias(cursor), at)


def _keys(cursor: KsqldbCursor) -> tuple[e.Expression, ...]:
    """Parses a list of expressions, which may be in parentheses."""
    if cursor.at("("):
        begin = cursor.index
        cursor.advance()
        items = cursor.listed(expression)
        if len(items) > 1:
            cursor.expect(")")
            return tuple(items)
        cursor.index = begin
    return tuple(cursor.listed(expression))


def _join(cursor: KsqldbCursor) -> e.JoinClause | None:
    """Parses a join, or returns None."""
    at = cursor.position
    kinds: dict[str, Literal["inner", "left", "right", "full"]] = {k: k for k in ("inner", "left", "right", "full")}
    word = cursor.any_word(*kinds)
    if word is not None and word != "inner":
        cursor.accept_word("outer")
    if word is None and not cursor.at_word("join"):
        return None
    cursor.expect_word("join")
    source = source_name(cursor)
    within: tuple[int, int] | None = None
    grace = None
    if cursor.accept_word("within"):
        if cursor.accept("("):
            before = duration(cursor)
            cursor.expect(",")
            within = before, duration(cursor)
            cursor.expect(")")
        else:
            both = duration(cursor)
            within = both, both
        grace = duration(cursor) if cursor.accept_word("grace", "period") else None
    cursor.expect_word("on")
    return e.JoinClause(kinds[word or "inner"], source, expression(cursor), within, grace, at)


def _window(cursor: KsqldbCursor) -> e.WindowClause:
    """Parses [name] {TUMBLING | HOPPING | SESSION} (…). The name has no meaning."""
    at = cursor.position
    kind = cursor.any_word(*WINDOWS)
    if kind is None:
        cursor.name()
        kind = cursor.any_word(*WINDOWS)
    if kind is None:
        raise cursor.error()
    cursor.expect("(")
    size, times = 0, dict[str, int]()
    if kind == "session":
        size = duration(cursor)
    else:
        cursor.expect_word("size")
        size = duration(cursor)
    misplaced = -1
    while cursor.accept(","):
        place = cursor.position
        time = next((time for words, time in TIMES.items() if cursor.accept_word(*words)), None)
        if time is None or time in times or (time == "advance" and kind != "hopping"):
            raise cursor.error()
        order = list(TIMES.values())
        if any(order.index(earlier) > order.index(time) for earlier in times):
            misplaced = place
        times[time] = duration(cursor)
    if kind == "hopping" and "advance" not in times:
        raise cursor.error()
    cursor.expect(")")
    advance, retention, grace = map(times.get, TIMES.values())
    match kind:
        case "tumbling":
            return e.WindowClause("tumbling", size, advance, retention, grace, at, misplaced)
        case "hopping":
            return e.WindowClause("hopping", size, advance, retention, grace, at, misplaced)
    return e.WindowClause("session", size, advance, retention, grace, at, misplaced)


def duration(cursor: KsqldbCursor) -> int:
    """Parses a time such as 10 SECONDS. Returns it in ms."""
    number = cursor.integer()
    word = cursor.any_word(*MILLISECONDS, *(f"{unit}s" for unit in MILLISECONDS))
    if word is None:
        raise cursor.error()
    return number * MILLISECONDS[word.removesuffix("s")]
