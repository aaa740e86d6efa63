"""The growth of one keyed relation: 10,000,000 rows of Kafka, of which 5,000 random keys change each second.

A source with ENVELOPE UPSERT reads all keys, then the changes at their rate. A gateway mirrors it, and a client looks rows up by
their key, at a fixed rate. Once a second the script compares the newest entry of the log with the newest checkpoint of the
tables. A line on the standard error says every few seconds how far each step is. At the end a table has each value and its mark.

    .venv/bin/python bench/scale.py [--rows 10000000] [--changes 5000] [--look-ups 50] [--for 60]
"""

from __future__ import annotations

import argparse
import base64
import json
import multiprocessing
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from _processes import cpu_s, proportional_mib, scraped, written_mib  # a module of this folder
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from tailgate.embedded.children import Child, free_port
from tailgate.embedded.kafka import Kafka
from tailgate.lake.folder import Lake
from tailgate.lake.tables import checkpoints
from testing.engine_process import EngineProcess

TOPIC = "users"
SOURCE = """CREATE SOURCE users (name text, orders bigint, amount double precision)
    FROM KAFKA BROKER '{kafka}' TOPIC 'users' KEY FORMAT TEXT VALUE FORMAT JSON INCLUDE KEY AS id ENVELOPE UPSERT"""
BROKER = ("-Xms1g", "-Xmx1g")
READY = timedelta(seconds=60)
FILL_S = 1800.0
TABLES_S = 300.0  # until the tables have all rows
MIRROR_S = 300  # until the gateway has answered its first query
LOOK_S = 0.2  # between two looks at a step that has not ended
REPORT_S = 5.0  # between two lines about the progress
WARM_S = 15.0
STEP_S = 0.02  # between two batches of changes
GIB = 1024
UPDATES = "tailgate_gateway_mirror_update_seconds"


class Progress:
    """Lines about the steps of a run, on the standard error, with the seconds since its start."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._next = self._began + REPORT_S

    def say(self, line: str) -> None:
        self._next = time.monotonic() + REPORT_S
        print(f"{time.monotonic() - self._began:6.1f} s  {line}", file=sys.stderr, flush=True)

    def say_state(self, state: Callable[[], str]) -> None:
        """Prints a line if the last one is older than REPORT_S."""
        if time.monotonic() >= self._next:
            self.say(state())

    def until(self, has_ended: Callable[[], bool], state: Callable[[], str], limit_s: float) -> float:
        """Waits until a step has ended, and returns the seconds. Raises AssertionError after `limit_s`."""
        began = time.monotonic()
        while not has_ended():
            self.say_state(state)
            assert time.monotonic() - began < limit_s, f"not within {limit_s} s: {state()}"
            time.sleep(LOOK_S)
        self.say(state())
        return time.monotonic() - began


class Value(NamedTuple):
    """A line of the table."""

    name: str
    value: float
    mark: float


def message(key: int, version: int, name_length: int = 0) -> tuple[str, str]:
    """Returns a key and its value. `name_length`: of a random name, which cannot be compressed well; 0 for one of a thousand names."""
    name = base64.b64encode(random.randbytes(name_length))[:name_length].decode() if name_length else f"name {key % 1000}"
    return f"{key:08}", f'{{"name": "{name}", "orders": {version}, "amount": {version * 0.5}}}'


def producer(kafka: str) -> Producer:
    """Returns a producer. Its messages are compressed: a slow disk would delay the engine, too."""
    return Producer({"bootstrap.servers": kafka, "queue.buffering.max.messages": 1_000_000, "linger.ms": 20, "compression.type": "lz4"})


def produce(kafka: str, rows: int, progress: Progress, name_length: int = 0) -> None:
    """Produces one message for each key, as fast as possible."""
    to = producer(kafka)
    for key in range(rows):
        name, value = message(key, 0, name_length)
        to.produce(TOPIC, value, name)
        if key % 10_000 == 0:
            to.poll(0)
            while len(to) > 500_000:
                to.poll(0.1)
            progress.say_state(lambda: f"{max(key - len(to), 0):,} of {rows:,} messages produced")  # noqa: B023  # called at once
    to.flush()
    progress.say(f"{rows:,} of {rows:,} messages produced")


def change(kafka: str, rows: int, rate: float, name_length: int = 0) -> None:
    """Produces changes of random keys at a rate, until the process is ended."""
    to, began, sent = producer(kafka), time.monotonic(), 0
    while True:
        due = int((time.monotonic() - began) * rate)
        for sent in range(sent + 1, due + 1):  # noqa: B020  # continues after the last one
            name, value = message(random.randrange(rows), sent, name_length)
            to.produce(TOPIC, value, name)
        to.poll(0)
        time.sleep(STEP_S)


class LookUps(threading.Thread):
    """A client that looks up random keys at a fixed rate until `stop`. `seconds`: of each look-up, since it was due."""

    def __init__(self, dsn: str, rows: int, rate: float) -> None:
        super().__init__(daemon=True)
        self._dsn, self._rows, self._rate = dsn, rows, rate
        self._ending = threading.Event()
        self.seconds: list[float] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with psycopg.connect(self._dsn, autocommit=True) as connection:
                due = time.perf_counter()
                while not self._ending.is_set():
                    key = f"{random.randrange(self._rows):08}"
                    row = connection.execute("SELECT name, orders FROM users WHERE id = %s", [key], prepare=True).fetchone()
                    assert row is not None, key
                    self.seconds.append(time.perf_counter() - due)
                    due = max(due + 1 / self._rate, time.perf_counter() - 1.0)  # after a long pause it does not catch up
                    time.sleep(max(0.0, due - time.perf_counter()))
        except BaseException as failure:  # noqa: BLE001  # `stop` raises it
            self.failure = failure

    def stop(self) -> list[float]:
        self._ending.set()
        self.join()
        if self.failure is not None:
            raise self.failure
        return self.seconds


def percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[len(values) * percent // 100]


def behind_s(lake: Lake) -> float:
    """Returns how much older the tables' newest checkpoint is than the newest entry of the log."""
    checkpoint, newest = checkpoints.newest(lake), lake.log.newest()
    assert newest is not None
    return (newest.time - (0 if checkpoint is None else checkpoint.time)) / 1000


def updates(port: int) -> dict[str, float]:
    """Returns the number of updates of the mirrors by the upper limit of their time in seconds."""
    families = text_string_to_metric_families(scraped(port).decode())
    return {s.labels["le"]: s.value for family in families for s in family.samples if s.name == f"{UPDATES}_bucket"}


def update_ms(before: dict[str, float], after: dict[str, float], percent: int) -> float:
    """Returns a percentile of the time of the mirrors' updates, by linear interpolation in its bucket."""
    counts = {limit: count - before.get(limit, 0.0) for limit, count in after.items()}
    rank = max(counts.values()) * percent / 100
    lower, below = 0.0, 0.0
    for limit, count in counts.items():
        if count >= rank:
            return 1000 * (lower + (float(limit) - lower) * (rank - below) / max(count - below, 1.0))
        lower, below = float(limit), count
    raise AssertionError("not reached")


def records_read(lake: Lake) -> int:
    """Returns how many records of the topic the newest entry of the log has read."""
    newest = lake.log.newest()
    assert newest is not None
    return max((topics[TOPIC]["0"] for topics in newest.offsets.values() if TOPIC in topics), default=0)


def listed_entry(lake: Lake) -> int:
    """Returns the entry of the tables' newest checkpoint."""
    checkpoint = checkpoints.newest(lake)
    return 0 if checkpoint is None else checkpoint.n


class Run:
    """The servers of a run: a broker, an engine whose source has all rows, and a gateway after `serve`. They end with `stack`."""

    def __init__(self, rows: int, stack: ExitStack, name_length: int = 0) -> None:
        self.rows, self._stack, self.progress, self._name_length = rows, stack, Progress(), name_length
        self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tailgate-bench-")))
        self.lake_folder = self._folder / "lake"
        self.figures: dict[str, Any] = {"rows": rows}
        self.kafka = self._broker()
        self.engine = self._engine()
        self.lake = Lake(self.lake_folder)
        self._fill()

    def _broker(self) -> str:
        """Starts a broker whose topic has all rows."""
        kafka = Kafka(self._folder / "kafka", jvm=BROKER)
        self._stack.callback(kafka.stop)
        kafka.start()
        kafka.create_topic(TOPIC)
        began = time.monotonic()
        produce(kafka.address, self.rows, self.progress, self._name_length)
        self.figures["produced_s"] = round(time.monotonic() - began, 1)
        return kafka.address

    def _engine(self) -> EngineProcess:
        engine = EngineProcess(self.lake_folder)
        self._stack.callback(engine.stop)
        engine.start()
        self.progress.say("the engine is ready")
        return engine

    def _fill(self) -> None:
        """Creates the source and waits until the log, then the tables have all rows."""
        engine, lake = self.engine, self.lake
        pids = {"driver": engine.pid, "jvm": engine.jvm}
        began, cpu = time.monotonic(), {name: cpu_s(pid) for name, pid in pids.items()}
        engine.execute(SOURCE.format(kafka=self.kafka))

        def state() -> str:
            used = (
                f"{name} {cpu_s(pid) - cpu[name]:.1f} s of CPU, {proportional_mib(pid)} MiB, {written_mib(pid)} MiB written"
                for name, pid in pids.items()
            )
            return f"{records_read(lake):,} of {self.rows:,} records read; the tables have entry {listed_entry(lake)}; {'; '.join(used)}"

        self.progress.until(lambda: records_read(lake) >= self.rows, state, FILL_S)
        self.figures["filled_s"] = round(time.monotonic() - began, 1)
        newest = lake.log.newest()
        assert newest is not None
        # an idle engine appends entries without changes, which no round applies
        self.figures["tables_s"] = round(self.progress.until(lambda: listed_entry(lake) >= newest.n, state, TABLES_S), 1)
        self.figures["fill_cpu_s"] = {name: round(cpu_s(pid) - cpu[name], 1) for name, pid in pids.items()}
        self.figures["fill_written_mib"] = {name: written_mib(pid) for name, pid in pids.items()}

    def serve(self) -> None:
        """Starts a gateway, and waits until it has loaded its mirror."""
        port, self.metrics = free_port(), free_port()
        self.dsn = f"host=127.0.0.1 port={port} user=a dbname=b"
        self.gateway = self._gateway(port)
        self._mirror()

    def _gateway(self, port: int) -> Child:
        words = ["gateway", "--data", str(self.lake_folder), "--listen", f"127.0.0.1:{port}", "--metrics", str(self.metrics)]
        gateway = Child("gateway", [sys.executable, "-m", "tailgate", *words], log=self._folder / "gateway.log", announces="ready ")
        self._stack.callback(gateway.stop)
        gateway.wait_ready(gateway.announced, READY)
        self.progress.say("the gateway is ready")
        return gateway

    def _mirror(self) -> None:
        def count() -> Any:
            with psycopg.connect(self.dsn, autocommit=True) as connection:
                connection.execute(f"SET statement_timeout = '{MIRROR_S} s'")
                return connection.execute("SELECT count(*) FROM users").fetchone()

        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(count)
            loaded_s = self.progress.until(answer.done, lambda: f"the gateway has {proportional_mib(self.gateway.pid)} MiB", MIRROR_S)
        assert answer.result() == (self.rows,)
        self.figures["mirrored_s"] = round(loaded_s, 1)

    def change(self, rate: float) -> None:
        """Changes random rows at a rate, in a process that ends with the run."""
        spawned = multiprocessing.get_context("spawn")
        changes = spawned.Process(target=change, args=(self.kafka, self.rows, rate, self._name_length), daemon=True)
        changes.start()
        self._stack.callback(changes.kill)

    def measured(self, rate: float, look_ups: float, seconds: float) -> list[Value]:
        """Changes rows and looks rows up at their rates. Returns the values with marks."""
        self.change(rate)
        time.sleep(WARM_S)
        self.progress.say(f"{WARM_S:.0f} s of changes have warmed up the processes; now they are measured for {seconds:.0f} s")
        client = LookUps(self.dsn, self.rows, look_ups)
        client.start()
        pids = {"driver": self.engine.pid, "jvm": self.engine.jvm, "gateway": self.gateway.pid}
        before, cpu = updates(self.metrics), {name: cpu_s(pid) for name, pid in pids.items()}
        behind, memory = [behind_s(self.lake)], [proportional_mib(self.gateway.pid)]
        first, until_s = self.lake.log.newest(), time.monotonic() + seconds
        while time.monotonic() < until_s:
            time.sleep(1.0)
            behind.append(behind_s(self.lake))
            memory.append(proportional_mib(self.gateway.pid))
            self.progress.say_state(lambda: f"the tables are {behind[-1]:.1f} s behind; the gateway has {memory[-1]} MiB")
        last, after = self.lake.log.newest(), updates(self.metrics)
        assert first is not None
        assert last is not None
        self.figures["cores"] = {name: round((cpu_s(pid) - cpu[name]) / seconds, 2) for name, pid in pids.items()}
        looked_up = client.stop()
        self.figures |= {
            "changes_per_s": rate,
            "ticks_per_s": round((last.n - first.n) / seconds, 1),
            "update_p50_ms": round(update_ms(before, after, 50), 1),
            "look_up_p50_ms": round(percentile(looked_up, 50) * 1000, 1),
        }
        return [
            Value("tables behind the log, s, p95", percentile(behind, 95), 3),
            Value("update of the mirror, ms, p95", update_ms(before, after, 95), 10),
            Value("look-up by key, ms, p95", percentile(looked_up, 95) * 1000, 5),
            Value("memory of the gateway, GiB", max(memory) / GIB, 3),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--changes", type=float, default=5000.0, help="changed keys per second (%(default)s)")
    parser.add_argument("--look-ups", type=float, default=50.0, help="per second (%(default)s)")
    parser.add_argument("--for", dest="seconds", type=float, default=60.0, metavar="SECONDS", help="measured interval (%(default)s)")
    options = parser.parse_args()
    with ExitStack() as stack:
        run = Run(options.rows, stack)
        run.serve()
        values = run.measured(options.changes, options.look_ups, options.seconds)
    print(f"{'':32} {'measured':>10} {'mark':>6}")
    for value in values:
        print(f"{value.name:32} {value.value:10.1f} {value.mark:6.0f}  {'reached' if value.value <= value.mark else 'MISSED'}")
    print(json.dumps(run.figures))


if __name__ == "__main__":
    main()
