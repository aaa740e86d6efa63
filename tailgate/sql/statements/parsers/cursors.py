"""Parses TAIL, SUBSCRIBE and statements about cursors.

Source: Materialize 0.25, "TAIL" (and its syntax since 0.5), "FETCH"; 0.27, "SUBSCRIBE"; PostgreSQL 15
for the rest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import FeatureNotSupported, InvalidColumnReference, InvalidParameterValue, SyntaxError_
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parentheses import at_query
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.ksqldb.dialect import is_ksqldb
from tailgate.sql.statements import ksqldb
from tailgate.sql.statements.ksqldb_statements import FollowKsqldb
from tailgate.sql.statements.parsers.clauses import as_of, boolean, column_names, options, query, relation_name, select, time
from tailgate.sql.statements.parsers.subscriptions import at_subscription
from tailgate.sql.statements.parsers.unsupported import refuse
from tailgate.sql.statements.queries import CloseCursor, DeclareCursor, Fetch, FetchSubscription, KeyEnvelope, OrderWithin, Select, Tail
from tailgate.sql.statements.values import QueryText


def tail(cursor: Parser) -> Tail:
    """Parses TAIL {name | (query)} [[WITH] (option, …)] [AS OF time].

    Also accepts the older WITH SNAPSHOT and WITHOUT SNAPSHOT.
    """
    cursor.expect_word("tail")
    return _followed(cursor, "TAIL")


def subscribe(cursor: Parser) -> Tail:
    """Parses SUBSCRIBE [TO] {name | (query)} [shape] [[WITH] (option, …)] [AS OF [AT LEAST] time] [UP TO time] [shape].

    shape: ENVELOPE {UPSERT | DEBEZIUM} (KEY (name, …)) | WITHIN TIMESTAMP ORDER BY key, …
    """
    cursor.expect_word("subscribe")
    cursor.accept_word("to")
    return _followed(cursor, "SUBSCRIBE")


def _followed(cursor: Parser, statement: str) -> Tail:
    """Parses the rest of TAIL or SUBSCRIBE. `statement` is its first word."""
    subscribes = statement == "SUBSCRIBE"
    target: Name | QueryText
    if cursor.at("("):
        cursor.advance()
        target = query(cursor)
        cursor.expect(")")
    elif not subscribes and at_query(cursor):
        target = query(cursor)
    else:
        target = relation_name(cursor)
    clauses = Tail(target, subscribes=subscribes)
    shaped = False
    if cursor.accept_word("without", "snapshot"):
        clauses = replace(clauses, snapshot=False)
    elif not cursor.accept_word("with", "snapshot"):
        clauses, shaped = _shape(cursor, clauses)
        if cursor.at_word("with") or cursor.at("("):
            cursor.accept_word("with")
            clauses = _options(cursor, clauses, statement)
    while True:
        if clauses.as_of is None and cursor.accept_word("as", "of"):
            clauses = replace(clauses, as_of=as_of(cursor))
        elif subscribes and clauses.up_to is None and cursor.accept_word("up", "to"):
            clauses = replace(clauses, up_to=time(cursor))
        elif not shaped and _at_shape(cursor):
            clauses, shaped = _shape(cursor, clauses)
        else:
            return clauses


def _options(cursor: Parser, tail: Tail, statement: str) -> Tail:
    at = cursor.position
    for key, value in options(cursor):
        match key:
            case "snapshot":
                tail = replace(tail, snapshot=boolean(value, key, at))
            case "progress":
                tail = replace(tail, progress=boolean(value, key, at))
            case _:
                raise InvalidParameterValue(f"unrecognized {statement} option: {key}", position=at)
    return tail


def _at_shape(cursor: Parser) -> bool:
    return cursor.at_word("envelope") or cursor.at_word("within")


def _shape(cursor: Parser, tail: Tail) -> tuple[Tail, bool]:
    """Parses [ENVELOPE … | WITHIN TIMESTAMP ORDER BY …] into `tail`. Returns whether it is present."""
    if not _at_shape(cursor):
        return tail, False
    if not tail.subscribes:
        what = "ENVELOPE" if cursor.at_word("envelope") else "WITHIN TIMESTAMP ORDER BY"
        raise FeatureNotSupported(f"TAIL … {what} is not supported", hint="Use SUBSCRIBE.", position=cursor.position)
    if cursor.accept_word("within"):
        cursor.expect_word("timestamp", "order", "by")
        keys = cursor.listed(_order)
        return replace(tail, order=tuple(keys)), True
    cursor.expect_word("envelope")
    kind: Literal["upsert", "debezium"]
    if cursor.accept_word("upsert"):
        kind = "upsert"
    elif cursor.accept_word("debezium"):
        kind = "debezium"
    else:
        raise cursor.error()
    cursor.expect("(")
    cursor.expect_word("key")
    key = column_names(cursor)
    cursor.expect(")")
    return replace(tail, envelope=KeyEnvelope(kind, key)), True


def _order(cursor: Parser) -> OrderWithin:
    at = cursor.position
    column: str | int = cursor.integer() if cursor.token.kind == "integer" else name(cursor).name
    if not (cursor.at(",") or cursor.token.kind in ("word", "end") or cursor.at(";") or cursor.at(")")):
        raise InvalidColumnReference("invalid ORDER BY in SUBSCRIBE WITHIN TIMESTAMP ORDER BY", position=at)
    descending = cursor.any_word("asc", "desc") == "desc"
    nulls_first = descending
    if cursor.accept_word("nulls", "first"):
        nulls_first = True
    elif cursor.accept_word("nulls", "last"):
        nulls_first = False
    return OrderWithin(column, descending, nulls_first, at)


def read(cursor: Parser) -> Select | Tail | FollowKsqldb:
    """Parses the statement of a cursor or COPY: a query, TAIL, SUBSCRIBE, or a push query of ksqlDB.

    It ends with the text, or with the parenthesis of COPY.
    """
    end = _end(cursor)
    if is_ksqldb(cursor.text[cursor.position : end]):
        push = ksqldb.parse(" " * cursor.position + cursor.text[cursor.position : end])
        if not isinstance(push, FollowKsqldb):  # such as SELECT … FROM emit changes: a stream and its alias
            raise SyntaxError_("a cursor or COPY of ksqlDB takes a query with EMIT CHANGES", position=cursor.position)
        while cursor.position < end:
            cursor.advance()
        return replace(push, text=push.text.lstrip())
    if cursor.at_word("tail"):
        return tail(cursor)
    if cursor.at_word("subscribe"):
        return subscribe(cursor)
    refuse(cursor)
    return select(cursor)


def _end(cursor: Parser) -> int:
    """Returns the position of the parenthesis that closes the one before the current token, or of the end of the statement."""
    depth = 0
    for token in cursor.tokens[cursor.index :]:
        sign = token.value if token.kind == "operator" else ""
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if depth < 0 or sign == ";":
            return token.position
    return len(cursor.text)


def declare(cursor: Parser) -> DeclareCursor:
    """Parses DECLARE name [BINARY] [[NO] SCROLL] CURSOR [WITH HOLD] FOR statement."""
    cursor.expect_word("declare")
    this = name(cursor).name
    binary, scroll = False, None
    while (word := cursor.any_word("binary", "insensitive", "asensitive", "scroll", "no")) is not None:
        if word in ("no", "scroll"):
            scroll = word == "scroll"
            if not scroll:
                cursor.expect_word("scroll")
        binary |= word == "binary"
    cursor.expect_word("cursor")
    hold = cursor.accept_word("with", "hold")
    if not hold:
        cursor.accept_word("without", "hold")
    cursor.expect_word("for")
    return DeclareCursor(this, read(cursor), hold, scroll, binary)


def fetch(cursor: Parser) -> Fetch | FetchSubscription:
    """Parses FETCH or MOVE."""
    move = cursor.advance().value == "move"
    way, count = _way(cursor)
    cursor.any_word("from", "in")
    if at_subscription(cursor):
        if move:
            hint = "ACKNOWLEDGE advances the position of a subscription."
            raise FeatureNotSupported("MOVE in a subscription is not supported", hint=hint, position=cursor.position)
        if way != "forward" or (count is not None and count < 0):
            hint = "After ROLLBACK, what is not acknowledged comes again."
            raise FeatureNotSupported("FETCH backward in a subscription is not supported", hint=hint, position=cursor.position)
        cursor.advance()
        subscription = relation_name(cursor)
        return FetchSubscription(subscription, count, _timeout(cursor))
    this = name(cursor).name
    return Fetch(this, count, _timeout(cursor), move, way)


def _timeout(cursor: Parser) -> str | int | float | None:
    """Parses [[WITH] (timeout = …)]. Returns the timeout, or None."""
    timeout: str | int | float | None = None
    if cursor.at_word("with") or cursor.at("("):
        cursor.accept_word("with")
        at = cursor.position
        for key, value in options(cursor):
            if key != "timeout" or not isinstance(value, (str, int, float)):
                raise InvalidParameterValue(f"unrecognized FETCH option: {key}", position=at)
            timeout = value
    return timeout


def _way(cursor: Parser) -> tuple[str, int | None]:
    """Parses the direction and count of FETCH. The default is one row; None means ALL.

    A cursor may have the name of a direction.
    """
    if cursor.peek().kind == "end" or cursor.at(";", 1):
        return "forward", 1
    match cursor.any_word("next", "prior", "first", "last", "absolute", "relative", "forward", "backward"):
        case "next":
            return "forward", 1
        case "prior":
            return "backward", 1
        case "first":
            return "absolute", 1
        case "last":
            return "absolute", -1
        case "absolute" | "relative" as way:
            return way, _count(cursor)
        case way:
            if cursor.accept_word("all"):
                return way or "forward", None
            counted = cursor.token.kind == "integer" or cursor.at("-") or cursor.at("+")
            return way or "forward", _count(cursor) if counted else 1


def _count(cursor: Parser) -> int:
    sign = -1 if cursor.at("-") else 1
    if cursor.at("-") or cursor.at("+"):
        cursor.advance()
    return sign * cursor.integer()


def close(cursor: Parser) -> CloseCursor:
    """Parses CLOSE {name | ALL}."""
    cursor.expect_word("close")
    return CloseCursor(None if cursor.accept_word("all") else name(cursor).name)
