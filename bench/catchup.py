"""Catching up: 1,000,000 orders joined with 10,000 customers that change, grouped by segment and item; how soon is the view complete?

Kafka holds everything before the engine starts. The clock runs from the start of the engine's process to the entry of the log with
which the view is filled, durable; then once more from a restart over another 1,000,000 orders that came meanwhile (catching up in
ticks). In the same run DuckDB computes the query once over the same rows, as the least that anybody could do. At the end the view
equals DuckDB's answer.

    .venv/bin/python bench/catchup.py [--orders 1000000] [--customers 10000]
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from _processes import cpu_s  # beside this file
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from embedded.kafka import Kafka
from lake import Lake
from tests.engine.runtime.parts import EngineProcess, rows, until

STATEMENTS = (
    """CREATE SOURCE orders (id bigint, customer_id int, item text, amount numeric(10,2))
       FROM KAFKA BROKER '{kafka}' TOPIC 'orders' FORMAT JSON""",
    """CREATE SOURCE customers (id int, segment text)
       FROM KAFKA BROKER '{kafka}' TOPIC 'customers' KEY FORMAT TEXT VALUE FORMAT JSON INCLUDE KEY AS key ENVELOPE UPSERT""",
    """CREATE MATERIALIZED VIEW revenue AS
       SELECT c.segment, o.item, count(*) AS orders, sum(o.amount) AS amount
       FROM orders o JOIN customers c ON o.customer_id = c.id GROUP BY c.segment, o.item""",
)
SEGMENTS, ITEMS = 10, 100
ANSWER_S = 600.0


class Shop:
    """Its topics, and what was produced, so that the answer can be computed again."""

    def __init__(self, kafka: str, customers: int) -> None:
        admin = AdminClient({"bootstrap.servers": kafka})  # named: it ends its work when it goes
        for made in admin.create_topics([NewTopic(t, 1, 1) for t in ("orders", "customers")]).values():
            made.result(30)
        self.producer = Producer({"bootstrap.servers": kafka, "queue.buffering.max.messages": 500_000, "linger.ms": 50})
        self.chance = random.Random(1)
        self.customers = {c: f"segment {c % SEGMENTS}" for c in range(customers)}
        self.orders: list[tuple[int, int, str, str]] = []
        for c in self.customers:
            self._customer(c)

    def _customer(self, c: int) -> None:
        self.producer.produce("customers", key=str(c), value=json.dumps({"id": c, "segment": self.customers[c]}))

    def order(self, count: int) -> None:
        """So many orders, and a change of a customer for each hundred."""
        chance, known = self.chance, len(self.customers)
        for n in range(count):
            order = (
                len(self.orders),
                chance.randrange(known),
                f"item {chance.randrange(ITEMS)}",
                f"{chance.randrange(100, 100_000) / 100:.2f}",
            )
            self.orders.append(order)
            value = f'{{"id": {order[0]}, "customer_id": {order[1]}, "item": "{order[2]}", "amount": {order[3]}}}'
            self.producer.produce("orders", value=value)
            if n % 100 == 0:
                c = chance.randrange(known)
                self.customers[c] = f"segment {chance.randrange(SEGMENTS)}"
                self._customer(c)
            if n % 10_000 == 0:
                self.producer.poll(0.01)
        self.producer.flush()

    def answer(self) -> tuple[Counter[tuple[Any, ...]], float]:
        """What the view has to hold, and the seconds that DuckDB took for it."""
        orders = pa.table(
            {n: list(c) for n, c in zip(("id", "customer_id", "item", "amount"), zip(*self.orders, strict=True), strict=True)}
        )
        customers = pa.table({"id": list(self.customers), "segment": list(self.customers.values())})
        with duckdb.connect() as engine:
            engine.register("orders", orders)
            engine.register("customers", customers)
            began = time.monotonic()
            found = engine.execute(
                "SELECT c.segment, o.item, count(*), sum(o.amount::DECIMAL(10,2))"
                " FROM orders o JOIN customers c ON o.customer_id = c.id GROUP BY ALL"
            ).fetchall()
            took = time.monotonic() - began
        return Counter({(s, i, n, Decimal(a)): 1 for s, i, n, a in found}), took


class Memory(threading.Thread):
    """The most that a process and its children had in memory, in MiB."""

    def __init__(self, engine: EngineProcess) -> None:
        super().__init__(daemon=True)
        self.engine, self.peak, self.ended = engine, 0.0, threading.Event()
        self.start()

    def run(self) -> None:
        while not self.ended.wait(0.2):
            try:
                self.peak = max(self.peak, sum(_resident(pid) for pid in (self.engine.pid, self.engine.jvm)))
            except (OSError, ValueError, AssertionError):
                continue


def _cpu(engine: EngineProcess) -> float:
    return cpu_s(engine.pid) + cpu_s(engine.jvm)


def _read(lake: Lake) -> int:
    """How many orders the newest entry of the log has read."""
    return sum(topics["orders"]["0"] for topics in lake.log.newest().offsets.values() if "orders" in topics)


def _resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--orders", type=int, default=1_000_000)
    options.add_argument("--customers", type=int, default=10_000)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailgate-bench-") as folder:
        kafka = Kafka(Path(folder) / "kafka")
        kafka.start()
        engine = EngineProcess(Path(folder) / "lake")
        try:
            shop = Shop(kafka.address, chosen.customers)
            shop.order(chosen.orders)
            memory = Memory(engine)
            out: dict[str, Any] = {"orders": chosen.orders}
            began = time.monotonic()
            engine.start()
            out["start_s"], out["start_cpu_s"] = round(time.monotonic() - began, 1), round(_cpu(engine), 1)
            out["statements_s"] = []
            for statement in STATEMENTS:
                asked = time.monotonic()
                engine.execute(statement.format(kafka=kafka.address))  # the last one answers when the view is filled and durable
                out["statements_s"].append(round(time.monotonic() - asked, 1))
            out["filled_s"], out["filled_cpu_s"] = round(time.monotonic() - began, 1), round(_cpu(engine), 1)
            lake = Lake(Path(folder) / "lake")
            expected, out["duckdb_s"] = shop.answer()
            assert rows(lake, "revenue") == expected, "the view is not its query"
            engine.stop()
            shop.order(chosen.orders)
            expected, _ = shop.answer()
            began = time.monotonic()
            engine.start()
            started, used = time.monotonic(), _cpu(engine)
            until(lambda: _read(lake) == len(shop.orders), ANSWER_S)
            ended = time.monotonic()
            assert rows(lake, "revenue") == expected, "the view is not its query"
            out["restarted_s"], out["orders_per_s"] = round(ended - began, 1), round(chosen.orders / (ended - started))
            out["ticks_cpu_s"] = round(_cpu(engine) - used, 1)
            out["peak_mib"] = round(memory.peak)
            memory.ended.set()
            print(json.dumps(out))
        finally:
            if engine.child is not None:
                engine.stop()
            kafka.stop()


if __name__ == "__main__":
    main()
