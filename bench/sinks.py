"""Measures a sink: events per second of its backfill, delay from a tick's entry to a reader, CPU when idle.

    .venv/bin/python bench/sinks.py [EVENTS]

The view has eight columns and a key; the sink writes Debezium's envelope in Avro. A tick has 1,000
updates, each an event with before and after. The broker is started for the run.
"""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from _processes import cpu_s  # a module of this folder

sys.path.insert(0, str(Path(__file__).parent.parent))

from confluent_kafka import Consumer, TopicPartition

from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tailgate.lake import types
from tailgate.lake.catalog import Change, MaterializedView, Sink
from tailgate.lake.catalog.formats import SinkFormat
from tailgate.lake.folder import Lake
from tailgate.lake.types import Field, arrow_schema
from tailgate.lake.writer.log_writer import Writer, open_epoch

COLUMNS = (
    Field("id", types.INT8, False),
    Field("name", types.TEXT),
    Field("vip", types.BOOL),
    Field("channel", types.TEXT),
    Field("hour", types.TIMESTAMPTZ),
    Field("amount", types.Type("numeric", (18, 2))),
    Field("count", types.INT8),
    Field("share", types.FLOAT8),
)
VIEW, SINK = 16384, 16386
TICK = 1_000
SINGLE = 200


def rows(start: int, count: int, version: int, weight: int) -> pa.Table:
    ids = np.arange(start, start + count)
    arrays = [
        pa.array(ids),
        pa.array([f"customer {i}" for i in ids]),
        pa.array(ids % 3 == 0),
        pa.array([("social", "search", "mail")[i % 3] for i in ids]),
        pa.array(ids * 3_600_000_000 + 1_700_000_000_000_000).cast(pa.timestamp("us", "UTC")),
        pa.array(ids * 100 + version).cast(pa.decimal128(19, 0)).cast(pa.decimal128(18, 2), safe=False),
        pa.array(ids * 7 + version),
        pa.array(ids / 7 + version),
        pa.array(np.full(count, weight)),
    ]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(COLUMNS, weight=True))


def update(writer: Writer, start: int, count: int, version: int) -> None:
    writer.append([(VIEW, pa.concat_tables([rows(start, count, version - 1, -1), rows(start, count, version, 1)]))])


def reader(address: str, topic: str) -> Consumer:
    settings: dict[str, Any] = {
        "bootstrap.servers": address,
        "group.id": "bench",
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 10,
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    return consumer


def take(consumer: Consumer, count: int) -> float:
    """Reads `count` more events. Returns the time of the last one."""
    while count:
        messages = consumer.consume(min(count, 10_000), 60)
        assert messages, "no event in a minute"
        count -= sum(message.error() is None for message in messages)
    return time.time()


def main(events: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        kafka, registry = Kafka(Path(folder) / "kafka"), Registry(Path(folder) / "registry")
        kafka.start()
        registry.start()
        lake = Lake.create(Path(folder) / "lake")
        writer = open_epoch(lake)
        view = MaterializedView(VIEW, "view", COLUMNS, key=(0,), stored=True, errors=VIEW + 1)
        sink = Sink(
            SINK, "sink", depends=(VIEW,), brokers=kafka.address, topic="out", value_format=SinkFormat(type="avro", registry=registry.url)
        )
        writer.append(kind="catalog", catalog=Change(put=(view,)))
        writer.append(kind="catalog", catalog=Change(put=(sink,)))
        writer.append([(VIEW, rows(0, TICK, 0, 1))])
        ticks = events // TICK
        for tick in range(ticks):
            update(writer, 0, TICK, tick + 1)
        process = subprocess.Popen([sys.executable, "-m", "tailgate", "sinks", "--data", str(lake.path)], cwd=Path(__file__).parent.parent)
        try:
            consumer = reader(kafka.address, "out")
            take(consumer, TICK)
            began, before = time.time(), cpu_s(process.pid)
            ended = take(consumer, ticks * TICK)
            busy = cpu_s(process.pid) - before
            latencies = []
            for version in range(ticks, ticks + SINGLE):
                time.sleep(0.1)
                update(writer, 0, 1, version + 1)
                appended = time.time()
                latencies.append((take(consumer, 1) - appended) * 1000)
            idle = cpu_s(process.pid)
            time.sleep(10)
            idle = (cpu_s(process.pid) - idle) * 10
            result = {
                "events": ticks * TICK,
                "events_per_second": round(ticks * TICK / (ended - began)),
                "events_per_cpu_second": round(ticks * TICK / busy),
                "tick_to_reader_ms": {
                    "p50": round(statistics.median(latencies), 1),
                    "p95": round(statistics.quantiles(latencies, n=20)[-1], 1),
                    "max": round(max(latencies), 1),
                },
                "idle_cpu_percent": round(idle, 2),
            }
            print(json.dumps(result))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
            registry.stop()
            kafka.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300_000)
