"""Measures whether a tick's cost depends on history: median ticks after 1,000,000 and 10,000 page views.

Users, rate and views (scenario 1) are the same; only the number of earlier page views differs. The mark
for the ratio is 1.2 at most.

    .venv/bin/python bench/history.py [--views 1000000] [--rate 1000] [--seconds 20]
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer

from tailgate.embedded.kafka import Kafka
from tailgate.embedded.registry import Registry
from tailgate.engine.runtime.kafka import requests as broker
from tailgate.examples.shop.demo import statements
from tailgate.examples.shop.load import CHANNELS, PAGEVIEWS, Load
from tailgate.lake.folder import Lake
from testing.engine_process import EngineProcess, until

USERS = 10_000
SMALL = 10_000
CATCH_UP_S = 600.0


def history(kafka: str, count: int) -> None:
    """Produces page views with yesterday's times, at once."""
    producer = Producer({"bootstrap.servers": kafka, "queue.buffering.max.messages": 500_000, "linger.ms": 50})
    chance, then = random.Random(count), int(time.time()) - 86_400
    for i in range(count):
        view = {
            "user_id": chance.randint(1, USERS),
            "url": "/products/1",
            "channel": chance.choice(CHANNELS),
            "received_at": then + i % 3600,
            "sent_at": then * 1000,
        }
        producer.produce(PAGEVIEWS, value=json.dumps(view).encode())
        if i % 10_000 == 0:
            producer.poll(0.01)
    producer.flush()


def caught_up(lake: Lake, kafka: str) -> bool:
    """Returns whether all page views of the topic are in the log."""
    newest = lake.log.newest()
    assert newest is not None
    end = broker.topic(kafka, PAGEVIEWS, {}).bounds["0"][1]
    return any(topics[PAGEVIEWS]["0"] >= end for topics in newest.offsets.values() if PAGEVIEWS in topics)


def ticks(engine: EngineProcess, load: Load, seconds: float) -> dict[str, float]:
    """Returns the percentiles of the ticks' times while the load runs."""
    load.start()
    time.sleep(seconds)
    durations = engine.get("/status")["tick_ms"]
    load.stop()
    return dict(durations)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--views", type=int, default=1_000_000)
    options.add_argument("--rate", type=float, default=1000.0)
    options.add_argument("--seconds", type=float, default=25.0)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="tailgate-bench-") as folder:
        kafka, registry = Kafka(Path(folder) / "kafka"), Registry(Path(folder) / "registry")
        kafka.start()
        registry.start()
        engine = EngineProcess(Path(folder) / "lake")
        try:
            Load(kafka.address, registry.url, 0, users=USERS).prepare()
            engine.start()
            for statement in statements(kafka.address, registry.url):
                engine.execute(statement)
            lake = Lake(Path(folder) / "lake")
            out = {}
            sent = 0
            for name, count in (("small", SMALL), ("large", chosen.views)):
                began = time.monotonic()
                history(kafka.address, count - sent)
                until(lambda: caught_up(lake, kafka.address), CATCH_UP_S)
                took = time.monotonic() - began
                load = Load(kafka.address, registry.url, chosen.rate, seed=count, users=USERS)
                load.adopt()
                out[name] = {"views": count, "catch_up_s": round(took, 1), **ticks(engine, load, chosen.seconds)}
                sent = count + load.events
            print(json.dumps({**out, "ratio": round(out["large"]["p50"] / out["small"]["p50"], 2)}))
        finally:
            engine.stop()
            registry.stop()
            kafka.stop()


if __name__ == "__main__":
    main()
