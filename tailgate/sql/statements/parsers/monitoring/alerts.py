"""Parses CREATE ALERT: an alert for each row of a query, or for an objective that is violated; and SILENCE.

    CREATE ALERT late AS SELECT id FROM orders WHERE due < now() FOR '10 s' SEVERITY 'page' NOTIFY WEBHOOK 'https://…'

The query ends before FOR 'interval', SEVERITY 'text' and NOTIFY.
"""

from __future__ import annotations

from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.definitions import AlertTopic, CreateAlert, Silence
from tailgate.sql.statements.parsers.clauses import if_not_exists, query, relation_name, time, with_options
from tailgate.sql.statements.parsers.kafka.sources_and_sinks import kafka_topic
from tailgate.sql.statements.values import Options, QueryText

TARGETS = ("webhook", "kafka", "command")


def create_alert(cursor: Parser) -> CreateAlert:
    """Parses [OR REPLACE] ALERT [IF NOT EXISTS] name {ON objective | AS query} …, after CREATE."""
    replace = cursor.accept_word("or", "replace")
    cursor.expect_word("alert")
    absent = not replace and if_not_exists(cursor)
    this = relation_name(cursor)
    objective = relation_name(cursor) if cursor.accept_word("on") else None
    text = None
    if objective is None:
        cursor.expect_word("as")
        text = _query(cursor)
    hold = cursor.string() if cursor.accept_word("for") else None
    severity = cursor.string() if cursor.accept_word("severity") else None
    targets = cursor.listed(_target) if cursor.accept_word("notify") else []
    webhooks = tuple(target for target in targets if isinstance(target, tuple))
    commands = tuple(target for target in targets if isinstance(target, str))
    topics = tuple(target for target in targets if isinstance(target, AlertTopic))
    return CreateAlert(this, objective, text, hold, severity, webhooks, commands, topics, absent, replace)


def silence(cursor: Parser) -> Silence:
    """Parses SILENCE alert UNTIL time."""
    cursor.expect_word("silence")
    this = relation_name(cursor)
    cursor.expect_word("until")
    return Silence(this, cursor.string() if cursor.token.kind == "string" else time(cursor))


def _query(cursor: Parser) -> QueryText:
    """Parses the query, up to the first clause of the alert or a semicolon."""
    end = cursor.index
    depth = 0
    while cursor.tokens[end].kind != "end" and not (depth == 0 and _at_end(cursor, end)):
        token = cursor.tokens[end]
        depth += (token.kind == "operator") * ((token.value in ("(", "[")) - (token.value in (")", "]")))
        end += 1
    part = Parser(cursor.text[: cursor.tokens[end - 1].end], index=cursor.index)
    text = query(part)
    part.finish()
    cursor.index = end
    return text


def _at_end(cursor: Parser, index: int) -> bool:
    token, following = cursor.tokens[index], cursor.tokens[min(index + 1, len(cursor.tokens) - 1)]
    if token.kind != "word":
        return token.kind == "operator" and token.value == ";"
    return (token.value in ("for", "severity") and following.kind == "string") or (token.value == "notify" and following.value in TARGETS)


def _target(cursor: Parser) -> tuple[str, Options] | str | AlertTopic:
    """Parses WEBHOOK 'url' [WITH (options)], COMMAND 'path', or KAFKA with a topic as in CREATE SINK."""
    if cursor.accept_word("command"):
        return cursor.string()
    if cursor.accept_word("webhook"):
        return cursor.string(), with_options(cursor)[0]
    place = kafka_topic(cursor, {})
    return AlertTopic(place.topic, place.brokers, place.connection)
