"""Writes the classes of a running broker to an archive file, which the JVMs of Kafka map at their next start.

`make setup` runs this. The JVM ignores an archive that does not fit the jars. Source: JEP 350, dynamic
class data sharing archives.

    python -m tailgate.embedded.kafka_classes
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from confluent_kafka import Consumer, Producer

from tailgate.embedded.kafka import CLASSES, JVM, QUIET, Kafka

TOPIC = "archived"
POLL_S = 10.0  # limit for the record to arrive


def dump(file: Path) -> None:
    """Starts a broker, writes and reads a record, and stops the broker, which then writes the archive."""
    file.unlink(missing_ok=True)
    new = file.with_suffix(".new")
    with tempfile.TemporaryDirectory(prefix="tailgate-kafka-") as folder:
        kafka = Kafka(Path(folder), jvm=(*JVM, f"-XX:ArchiveClassesAtExit={new}", *QUIET))
        kafka.start()
        try:
            use(kafka)
        finally:
            kafka.stop()
    if new.exists():
        new.replace(file)
    else:
        print("setup: this JVM keeps no archive of classes; Kafka starts without one", flush=True)
        file.touch()


def use(kafka: Kafka) -> None:
    """Writes a record in a transaction, and reads it in a consumer group."""
    kafka.create_topic(TOPIC)
    clients = {"bootstrap.servers": kafka.address, "log_level": 2}
    producer = Producer({**clients, "transactional.id": TOPIC})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(TOPIC, b"value", key=b"key")
    producer.commit_transaction()
    consumer = Consumer({**clients, "group.id": TOPIC, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([TOPIC])
        if (message := consumer.poll(POLL_S)) is not None:
            consumer.commit(message=message, asynchronous=False)
    finally:
        consumer.close()


if __name__ == "__main__":
    dump(CLASSES)
