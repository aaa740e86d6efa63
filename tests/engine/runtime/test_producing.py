"""Messages of INSERT … VALUES of ksqlDB's dialect."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from tailgate.embedded.kafka import Kafka
from tailgate.engine.runtime.kafka.producing import Producers
from tailgate.lake.errors import ConnectionFailure
from testing.engine_process import until

pytestmark = pytest.mark.kafka


def test_a_deleted_topic_stays_deleted(kafka: Kafka) -> None:
    """A producer that has written a topic does not create it again, with the broker's number of partitions, when it is deleted."""
    admin, producers = AdminClient({"bootstrap.servers": kafka.address}), Producers()

    def exists() -> bool:
        return "deleted" in admin.list_topics(timeout=10).topics

    kafka.create_topic("deleted", partitions=2)
    producers.produce(kafka.address, "deleted", None, b"1", None, {})
    admin.delete_topics(["deleted"])["deleted"].result(10)
    until(lambda: not exists())
    with pytest.raises(ConnectionFailure):
        producers.produce(kafka.address, "deleted", None, b"2", None, {})
    assert not exists()
