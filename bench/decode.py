"""Decoding on one core, in a Spark task, in rows per second of CPU; fastavro and `from_json` for comparison.

    .venv/bin/python bench/decode.py [--seconds 10] [--only json]

`decoded`: from bytes to the format's row. `rows`: to the source's columns in their stored form. The
marks for `rows` per second are 700,000 for Debezium in Avro, 300,000 for page views in JSON, 150,000 for
Debezium in JSON without schemas, and 20,000 with a schema in each message. The Debezium messages are
recorded ones of a table of users. CPU is that of the thread, so other load has little influence.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import struct
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import fastavro

from tailgate.engine.ddl import Registry, create_source
from tailgate.engine.plan.views import catalog_graph
from tailgate.engine.plan.views.streams import Streams
from tailgate.engine.runtime.spark import session as spark
from tailgate.engine.runtime.spark.circuits import Circuits
from tailgate.lake.catalog import Catalog, Change
from tailgate.sql.statements import CreateSource, parse
from testing.change_data import messages, registry_of_fixtures, schemas

TESTS = Path(__file__).parent.parent / "tailgate" / "engine" / "java" / "target" / "test-classes"  # has the loop that runs in the task
USERS = "(id bigint, email text, name text, is_vip boolean, created_at timestamptz, birthday date, PRIMARY KEY (id) NOT ENFORCED)"
VIEWS = "(user_id int, url text, channel text, received_at timestamptz)"
DEBEZIUM = "CREATE SOURCE s {columns} FROM KAFKA BROKER 'k' TOPIC '{folder}.public.users' {format} ENVELOPE DEBEZIUM"
MARKS = {"Debezium Avro": 700_000, "page views, JSON": 300_000, "Debezium JSON": 150_000, "Debezium JSON with schemas": 20_000}


Message = tuple[bytes, bytes]  # key and value; an empty key means none


def users(folder: str) -> list[Message]:
    values = (m for m in messages(folder, "public.users") if m["value_b64"] is not None)
    return [(base64.b64decode(m["key_b64"]), base64.b64decode(m["value_b64"])) for m in values]


def unkeyed(values: Iterable[str]) -> list[Message]:
    return [(b"", v.encode()) for v in values]


def page_views() -> list[Message]:
    def one(i: int) -> dict[str, Any]:
        channel = ("social", "search", "mail")[i % 3]
        return {"user_id": 7 * i, "url": f"/products/{i}", "channel": channel, "received_at": "2026-01-01T10:00:05Z"}

    return unkeyed(json.dumps(one(i)) for i in range(100))


def measured(session: Any, statement: str, values: list[Message], seconds: float) -> dict[str, Any]:
    """Measures a source. Returns rows per second of CPU and of elapsed time."""
    parsed = parse(statement)
    assert isinstance(parsed, CreateSource)
    catalog = Catalog().apply(Change(put=create_source(parsed, statement, Catalog(), Registry())))
    circuits = Circuits(session)
    (source,) = (s for s in catalog_graph.compile_catalog(catalog, Streams(catalog)).sources)
    decoder = circuits.decoder(source.decoder)
    shape = circuits.shape(str(decoder.schema().toDDL()), source.shape)
    packed = b"".join(struct.pack(">ii", len(k), len(v)) + k + v for k, v in values)
    n, cpu, wall, decoding = session._jvm.tailgate.sources.Decoding.measured(session._jsparkSession, decoder, shape, packed, seconds)
    return {"rows": round(n / cpu * 1e9), "decoded": round(n / decoding * 1e9), "rows_by_the_clock": round(n / wall * 1e9)}


def fastavro_users(folder: str, values: list[Message], seconds: float) -> int:
    parsers = {s["id"]: fastavro.parse_schema(json.loads(s["schema"])) for s in schemas(folder)}

    def once() -> None:
        for _, v in values:
            fastavro.schemaless_reader(io.BytesIO(v[5:]), parsers[int.from_bytes(v[1:5], "big")], None)

    return rate(once, len(values), seconds, time.process_time)


def from_json(session: Any, values: list[Message], columns: str, seconds: float) -> int:
    """Measures Spark's from_json in rows per second of the JVM's CPU, with whole batches in one task."""
    frame = session.createDataFrame([(v.decode(),) for _, v in values * 1000], "value string").coalesce(1).cache()
    frame.count()
    parsed = frame.selectExpr(f"from_json(value, '{columns}', map('mode', 'PERMISSIVE')) AS v").selectExpr("v.*")

    def cpu() -> float:
        return int(session._jvm.java.lang.ProcessHandle.current().info().totalCpuDuration().get().toNanos()) / 1e9

    return rate(lambda: parsed.write.format("noop").mode("overwrite").save(), 1000 * len(values), seconds, cpu)


def rate(once: Callable[[], None], count: int, seconds: float, cpu: Callable[[], float]) -> int:
    """Returns the rate per CPU second, after a warm-up of the same length."""
    n, began = 0, cpu()
    while cpu() - began < seconds:
        once()
    began = cpu()
    while cpu() - began < seconds:
        once()
        n += count
    return round(n / (cpu() - began))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    os.environ.setdefault("SPARK_DIST_CLASSPATH", str(TESTS))
    with tempfile.TemporaryDirectory(prefix="tailgate-bench-") as scratch, registry_of_fixtures() as registry:
        session = spark.start(Path(scratch), 1)
        try:
            avro = f"FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{registry}/postgres-avro'"
            views = "FROM KAFKA BROKER 'k' TOPIC 'v'"
            cases: dict[str, tuple[str, list[Message]]] = {
                "Debezium Avro": (DEBEZIUM.format(columns="", folder="postgres-avro", format=avro), users("postgres-avro")),
                "page views, JSON": (f"CREATE MATERIALIZED SOURCE s {VIEWS} {views} FORMAT JSON", page_views()),
                "page views, JSON as jsonb": (f"CREATE MATERIALIZED SOURCE s {views} FORMAT JSON", page_views()),
                "Debezium JSON": (DEBEZIUM.format(columns=USERS, folder="postgres-json", format="FORMAT JSON"), users("postgres-json")),
                "Debezium JSON with schemas": (
                    DEBEZIUM.format(columns=USERS, folder="postgres-jsonschema", format="FORMAT JSON"),
                    users("postgres-jsonschema"),
                ),
                "lines, CSV": (
                    f"CREATE MATERIALIZED SOURCE s (id int, name text, price numeric(9,2)) {views} FORMAT CSV WITH 3 COLUMNS",
                    unkeyed(f"{i},name {i},{i}.50" for i in range(100)),
                ),
            }
            for name, (statement, values) in cases.items():
                if options.only in name:
                    rates = measured(session, statement, values, options.seconds)
                    size = round(sum(len(v) for _, v in values) / len(values))
                    print(json.dumps({"format": name, "bytes": size, **rates, "mark": MARKS.get(name)}), flush=True)
            if options.only in "fastavro":
                rates = {"rows": fastavro_users("postgres-avro", users("postgres-avro"), options.seconds / 2)}
                print(json.dumps({"format": "Debezium Avro, fastavro", **rates}), flush=True)
            if options.only in "from_json":
                columns = "user_id int, url string, channel string, received_at timestamp"
                rates = {"rows": from_json(session, page_views(), columns, options.seconds / 2)}
                print(json.dumps({"format": "page views, Spark's from_json", **rates}), flush=True)
        finally:
            session.stop()


if __name__ == "__main__":
    main()
