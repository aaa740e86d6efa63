"""Properties of a session that are defaults of WITH."""

from __future__ import annotations

import pytest

from tailgate.sql.ksqldb.declared.defaults import KEY_FORMAT, TOPIC_PREFIX, VALUE_FORMAT, WRAPS, with_defaults
from tailgate.sql.ksqldb.parser import parse
from tailgate.sql.ksqldb.statements import CreateAs, CreateItem

JSON = {KEY_FORMAT: "json", VALUE_FORMAT: "avro", WRAPS: "off"}
ONE, TWO = "CREATE STREAM s (k INT KEY, n INT)", "CREATE STREAM s (n INT, m INT)"


@pytest.mark.parametrize(
    ("text", "settings", "properties"),
    [
        (f"{ONE} WITH (kafka_topic = 't')", {}, {}),
        (f"{ONE} WITH (kafka_topic = 't')", JSON, {"KEY_FORMAT": "JSON", "VALUE_FORMAT": "AVRO", "WRAP_SINGLE_VALUE": False}),
        (f"{TWO} WITH (kafka_topic = 't')", JSON, {"KEY_FORMAT": "JSON", "VALUE_FORMAT": "AVRO"}),
        (f"{ONE} WITH (kafka_topic = 't', format = 'delimited')", JSON, {"FORMAT": "delimited"}),
        (f"{ONE} WITH (kafka_topic = 't', value_format = 'protobuf')", JSON, {"KEY_FORMAT": "JSON", "VALUE_FORMAT": "protobuf"}),
        (
            f"{ONE} WITH (kafka_topic = 't', format = 'json', wrap_single_value = true)",
            JSON,
            {"FORMAT": "json", "WRAP_SINGLE_VALUE": True},
        ),
        (f"{ONE} WITH (kafka_topic = 't', format = 'json')", JSON, {"FORMAT": "json", "WRAP_SINGLE_VALUE": False}),
    ],
)
def test_declarations(text: str, settings: dict[str, str], properties: dict[str, object]) -> None:
    statement = parse(text)
    assert isinstance(statement, CreateItem)
    assert dict(with_defaults(statement, settings).properties) == {"KAFKA_TOPIC": "t", **properties}


def test_queries_have_the_formats_of_their_source() -> None:
    statement = parse("CREATE STREAM o AS SELECT * FROM s")
    assert isinstance(statement, CreateAs)
    complete = with_defaults(statement, JSON)
    assert isinstance(complete, CreateAs)
    assert (complete.properties, complete.wraps, statement.wraps) == ((), False, True)
    assert (complete.key_format, statement.key_format) == ("JSON", "KAFKA")


@pytest.mark.parametrize(
    ("properties", "topic"), [("", "mine-O"), (" WITH (value_format = 'json')", "mine-O"), (" WITH (kafka_topic = 't')", "t")]
)
def test_the_prefix_of_topics_of_queries(properties: str, topic: str) -> None:
    settings = {TOPIC_PREFIX: "mine-"}
    statement = parse(f"CREATE STREAM o{properties} AS SELECT * FROM s")
    assert isinstance(statement, CreateAs)
    assert dict(with_defaults(statement, settings).properties)["KAFKA_TOPIC"] == topic
    declaration = parse(f"{ONE} WITH (value_format = 'json')")
    assert isinstance(declaration, CreateItem)
    assert "KAFKA_TOPIC" not in dict(with_defaults(declaration, settings).properties)
