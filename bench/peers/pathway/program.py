"""Workload W1 in Pathway. Arguments: Kafka's brokers, the commit interval in ms.

Run by Pathway's own Python. Amounts are summed in cents, because Pathway has no decimal type.
"""

import sys
from typing import Any

import pathway as pw

BROKERS, COMMIT_MS = sys.argv[1], int(sys.argv[2])
READER = {"bootstrap.servers": BROKERS, "group.id": "pathway", "auto.offset.reset": "earliest"}
WRITER = {"bootstrap.servers": BROKERS, "linger.ms": "5"}


class Order(pw.Schema):
    customer_id: int
    item: str
    amount: float


class Change(pw.Schema):
    customer_id: int
    segment: str


def read(topic: str, schema: type[pw.Schema], **options: Any) -> pw.Table:
    return pw.io.kafka.read(READER, topic=topic, format="json", schema=schema, autocommit_duration_ms=COMMIT_MS, **options)


def is_later(offset: int, previous: int) -> bool:
    return offset > previous


orders = read("orders", Order).select(
    pw.this.customer_id,
    pw.this.item,
    cents=pw.cast(int, pw.this.amount * 100 + 0.5),
)
# `id` is Pathway's own name. The Kafka connector reads JSON as rows that only come, so a customer's
# last message is found by its offset.
changes = read("customers", Change, json_field_paths={"customer_id": "/id"}, with_metadata=True)
customers = changes.with_columns(offset=pw.this._metadata["offset"].as_int()).deduplicate(
    value=pw.this.offset, instance=pw.this.customer_id, acceptor=is_later
)
sales = orders.join(customers, pw.left.customer_id == pw.right.customer_id).select(pw.right.segment, pw.left.item, pw.left.cents)
revenue = sales.groupby(pw.this.segment, pw.this.item).reduce(
    pw.this.segment,
    pw.this.item,
    orders=pw.reducers.count(),
    amount=pw.reducers.sum(pw.this.cents),
)
pw.io.kafka.write(revenue, WRITER, "revenue", format="json")
pw.run(monitoring_level=pw.MonitoringLevel.NONE)
