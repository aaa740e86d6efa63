"""The sink's topic and the progress topic: their creation, if they do not exist, and their partitions.

A topic has exactly the given name. An existing topic is used as it is; its partitions and
configuration are not changed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, TopicDescription  # type: ignore[attr-defined]  # exported, not declared
from confluent_kafka.cimpl import NewTopic

from tailgate.lake.kafka.transactions import ends
from tailgate.sinks.failures import kafka

REQUEST_TIMEOUT = timedelta(seconds=5)  # a healthy broker responds in 2 to 50 ms, also when it creates a topic
LEADER_LOOK = timedelta(milliseconds=20)  # partitions of a new topic soon get leaders; before that they cannot be read or written

NOT_LED = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_LEADER_EPOCH,
)


def ensure(admin: AdminClient, name: str, partitions: int, replication: int, config: Mapping[str, str]) -> None:
    """Creates a topic unless it exists, and waits until it can be used. Raises 08006 on failure."""
    with kafka(f'topic "{name}"'):
        if _exists(admin, name):
            return
        topic = NewTopic(name, num_partitions=partitions, replication_factor=replication, config=dict(config))
        seconds = REQUEST_TIMEOUT.total_seconds()
        try:
            admin.create_topics([topic], operation_timeout=seconds, request_timeout=seconds)[name].result(2 * seconds)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        deadline = time.monotonic() + seconds
        while not _is_led(admin, name) and time.monotonic() < deadline:
            time.sleep(LEADER_LOOK.total_seconds())


def partitions(admin: AdminClient, name: str) -> list[TopicPartition]:
    """Returns the partitions of a topic that exists. Raises KafkaException."""
    return [TopicPartition(name, partition.id) for partition in _description(admin, name).partitions]


def _exists(admin: AdminClient, name: str) -> bool:
    """Returns whether a topic exists. This request never creates one."""
    try:
        _description(admin, name)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return False
        raise
    return True


def _is_led(admin: AdminClient, name: str) -> bool:
    """Returns whether each partition of a new topic has a leader that responds. A broker may be announced as leader before it knows it."""
    try:
        description = _description(admin, name)
        if any(partition.leader is None for partition in description.partitions):
            return False
        ends(admin, [TopicPartition(name, partition.id) for partition in description.partitions], IsolationLevel.READ_UNCOMMITTED)
    except KafkaException as error:
        if error.args[0].code() in NOT_LED:
            return False
        raise
    return True


def _description(admin: AdminClient, name: str) -> TopicDescription:
    seconds = REQUEST_TIMEOUT.total_seconds()
    description: TopicDescription = admin.describe_topics(TopicCollection([name]), request_timeout=seconds)[name].result(2 * seconds)
    return description
