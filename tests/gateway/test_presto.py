"""Tests Presto's protocol over HTTP, directly and with Trino's client."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tailgate.gateway.presto import main, statements
from tailgate.lake.host.server_thread import ServerThread
from testing.engine_process import until
from tests.tables.world import World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("presto") / "lake")
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, name text)")
        connection.execute("INSERT INTO t SELECT g, 'name ' || g FROM generate_series(1, 2500) AS g")
    yield world
    world.close()


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[main.Server]:
    server = main.Server(0, f"127.0.0.1:{world.gateways[0].port}")
    thread = ServerThread(server, "presto")
    thread.start()
    yield server
    thread.stop()


def fetch(url: str, method: str = "GET", body: str | None = None, **headers: str) -> tuple[int, dict[str, Any]]:
    all_headers = {"X-Trino-User": "ann"} | {k.replace("_", "-"): v for k, v in headers.items()}
    request = urllib.request.Request(url, body.encode() if body is not None else None, all_headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}")


def url(server: main.Server, path: str = "/v1/statement") -> str:
    return f"http://127.0.0.1:{server.server_address[1]}{path}"


def pages(server: main.Server, text: str) -> list[dict[str, Any]]:
    _, document = fetch(url(server), "POST", text)
    documents = [document]
    while "nextUri" in documents[-1]:
        status, document = fetch(documents[-1]["nextUri"])
        assert status == 200
        documents.append(document)
    return documents


def test_a_result_is_sent_in_pages(server: main.Server) -> None:
    documents = pages(server, "SELECT id, name FROM t ORDER BY id;")
    sizes = [len(p.get("data", ())) for p in documents]
    assert max(sizes) == statements.PAGE_ROWS
    assert sum(sizes) == 2500
    assert [row for p in documents for row in p.get("data", ())] == [[i, f"name {i}"] for i in range(1, 2501)]
    assert documents[-1]["columns"][0] == {"name": "id", "type": "integer", "typeSignature": {"rawType": "integer", "arguments": []}}
    assert documents[0]["stats"]["state"] == "QUEUED"
    assert documents[-1]["stats"]["state"] == "FINISHED"


def test_a_page_may_be_asked_for_again(server: main.Server) -> None:
    _, first = fetch(url(server), "POST", "SELECT 1 AS a")
    assert fetch(first["nextUri"]) == fetch(first["nextUri"])
    assert fetch(first["nextUri"][:-1] + "7")[0] == 404
    assert fetch(first["nextUri"].replace("executing/", "executing/x"))[0] == 404


def test_a_write_says_how_many(server: main.Server) -> None:
    last = pages(server, "INSERT INTO t VALUES (9001, 'x'), (9002, 'y')")[-1]
    assert (last["updateType"], last["updateCount"]) == ("INSERT", 2)
    assert pages(server, "DELETE FROM t WHERE id > 9000")[-1]["updateCount"] == 2


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("SELECT * FROM nobody", "TABLE_NOT_FOUND"),
        ("SELECT nobody FROM t", "COLUMN_NOT_FOUND"),
        ("SELEC 1", "SYNTAX_ERROR"),
        ("SELECT 1 / (id - id) FROM t", "DIVISION_BY_ZERO"),
        ("START TRANSACTION", "NOT_SUPPORTED"),
        ("LISTEN x", "NOT_SUPPORTED"),
        ("SELECT date 'infinity'", "NOT_SUPPORTED"),
        ("SELECT timestamp '20000-01-01'", "NOT_SUPPORTED"),
    ],
)
def test_errors(server: main.Server, text: str, name: str) -> None:
    last = pages(server, text)[-1]
    assert last["error"]["errorName"] == name
    assert last["stats"]["state"] == "FAILED"


def test_what_is_refused(server: main.Server) -> None:
    assert fetch(url(server), "POST", "SELECT 1", X_Trino_User="")[0] == 401
    assert fetch(url(server), "POST", "SELECT 1", Authorization="Basic YTpi")[0] == 401
    assert fetch(url(server), "POST", "SELECT 1", Host="evil.example:80")[0] == 400
    assert fetch(url(server), "POST", "SELECT 1", X_Trino_Transaction_Id="abc")[0] == 400
    assert fetch(url(server, "/v2"), "POST", "SELECT 1")[0] == 404
    assert fetch(url(server, "/v1/info"))[1]["starting"] is False


def test_open_statements_are_limited_and_cancelled(server: main.Server, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "DONE_S", 0.0)
    monkeypatch.setattr(statements, "STATEMENTS_MAX", 1)
    _, document = fetch(url(server), "POST", "SELECT count(*) FROM generate_series(1, 3000000) a, generate_series(1, 3000000) b")
    answers: list[tuple[int, dict[str, Any]]] = []
    reader = threading.Thread(target=lambda: answers.append(fetch(document["nextUri"])))
    reader.start()
    running = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'presto' AND state = 'active' AND query LIKE 'FETCH%'"
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        until(lambda: connection.execute(running).fetchone() == (1,))
    assert fetch(url(server), "POST", "SELECT 1")[0] == 503
    assert fetch(document["nextUri"], "DELETE")[0] == 204
    reader.join(20)
    assert answers[0][1]["error"]["errorName"] == "USER_CANCELED"
    assert pages(server, "SELECT 1 AS a")[-1]["data"] == [[1]]


def test_last_pages_are_kept_for_the_newest_statements_only(server: main.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "DONE_MAX", 2)
    last = [fetch(url(server), "POST", "SELECT 1")[1]["nextUri"] for _ in range(4)]
    for page in last:
        assert "nextUri" not in fetch(page)[1]
    assert [fetch(page)[0] for page in last] == [404, 404, 200, 200]


def test_an_abandoned_statement_ends(server: main.Server, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    _, document = fetch(url(server), "POST", "SELECT id FROM t")
    fetch(document["nextUri"])
    monkeypatch.setattr(statements, "IDLE_S", 0.0)
    time.sleep(0.01)
    fetch(url(server), "POST", "SELECT 1")
    monkeypatch.undo()
    with psycopg.connect(world.dsn) as connection:
        deadline = time.monotonic() + 5
        while connection.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'presto'").fetchone() != (0,):
            assert time.monotonic() < deadline


def test_a_follower(server: main.Server, world: World) -> None:
    _, document = fetch(url(server), "POST", "TAIL t WITH (SNAPSHOT = false)")
    _, document = fetch(document["nextUri"])
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute("INSERT INTO t VALUES (8000, 'followed')")
        connection.execute("DELETE FROM t WHERE id = 8000")
    rows: list[list[Any]] = []
    while len(rows) < 2:
        _, document = fetch(document["nextUri"])
        rows += document.get("data", [])
    assert [row[1:] for row in rows] == [[1, 8000, "followed"], [-1, 8000, "followed"]]
    assert fetch(document["nextUri"], "DELETE")[0] == 204


VALUES = [
    ("true", True), ("1::smallint", 1), ("0", 0), ("9223372036854775807", 9223372036854775807), ("1.5::real", 1.5), ("-0.1::float8", -0.1),
    ("'Infinity'::float8", float("inf")), ("0.00::numeric(5,2)", Decimal("0.00")), ("-12345.678::numeric(10,3)", Decimal("-12345.678")),
    ("'x'", "x"), ("''", ""), ("NULL::text", None), ("DATE '2024-02-29'", date(2024, 2, 29)),
    ("TIMESTAMP '2024-02-29 12:00:00.5'", datetime(2024, 2, 29, 12, 0, 0, 500000)),
    ("TIMESTAMPTZ '2024-02-29 12:00:00+02'", datetime(2024, 2, 29, 10, tzinfo=timezone.utc)),
    ("'\\x00ff'::bytea", b"\x00\xff"), ("'00000000-0000-0000-0000-00000000000a'::uuid", UUID(int=10)), ("ARRAY[1, NULL, 3]", [1, None, 3]),
    ("ARRAY['a', 'b']", ["a", "b"]), ("'{\"a\": 1}'::jsonb", '{"a": 1}'), ("INTERVAL '1 day 02:00'", "1 day 02:00:00"),
    ("'::ffff:1.2.3.4'::inet", "::ffff:1.2.3.4"), ("'10.0.0.1'::inet", "10.0.0.1"), ("'::1.2.0.0/112'::cidr", "::1.2.0.0/112"),
]  # fmt: skip


@pytest.fixture
def connection(server: main.Server) -> Any:
    trino = pytest.importorskip("trino")
    return trino.dbapi.connect(host="127.0.0.1", port=server.server_address[1], user="ann")


@pytest.mark.parametrize(("literal", "value"), VALUES, ids=[v[0] for v in VALUES])
def test_trino_reads_every_type(connection: Any, literal: str, value: object) -> None:
    (result,) = connection.cursor().execute(f"SELECT {literal} AS v").fetchone()
    if isinstance(value, datetime) and value.tzinfo:
        assert result - value == timedelta(0)
    else:
        assert result == value
        assert type(result) is type(value)


def test_trino_reads_pages_errors_and_cancels(connection: Any) -> None:
    trino = pytest.importorskip("trino")
    cursor = connection.cursor()
    cursor.execute("SELECT id FROM t ORDER BY id")
    assert [row[0] for row in cursor.fetchall()] == list(range(1, 2501))
    assert [c[:2] for c in cursor.description] == [("id", "integer")]
    with pytest.raises(trino.exceptions.TrinoUserError) as raised:
        cursor.execute("SELECT * FROM nobody").fetchall()
    assert raised.value.error_name == "TABLE_NOT_FOUND"
    assert "SQLSTATE 42P01" in raised.value.message
    other = connection.cursor()
    other.execute("SELECT id FROM t")
    other.fetchmany(10)
    other.cancel()
    assert connection.cursor().execute("SELECT 1 AS a").fetchall() == [[1]]
