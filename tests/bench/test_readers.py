"""Tests that the measuring client records the updates of real servers, and compares the complete view."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import psycopg
import pytest
from confluent_kafka import Producer

from bench.w1.orders import VIEW, Row
from bench.w1.readers import BATCH, Different, Output, Reader
from tailgate.embedded.kafka import Kafka

ANSWER_S = 60.0
ANSWER: frozenset[Row] = frozenset({("segment 1", "item 2", 3, Decimal("4.50")), ("segment 1", "item 3", 1, Decimal("0.10"))})


@contextmanager
def reading(output: Output) -> Iterator[Reader]:
    reader = Reader()
    reader.read(output)
    try:
        yield reader
    finally:
        reader.stop()


@pytest.fixture
def topic(kafka: Kafka, request: pytest.FixtureRequest) -> str:
    kafka.create_topic(request.node.name)
    return str(request.node.name)


@pytest.fixture
def producer(kafka: Kafka) -> Producer:
    return Producer({"bootstrap.servers": kafka.address})


def message(orders: int, amount: str, item: str = "item 2", **more: int) -> str:
    return json.dumps({"segment": "segment 1", "item": item, "orders": orders, **more})[:-1] + f', "amount": {amount}}}'


@pytest.mark.kafka
def test_upserts(kafka: Kafka, topic: str, producer: Producer) -> None:
    """There are more messages than one batch, and a deletion. Groups that shrink are not recorded."""
    for n in range(3 * BATCH + 7):
        producer.produce(topic, key="a", value=message(1 + n % 3, "9.99"))
    producer.produce(topic, key="a", value=message(3, "4.5"))
    producer.produce(topic, key="b", value=message(1, "0.1", "item 3"))
    producer.produce(topic, key="c", value=message(1, "0.1", "item 5"))
    producer.produce(topic, key="c", value=None)
    producer.flush()
    with reading(Output("topic", kafka.address, name=topic)) as reader:
        reader.await_first(ANSWER_S)
        reader.await_answer(ANSWER, ANSWER_S)
        received = reader.received()
    assert received.counts.tolist() == [*(1 + n % 3 for n in range(3 * BATCH + 7)), 3]
    assert set(received.groups.tolist()) == {102}


@pytest.mark.kafka
def test_changes(kafka: Kafka, topic: str, producer: Producer) -> None:
    """A row's deletion may arrive after its replacement. Amounts are in cents."""
    producer.produce(topic, value=message(2, "300", diff=1))
    producer.produce(topic, value=message(3, "450", diff=1))
    producer.produce(topic, value=message(2, "300", diff=-1))
    producer.produce(topic, value=message(1, "10", "item 3", diff=1))
    producer.flush()
    with reading(Output("topic", kafka.address, "changes", unit=Decimal("0.01"), name=topic)) as reader:
        reader.await_answer(ANSWER, ANSWER_S)
        assert reader.received().counts.tolist() == [2, 3]


def test_select(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as db:
        db.execute(f"CREATE TABLE {VIEW} (segment text, item text, orders bigint, amount numeric)")
        try:
            with reading(Output("select", postgres)) as reader:
                before = time.monotonic()
                db.execute(f"INSERT INTO {VIEW} VALUES ('segment 1', 'item 2', 2, 3.00), ('segment 1', 'item 3', 1, 0.10)")
                reader.await_first(ANSWER_S)
                with pytest.raises(Different, match="'item 2', 3"):
                    reader.await_answer(ANSWER, 0.3)
                db.execute(f"UPDATE {VIEW} SET orders = 3, amount = 4.50 WHERE item = 'item 2'")
                answered_at = reader.await_answer(ANSWER, ANSWER_S)
                received = reader.received()
                assert received.counts.tolist() == [2, 3]
                assert before < received.times[0] < received.times[1] == answered_at < time.monotonic()
        finally:
            db.execute(f"DROP TABLE {VIEW}")


def test_a_failed_reader_reports_the_reason(postgres: str) -> None:
    with reading(Output("select", postgres)) as reader, pytest.raises(RuntimeError, match="does not exist"):
        reader.await_first(ANSWER_S)
