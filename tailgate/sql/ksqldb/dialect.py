"""The dialect of a statement: PostgreSQL's or ksqlDB's.

A bare SELECT is always PostgreSQL's. With the dialect `auto`, the words of a statement decide:

    CREATE STREAM, CREATE SOURCE {STREAM | TABLE}, CREATE … CONNECTOR, DROP STREAM      ksqlDB
    DROP TABLE … DELETE TOPIC                                                           ksqlDB
    CREATE TYPE, except AS ENUM, AS RANGE and AS (…); DROP TYPE `name`                  ksqlDB
    CREATE OR REPLACE TABLE, CREATE TABLE … WITH (kafka_topic = …)                      ksqlDB
    LIST, DESCRIBE, TERMINATE, DEFINE, UNDEFINE, UNSET, ASSERT, RUN SCRIPT              ksqlDB
    SHOW STREAMS, QUERIES, CONNECTORS, PROPERTIES, TYPES, VARIABLES, ALL TOPICS,        ksqlDB
      TOPICS EXTENDED
    SET 'a.b' = 'c', EMIT CHANGES, EMIT FINAL                                           ksqlDB
    PAUSE and RESUME, except of a SOURCE; EXPLAIN CSAS_…, EXPLAIN CTAS_…                ksqlDB
    EXPLAIN of a SELECT, CREATE or INSERT that is ksqlDB's                              ksqlDB
    everything else                                                                     PostgreSQL

INSERT, and CREATE TABLE … AS without such words, are ksqlDB's if they name its streams or tables: the
gateway decides that by the catalog. With the dialect `ksqldb`, all statements that ksqlDB's grammar knows are ksqlDB's. With
`ksqldb_http`, the dialect of the HTTP API, a SELECT without EMIT is ksqlDB's, too: a pull query.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

from tailgate.sql.ksqldb.parser import LISTED, PARSERS
from tailgate.sql.ksqldb.tokens import tokens
from tailgate.sql.lexer.tokens import Cursor, Token

Dialect: TypeAlias = Literal["auto", "postgresql", "ksqldb", "ksqldb_http"]
DIALECTS: tuple[Dialect, ...] = ("auto", "postgresql", "ksqldb", "ksqldb_http")
HTTP: Dialect = "ksqldb_http"  # results have the forms of ksqlDB's HTTP API
SETTING = "tailgate.dialect"

FIRST = ("list", "describe", "terminate", "define", "undefine", "unset", "assert")
SHOWN = ("streams", "queries", "connectors", "properties", "types", "variables", "connector")
# what WITH (…) of CREATE TABLE begins with, and PostgreSQL's does not
PROPERTIES = (
    "kafka_topic",
    "format",
    "key_format",
    "value_format",
    "partitions",
    "replicas",
    "retention_ms",
    "timestamp",
    "timestamp_format",
    "value_delimiter",
    "wrap_single_value",
)
STRUCTURES = ("map", "struct")
QUERY_IDS = ("csas_", "ctas_", "insertquery_")  # what the ids of persistent queries begin with
EXPLAINED = ("select", "create", "insert")  # the first words of statements that EXPLAIN may be followed by
TYPES_OF_POSTGRESQL = ("enum", "range")


def is_ksqldb(text: str, dialect: Dialect = "auto") -> bool:
    """Returns whether a statement is ksqlDB's.

    >>> is_ksqldb("CREATE STREAM s (i INT) WITH (kafka_topic = 't')"), is_ksqldb("SELECT * FROM s")
    (True, False)
    """
    if dialect == "postgresql":
        return False
    row = tokens(text)
    cursor = Cursor(text, row)
    if cursor.at_word("explain") and cursor.peek().value in EXPLAINED:
        return is_ksqldb(text[cursor.peek().position :], dialect)
    if _emits(row):
        return True
    if cursor.at_word("select"):
        return dialect == HTTP
    if cursor.at_word("print"):
        return False
    if dialect in ("ksqldb", HTTP):
        return _known(cursor)
    return _marked(cursor, row)


def _emits(row: Sequence[Token]) -> bool:
    """Returns whether a statement has EMIT CHANGES or EMIT FINAL and begins as one of ksqlDB that may have it."""
    words = [t.value if t.kind == "word" else "" for t in row]
    if not words or words[0] not in ("select", "create", "insert"):
        return False
    return any(a == "emit" and b in ("changes", "final") for a, b in pairwise(words))


def _known(cursor: Cursor) -> bool:
    """Returns whether ksqlDB's grammar has statements with these first words."""
    if cursor.at_word("show"):
        return cursor.peek().value in (*LISTED, "all", "source", "sink", "connector")
    if cursor.at_word("set"):
        return cursor.peek().kind == "string"
    if cursor.at_word("alter", "system"):
        return cursor.peek(2).kind == "string"
    if cursor.at_word("drop") or cursor.at_word("alter"):
        return cursor.peek().value in ("stream", "table", "type", "connector")
    if cursor.at_word("create"):
        return _creates(cursor, ("stream", "table", "type"))
    if cursor.at_word("explain"):
        return cursor.peek(2).kind == "end" or cursor.at(";", 2)
    return any(cursor.at_word(*words) for words in PARSERS)


def _marked(cursor: Cursor, row: Sequence[Token]) -> bool:
    """Returns whether the words mark a statement as ksqlDB's."""
    second = cursor.peek()
    match cursor.tokens[0].value if cursor.tokens[0].kind == "word" else "":
        case "create":
            return _creates(cursor, ("stream",)) or _creates_type(cursor) or _creates_table(cursor, row)
        case "insert":  # also INSERT INTO name WITH (query_id = …)
            return _constructs(row) or (cursor.peek(3).value == "with" and cursor.peek(4).value == "(")
        case "drop" | "alter":
            if second.kind == "word" and second.value == "type":
                return any(token.text.startswith("`") for token in row)  # PostgreSQL has no such quotes
            if cursor.at_word("alter", "system"):
                return cursor.peek(2).kind == "string"
            deletes = any(a.value == "delete" and b.value == "topic" for a, b in pairwise(row))
            return second.kind == "word" and (second.value in ("stream", "connector") or (deletes and second.value == "table"))
        case "show":
            topics = cursor.at_word("show", "all", "topics") or cursor.at_word("show", "topics", "extended")
            return second.value in SHOWN or topics or cursor.peek(2).value == "connectors"
        case "set":
            return second.kind == "string"
        case "pause" | "resume":
            return second.kind in ("word", "quoted") and second.value != "source"
        case "explain":
            return second.kind == "word" and second.value.startswith(QUERY_IDS) and cursor.peek(2).value in ("", ";")
        case "run":
            return second.value == "script"
        case word:
            # a single word is a typo or an incomplete statement
            return word in FIRST and second.kind != "end"


def _constructs(row: Sequence[Token]) -> bool:
    """Returns whether a statement contains MAP(key := … or STRUCT(name := …."""
    places = zip(row, row[1:], row[3:], strict=False)
    return any(a.kind == "word" and a.value in STRUCTURES and b.value == "(" and c.value == ":=" for a, b, c in places)


def _creates(cursor: Cursor, types: tuple[str, ...]) -> bool:
    """Returns whether the words are CREATE [OR REPLACE] [SOURCE] {STREAM | TABLE}, or CREATE … CONNECTOR."""
    at = 3 if cursor.at_word("create", "or", "replace") else 1
    if cursor.peek(at).value in ("source", "sink") and cursor.peek(at + 1).value == "connector":
        return True
    if cursor.peek(at).value == "source" and cursor.peek(at + 1).value in ("stream", "table"):
        # a source of Tailgate may have this name: CREATE SOURCE stream FROM KAFKA …
        after = cursor.peek(at + 2)
        return after.kind in ("word", "quoted") and after.value not in ("from", "in")
    return cursor.peek(at).kind == "word" and cursor.peek(at).value in types


def _creates_type(cursor: Cursor) -> bool:
    """Returns whether the words are CREATE TYPE name AS, followed by a type of ksqlDB."""
    at = 5 if cursor.at_word("create", "type", "if", "not", "exists") else 2
    if not cursor.at_word("create", "type") or cursor.peek(at + 1).value != "as":
        return False
    return cursor.peek(at + 2).kind == "word" and cursor.peek(at + 2).value not in TYPES_OF_POSTGRESQL


def _creates_table(cursor: Cursor, row: Sequence[Token]) -> bool:
    """Returns whether the words are CREATE OR REPLACE TABLE, or CREATE TABLE with a property of ksqlDB in its WITH.

    CREATE TABLE … AS without EMIT is PostgreSQL's.
    """
    if cursor.at_word("create", "or", "replace", "table"):
        return True
    if not cursor.at_word("create", "table"):
        return False
    return any(a.value == "with" and b.value == "(" and c.value in PROPERTIES for a, b, c in zip(row, row[1:], row[2:], strict=False))
