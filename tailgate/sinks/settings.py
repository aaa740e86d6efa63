"""The settings of a sink, from its item in the catalog. Unsupported options are refused by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from tailgate.formats.events.avro import KEY_NAME, VALUE_NAME
from tailgate.formats.ksqldb.serde import Serde
from tailgate.lake.catalog import Sink
from tailgate.lake.catalog.formats import ConnectionSettings, SinkFormat
from tailgate.lake.catalog.secrets import without_secrets
from tailgate.lake.clients import librdkafka
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue
from tailgate.sinks.envelope import Envelope
from tailgate.sinks.headers import Headers

DEFAULT_PORT = 9092

FORMATS = ("avro", "json", "text", "protobuf", "ksqldb")
ENVELOPES = ("debezium", "upsert", "none")
TOPIC_PREFIX = "topic."  # prefix of WITH options that are settings of the topic: topic.cleanup.policy
LEVEL = "compatibility_level"  # for both subjects, or for one with the prefix `key_` or `value_`
TOPIC_CONFIG = {"retention_ms": "retention.ms", "retention_bytes": "retention.bytes"}


Opened = Callable[[ConnectionSettings], dict[str, str]]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a sink.

    - `client`: settings of librdkafka for the connection.
    - `registry_access`: settings of `lake.clients`.
    - `compatibility`: level by 'key' and 'value', where one is set.
    - `value_serde`, `key_serde`: ksqlDB's formats.
    - `partitions`, `replication`: for creating the topic; -1 means the broker's default.
    """

    brokers: str
    topic: str
    registry: str
    envelope: Envelope
    registry_access: Mapping[str, str] = field(default_factory=dict, repr=False)
    key: tuple[int, ...] | None = None
    snapshot: bool = True
    value_name: str = VALUE_NAME
    key_name: str = KEY_NAME
    partitions: int = -1
    replication: int = -1
    topic_config: Mapping[str, str] = field(default_factory=dict)
    client: Mapping[str, str] = field(default_factory=partial(librdkafka, {}), repr=False)
    compression: str = "none"
    value_format: str = "avro"
    key_format: str = "avro"
    value_serde: Serde | None = None
    key_serde: Serde | None = None
    compatibility: Mapping[str, str] = field(default_factory=dict)
    consistency_topic: str = ""
    headers: int | None = None
    constant_headers: Headers = ()


def settings(item: Sink, opened: Opened = without_secrets) -> Settings:
    """Returns the settings of a sink. `opened` decrypts the item's connection settings.

    Raises 0A000 for unsupported formats and envelopes, and 22023 for invalid combinations.
    """
    value = item.value_format
    key_format = item.key_format or value
    for format in (value, key_format):
        if format.type not in FORMATS:
            raise FeatureNotSupported(
                f"sinks of format {str(format.type).upper()} are not supported", hint="Use FORMAT AVRO, PROTOBUF, JSON or TEXT."
            )
    envelope = item.envelope
    if envelope not in ENVELOPES:
        raise FeatureNotSupported(f"sinks of envelope {str(envelope).upper()} are not supported", hint="Use ENVELOPE DEBEZIUM or UPSERT.")
    key = item.message_key
    if envelope == "upsert" and key is None:
        raise InvalidParameterValue("ENVELOPE UPSERT needs a key", hint="Add KEY (column, ...) to the sink.")
    options = {str(name).lower(): option for name, option in item.settings.items()}
    return Settings(
        brokers=brokers(item.brokers),
        topic=item.topic,
        value_format=value.type,
        key_format=key_format.type,
        value_serde=_serde(value),
        key_serde=_serde(key_format),
        registry=value.registry or key_format.registry or "",
        registry_access=opened(value.access or key_format.access or {}),
        compatibility={p: str(level).upper() for p in ("key", "value") if (level := options.get(f"{p}_{LEVEL}", options.get(LEVEL)))},
        consistency_topic=str(options.get("consistency_topic", "")),
        envelope=envelope,
        headers=item.headers,
        constant_headers=tuple((name, value.encode()) for name, value in item.constant_headers),
        key=key,
        snapshot=item.snapshot,
        value_name=str(options.get("avro_value_fullname", VALUE_NAME)),
        key_name=str(options.get("avro_key_fullname", KEY_NAME)),
        partitions=int(options.get("partition_count", -1)),
        replication=int(options.get("replication_factor", -1)),
        topic_config={
            TOPIC_CONFIG.get(name, name.removeprefix(TOPIC_PREFIX)): str(option)
            for name, option in options.items()
            if name in TOPIC_CONFIG or name.startswith(TOPIC_PREFIX)
        },
        client=librdkafka(opened(item.kafka)),
        compression=str(options.get("compression_type", options.get("compression", "none"))).lower(),
    )


def _serde(format: SinkFormat) -> Serde | None:
    if format.type != "ksqldb":
        return None
    return Serde(format.name, format.delimiter, format.wrapped, format.schema_name, format.nullable, format.schema)


def brokers(text: str) -> str:
    """Returns the addresses, each with a port.

    >>> brokers("kafka, [::1]:19092 ,b:1")
    'kafka:9092,[::1]:19092,b:1'
    """
    addresses = (address.strip() for address in text.split(","))
    return ",".join(a if a.rpartition(":")[2].isdigit() and a.rpartition(":")[0] else f"{a}:{DEFAULT_PORT}" for a in addresses)
