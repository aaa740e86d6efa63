"""Tests secrets and connections over the wire: who may use them, and what each role sees of them."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

from tests.wire.live import Live
from tests.wire.statements import Statements

WORD = "unsaid, 'ünusual'"
KAFKA = "to kafka (broker 'k', sasl mechanisms 'PLAIN', sasl username 'ann', sasl password secret word)"
TOPIC = "from kafka connection far (topic 't') format text"


@pytest.fixture
def operator(live: Live, statements: Statements) -> Iterator[psycopg.Connection]:
    """Connects as the superuser and creates a secret and a connection. bob may create objects."""
    with psycopg.connect(live.dsn, autocommit=True) as connection:
        connection.execute("create role bob login")
        connection.execute("grant create on schema public to bob")
        connection.execute("create secret word as '" + WORD.replace("'", "''") + "'")
        connection.execute(f"create connection far {KAFKA}")
        yield connection


@pytest.fixture
def bob(live: Live, operator: psycopg.Connection) -> Iterator[psycopg.Connection]:
    with psycopg.connect(host=live.host, port=live.port, user="bob", dbname="shop", autocommit=True) as connection:
        yield connection


def test_secrets_and_connections_need_usage(operator: psycopg.Connection, bob: psycopg.Connection) -> None:
    for statement, what in {
        f"create connection own {KAFKA}": "secret word",
        f"create source s {TOPIC}": "connection far",
        "validate connection far": "connection far",
        "create source s from kafka broker 'k' topic 't' with (sasl_password = secret word) format text": "secret word",
        "create source s from kafka broker 'k' topic 't' format avro using confluent schema registry connection far": "connection far",
        "create source s from kafka broker 'k' topic 't' format protobuf using confluent schema registry connection far": "connection far",
    }.items():
        with pytest.raises(errors.InsufficientPrivilege, match=f"permission denied for {what}"):
            bob.execute(statement)
    for statement in (
        "alter secret word as 'mine'",
        "drop secret word",
        "grant usage on secret word to bob",
        "alter connection far rename to x",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            bob.execute(statement)
    operator.execute("grant usage on secret word to bob")
    bob.execute(f"create connection own {KAFKA}")
    operator.execute("revoke usage on secret word from bob")
    with pytest.raises(errors.InsufficientPrivilege):
        bob.execute(f"create connection again {KAFKA}")
    bob.execute("create secret own_word as 'x'")
    bob.execute("drop secret own_word")


def test_secrets_are_never_shown(operator: psycopg.Connection, live: Live) -> None:
    with psycopg.connect(host=live.host, port=live.port, user="tailgate", dbname="shop", autocommit=True) as other:
        operator.execute("create secret later as 'unsaid too'")
        assert other.execute("select query from pg_stat_activity where query ~ '^create secret later'").fetchall() == [
            ("create secret later as '********'",)
        ]
    statements = ["show secrets", "show connections", "show create connection far", "show objects", "select * from tailgate.secrets"]
    answers = str([operator.execute(sql).fetchall() for sql in statements])
    assert "unsaid" not in answers and "sealed" not in answers and "secret word" in answers
    assert all("unsaid" not in item.sql for item in live.model.lake.catalog().items.values())


def test_lists_are_relations(operator: psycopg.Connection) -> None:
    assert operator.execute("select * from tailgate.connections").fetchall() == [("public", "far", "kafka")]
    assert operator.execute("select c.name, s.name from tailgate.connections c cross join tailgate.secrets s").fetchall() == [
        ("far", "word")
    ]
    cursor = operator.execute("select schema, name, status, lag, dead_letters from tailgate.sources where lag > 0 order by lag desc")
    assert [c.name for c in cursor.description or ()] == ["schema", "name", "status", "lag", "dead_letters"] and not cursor.fetchall()
    with pytest.raises(errors.UndefinedTable):
        operator.execute("select * from tailgate.nothing")
