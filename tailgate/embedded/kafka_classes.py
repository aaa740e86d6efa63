"""Writes the classes of a running broker to an archive file, which the JVMs of Kafka map at their next start.

`make setup` runs this.

    python -m tailgate.embedded.kafka_classes
"""

from __future__ import annotations

import signal
import tempfile
from datetime import timedelta
from pathlib import Path

from confluent_kafka import Consumer, Producer

from tailgate.embedded.children import ChildFailed
from tailgate.embedded.kafka import CLASSES, JVM, Kafka
from tailgate.lake.host import java

SERVER = "Kafka"
TOPIC = "archived"
POLL_S = 10.0  # limit for the record to arrive
DUMP_TIMEOUT = timedelta(seconds=60)  # for the end of the broker, which writes the archive


def dump(file: Path) -> None:
    """Starts a broker, writes and reads a record, and stops the broker, which then writes the archive."""
    file.unlink(missing_ok=True)
    new = file.with_suffix(".new")
    with tempfile.TemporaryDirectory(prefix="tailgate-kafka-") as folder:
        kafka = Kafka(Path(folder), jvm=(*JVM, f"-XX:ArchiveClassesAtExit={new}", *java.QUIET))
        broker = kafka.launch()
        try:
            broker.wait_ready(broker.announced, kafka.ready_timeout)
            use(kafka)
        finally:
            code = broker.stop(DUMP_TIMEOUT)
    if code == -signal.SIGKILL:
        new.unlink(missing_ok=True)  # a part of the archive
        print(f"setup: {SERVER} has written no archive of classes within {DUMP_TIMEOUT.total_seconds():g} s", flush=True)
    elif new.exists():
        new.replace(file)
    else:
        java.do_without(file, SERVER, "this JVM has written none")


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
    try:
        dump(CLASSES)
    except ChildFailed as error:  # as in a runtime without an archive of the JDK's classes
        java.do_without(CLASSES, SERVER, error)
