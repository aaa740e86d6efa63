"""One session of a sink at its broker: a transactional producer that owns the sink until it is closed, fails or is fenced.

    open: init_transactions ──► fences the previous instance, aborts its transaction
          abort unfinished  ──► aborts a transaction that the broker has forgotten (`_abort_unfinished`)
          read progress     ──► the position to continue from
          claim             ──► the first transaction records the owner of the sink
    commit: begin ──► events ──► progress ──► commit          atomic for readers of read_committed

A session never retries. Any failure ends it, and the next session reads the committed progress
from Kafka. A broken connection and a crash are therefore handled in the same way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import wait
from contextlib import suppress
from datetime import timedelta
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from tailgate.lake.errors import ConnectionFailure
from tailgate.lake.kafka.transactions import abort_forgotten
from tailgate.sinks import progress as progress_topic
from tailgate.sinks import topics
from tailgate.sinks.consistency import Mark
from tailgate.sinks.envelope import Event
from tailgate.sinks.failures import Replaced, kafka
from tailgate.sinks.progress import Progress
from tailgate.sinks.settings import Settings

CALL_TIMEOUT = timedelta(seconds=5)  # of a call that a healthy broker answers in ms; also how long a stop may take
DOWN_LOOK = timedelta(seconds=1)  # interval of checks that the broker is up while events are delivered
STOP_LOOK = timedelta(seconds=0.1)  # interval of checks for a stop while waiting for brokers
COMMIT_TIMEOUT = timedelta(seconds=15)
# How long an unfinished transaction of a killed process may block readers. Ours take ms; a tick of a million events took 8 s.
TRANSACTION_TIMEOUT = timedelta(seconds=60)
CLAIM_TIMEOUT = timedelta(seconds=5)  # a successor that has fenced us reads its progress and claims the sink in some 100 ms
CLAIM_POLL = timedelta(milliseconds=500)

PRODUCER: Mapping[str, object] = {
    "transaction.timeout.ms": int(TRANSACTION_TIMEOUT.total_seconds() * 1000),
    "linger.ms": 2,  # sends the events of a tick together; a commit does not wait for it
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 256 << 10,
    "partitioner": "murmur2",  # as in Java clients, so that topics with equal keys have equal partitions
}
CLIENT: Mapping[str, object] = {
    "client.id": "tailgate",
    "log_level": 0,  # failures are reported as errors
    "reconnect.backoff.max.ms": 1000,
    "socket.connection.setup.timeout.ms": 5000,
}
UNKEYED_PARTITION = 0  # all events without a key are in one partition, so they stay in order

# a poll costs as much as a produce; it is needed only for errors and for the limit of the queue
EVENTS_PER_POLL = 1000
QUEUE_WAIT = timedelta(seconds=0.1)


class Session:
    """The connection of one sink to its broker. `progress`: that of the previous instance, or None."""

    def __init__(self, settings: Settings, lake_id: str, sink: int, stopping: Callable[[], bool]) -> None:
        self.settings = self._settings = settings
        self._lake_id = lake_id
        self._sink = sink
        self._stopping = stopping
        self._error = ""
        self._down = False
        self._client: dict[str, Any] = {**CLIENT, **settings.client, "bootstrap.servers": settings.brokers, "error_cb": self._on_error}
        self._admin = AdminClient(dict(self._client))
        self._producer: Producer | None = None
        self.progress: Progress | None = None
        self._owner: str | None = None  # the instance that had claimed the sink last, as far as this session knows

    def open(self) -> None:
        """Opens the producer and reads the progress. On return this process owns the sink. Raises 08006."""
        settings, progress = self._settings, progress_topic
        self._reach()
        topics.ensure(self._admin, progress.topic(self._lake_id), 1, settings.replication, progress.CONFIG)
        topics.ensure(self._admin, settings.topic, settings.partitions, settings.replication, settings.topic_config)
        if settings.consistency_topic:
            topics.ensure(self._admin, settings.consistency_topic, 1, settings.replication, {})
        identity = {"transactional.id": f"tailgate-{self._lake_id}-{self._sink}", "compression.type": settings.compression}
        with kafka("producer"):
            self._producer = Producer({**PRODUCER, **identity, **self._client})
        with kafka("transactions"):
            self._producer.init_transactions(CALL_TIMEOUT.total_seconds())
            self._abort_unfinished(self._producer)
        self.progress = progress.newest(self._admin, self._client, self._lake_id, self._sink)
        self._owner = None if self.progress is None else self.progress.instance

    def _abort_unfinished(self, producer: Producer) -> None:
        """Aborts a transaction of the sink that its broker has forgotten, if there may be one."""
        names = [progress_topic.topic(self._lake_id), self._settings.topic, self._settings.consistency_topic]
        abort_forgotten(producer, self._admin, [partition for name in names if name for partition in topics.partitions(self._admin, name)])

    def _reach(self) -> None:
        """Waits until a broker responds. The error contains the reason why a connection failed, not only a timeout."""
        try:
            with kafka(f"brokers {self._settings.brokers}"):
                future = self._admin.describe_cluster(request_timeout=CALL_TIMEOUT.total_seconds())
                while not wait([future], STOP_LOOK.total_seconds()).done:
                    if self._stopping():
                        raise ConnectionFailure("Kafka: stopped before the brokers answered")
                future.result()
        except ConnectionFailure as failure:
            self._admin.poll(0)
            raise ConnectionFailure(f"{failure.message}{': ' + self._error if self._error else ''}") from failure

    def commit(
        self, events: Iterable[Event], progress: Progress | None, produced: Callable[[], None] = lambda: None, marks: Iterable[Mark] = ()
    ) -> None:
        """Commits events, marks and progress in one transaction. A progress of None deletes it: the sink was dropped.

        `produced` is called when the broker has all events and before the commit. Raises Fenced or 08006.
        Then the transaction may or may not be committed, and only a new session can find out.
        """
        producer, topic = self._producer, self._settings.topic
        assert producer is not None, "not open"
        with kafka(f'topic "{topic}"'):
            producer.poll(0)
            self._down = False  # forget earlier failures
            producer.begin_transaction()
            for count, (key, value, headers, timestamp) in enumerate(events):
                options: dict[str, Any] = {"timestamp": timestamp}
                if key is None:
                    options["partition"] = UNKEYED_PARTITION
                if headers:
                    options["headers"] = list(headers)
                while True:
                    try:
                        producer.produce(topic, value, key, **options)
                        break
                    except BufferError:
                        self._drain(QUEUE_WAIT)
                if count % EVENTS_PER_POLL == 0:
                    producer.poll(0)
            for of, mark_key, mark in marks:
                producer.produce(of, mark, mark_key, partition=UNKEYED_PARTITION)
            record = None if progress is None else progress_topic.value(progress)
            producer.produce(
                progress_topic.topic(self._lake_id), record, progress_topic.key(self._sink), partition=progress_topic.PARTITION
            )
            deadline = time.monotonic() + TRANSACTION_TIMEOUT.total_seconds()
            while len(producer):
                self._drain(DOWN_LOOK)
                if self._down or time.monotonic() > deadline:
                    raise ConnectionFailure(f'Kafka: topic "{topic}": the broker does not take what is sent: {self._error}')
            produced()
            producer.commit_transaction(COMMIT_TIMEOUT.total_seconds())
        self._owner = None if progress is None else progress.instance

    def _drain(self, wait: timedelta) -> None:
        assert self._producer is not None
        if self._stopping() and self._producer.flush(CALL_TIMEOUT.total_seconds()):
            raise ConnectionFailure("Kafka: stopped while the broker did not take what was sent")
        self._producer.flush(wait.total_seconds())

    def fenced(self) -> None:
        """Waits up to CLAIM_TIMEOUT whether another process claims the sink. Raises Replaced if one does; otherwise it is free."""
        deadline = time.monotonic() + CLAIM_TIMEOUT.total_seconds()
        while time.monotonic() < deadline and not self._stopping():
            owner = progress_topic.newest(self._admin, self._client, self._lake_id, self._sink)
            if (None if owner is None else owner.instance) != self._owner:
                raise Replaced("another process runs this sink now", hint="Only one `tailgate sinks` is needed for a lake.")
            time.sleep(CLAIM_POLL.total_seconds())

    def close(self) -> None:
        """Closes the producer without waiting for uncommitted events. The next session aborts their transaction."""
        if self._producer is not None:
            with suppress(KafkaException):  # a fenced producer raises at every call
                self._producer.purge()
                self._producer.poll(0)
            self._producer = None

    def _on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._down = True  # `_error` keeps the more precise text of the failed connection
        else:
            self._error = error.str()
