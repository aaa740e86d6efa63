"""Options of a sink's item. The error for an unsupported option names it."""

from __future__ import annotations

from typing import Any

import pytest

from tailgate.embedded.registry import Registry
from tailgate.formats import registry as registering
from tailgate.lake.catalog import Sink
from tailgate.lake.catalog.formats import SinkFormat
from tailgate.lake.errors import TailgateError
from tailgate.sinks.settings import Settings, settings

OPTIONS: dict[str, Any] = {"brokers": "kafka", "topic": "t", "value_format": SinkFormat(type="avro", registry="http://r:8081")}


def item(**options: Any) -> Sink:
    return Sink(1, "s", depends=(2,), **{**OPTIONS, **options})


def test_default_settings() -> None:
    assert settings(item()) == Settings(brokers="kafka:9092", topic="t", registry="http://r:8081", envelope="debezium")


def test_options_of_with_go_where_they_belong() -> None:
    options = {
        "PARTITION_COUNT": 3,
        "replication_factor": "2",
        "retention_ms": 1000,
        "avro_value_fullname": "a.b",
        "compression_type": "LZ4",
        "reuse_topic": True,
    }
    got = settings(item(settings=options, kafka={"protocol": "SASL_SSL", "username": "u"}, envelope="upsert", message_key=(1,)))
    assert (got.partitions, got.replication, got.topic_config) == (3, 2, {"retention.ms": "1000"})
    assert got.client == {"allow.auto.create.topics": "false", "security.protocol": "SASL_SSL", "sasl.username": "u"}
    assert (got.value_name, got.compression, got.envelope, got.key) == ("a.b", "lz4", "upsert", (1,))


@pytest.mark.parametrize(
    ("options", "sqlstate"),
    [
        ({"value_format": SinkFormat(type="thrift", registry="")}, "0A000"),
        ({"key_format": SinkFormat(type="csv")}, "0A000"),
        ({"envelope": "materialize"}, "0A000"),
        ({"envelope": "upsert"}, "22023"),
    ],
)
def test_refused(options: dict[str, Any], sqlstate: str) -> None:
    with pytest.raises(TailgateError) as caught:
        settings(item(**options))
    assert caught.value.sqlstate == sqlstate


def test_a_schema_has_one_id_for_all_subjects(registry: Registry) -> None:
    schema = {"type": "record", "name": "envelope", "fields": [{"name": "a", "type": "int"}]}
    first = registering.register(registry.url, {}, "settings test/value", schema)
    assert registering.register(f"http://127.0.0.1:1,{registry.url}", {}, "settings test/value", schema) == first


def test_a_refused_schema_is_not_retried(registry: Registry) -> None:
    with pytest.raises(TailgateError, match=r'refused the schema of "bad"') as caught:
        registering.register(registry.url, {}, "bad", {"type": "nothing"})
    assert not caught.value.retriable


def test_passwords_are_not_in_errors() -> None:
    with pytest.raises(TailgateError, match=r"schema registry http://127\.0\.0\.1:1 does not answer") as caught:
        registering.register("http://me:secret@127.0.0.1:1", {}, "s", {})
    assert caught.value.retriable
    assert "secret" not in caught.value.message
