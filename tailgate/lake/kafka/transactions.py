"""Ends transactions that their coordinator has forgotten.

After a kill, Kafka 4.3 once had a transaction's records, but its coordinator had no transaction. No timeout ends such a
transaction, and readers of read_committed wait for it. An aborted transaction of the same producer over the same partitions ends it.
"""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Consumer, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # exported, not declared

REQUEST_S = 5.0  # a healthy broker responds in 2 to 50 ms


def abort_forgotten(producer: Producer, admin: AdminClient, partitions: Sequence[TopicPartition], group: Consumer | None = None) -> None:
    """Aborts a transaction of a producer that init_transactions does not know, if there may be one.

    `group`: the transaction may have offsets of this group in the partitions. Raises KafkaException.
    """
    blocked = undecided(admin, partitions)
    if not blocked:
        return
    producer.begin_transaction()
    for partition in blocked:
        producer.produce(partition.topic, b"", partition=partition.partition)
    producer.flush(REQUEST_S)
    if group is not None:
        offsets = [TopicPartition(partition.topic, partition.partition, 0) for partition in blocked]
        producer.send_offsets_to_transaction(offsets, group.consumer_group_metadata(), REQUEST_S)
    producer.abort_transaction(REQUEST_S)


def undecided(admin: AdminClient, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
    """Returns the partitions that end with records of a transaction that is neither committed nor aborted. Raises KafkaException."""
    stable, last = (ends(admin, partitions, level) for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED))
    return [partition for partition, before, end in zip(partitions, stable, last, strict=True) if before < end]


def ends(admin: AdminClient, partitions: Sequence[TopicPartition], level: IsolationLevel) -> list[int]:
    """Returns the end of each partition as a reader of this isolation level sees it. Raises KafkaException."""
    newest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # confluent_kafka is not annotated
    latest = dict.fromkeys(partitions, newest)
    futures = admin.list_offsets(latest, isolation_level=level, request_timeout=REQUEST_S)
    return [futures[partition].result(2 * REQUEST_S).offset for partition in partitions]
