"""Tests the log of a gateway's process: JSON, without values of rows and without secrets."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tailgate.embedded.children import free_port
from tests.gateway.serving.model_lake import ModelLake

VALUE = "a value of a row"
SECRET = "a very secret word"
READY_S = 120.0
STATEMENTS = (
    f"SELECT '{VALUE}'::int",
    "SELECT name::int FROM v",
    "SELECT 1 / (id - id) FROM v",
    f"CREATE ROLE x LOGIN PASSWORD '{SECRET}'",
    f"CREATE SECRET y AS '{SECRET}'",
    f"SELEC '{SECRET}'",
    f"INSERT INTO v VALUES (1, '{VALUE}', 1)",
    "TAIL nothing",
)


def test_the_log_is_json_without_values_and_secrets(tmp_path: Path) -> None:
    lake = ModelLake(tmp_path / "lake")
    view = lake.create("v")
    lake.tick({view.id: [((1, VALUE, 1.0), 1)]})
    port, log = free_port(), tmp_path / "gateway.log"
    words = ["gateway", "--data", str(lake.lake.path), "--listen", f"127.0.0.1:{port}", "--log", "json", "--metrics", "0"]
    with log.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-m", "tailgate", *words], stdout=subprocess.DEVNULL, stderr=file)
    try:
        with connected(port) as connection:
            for _ in range(3):
                for statement in STATEMENTS:
                    with pytest.raises(psycopg.Error):
                        connection.execute(statement)  # type: ignore[call-overload]
        (lake.lake.path / "log").rename(lake.lake.path / "moved")
        deadline = time.monotonic() + 60
        while "cannot be followed" not in log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        (lake.lake.path / "moved").rename(lake.lake.path / "log")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        lake.writer.close()
    text = log.read_text()
    assert VALUE not in text and SECRET not in text
    lines = [line for line in text.splitlines() if not line.startswith("metrics http://")]
    events = [json.loads(line) for line in lines]
    assert {event["process"] for event in events} == {"gateway"}
    followed = [event for event in events if "cannot be followed" in event["message"]]
    assert followed
    assert followed[0]["error"][1].startswith("tailgate/gateway/mirrors/")


def connected(port: int) -> psycopg.Connection[tuple[object, ...]]:
    deadline = time.monotonic() + READY_S
    while True:
        try:
            return psycopg.connect(f"host=127.0.0.1 port={port} user=ann dbname=shop", autocommit=True)
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
