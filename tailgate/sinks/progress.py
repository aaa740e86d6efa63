"""The progress of a sink in Kafka: a record in the same transaction as the events.

    topic  _tailgate-progress-<lake id>     one partition, compacted
    key    the sink's id
    value  {"n": 17, "time": 1760000000000, "snapshot_rows": 10000, "filled": false, "instance": "…"}

The sink's topic has everything up to entry `n` of the log, whose time is `time`. While `filled` is
false, it has only the first `snapshot_rows` events of the snapshot at that entry. `instance`
identifies the process that wrote the record; the newest one owns the sink. The topic of a sink over
the schema `tailgate` has everything up to the sample `n`, whose rows the file `rows` of the lake has
(`samples`).

Source: Kafka, KIP-98 (transactions); Materialize, storage/sink/kafka: its progress topic.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta

from confluent_kafka import OFFSET_BEGINNING, Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # exported, not declared

from tailgate.lake.errors import ConnectionFailure
from tailgate.sinks.failures import kafka

PARTITION = 0
# Small segments: replaced records are removed within the hour, and a start reads at most about this much.
CONFIG = {"cleanup.policy": "compact", "segment.bytes": str(8 << 20), "segment.ms": "3600000", "min.cleanable.dirty.ratio": "0.1"}

REQUEST_TIMEOUT = timedelta(seconds=5)
# An unfinished transaction of another sink blocks readers of this topic until the broker aborts it (tailgate/sinks/session.py).
READ_TIMEOUT = timedelta(seconds=90)


@dataclass(frozen=True, slots=True)
class Progress:
    """A sink's progress, with the fields of the record's value."""

    n: int
    time: int
    snapshot_rows: int
    filled: bool
    instance: str
    rows: str = ""


def topic(lake_id: str) -> str:
    return f"_tailgate-progress-{lake_id}"


def key(sink: int) -> bytes:
    return str(sink).encode()


def value(progress: Progress) -> bytes:
    return json.dumps(asdict(progress)).encode()


def parsed(data: bytes) -> Progress:
    """Returns the progress from a record's value. Unknown fields are ignored."""
    fields = json.loads(data)
    return Progress(**{name: fields[name] for name in Progress.__slots__ if name in fields})


def newest(admin: AdminClient, client: Mapping[str, object], lake_id: str, sink: int) -> Progress | None:
    """Returns the last committed progress of a sink, None if there is none.

    Reads up to the end of the topic at the time of the call, including undecided transactions. Our last
    commit may follow another sink's open transaction, and must not be missed.
    """
    partition = TopicPartition(topic(lake_id), PARTITION)
    progress: Progress | None = None
    with kafka("progress topic"):
        futures = admin.list_offsets(
            {partition: OffsetSpec.latest()},  # type: ignore[no-untyped-call]  # confluent_kafka is not annotated
            isolation_level=IsolationLevel.READ_UNCOMMITTED,
            request_timeout=REQUEST_TIMEOUT.total_seconds(),
        )
        end = futures[partition].result(2 * REQUEST_TIMEOUT.total_seconds()).offset
        consumer = Consumer(
            {
                **client,
                "group.id": f"{partition.topic}-{sink}",  # the client requires one, but nothing is committed to it
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 50,
            }
        )
        try:
            consumer.assign([TopicPartition(partition.topic, PARTITION, OFFSET_BEGINNING)])
            deadline = time.monotonic() + READ_TIMEOUT.total_seconds()
            reached = 0
            while reached < end:
                message = consumer.poll(REQUEST_TIMEOUT.total_seconds())
                if time.monotonic() > deadline:
                    raise ConnectionFailure(f'Kafka: progress topic "{partition.topic}" was read to {reached} of {end} in {READ_TIMEOUT}')
                if message is None:
                    continue
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                reached = (message.offset() or 0) + (error is None)
                if error is None and message.key() == key(sink):
                    data = message.value()
                    progress = None if data is None else parsed(data)
        finally:
            consumer.close()
    return progress
