"""What the engine asks of Kafka itself, apart from Spark's reader: does a topic exist, where does it begin and end, its old records.

A broker that does not answer is 08006 and retriable; a topic that is missing is 42704.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from lake.errors import ConnectionFailure, UndefinedObject
from lake.inbox import Record

ANSWER_S = 3.0  # longest wait for one answer of a broker: a source counts as stalled within 5 s
IDLE_S = 10.0  # a fetch of old records that brings nothing for so long has lost its broker

Offsets = dict[str, dict[str, int]]  # topic → partition as text → offset, as Spark writes it


def consumer(brokers: str, options: Mapping[str, str]) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": "tailgate",  # never joined: partitions are assigned, nothing is committed
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 50,
            "queued.max.messages.kbytes": 16384,
            "log_level": 2,
            **options,
        }
    )


def bounds(brokers: str, topics: list[str], options: Mapping[str, str]) -> dict[str, dict[str, tuple[int, int]]]:
    """Of every partition of the topics: the first offset there is, and the one after the last."""
    client = consumer(brokers, options)
    try:
        known = client.list_topics(timeout=ANSWER_S).topics
        out: dict[str, dict[str, tuple[int, int]]] = {}
        for topic in topics:
            found = known.get(topic)
            if found is None or found.error is not None:
                raise UndefinedObject(
                    f'topic "{topic}" does not exist on {brokers}',
                    hint="Create the topic first, or check its name with SHOW TOPICS of your Kafka tools.",
                )
            out[topic] = {
                str(p): client.get_watermark_offsets(TopicPartition(topic, p), timeout=ANSWER_S) for p in sorted(found.partitions)
            }
        return out
    except KafkaException as e:
        raise ConnectionFailure(f"Kafka at {brokers} does not answer: {e.args[0].str()}") from e
    finally:
        client.close()


def history(
    channel: str, brokers: str, topic: str, begin: Mapping[str, int], end: Mapping[str, int], options: Mapping[str, str]
) -> Iterator[Record]:
    """The committed records of a topic in [begin, end) of each partition, in its order, as records for a channel of the inbox."""
    open_ = {int(p): end[p] for p in end if begin.get(p, 0) < end[p]}
    if not open_:
        return
    client = consumer(brokers, options)
    try:
        client.assign([TopicPartition(topic, p, begin.get(str(p), 0)) for p in open_])
        while open_:
            messages = client.consume(1000, timeout=IDLE_S)
            if not messages:
                raise ConnectionFailure(f"Kafka at {brokers} sent nothing for {IDLE_S:.0f} s while topic {topic} was read")
            for message in messages:
                error, partition = message.error(), message.partition()
                if error is not None:
                    if error.code() != KafkaError._PARTITION_EOF:
                        raise ConnectionFailure(f"Kafka at {brokers}, topic {topic}: {error.str()}")
                    open_.pop(partition, None)  # what is left before the end is no record: a marker of a transaction
                elif partition in open_:
                    if message.offset() < open_[partition]:
                        yield Record(channel, message.key(), message.value(), partition, message.offset(), message.timestamp()[1])
                    if message.offset() + 1 >= open_[partition]:
                        del open_[partition]
    except KafkaException as e:
        raise ConnectionFailure(f"Kafka at {brokers} does not answer: {e.args[0].str()}") from e
    finally:
        client.close()
