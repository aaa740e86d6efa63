"""TAIL, SUBSCRIBE, cursors.

Source: Materialize 0.25, "TAIL" (and its spellings since 0.5), "FETCH"; 0.27, "SUBSCRIBE"; PostgreSQL 15 for the rest.
"""

from __future__ import annotations

from lake.errors import FeatureNotSupported, InvalidParameterValue
from sql.grammar import queries
from sql.grammar.names import name
from sql.statements.pieces import options, query, relation_name, select, time
from sql.statements.refused import refuse
from sql.statements.values import CloseCursor, DeclareCursor, Fetch, Name, QueryText, Select, Tail
from sql.tokens import Cursor


def tail(cursor: Cursor) -> Tail:
    """TAIL {name | (query)} [[WITH] (option, …)] [AS OF time]; also the older WITH SNAPSHOT and WITHOUT SNAPSHOT."""
    cursor.expect_word("tail")
    return _followed(cursor, "TAIL")


def subscribe(cursor: Cursor) -> Tail:
    """SUBSCRIBE [TO] {name | (query)} [[WITH] (option, …)] [AS OF time] [UP TO time]."""
    cursor.expect_word("subscribe")
    cursor.word("to")
    return _followed(cursor, "SUBSCRIBE")


def _followed(cursor: Cursor, statement: str) -> Tail:
    target: Name | QueryText
    if cursor.at("("):
        cursor.advance()
        target = query(cursor)
        cursor.expect(")")
    elif statement == "TAIL" and queries.at_query(cursor):
        target = query(cursor)
    else:
        target = relation_name(cursor)
    found: dict[str, bool] = {"snapshot": True, "progress": False}
    if cursor.word("without", "snapshot"):
        found["snapshot"] = False
    elif not cursor.word("with", "snapshot"):
        if cursor.at_word("envelope") or cursor.at_word("within"):
            what = "ENVELOPE" if cursor.at_word("envelope") else "WITHIN TIMESTAMP ORDER BY"
            raise FeatureNotSupported(f"{statement} … {what} is not supported", position=cursor.position)
        if cursor.at_word("with") or cursor.at("("):
            cursor.word("with")
            at = cursor.position
            for key, value in options(cursor):
                if key not in found:
                    raise InvalidParameterValue(f"unrecognized {statement} option: {key}", position=at)
                found[key] = _boolean(value, key, at)
    as_of = up_to = None
    while True:
        if as_of is None and cursor.word("as", "of"):
            as_of = time(cursor)
        elif statement == "SUBSCRIBE" and up_to is None and cursor.word("up", "to"):
            up_to = time(cursor)
        else:
            return Tail(target, found["snapshot"], found["progress"], as_of, up_to)


def _boolean(value: object, key: str, position: int) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "t", "on", "yes", "1"):
        return True
    if isinstance(value, str) and value.lower() in ("false", "f", "off", "no", "0"):
        return False
    raise InvalidParameterValue(f"invalid {key.upper()}: must be a boolean", position=position)


def read(cursor: Cursor) -> Select | Tail:
    """What a cursor or COPY may read."""
    if cursor.at_word("tail"):
        return tail(cursor)
    if cursor.at_word("subscribe"):
        return subscribe(cursor)
    refuse(cursor)
    return select(cursor)


def declare(cursor: Cursor) -> DeclareCursor:
    cursor.expect_word("declare")
    this = name(cursor).name
    binary = scroll = False
    while (word := cursor.any_word("binary", "insensitive", "asensitive", "scroll", "no")) is not None:
        if word == "no":
            cursor.expect_word("scroll")
        binary |= word == "binary"
        scroll |= word == "scroll"
    cursor.expect_word("cursor")
    hold = cursor.word("with", "hold")
    if not hold:
        cursor.word("without", "hold")
    cursor.expect_word("for")
    return DeclareCursor(this, read(cursor), hold, scroll, binary)


def fetch(cursor: Cursor) -> Fetch:
    """FETCH or MOVE."""
    move = cursor.advance().value == "move"
    start = cursor.position
    count: int | None = 1
    backward = cursor.token.kind == "word" and cursor.token.value in ("prior", "first", "last", "absolute", "relative", "backward")
    if backward and cursor.peek().kind not in ("end", "operator"):
        raise FeatureNotSupported(f"FETCH {cursor.token.text.upper()} is not supported", hint="Cursors only move forward.", position=start)
    named = cursor.peek().kind == "end" or cursor.at(";", 1)
    if not named and (cursor.word("forward") or cursor.word("next")):
        pass
    if cursor.word("all"):
        count = None
    elif cursor.token.kind == "integer":
        count = cursor.integer()
    elif cursor.at("-"):
        raise FeatureNotSupported("FETCH of a negative count is not supported", hint="Cursors only move forward.", position=cursor.position)
    cursor.any_word("from", "in")
    this = name(cursor).name
    timeout: str | int | float | None = None
    if cursor.at_word("with") or cursor.at("("):
        cursor.word("with")
        at = cursor.position
        for key, value in options(cursor):
            if key != "timeout" or not isinstance(value, (str, int, float)):
                raise InvalidParameterValue(f"unrecognized FETCH option: {key}", position=at)
            timeout = value
    return Fetch(this, count, timeout, move)


def close(cursor: Cursor) -> CloseCursor:
    cursor.expect_word("close")
    return CloseCursor(None if cursor.word("all") else name(cursor).name)
