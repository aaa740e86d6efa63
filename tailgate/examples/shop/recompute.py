"""Recomputes the view with DuckDB from all messages in the topics, and folds the sink's topic.

Shares no code with the engine: Kafka's client reads the messages, and fastavro decodes Avro.
"""

from __future__ import annotations

import io
import json
import struct
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient

from tailgate.examples.shop.load import PAGEVIEWS, USERS

READ_S = 60.0  # longest silence before the end of a topic

Rows = Counter[tuple[Any, ...]]

VIEW = """
SELECT u.is_vip, to_json(p.channel)::varchar, date_trunc('hour', to_timestamp(p.received_at)), count(*)
FROM users u JOIN pageviews p ON p.user_id = u.id GROUP BY ALL
"""


class Topics:
    """The messages of a Kafka cluster with a schema registry."""

    def __init__(self, kafka: str, registry: str) -> None:
        self._kafka = kafka
        self._registry = registry
        self._schemas: dict[int, Any] = {}

    def messages(self, topic: str) -> Iterator[Message]:
        """Yields the committed messages of a topic, each partition in order."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._kafka,
                "group.id": "recompute",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "log_level": 2,
            }
        )
        try:
            partitions = consumer.list_topics(topic, timeout=READ_S).topics[topic].partitions
            left = set(partitions)
            consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
            deadline = time.monotonic() + READ_S
            while left:
                for message in consumer.consume(10_000, timeout=0.5):
                    deadline = time.monotonic() + READ_S
                    error = message.error()
                    if error is None:
                        yield message
                    elif error.code() == KafkaError._PARTITION_EOF:
                        left.discard(message.partition())
                if time.monotonic() > deadline:
                    raise TimeoutError(f"topic {topic} was silent for {READ_S:.0f} s")
        finally:
            consumer.close()

    def decode(self, value: bytes | None) -> Any:
        """Decodes a value in Confluent's wire format."""
        assert value is not None
        (id,) = struct.unpack(">I", value[1:5])
        if id not in self._schemas:
            with SchemaRegistryClient({"url": self._registry}) as registry:
                self._schemas[id] = fastavro.parse_schema(json.loads(registry.get_schema(id).schema_str))
        return fastavro.schemaless_reader(io.BytesIO(value[5:]), self._schemas[id], None)

    def view(self) -> tuple[Rows, int]:
        """Returns the rows of `pageviews_by_user_segment`, and the number of messages read."""
        users: dict[bytes, dict[str, Any]] = {}
        count = 0
        for message in self.messages(USERS):
            count += 1
            key = message.key()
            if key is not None and message.value() is not None:
                change = self.decode(message.value())
                if change["op"] == "d":
                    users.pop(key, None)
                else:
                    users[key] = change["after"]
        views = [json.loads(m.value() or b"") for m in self.messages(PAGEVIEWS)]
        schema = pa.schema([("user_id", pa.int64()), ("channel", pa.string()), ("received_at", pa.int64())])
        with duckdb.connect() as db:
            db.execute("SET TimeZone = 'UTC'")
            db.register(
                "users",
                pa.Table.from_pylist(
                    [{"id": u["id"], "is_vip": u["is_vip"]} for u in users.values()],
                    pa.schema([("id", pa.int64()), ("is_vip", pa.int16())]),
                ),
            )
            db.register("pageviews", pa.Table.from_pylist([{n: v[n] for n in schema.names} for v in views], schema))
            return Counter(map(plain, db.execute(VIEW).fetchall())), count + len(views)

    def sink(self, topic: str) -> Rows:
        """Folds a sink's topic: its insertions less its deletions."""
        rows: Rows = Counter()
        for message in self.messages(topic):
            event = self.decode(message.value())
            if event["before"] is not None:
                rows[plain(event["before"].values())] -= 1
            if event["after"] is not None:
                rows[plain(event["after"].values())] += 1
        return Counter({row: n for row, n in rows.items() if n != 0})


def plain(row: Any) -> tuple[Any, ...]:
    """Returns a row with times in seconds since the epoch."""
    return tuple(int(v.timestamp()) if hasattr(v, "timestamp") else v for v in row)
