"""PyPI's ksqldb: statements by requests over HTTP/1.1, queries and inserts by httpx over HTTP/2 with prior knowledge."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from ksqldb import KSQLdbClient

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "clients" / "python"))
from tap import check, done

URL = f"http://127.0.0.1:{os.environ['KSQLDB_PORT']}"
EARLIEST = {"auto.offset.reset": "earliest"}
client = KSQLdbClient(URL)

with check("properties"):
    names = {p["name"] for p in client.get_properties()}
    assert {"ksql.streams.auto.offset.reset", "ksql.functions.collect_list.limit"} <= names, names
with check("creates a stream and a table over it"):
    client.ksql(
        "CREATE STREAM py_readings (sensor VARCHAR KEY, value DOUBLE) WITH (kafka_topic='py_readings', partitions=1, value_format='JSON');"
    )
    (created,) = client.ksql(
        "CREATE TABLE py_averages AS SELECT sensor, AVG(value) AS average, COUNT(*) AS n FROM py_readings GROUP BY sensor;", EARLIEST
    )
    assert created["commandStatus"]["status"] == "SUCCESS", created
with check("inserts with an ack for each row"):
    acks = client.inserts_stream("PY_READINGS", [{"SENSOR": f"s{i % 2}", "VALUE": float(i)} for i in range(10)])
    assert [(ack["status"], ack["seq"]) for ack in acks] == [("ok", i) for i in range(10)], acks


async def pushed(limit: int) -> list[Any]:
    sql = f"SELECT sensor, value FROM py_readings EMIT CHANGES LIMIT {limit};"
    return [row async for row in client.query_async(sql, EARLIEST, timeout=60)]


with check("a push query from the first record"):
    header, *rows = asyncio.run(pushed(10))
    assert header["columnNames"] == ["SENSOR", "VALUE"], header
    assert rows == [[f"s{i % 2}", float(i)] for i in range(10)], rows
with check("a pull query by key sees the inserts"):
    for _ in range(100):
        header, *rows = client.query_sync("SELECT * FROM py_averages WHERE sensor = 's1';", timeout=30)
        if rows and rows[0][2] == 5:
            break
    assert rows == [["s1", 5.0, 5]], rows


async def closed() -> bool:
    """Closes a push query by its id and reads it to its end."""
    rows = client.query_async("SELECT * FROM py_readings EMIT CHANGES;", timeout=60)
    header = await anext(rows)
    assert await asyncio.to_thread(client.close_query, header["queryId"])
    return [row async for row in rows] == []


with check("close-query ends a push query"):
    assert asyncio.run(closed())
    assert not client.close_query("nothing")
done()
