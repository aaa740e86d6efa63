"""Tests log_statement and log_min_duration_statement with a gateway's process."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tailgate.embedded.children import free_port
from tests.gateway.serving.model_lake import ModelLake
from tests.operations.test_gateway_log import connected

SECRET = "a very secret word"
MODIFYING = (
    "delete from v",
    "merge into v using v as s on v.id = s.id when matched then delete",
    "with d as (delete from v) select 1",
    "explain analyze delete from v",
)  # which fail, because v is a view
DEFINING = (
    "alter system set nothing = 1",
    "refresh materialized view nothing",
    "cluster nothing using nothing",
    "silence nothing until '2030-01-01'",
)  # which fail, because there is no such object
DURATION = r"duration: \d+\.\d{3} ms"


def test_statements_are_logged(tmp_path: Path) -> None:
    lake = ModelLake(tmp_path / "lake")
    view = lake.create("v")
    lake.tick({view.id: [((1, "x", 1.0), 1)]})
    port, log = free_port(), tmp_path / "gateway.log"
    words = ["gateway", "--data", str(lake.lake.path), "--listen", f"127.0.0.1:{port}", "--log", "json"]
    with log.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-m", "tailgate", *words], stdout=subprocess.DEVNULL, stderr=file)
    try:
        with connected(port) as connection:
            pid = connection.info.backend_pid
            run(connection)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        lake.writer.close()
    events = [json.loads(line) for line in log.read_text().splitlines()]
    logged = [event for event in events if event["logger"] == "tailgate.gateway.statements"]
    lines = [event["message"] for event in logged for _ in range(event.get("repeated", 1))]
    prefix = f"pid={pid} role=ann application_name=a\\nb "
    assert all(line.startswith(prefix) for line in lines)
    texts = [line.removeprefix(prefix) for line in lines]
    for number in range(3):  # the first is executed, later ones are answered from memory
        assert one(texts, rf"{DURATION}  statement: select {number}, id from v") >= 1
    repeated = [text for text in texts if text.endswith("statement: select id from v")]
    assert len(repeated) == 3
    assert one(texts, rf"{DURATION}  execute <unnamed>: select name from v where id = \$1") == 3
    assert "987654321" not in log.read_text()
    assert SECRET not in log.read_text()
    assert one(texts, rf"{DURATION}  statement: select 'password', '\*{{8}}'") + one(texts, r".*'\*{8}', '\*{8}'") == 1
    assert max(map(len, texts)) < 4200
    assert texts.count("statement: select 7") == 1
    assert all(texts.count(f"statement: {modifying}") == 1 for modifying in MODIFYING)
    assert not any("explain delete" in text for text in texts)
    assert all(texts.count(f"statement: {text}") == 1 for text in ("drop stream nothing", *DEFINING))
    assert not any("insert into v" in text for text in texts)
    assert not any("select 8" in text or "select 9" in text for text in texts)


def one(texts: list[str], pattern: str) -> int:
    return sum(re.fullmatch(pattern, text) is not None for text in texts)


def run(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    execute = connection.pgconn.exec_
    execute(b"select 9")  # off
    execute(b"set application_name = E'a\nb'")
    execute(b"set log_min_duration_statement = 0")
    for number in range(3):
        execute(f"select {number}, id from v".encode())
    for _ in range(3):
        execute(b"select id from v")
        connection.pgconn.exec_params(b"select name from v where id = $1", [b"987654321"])
    execute(f"select 'password', '{SECRET}'".encode())
    execute(b"select '" + b"y" * 10_000 + b"'")
    execute(b"set log_min_duration_statement = '1h'")
    execute(b"select 8")
    execute(b"set log_statement = 'all'")
    execute(b"select 7")
    execute(b"set log_statement = 'mod'")
    execute(b"select 9")
    for modifying in MODIFYING:
        execute(modifying.encode())
    execute(b"explain delete from v where id = 9")
    execute(b"set log_statement = 'ddl'")
    execute(b"set tailgate.dialect = 'ksqldb'")
    execute(b"insert into v (id) values (8)")
    execute(b"drop stream nothing")
    execute(b"reset tailgate.dialect")
    for defining in DEFINING:
        execute(defining.encode())
    execute(b"set log_statement = 'mod'")
    assert connection.execute("show log_statement").fetchone() == ("mod",)
    assert connection.execute("show log_min_duration_statement").fetchone() == ("1h",)
    connection.execute("set log_min_duration_statement = -1")
    assert connection.execute("show log_min_duration_statement").fetchone() == ("-1",)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"-2 ms is outside the valid range .*\(-1 \.\. 2147483647\)"):
        connection.execute("set log_min_duration_statement = -2")
