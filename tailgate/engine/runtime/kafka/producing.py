"""Topics and messages that statements of ksqlDB write to Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic, sleep

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import ConfigResource  # type: ignore[attr-defined]  # not in its __all__
from confluent_kafka.cimpl import NewTopic

from tailgate.engine.runtime.kafka.requests import ANSWER_S, admin, look, result
from tailgate.lake.clients import librdkafka, message_time
from tailgate.lake.errors import ConnectionFailure, InvalidParameterValue

RETENTION = "retention.ms"
CREATED_S = 10.0  # longest wait for a new topic, which takes 50 ms on an idle machine and seconds on a busy one
LEADER_LOOK_S = 0.02  # between two checks whether a new topic can be read
ACKNOWLEDGED_S = 10.0  # longest wait for a broker's acknowledgement, which takes ms


def create_topic(
    brokers: str, name: str, partitions: int, replicas: int | None, access: Mapping[str, str], config: Mapping[str, str] | None = None
) -> bool:
    """Creates a topic and waits until it can be read. Returns False if it exists with these partitions. `config`: of a new topic.

    Raises 22023 if it exists with others or with another retention, 08006 if the broker does not answer.
    """
    existing = look(brokers, [name], access).get(name)
    if existing is not None:
        if len(existing.bounds) != partitions:
            raise InvalidParameterValue(
                f"A Kafka topic with the name '{name}' already exists, with different partition/replica configuration than required."
                f" KSQL expects {partitions} partitions (topic has {len(existing.bounds)})."
            )
        retention = (config or {}).get(RETENTION)
        if retention is not None:
            _check_retention(brokers, access, name, retention)
        return False
    replication = -1 if replicas is None else replicas
    client = admin(brokers, access)
    topic = NewTopic(name, num_partitions=partitions, replication_factor=replication, config=dict(config or {}))
    try:
        result(client.create_topics([topic], operation_timeout=CREATED_S, request_timeout=CREATED_S)[name], 2 * CREATED_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise ConnectionFailure(f'topic "{name}" was not created: {error.args[0].str()}') from error
    _await_leaders(brokers, name, access)
    return True


def _check_retention(brokers: str, access: Mapping[str, str], name: str, retention: str) -> None:
    """Raises 22023 if a topic has another retention."""
    client, resource = admin(brokers, access), ConfigResource(ConfigResource.Type.TOPIC, name)
    try:
        entry = result(client.describe_configs([resource], request_timeout=ANSWER_S)[resource])[RETENTION]
    except KafkaException as error:
        raise ConnectionFailure(f'the retention of topic "{name}" is not known: {error.args[0].str()}') from error
    if entry.value != retention:
        raise InvalidParameterValue(
            f"A Kafka topic with the name '{name}' already exists, with different retention configuration than required."
            f" KSQL expects {retention} retention (topic has {entry.value})."
        )


def _await_leaders(brokers: str, name: str, access: Mapping[str, str]) -> None:
    """Waits until a new topic can be read: its partitions soon get leaders. Raises 08006."""
    deadline = monotonic() + CREATED_S
    while True:
        try:
            if name in look(brokers, [name], access):
                return
        except ConnectionFailure:
            if monotonic() > deadline:
                raise
        if monotonic() > deadline:
            raise ConnectionFailure(f'topic "{name}" was created and cannot be read yet')
        sleep(LEADER_LOOK_S)


def delete_topic(brokers: str, name: str, access: Mapping[str, str]) -> None:
    """Deletes a topic that a failed statement has created. Raises 08006."""
    client = admin(brokers, access)
    try:
        result(client.delete_topics([name], operation_timeout=ANSWER_S, request_timeout=ANSWER_S)[name])
    except KafkaException as error:
        raise ConnectionFailure(f'topic "{name}" was not deleted: {error.args[0].str()}') from error


class Producers:
    """Producers by brokers and access settings, which stay open. Thread safe."""

    def __init__(self) -> None:
        self._producers: dict[str, Producer] = {}

    def produce(
        self, brokers: str, topic: str, key: bytes | None, value: bytes | None, timestamp: int | None, access: Mapping[str, str]
    ) -> None:
        """Writes a message. Returns when the broker has it; raises 08006 if it does not answer."""
        failures: list[str] = []
        acknowledged: list[bool] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                acknowledged.append(True)
            else:
                failures.append(error.str())

        producer = self._producer(brokers, access)
        producer.produce(topic, value, key, on_delivery=delivered, timestamp=message_time(timestamp))
        producer.flush(ACKNOWLEDGED_S)
        if not acknowledged:
            raise ConnectionFailure(
                f'Kafka at {brokers} did not accept a message for topic "{topic}"' + "".join(f": {f}" for f in failures)
            )

    def _producer(self, brokers: str, access: Mapping[str, str]) -> Producer:
        settings = {"bootstrap.servers": brokers, "partitioner": "murmur2_random", "log_level": 2, **librdkafka(access)}
        settings |= {"enable.idempotence": True, "message.timeout.ms": int(ACKNOWLEDGED_S * 1000)}
        key = repr(sorted(settings.items()))
        if key not in self._producers:
            self._producers[key] = Producer(settings)
        return self._producers[key]
