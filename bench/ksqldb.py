"""Measures ksqlDB's dialect over its HTTP API: statements, chained queries, a join as of arrival, pull and push queries.

    .venv/bin/python bench/ksqldb.py [--only PART …] [--items 100] [--records 300000] [--ratings 1000000] [--for 20]

Each part starts a broker and a Tailgate; all processes run on two cores.

    definitions   the time of CREATE STREAM, CREATE STREAM and TABLE … AS over an empty topic, and DROP, with 100 items in place
    chain         the delay from the producer's call to the topic of the third of three chained queries, at 1,000 events/s,
                  after a warm-up as that of bench/freshness.py; and the steps of a tick's oldest event: its wait for the tick,
                  the tick up to its entry in the log, and the sink from there to the topic's reader
    projection    records per second from a JSON topic through a query without state to a JSON topic
    join          1,000,000 ratings joined as of arrival with 10,000 customers, each changed once, from the first record
    pull          pull queries by key over 16 connections, while the table changes
    push          the delay of a change to the readers of 100 push queries

The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

from bench._ksqldb import Push as PushQueries
from bench._ksqldb import System, pulls, records, running, steps
from bench._load import quantiles
from bench.w1 import report
from bench.w1.turns import BROKER

# name of the figure: (unit and meaning, mark, whether the mark is a minimum)
MARKS = {
    "create_stream_ms": ("CREATE STREAM, ms", 300, False),
    "create_stream_as_ms": ("CREATE STREAM … AS, ms", 1_500, False),
    "create_table_as_ms": ("CREATE TABLE … AS, ms", 1_500, False),
    "drop_ms": ("DROP of a derived item, ms", 500, False),
    "chain_p50_ms": ("three chained queries, p50, ms", 150, False),
    "chain_p95_ms": ("three chained queries, p95, ms", 300, False),
    "projection_per_s": ("JSON to JSON, records/s", 30_000, True),
    "join_s": ("join as of arrival, s", 40, False),
    "join_mib": ("join as of arrival, peak MiB", 2_048, False),
    "pulls_per_s": ("pull queries/s", 2_000, True),
    "pull_p95_ms": ("pull query, p95, ms", 10, False),
    "push_p95_ms": ("change to 100 push queries, p95, ms", 250, False),
}
REPEATED = 10  # statements of each kind
READINGS = "CREATE STREAM readings (k VARCHAR KEY, id BIGINT, area VARCHAR) WITH (kafka_topic = 'readings', value_format = 'json');"
KEYS = 1_000
EVERY_S = 0.002  # between two batches of a load
WARM_UP_S = 15  # of chained queries, while the JVM compiles
CHANGE_S = 0.1  # between two changes that push queries wait for


def definitions(system: System, chosen: argparse.Namespace) -> dict[str, float]:
    declared = "CREATE STREAM {0} (k VARCHAR KEY, id BIGINT) WITH (kafka_topic = '{0}', value_format = 'json', partitions = 1);"
    derived = "CREATE STREAM {0} AS SELECT k, id + 1 AS id FROM i0;"
    table = "CREATE TABLE {0} AS SELECT k, COUNT(*) AS n FROM i0 GROUP BY k;"
    for n in range(chosen.items):
        system.run((declared if n % 2 == 0 else derived).format(f"i{n}"))

    def timed(statement: str, name: str) -> float:
        return statistics.median(system.run(statement.format(f"{name}{n}")) for n in range(REPEATED)) * 1000

    return {
        "create_stream_ms": timed(declared, "declared"),
        "create_stream_as_ms": timed(derived, "derived"),
        "create_table_as_ms": timed(table, "counts"),
        "drop_ms": timed("DROP STREAM {0};", "derived"),
    }


def chain(system: System, chosen: argparse.Namespace) -> dict[str, float]:
    system.create("readings")
    system.run(READINGS)
    system.run("CREATE STREAM first AS SELECT k, id, UCASE(area) AS area FROM readings;")
    system.run("CREATE STREAM second AS SELECT k, id, area FROM first WHERE id >= 0;")
    system.run("CREATE STREAM third AS SELECT k, id, CONCAT(area, '!') AS area FROM second;")
    rate = 1_000
    warm = WARM_UP_S * rate
    count = round(chosen.seconds * rate) + warm
    epoch = time.time() - time.perf_counter()
    sent, arrived = [0.0] * count, [0.0] * count  # in seconds since the epoch

    def load() -> None:
        producer, began = system.producer(), time.perf_counter()
        for n in range(count):
            while (wait := began + n / rate - time.perf_counter()) > 0:
                producer.poll(min(wait, EVERY_S))
            sent[n] = epoch + time.perf_counter()
            producer.produce("readings", key=f"k{n % KEYS}", value=json.dumps({"id": n, "area": "north"}))
        producer.flush()

    thread = threading.Thread(target=load)
    thread.start()
    numbers: set[int] = set()
    for record in records(system.reader("THIRD")):
        number = json.loads(record.value() or b"{}")["ID"]
        assert number not in numbers, "an event is twice in the topic"
        numbers.add(number)
        arrived[number] = epoch + time.perf_counter()
        if len(numbers) == count:
            break
    thread.join()
    figures = quantiles([arrived[n] - sent[n] for n in range(warm, count)])
    out = {"chain_p50_ms": figures["p50"], "chain_p95_ms": figures["p95"], "chain_max_ms": figures["max"]}
    for step, seconds in steps(system.data, "third", "id", sent, arrived, warm).items():
        out |= {f"chain_{step}_{part}_ms": quantiles(seconds)[part] for part in ("p50", "p95")}
    return out


def projection(system: System, chosen: argparse.Namespace) -> dict[str, float]:
    system.create("readings")
    fill(system, "readings", chosen.records, lambda n: (f"k{n % KEYS}", {"id": n, "area": "north"}))
    system.run(READINGS)
    began = time.perf_counter()
    system.run("CREATE STREAM upper AS SELECT k, id, UCASE(area) AS area FROM readings;")
    taken(system, "UPPER", chosen.records)
    return {"projection_per_s": chosen.records / (time.perf_counter() - began)}


def join(system: System, chosen: argparse.Namespace) -> dict[str, float]:
    customers = 10_000
    system.create("customers", "ratings")
    fill(
        system, "customers", 2 * customers, lambda n: (str(n % customers), {"name": f"customer {n % customers}", "status": n // customers})
    )
    fill(system, "ratings", chosen.ratings, lambda n: (str(n), {"user_id": n % customers, "stars": n % 5}))
    system.run(
        "CREATE TABLE customers (id VARCHAR PRIMARY KEY, name VARCHAR, status INT) WITH (kafka_topic = 'customers', value_format = 'json');"
    )
    system.run("CREATE STREAM ratings (user_id INT, stars INT) WITH (kafka_topic = 'ratings', value_format = 'json');")
    began = time.perf_counter()
    system.run(
        "CREATE STREAM rated AS SELECT CAST(r.user_id AS VARCHAR) AS user_id, r.stars, c.name, c.status FROM ratings r"
        " JOIN customers c ON CAST(r.user_id AS VARCHAR) = c.id;"
    )
    taken(system, "RATED", chosen.ratings)
    return {"join_s": time.perf_counter() - began, "join_mib": system.usage.peak_mib["tailgate"]}


def pull(system: System, chosen: argparse.Namespace) -> dict[str, float]:
    system.create("readings")
    fill(system, "readings", 10 * KEYS, lambda n: (f"k{n % KEYS}", {"id": n, "area": "north"}))
    system.run(READINGS)
    system.run("CREATE TABLE counts AS SELECT k, COUNT(*) AS n FROM readings GROUP BY k;")
    ended = threading.Event()

    def load() -> None:
        producer, n = system.producer(), 0
        while not ended.wait(0.005):
            producer.produce("readings", key=f"k{n % KEYS}", value=json.dumps({"id": n, "area": "north"}))
            producer.poll(0)
            n += 1
        producer.flush()

    thread = threading.Thread(target=load)
    thread.start()
    statements = [f"SELECT k, n FROM counts WHERE k = 'k{n}';" for n in range(KEYS)]
    try:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            pool.apply(pulls, (system.port, 4, 3.0, statements))  # not measured
            latencies = pool.apply(pulls, (system.port, 16, chosen.seconds, statements))
    finally:
        ended.set()
        thread.join()
    return {"pulls_per_s": len(latencies) / chosen.seconds, "pull_p95_ms": quantiles(latencies)["p95"]}


def push(system: System, chosen: argparse.Namespace) -> dict[str, float]:
    system.create("readings")
    system.run(READINGS)
    system.run("CREATE TABLE newest AS SELECT k, LATEST_BY_OFFSET(id) AS id FROM readings GROUP BY k;")
    queries, warm = 100, 20
    clients = PushQueries(system.port, "SELECT k, id FROM newest EMIT CHANGES;", queries)
    producer, ages = system.producer(), []
    try:
        time.sleep(5)  # each query is followed by then
        for n in range(warm + round(chosen.seconds / CHANGE_S)):
            sent = time.perf_counter()
            producer.produce("readings", key="k", value=json.dumps({"id": n, "area": "north"}))
            producer.flush()
            arrived = clients.arrived(queries, 60.0)
            assert {number for number, _ in arrived} == {n}, "a change is missing or twice"
            ages += [at - sent for _, at in arrived] if n >= warm else []
            time.sleep(max(CHANGE_S - (time.perf_counter() - sent), 0))
    finally:
        clients.close()
    return {"push_p95_ms": quantiles(ages)["p95"]}


def fill(system: System, topic: str, count: int, message: Callable[[int], tuple[str, dict[str, Any]]]) -> None:
    """Produces messages, and waits until all are acknowledged."""
    producer = system.producer()
    for n in range(count):
        key, value = message(n)
        producer.produce(topic, key=key, value=json.dumps(value))
        if n % 1_000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0


def taken(system: System, topic: str, count: int) -> None:
    """Reads `count` records of a topic."""
    reader = system.reader(topic)
    for _, _record in zip(range(count), records(reader), strict=False):
        pass
    reader.close()


PARTS = {"definitions": definitions, "chain": chain, "projection": projection, "join": join, "pull": pull, "push": push}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--ratings", type=int, default=1_000_000)
    parser.add_argument("--for", dest="seconds", type=float, default=20.0, help="measured interval of chain, pull and push")
    chosen = parser.parse_args()
    report.use_cores()
    print(report.header(), flush=True)
    print(report.head(("figure", "measured", "mark")), flush=True)
    out: dict[str, float] = {}
    for part in chosen.only:
        with running(BROKER) as system:
            figures = PARTS[part](system, chosen)
        out |= figures
        for name, value in figures.items():
            meaning, limit, least = MARKS.get(name, (name, None, False))
            print(report.line((meaning, round(value, 1), report.mark(value, limit, least))), flush=True)
    print()
    print(json.dumps({name: round(value, 2) for name, value in out.items()}))


if __name__ == "__main__":
    main()
