"""One life of a sink at its broker: a transactional producer that owns the sink until it is closed, fails or is fenced.

    open: init_transactions ──► fences the instance before, ends its transaction
          read progress     ──► where to go on
          claim             ──► the first transaction says whose sink it is
    commit: begin ──► events ──► progress ──► commit          all of it or nothing, for readers of read_committed

Nothing here is tried again: whatever fails ends the session, and the next one finds out from Kafka what was committed. That makes a
broken connection and a crash the same case.
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

from lake.errors import ConnectionFailure
from sinks import progress as progress_topic
from sinks import topics
from sinks.consistency import Mark
from sinks.envelope import Event
from sinks.failures import Replaced, kafka
from sinks.progress import Progress
from sinks.settings import Settings

CALL_TIMEOUT = timedelta(seconds=5)  # of one call that the broker answers in ms; also what a stop may have to wait for
DOWN_LOOK = timedelta(seconds=1)  # while the broker takes what was sent: is it still there?
STOP_LOOK = timedelta(seconds=0.1)  # while brokers that may be absent are waited for
COMMIT_TIMEOUT = timedelta(seconds=15)
# How long a transaction of a process that was killed may hold back readers, if nobody comes to end it. Ours take ms; a tick of a
# million events took 8 s.
TRANSACTION_TIMEOUT = timedelta(seconds=60)
CLAIM_TIMEOUT = timedelta(seconds=5)  # a successor that has fenced us reads its progress, then claims the sink: some 100 ms
CLAIM_POLL = timedelta(milliseconds=500)

PRODUCER: Mapping[str, object] = {
    "transaction.timeout.ms": int(TRANSACTION_TIMEOUT.total_seconds() * 1000),
    "linger.ms": 2,  # a tick's events go out together; a commit does not wait for it
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 256 << 10,
    "partitioner": "murmur2",  # as the Java clients, so that topics with equal keys are partitioned alike
}
CLIENT: Mapping[str, object] = {
    "client.id": "tailgate",
    "log_level": 0,  # what goes wrong is told by errors
    "reconnect.backoff.max.ms": 1000,
    "socket.connection.setup.timeout.ms": 5000,
}
UNKEYED_PARTITION = 0  # events without a key stay in one order

# a poll costs as much as a produce, and is only for errors and the queue's limit
EVENTS_PER_POLL = 1000
QUEUE_WAIT = timedelta(seconds=0.1)


class Session:
    """`progress` is what the last instance committed, None if there was none."""

    def __init__(self, settings: Settings, lake_id: str, sink: int, instance: str, stopping: Callable[[], bool]) -> None:
        self.settings = self._settings = settings
        self._lake_id = lake_id
        self._sink = sink
        self._instance = instance
        self._stopping = stopping
        self._error = ""
        self._down = False
        self._client: dict[str, Any] = {**CLIENT, **settings.client, "bootstrap.servers": settings.brokers, "error_cb": self._heard}
        self._admin = AdminClient(dict(self._client))
        self._producer: Producer | None = None
        self.progress: Progress | None = None

    def open(self) -> None:
        """Owns the sink when it returns. Raises 08006."""
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
        self.progress = progress.newest(self._admin, self._client, self._lake_id, self._sink)

    def _reach(self) -> None:
        """A broker that answers; the error says what a connection met, not only that it took too long."""
        try:
            with kafka(f"brokers {self._settings.brokers}"):
                asked = self._admin.describe_cluster(request_timeout=CALL_TIMEOUT.total_seconds())
                while not wait([asked], STOP_LOOK.total_seconds()).done:
                    if self._stopping():
                        raise ConnectionFailure("Kafka: stopped before the brokers answered")
                asked.result()
        except ConnectionFailure as failure:
            self._admin.poll(0)
            raise ConnectionFailure(f"{failure.message}{': ' + self._error if self._error else ''}") from failure

    def commit(
        self, events: Iterable[Event], progress: Progress | None, produced: Callable[[], None] = lambda: None, marks: Iterable[Mark] = ()
    ) -> None:
        """One transaction; when it returns, readers of read_committed see all of it. No progress: the sink is no more.

        `produced` is called when the broker has everything and nothing is committed. Raises Fenced or 08006; then the events may be
        there or not, and only a new session can tell.
        """
        producer, topic = self._producer, self._settings.topic
        assert producer is not None, "not open"
        with kafka(f'topic "{topic}"'):
            producer.poll(0)
            self._down = False  # what was so before does not matter
            producer.begin_transaction()
            for count, (key, value, headers) in enumerate(events):
                while True:
                    try:
                        if key is None:
                            producer.produce(topic, value, partition=UNKEYED_PARTITION, headers=list(headers))
                        else:
                            producer.produce(topic, value, key, headers=list(headers))
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

    def _drain(self, wait: timedelta) -> None:
        assert self._producer is not None
        if self._stopping() and self._producer.flush(CALL_TIMEOUT.total_seconds()):
            raise ConnectionFailure("Kafka: stopped while the broker did not take what was sent")
        self._producer.flush(wait.total_seconds())

    def fenced(self) -> None:
        """Returns if the sink is still ours to take up again; raises Replaced if another instance has claimed it."""
        deadline = time.monotonic() + CLAIM_TIMEOUT.total_seconds()
        while time.monotonic() < deadline and not self._stopping():
            owner = progress_topic.newest(self._admin, self._client, self._lake_id, self._sink)
            if owner is None or owner.instance != self._instance:
                raise Replaced("another process runs this sink now", hint="Only one `tailgate sinks` is needed for a lake.")
            time.sleep(CLAIM_POLL.total_seconds())

    def close(self) -> None:
        """Nothing that was sent and not committed is waited for: the next session ends that transaction."""
        if self._producer is not None:
            with suppress(KafkaException):  # a fenced producer says so again at every call
                self._producer.purge()
                self._producer.poll(0)
            self._producer = None

    def _heard(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._down = True  # the text of the connection that failed says more
        else:
            self._error = error.str()
