"""PyPI's ksql: statements and queries over HTTP/1.1, and queries and inserts over HTTP/2 by hyper, which asks for an upgrade first."""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import json
import os
import sys
import time
from pathlib import Path

for name in ("Iterable", "Mapping", "MutableMapping", "MutableSet"):  # hyper looks for them where Python 3.9 had them
    setattr(collections, name, getattr(collections.abc, name))
from ksql import KSQLAPI  # noqa: E402
from ksql.errors import KSQLError  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "clients" / "python"))
from tap import check, done, raises  # noqa: E402

EARLIEST = {"auto.offset.reset": "earliest"}
client = KSQLAPI(f"http://127.0.0.1:{os.environ['KSQLDB_PORT']}", timeout=60)

with check("version and properties"):
    assert client.get_ksql_version()
    assert "auto.offset.reset" in {p["name"] for p in client.get_properties()}
with check("creates a stream"):
    client.ksql(
        "CREATE STREAM old_visits (userid VARCHAR KEY, viewtime BIGINT) WITH (kafka_topic='old_visits', partitions=1, value_format='JSON')"
    )
with check("inserts with acks"):
    acks = client.inserts_stream("OLD_VISITS", [{"USERID": f"u{i}", "VIEWTIME": i} for i in range(5)])
    assert [ack["status"] for ack in acks] == ["ok"] * 5, acks
with check("a push query over HTTP/1.1"):
    chunks = []
    with contextlib.suppress(RuntimeError):  # ksql 0.10 raises it after the last chunk
        chunks.extend(client.query("SELECT userid, viewtime FROM old_visits EMIT CHANGES LIMIT 5", stream_properties=EARLIEST))
    text = "".join(chunks)
    assert [entry["row"]["columns"] for entry in json.loads(text) if "row" in entry] == [[f"u{i}", i] for i in range(5)], text
with check("a push query as objects"):
    rows = client.query("SELECT userid, viewtime FROM old_visits EMIT CHANGES LIMIT 5", stream_properties=EARLIEST, return_objects=True)
    assert list(rows) == [{"USERID": f"u{i}", "VIEWTIME": i} for i in range(5)]
with check("a push query over HTTP/2"):
    sql = "SELECT userid, viewtime FROM old_visits EMIT CHANGES LIMIT 5"
    text = "".join(client.query(sql, stream_properties=EARLIEST, use_http2=True))
    assert [json.loads(line) for line in text.splitlines()][1:] == [[f"u{i}", i] for i in range(5)], text
with check("a derived stream by the library's builder"):
    client.create_stream_as("old_views", ["userid", "viewtime"], "old_visits", conditions="viewtime > 2")
    deadline = time.monotonic() + 30
    while "OLD_VIEWS" not in {s["name"] for s in client.ksql("LIST STREAMS")[0]["streams"]}:
        assert time.monotonic() < deadline
with check("errors"):
    raises(KSQLError, client.ksql, "DROP STREAM nothing")
done()
