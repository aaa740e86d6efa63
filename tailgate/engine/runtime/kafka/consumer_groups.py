"""The consumers of topics and their groups, as the broker knows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from confluent_kafka import KafkaException

from tailgate.engine.runtime.kafka.requests import ANSWER_S, admin, result
from tailgate.lake.errors import ConnectionFailure

GROUPS_MAX = 10_000  # groups of a broker that are described; others are not counted


def consumers(brokers: str, access: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """Returns the numbers of consumers and of consumer groups of each topic that has some. Raises 08006."""
    client = admin(brokers, access)
    members, groups = Counter[str](), Counter[str]()
    try:
        listed = result(client.list_consumer_groups(request_timeout=ANSWER_S))
        ids = sorted(group.group_id for group in listed.valid)[:GROUPS_MAX]
        described = client.describe_consumer_groups(ids, request_timeout=ANSWER_S) if ids else {}
        for future in described.values():
            topics = [{p.topic for p in m.assignment.topic_partitions} for m in result(future).members if m.assignment]
            members.update(name for of_member in topics for name in of_member)
            groups.update({name for of_member in topics for name in of_member})
    except KafkaException as error:
        raise ConnectionFailure(f"Kafka at {brokers} did not list its consumer groups: {error.args[0].str()}") from error
    return {name: (members[name], groups[name]) for name in groups}
