"""Topics that receive notifications exactly once: NOTIFY KAFKA of CREATE ALERT.

    open: init_transactions ──► fences an earlier process, aborts its transaction, also one that the broker has forgotten
          committed offset  ──► the id of the last notification that the topic has
    send: begin ──► message ──► offset of the group = id ──► commit       atomic for readers of read_committed

A consumer group without members has the position: the transaction of a message moves the group's offset of partition 0 to the id of its
notification. After a kill or an error, a new producer reads this position, so that no notification is repeated or missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tailgate.lake.errors import TailgateError
from tailgate.lake.host import crash
from tailgate.lake.kafka.transactions import abort_forgotten
from tailgate.operations.watch import payloads
from tailgate.operations.watch.alerts import Notification

PARTITION = 0  # all notifications of an alert are in order
CALL_S = 5.0  # of a call that a healthy broker answers in milliseconds
TRANSACTION_S = 60.0  # how long a transaction of a killed process may keep readers waiting, if no process continues
CLIENT: Mapping[str, object] = {"client.id": "tailgate-watch", "log_level": 0, "socket.connection.setup.timeout.ms": 5000}


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of an alert. `client`: returns the settings of the connection."""

    topic: str
    brokers: str
    lake: str
    client: Callable[[], Mapping[str, str]] = field(repr=False)
    accepts: Callable[[Notification], bool]
    owner: str

    @property
    def name(self) -> str:
        return hashlib.sha256("\n".join((self.owner, "kafka", self.brokers, self.topic)).encode()).hexdigest()[:16]

    def wants(self, notification: Notification) -> bool:
        return self.accepts(notification)

    def send(self, notification: Notification) -> str | None:
        """Commits the notification to the topic, unless it is there. Returns why this failed, or None."""
        try:
            session = _sessions.get(self.name)
            if session is None:
                session = _sessions[self.name] = _Session(self, f"tailgate-{self.lake}-alerts-{self.name}")
            session.commit(notification)
        except (KafkaException, TailgateError) as error:
            self.close()
            return str(error.args[0].str()) if isinstance(error, KafkaException) else str(error)
        return None

    def close(self) -> None:
        """Closes the producer. The next notification opens another one."""
        session = _sessions.pop(self.name, None)
        if session is not None:
            session.close()


_sessions: dict[str, _Session] = {}  # that are open, by the name of the target; each belongs to the thread of its target


class _Session:
    """A transactional producer for one topic, which has fenced all earlier ones. Raises KafkaException."""

    def __init__(self, target: Topic, identity: str) -> None:
        """Opens the producer and reads the position. Creates the topic if it does not exist."""
        self._target = target
        client: dict[str, Any] = {**CLIENT, **target.client(), "bootstrap.servers": target.brokers}
        admin = AdminClient(client)
        exists = target.topic in admin.list_topics(timeout=CALL_S).topics
        if not exists:
            admin.create_topics([NewTopic(target.topic, 1)], request_timeout=CALL_S)[target.topic].result()
        transactions = {"transactional.id": identity, "transaction.timeout.ms": int(TRANSACTION_S * 1000)}
        self._producer = Producer({**client, **transactions})
        self._producer.init_transactions(CALL_S)
        self._group = Consumer({**client, "group.id": identity, "enable.auto.commit": False})
        try:
            if exists:
                abort_forgotten(self._producer, admin, [TopicPartition(target.topic, PARTITION)], self._group)
            (position,) = self._group.committed([TopicPartition(target.topic, PARTITION)], CALL_S)
            if position.error is not None:
                raise KafkaException(position.error)
        except BaseException:
            self._group.close()
            raise
        self._newest = max(position.offset, 0)  # a group without a position has a negative one

    def commit(self, notification: Notification) -> None:
        """Commits a message and the position in one transaction, unless the topic has the notification."""
        if notification.n <= self._newest:
            return
        target, producer = self._target, self._producer
        producer.begin_transaction()
        headers: list[tuple[str, str | bytes | None]] = [("tailgate-notification", str(notification.n).encode())]
        value = payloads.body(notification, "plain", target.lake)
        key = ", ".join(notification.condition.identity).encode()
        producer.produce(target.topic, value, key, partition=PARTITION, headers=headers)
        if producer.flush(CALL_S):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        crash.point("watch.produced")
        position = TopicPartition(target.topic, PARTITION, notification.n)
        producer.send_offsets_to_transaction([position], self._group.consumer_group_metadata(), CALL_S)
        crash.point("watch.positioned")
        producer.commit_transaction(CALL_S)
        crash.point("watch.committed")
        self._newest = notification.n

    def close(self) -> None:
        self._group.close()
