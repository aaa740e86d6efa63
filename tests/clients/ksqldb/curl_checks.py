"""curl over HTTP/1.1 and, by prior knowledge, over HTTP/2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "clients" / "python"))
from tap import check, done

URL = f"http://127.0.0.1:{os.environ['KSQLDB_PORT']}"


def curl(*arguments: str, stdin: str = "") -> str:
    run = subprocess.run(["curl", "-sS", "--max-time", "60", *arguments], input=stdin, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{run.returncode}: {run.stderr}"
    return run.stdout


def posted(path: str, body: Any, *arguments: str) -> str:
    return curl(*arguments, "-X", "POST", "-d", json.dumps(body), f"{URL}{path}")


for version, name in (("--http1.1", "1"), ("--http2-prior-knowledge", "2")):
    stream = f"CURL_{name}"
    with check(f"{version}: info and health"):
        assert (
            curl(version, "-o", "/dev/null", "-w", "%{http_version} %{http_code}", f"{URL}/info") == f"{'1.1' if name == '1' else '2'} 200"
        )
        assert json.loads(curl(version, f"{URL}/info"))["KsqlServerInfo"]["version"]
        assert json.loads(curl(version, f"{URL}/healthcheck"))["isHealthy"] is True
    with check(f"{version}: a statement"):
        sql = f"CREATE STREAM {stream} (id INT KEY, name VARCHAR) WITH (kafka_topic='{stream}', partitions=1, value_format='JSON');"
        (answer,) = json.loads(posted("/ksql", {"ksql": sql}, version))
        assert answer["commandStatus"]["status"] == "SUCCESS", answer
    with check(f"{version}: a stream of inserts whose body comes in parts"):
        body = f'{{"target":"{stream}"}}\n' + "".join(f'{{"ID":{i},"NAME":"n{i}"}}\n' for i in range(3))
        acks = curl(version, "-T", "-", "-X", "POST", f"{URL}/inserts-stream", stdin=body)
        assert [json.loads(line)["status"] for line in acks.splitlines()] == ["ok"] * 3, acks
    with check(f"{version}: a push query with LIMIT"):
        query = {"sql": f"SELECT * FROM {stream} EMIT CHANGES LIMIT 3;", "properties": {"auto.offset.reset": "earliest"}}
        delimited = posted("/query-stream", query, version, "-H", "Accept: application/vnd.ksqlapi.delimited.v1")
        assert [json.loads(line) for line in delimited.splitlines()][1:] == [[i, f"n{i}"] for i in range(3)], delimited
        old = posted("/query", {"ksql": query["sql"], "streamsProperties": query["properties"]}, version)
        assert [entry["row"]["columns"] for entry in json.loads(old) if "row" in entry] == [[i, f"n{i}"] for i in range(3)], old
    with check(f"{version}: an error"):
        status = posted("/ksql", {"ksql": "DROP STREAM nothing;"}, version, "-o", "/dev/null", "-w", "%{http_code}")
        assert status == "400", status
done()
