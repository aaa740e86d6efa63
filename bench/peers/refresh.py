"""Workload W1 in PostgreSQL: copies the topics into tables and refreshes the view, both in endless loops.

    topics ──one transaction for all new messages──► orders, customers ──REFRESH … CONCURRENTLY──► revenue

Run as `python -m bench.peers.refresh BROKERS DSN`.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

import psycopg
from confluent_kafka import Consumer, KafkaException

from bench.w1.orders import CUSTOMERS, ORDERS, QUERY, VIEW

BATCH = 20_000  # limit of a transaction's messages
WAIT_S = 0.05
STATEMENTS = (
    f"CREATE TABLE {ORDERS} (id bigint, customer_id int, item text, amount numeric(10,2))",
    f"CREATE TABLE {CUSTOMERS} (id int PRIMARY KEY, segment text)",
    f"CREATE MATERIALIZED VIEW {VIEW} AS {QUERY}",
    f"CREATE UNIQUE INDEX ON {VIEW} (segment, item)",
)


def main(brokers: str, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as db:
        for statement in STATEMENTS:
            db.execute(statement)
    threading.Thread(target=_refresh, args=(dsn,), daemon=True).start()
    print("ready", flush=True)
    _copy(brokers, dsn)


def _refresh(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as db:
        while True:
            db.execute(f"REFRESH MATERIALIZED VIEW CONCURRENTLY {VIEW}")


def _copy(brokers: str, dsn: str) -> None:
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "postgresql", "auto.offset.reset": "earliest"})
    consumer.subscribe([ORDERS, CUSTOMERS])
    with psycopg.connect(dsn) as db:
        while True:
            orders, customers = _taken(consumer)
            if orders:
                with db.cursor().copy(f"COPY {ORDERS} FROM STDIN") as copy:
                    for order in orders:
                        copy.write_row((order["id"], order["customer_id"], order["item"], order["amount"]))
            if customers:
                db.cursor().executemany(
                    f"INSERT INTO {CUSTOMERS} VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET segment = excluded.segment",
                    list(customers.items()),
                )
            db.commit()


def _taken(consumer: Any) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Returns the available messages: orders, and each customer's last segment."""
    orders: list[dict[str, Any]] = []
    customers: dict[int, str] = {}
    message = consumer.poll(WAIT_S)
    while message is not None:
        if message.error() is not None:
            raise KafkaException(message.error())
        row = json.loads(message.value(), parse_float=str)
        if message.topic() == ORDERS:
            orders.append(row)
        else:
            customers[row["id"]] = row["segment"]
        if len(orders) + len(customers) >= BATCH:
            break
        message = consumer.poll(0)
    return orders, customers


if __name__ == "__main__":
    main(*sys.argv[1:])
