"""TAIL, SUBSCRIBE, cursors, COPY … TO.

Source: Materialize 0.25, "TAIL" (and its spellings since 0.5), "FETCH", "COPY TO"; 0.27, "SUBSCRIBE"; PostgreSQL 15 for the rest.
"""

from __future__ import annotations

from typing import Literal

from sqlglot import exp

from lake.errors import FeatureNotSupported, InvalidParameterValue
from sql.grammar import queries
from sql.grammar.names import name, relation
from sql.statements.pieces import options, query, relation_name, select, time
from sql.statements.refused import refuse
from sql.statements.values import CloseCursor, CopyTo, DeclareCursor, Fetch, Name, Options, QueryText, Select, Tail
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


def copy(cursor: Cursor) -> CopyTo:
    """COPY {(statement) | relation [(columns)]} TO STDOUT [[WITH] (options)]; the older words after it too."""
    start = cursor.position
    cursor.expect_word("copy")
    statement: Select | Tail
    if cursor.sign("("):
        statement = read(cursor)
        cursor.expect(")")
    else:
        cursor.word("binary")
        cursor.word("into")
        begin = cursor.position
        tree: exp.Select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=relation(cursor)))
        end = cursor.row[cursor.index - 1].end
        text = "TABLE " + cursor.text[begin:end]
        if cursor.at("("):
            cursor.advance()
            columns = [exp.Column(this=name(cursor))]
            while cursor.sign(","):
                columns.append(exp.Column(this=name(cursor)))
            cursor.expect(")")
            tree.set("expressions", columns)
            text = f"SELECT {', '.join(c.sql('postgres') for c in columns)} FROM {cursor.text[begin:end]}"
        statement = Select(QueryText(text, begin, tree))
    if cursor.at_word("from"):
        raise FeatureNotSupported("COPY … FROM is not supported", position=start)
    cursor.expect_word("to")
    at = cursor.position
    if cursor.token.kind == "string" or cursor.word("program"):
        raise FeatureNotSupported("COPY … TO a file is not supported", hint="Use COPY … TO STDOUT, or \\copy in psql.", position=at)
    if cursor.any_word("stdout", "stdin") is None:
        raise cursor.error()
    found: Options = ()
    cursor.word("with")
    if cursor.at("("):
        found = options(cursor)
    else:
        while (word := cursor.any_word("csv", "binary", "header", "delimiter", "null", "quote", "escape")) is not None:
            if word in ("csv", "binary"):
                found += (("format", word),)
            elif word == "header":
                found += (("header", True),)
            else:
                cursor.word("as")
                found += ((word, cursor.string()),)
    format: Literal["text", "csv", "binary"] = "text"
    for key, value in found:
        if key == "format":
            match str(value).lower():
                case "text" | "csv" | "binary" as word:
                    format = word
                case other:
                    raise InvalidParameterValue(f'COPY format "{other}" not recognized', position=at)
    return CopyTo(statement, format, tuple(o for o in found if o[0] != "format"))
