"""Parses statements about secrets, and about connections to Kafka and to a schema registry.

Source: Materialize, "CREATE SECRET", "ALTER SECRET", "CREATE CONNECTION", "VALIDATE CONNECTION".
"""

from __future__ import annotations

from typing import Literal

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue
from tailgate.sql.grammar.parser import Parser
from tailgate.sql.statements.kafka_statements import AlterSecret, CreateConnection, CreateSecret, ValidateConnection
from tailgate.sql.statements.parsers.clauses import if_not_exists, options, relation_name
from tailgate.sql.statements.values import Options, option

OTHERS = ("postgres", "mysql", "sql", "ssh", "aws", "iceberg")


def create_secret(cursor: Parser) -> CreateSecret:
    """Parses the rest of CREATE SECRET."""
    absent = if_not_exists(cursor)
    this = relation_name(cursor)
    cursor.expect_word("as")
    return CreateSecret(this, *_value(cursor), absent)


def alter_secret(cursor: Parser) -> AlterSecret | None:
    """Parses SECRET … AS 'value', after ALTER. Returns None for other forms of ALTER."""
    start = cursor.index
    if cursor.accept_word("secret"):
        exists = cursor.accept_word("if", "exists")
        this = relation_name(cursor)
        if cursor.accept_word("as"):
            return AlterSecret(this, _value(cursor)[0], exists)
    cursor.index = start
    return None


def _value(cursor: Parser) -> tuple[str, tuple[int, int]]:
    """Parses the value of a secret. Returns it with its start and end in the text, quotes included."""
    token = cursor.token
    if token.kind == "word":
        raise FeatureNotSupported(
            "an expression as the value of a secret is not supported", hint="Write the value itself, in quotes.", position=token.position
        )
    value = cursor.string()
    if "\0" in value or not value:
        raise InvalidParameterValue("the value of a secret must not be empty", position=token.position)
    return value, (token.position, cursor.tokens[cursor.index - 1].end)


def create_connection(cursor: Parser) -> CreateConnection:
    """Parses the rest of CREATE CONNECTION."""
    absent = if_not_exists(cursor)
    this = relation_name(cursor)
    if cursor.any_word("to", "for") is None:
        raise cursor.error()
    at = cursor.position
    if (other := cursor.any_word(*OTHERS)) is not None:
        hint = "Connections are TO KAFKA and TO CONFLUENT SCHEMA REGISTRY."
        raise FeatureNotSupported(f"CREATE CONNECTION TO {other.upper()} is not supported", hint=hint, position=at)
    kind: Literal["kafka", "schema registry"] = "kafka"
    if not cursor.accept_word("kafka"):
        cursor.expect_word("confluent", "schema", "registry")
        kind = "schema registry"
    settings = with_underscores(options(cursor))
    further: Options = ()
    if cursor.accept_word("with"):
        further = options(cursor)
    for name, _ in further:
        if name != "validate":
            raise FeatureNotSupported(f'option "{name}" of a connection is not supported', position=at)
    return CreateConnection(this, kind, settings, bool(option(further, "validate", True)), absent)


def validate(cursor: Parser) -> ValidateConnection:
    """Parses VALIDATE CONNECTION name."""
    cursor.expect_word("validate", "connection")
    return ValidateConnection(relation_name(cursor))


def with_underscores(settings: Options) -> Options:
    """Replaces blanks in the names of options by `_`, as in the options of WITH.

    >>> with_underscores((("sasl username", "ann"),))
    (('sasl_username', 'ann'),)
    """
    return tuple((name.replace(" ", "_"), value) for name, value in settings)
