"""Parses statements about durable subscriptions: CREATE SUBSCRIPTION … FROM, ACKNOWLEDGE.

FETCH … FROM SUBSCRIPTION is in `reading`. PostgreSQL's CREATE SUBSCRIPTION … CONNECTION, for logical
replication, is not supported.
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue
from tailgate.sql.grammar.names import is_name
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.definitions import CreateSubscription
from tailgate.sql.statements.parsers.clauses import boolean, if_not_exists, options, relation_name, time
from tailgate.sql.statements.queries import Acknowledge

CONNECTION = "Here a subscription is FROM a relation. Another database's changes come by Kafka: CREATE SOURCE … ENVELOPE DEBEZIUM."


def create_subscription(cursor: Parser) -> CreateSubscription:
    """Parses [IF NOT EXISTS] name FROM relation [WITH (options)], after CREATE SUBSCRIPTION.

    Options: retention = 'interval', snapshot = bool, progress = bool.
    """
    start = cursor.position
    absent = if_not_exists(cursor)
    this = relation_name(cursor)
    if cursor.at_word("connection"):
        raise FeatureNotSupported("CREATE SUBSCRIPTION … CONNECTION is not supported", hint=CONNECTION, position=start)
    cursor.expect_word("from")
    relation = relation_name(cursor)
    statement = CreateSubscription(this, relation, if_not_exists=absent)
    if not cursor.at_word("with"):
        return statement
    cursor.advance()
    at = cursor.position
    for key, value in options(cursor):
        match key:
            case "retention" if isinstance(value, str):
                statement = replace(statement, retention=value)
            case "snapshot":
                statement = replace(statement, snapshot=boolean(value, key, at))
            case "progress":
                statement = replace(statement, progress=boolean(value, key, at))
            case "retention":
                raise InvalidParameterValue("invalid RETENTION: must be an interval", hint="Write it as '1 day'.", position=at)
            case _:
                raise InvalidParameterValue(f"unrecognized CREATE SUBSCRIPTION option: {key}", position=at)
    return statement


def at_subscription(cursor: Parser) -> bool:
    """Returns whether SUBSCRIPTION name follows, and not a cursor that is named subscription."""
    return cursor.at_word("subscription") and is_name(cursor.peek()) and not cursor.at_word("subscription", "with")


def acknowledge(cursor: Parser) -> Acknowledge:
    """Parses ACKNOWLEDGE name UP TO time."""
    cursor.expect_word("acknowledge")
    this = relation_name(cursor)
    cursor.expect_word("up", "to")
    return Acknowledge(this, time(cursor))
