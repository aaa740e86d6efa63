"""ASSERT TOPIC and ASSERT SCHEMA."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tailgate.engine.ddl.ksqldb import Endpoints
from tailgate.engine.runtime.control.turns import check_canceled
from tailgate.engine.runtime.kafka import assertions
from tailgate.engine.runtime.kafka.assertions import Assertions
from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.secrets import Settings, Vault
from tailgate.lake.errors import QueryCanceled, TailgateError
from tailgate.sql.statements import AssertKafka, parse


class Registry:
    """A registry with one schema."""

    def has(self, url: str, subject: str | None, id: int | None, access: Settings) -> bool:
        assert not access
        return subject in (None, "s-value") and id in (None, 4)


def check(text: str, monkeypatch: pytest.MonkeyPatch, *, gone: bool = False) -> None:
    monkeypatch.setattr(assertions.kafka, "listed", lambda brokers, options: [("T", 2, 1)])
    statement = parse(text)
    assert isinstance(statement, AssertKafka)
    client: Any = SimpleNamespace(gone=lambda: gone)
    checks = Assertions(Endpoints("kafka:9092", "http://registry"), Registry(), Catalog, Vault())  # type: ignore[arg-type]
    checks.check(statement.statement, partial(check_canceled, client))


@pytest.mark.parametrize(
    "text",
    [
        "ASSERT TOPIC t",
        "ASSERT TOPIC 'T' WITH (partitions = 2, replicas = 1) TIMEOUT 2 SECONDS",
        "ASSERT NOT EXISTS TOPIC 't'",
        "ASSERT SCHEMA SUBJECT 's-value'",
        "ASSERT SCHEMA ID 4",
        "ASSERT NOT EXISTS SCHEMA SUBJECT 's-value' ID 5",
    ],
)
def test_true(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(text, monkeypatch)


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("ASSERT TOPIC u", "42704", "Topic U does not exist"),
        ("ASSERT NOT EXISTS TOPIC t", "42704", "Topic T exists"),
        ("ASSERT TOPIC t WITH (partitions = 3)", "42704", "Mismatched configuration for topic T: For config PARTITIONS, expected 3 got 2"),
        ("ASSERT TOPIC t WITH (color = 3)", "22023", "invalid configuration of a topic: COLOR = 3"),
        ("ASSERT SCHEMA SUBJECT 's-value' ID 5", "42704", "Schema with subject name s-value id 5 does not exist"),
        ("ASSERT NOT EXISTS SCHEMA ID 4", "42704", "Schema with id 4 exists"),
        ("ASSERT TOPIC t TIMEOUT 1 DAY", "22023", "a TIMEOUT has at most 600 seconds"),
    ],
)
def test_false(text: str, sqlstate: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TailgateError) as error:
        check(text if "TIMEOUT" in text else f"{text} TIMEOUT 1 MILLISECOND", monkeypatch)
    assert (error.value.sqlstate, error.value.message) == (sqlstate, message)


def test_a_canceled_statement_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(QueryCanceled):
        check("ASSERT TOPIC u TIMEOUT 5 MINUTES", monkeypatch, gone=True)
