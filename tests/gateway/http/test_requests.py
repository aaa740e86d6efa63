"""The log of requests, their metrics and statistics, and the initial values of settings, with a gateway's process."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from tailgate.gateway.freshness import latencies
from tailgate.lake.catalog import Endpoint
from tailgate.operations.sketch import STEP_S
from tests.authorization.world import World
from tests.gateway.http.conftest import Web
from tests.operations.test_gateway_log import connected

CLIENT = "client=127.0.0.1 role=tailgate"
DURATION = r"\d+\.\d{3} ms"
OPTIONS = ("--http", "127.0.0.1:0", "--http-log", "--metrics", "0", "--set", "statement_timeout = 30s", "--set", "log_statement=ddl")


def answered(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_the_latency_of_endpoints(world: World, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gateways report the latencies of each step to `tailgate watch` when the step has ended, and forget endpoints that were dropped."""
    now = time.time()
    monkeypatch.setattr(latencies.time, "time", lambda: now)
    world.sql("tailgate", "CREATE ENDPOINT timed GET '/timed/:n' (:n int) AS SELECT :n AS n")
    ((id, step),) = [(e.id, int(now) // STEP_S) for e in world.lake.catalog().each(Endpoint) if e.name == "timed"]
    for path in ("/timed/1", "/timed/x", "/absent"):
        web.request(path)
    world.sql("tailgate", "CREATE ROLE caller LOGIN")
    assert web.request("/timed/1", Tailgate_Role="caller")[0] == 403  # a role without EXECUTE cannot change the quantiles

    def reported() -> list[tuple[int, int]]:
        rows = web.gateway.latencies.steps(world.served.serving.progress.catalog, 0)
        return [(step, sum(counts.values())) for endpoint, step, _, most, counts in rows if endpoint == id and most is not None]

    assert reported() == []
    now += STEP_S
    assert reported() == [(step, 2)]
    world.sql("tailgate", "DROP ENDPOINT timed", "DROP ROLE caller")
    assert reported() == []


def _port(line: str) -> int:
    match = re.search(r"127\.0\.0\.1:(\d+)/", line)
    assert match is not None, line
    return int(match[1])


def test_requests_are_logged_and_counted(world: World, tmp_path: Path) -> None:
    world.sql("tailgate", "CREATE TABLE people (id int PRIMARY KEY, name text)", "INSERT INTO people VALUES (1, 'x'), (7654321, 'x')")
    world.sql("tailgate", "CREATE ENDPOINT person GET '/people/:id' (:id int) AS SELECT 1 / (id - 1) AS x, name FROM people WHERE id = :id")
    log = tmp_path / "gateway.log"
    words = [sys.executable, "-m", "tailgate", "gateway", "--data", str(world.lake.path), "--listen", "127.0.0.1:0", *OPTIONS]
    with log.open("wb") as file, subprocess.Popen(words, stdout=subprocess.PIPE, stderr=file, text=True) as process:
        try:
            assert process.stdout is not None
            web, sql = (_port(process.stdout.readline()) for _ in range(2))
            metrics = _port(next(line for line in log.read_text().splitlines() if line.startswith("metrics ")))
            assert [answered(web, path)[0] for path in ("/people/7654321", "/people/2", "/people/1", "/people/x", "/nothing")] == [
                200, 404, 500, 400, 404
            ]  # fmt: skip
            assert answered(web, "/people/7654321", "POST")[0] == 405
            with connected(sql) as connection:
                check(connection)
            counted = answered(metrics, "/metrics")[1]
        finally:
            process.terminate()
            assert process.wait(30) == 0
    lines = log.read_text()
    for pattern in (
        rf"{CLIENT} GET /people/:id 200 \d+ bytes {DURATION}",
        rf"{CLIENT} GET /people/:id 404 \d+ bytes {DURATION}",
        rf"{CLIENT} GET /people/:id 500 \d+ bytes {DURATION}",
        rf"{CLIENT} GET /people/:id 400 \d+ bytes {DURATION}",
        rf"{CLIENT} GET - 404 \d+ bytes {DURATION}",
        rf"client=127.0.0.1 role=tailgate POST - 405 \d+ bytes {DURATION}",
    ):
        assert len(re.findall(rf"{pattern}$", lines, re.MULTILINE)) == 1, (pattern, lines)
    assert "7654321" not in lines
    for status, endpoint in (("200", "person"), ("500", "person"), ("405", "")):
        name = f"public.{endpoint}" if endpoint else ""
        assert f'tailgate_gateway_requests_total{{endpoint="{name}",status="{status}"}} 1.0' in counted
    assert 'tailgate_gateway_request_seconds_count{endpoint="public.person"} 4.0' in counted
    assert 'tailgate_gateway_request_seconds_bucket{endpoint="public.person",le="+Inf"} 4.0' in counted


def check(connection: psycopg.Connection) -> None:
    query = "SELECT lane, calls, rows, errors FROM tailgate.statements WHERE statement LIKE 'ENDPOINT %'"
    assert connection.execute(query).fetchall() == [("endpoint", 4, 1, 2)]
    assert connection.execute("SHOW statement_timeout").fetchone() == ("30s",)
    connection.execute("SET statement_timeout = '1s'")
    connection.execute("RESET statement_timeout")
    assert connection.execute("SHOW statement_timeout").fetchone() == ("30s",)
    assert connection.execute("SHOW log_statement").fetchone() == ("ddl",)
    with pytest.raises(errors.InvalidParameterValue):
        connection.execute("SET statement_timeout = 'soon'")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("statement_timeout", "--set statement_timeout is not NAME=VALUE"),
        ("statement_timeout=soon", 'invalid value for parameter "statement_timeout": "soon"'),
        ("statement_time=1", 'unrecognized configuration parameter "statement_time"'),
        ("server_version=9", 'parameter "server_version" cannot be changed'),
    ],
)
def test_wrong_settings_end_the_start(tmp_path: Path, word: str, message: str) -> None:
    words = [sys.executable, "-m", "tailgate", "gateway", "--data", str(tmp_path / "none"), "--set", word]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, message in ended.stderr) == (1, True), ended.stderr
