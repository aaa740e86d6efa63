"""Parses statements about existing sources, their dead letters, and topics: PAUSE, RESUME, RETRY, DELETE DEAD LETTERS, PRINT."""

from __future__ import annotations

from tailgate.lake.catalog.names import Name
from tailgate.lake.errors import InvalidParameterValue
from tailgate.sql.grammar.names import name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.kafka_statements import DeleteDeadLetters, Pause, Print, RetryDeadLetters
from tailgate.sql.statements.parsers.clauses import relation_name, where
from tailgate.sql.statements.parsers.kafka.brokers import brokers_of


def pause(cursor: Parser) -> Pause:
    """Parses {PAUSE | RESUME} SOURCE name, …"""
    resume = cursor.any_word("pause", "resume") == "resume"
    cursor.expect_word("source")
    sources = cursor.listed(relation_name)
    return Pause(tuple(sources), resume)


def retry(cursor: Parser) -> RetryDeadLetters:
    """Parses RETRY DEAD LETTERS OF source."""
    cursor.expect_word("retry", "dead", "letters", "of")
    return RetryDeadLetters(relation_name(cursor))


def delete_dead_letters(cursor: Parser) -> DeleteDeadLetters:
    """Parses DELETE DEAD LETTERS OF source [WHERE condition]."""
    cursor.expect_word("delete", "dead", "letters", "of")
    return DeleteDeadLetters(relation_name(cursor), where(cursor))


def print_(cursor: Parser) -> Print:
    """Parses PRINT 'topic' [FROM …] [FROM BEGINNING] [{INTERVAL | SAMPLE} n] [LIMIT n]."""
    cursor.expect_word("print")
    topic = cursor.string() if cursor.token.kind == "string" else name(cursor).name
    brokers = ""
    connection: Name | None = None
    if cursor.accept_word("from", "broker"):
        brokers = brokers_of(cursor)
    elif cursor.accept_word("from", "connection"):
        connection = relation_name(cursor)
    beginning = cursor.accept_word("from", "beginning")
    interval, token = 1, cursor.token
    if cursor.accept_word("interval") or cursor.accept_word("sample"):
        token, interval = cursor.token, cursor.integer()
        if interval < 1:
            raise InvalidParameterValue("the interval of PRINT must be at least 1", position=token.position)
    return Print(topic, brokers, beginning, cursor.integer() if cursor.accept_word("limit") else None, connection, interval)
