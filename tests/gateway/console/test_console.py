"""The console's server: the page, its header fields, statements, users, and requests of other sites."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import psycopg
import pytest

from tailgate.gateway.asgi import limits as shared
from tailgate.gateway.console import files, limits, statements
from tailgate.lake.catalog import Subscription
from tailgate.lake.readers import holds, subscriptions
from testing.engine_process import until
from tests.authorization.world import World
from tests.gateway.console.conftest import Web, parsed

STATIC = Path(files.__file__).parent / "static"
SCRIPT = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_the_page_and_its_files_have_a_strict_policy(web: Web) -> None:
    for path in ("/", *(f"/{name}" for name in files.files())):
        status, fields, body = web.request("GET", path)
        assert (status, fields["content-security-policy"], fields["x-content-type-options"]) == (200, files.POLICY, "nosniff"), path
        assert web.request("GET", path, If_None_Match=fields["etag"])[0] == 304
        assert body == (STATIC / (path[1:] or files.INDEX)).read_bytes()
    assert "unsafe" not in files.POLICY and "*" not in files.POLICY
    assert web.request("GET", "/../app.py")[0] == 404
    assert web.request("GET", "/missing.js")[0] == 404


def test_the_page_has_no_inline_code_and_never_reads_markup() -> None:
    index = (STATIC / files.INDEX).read_text()
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=|\sstyle=|<style", index)
    for path in STATIC.glob("*.js"):
        text = path.read_text()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|https?://(?!www\.w3\.org)", text
        ), path


def test_a_statement_returns_events(web: Web) -> None:
    assert web.events("SELECT 1 AS one, NULL::text AS none, true AS yes") == [
        ("columns", [{"name": "one", "type": "int4"}, {"name": "none", "type": "text"}, {"name": "yes", "type": "bool"}]),
        ("rows", [["1", None, "t"]]),
        ("end", {"tag": "SELECT 1", "truncated": False, "notices": []}),
    ]
    assert web.events("INSERT INTO orders VALUES (900, 'x')")[-1] == ("end", {"tag": "INSERT 0 1", "truncated": False, "notices": []})
    assert web.events("DELETE FROM orders WHERE id = 900")[-1][1]["tag"] == "DELETE 1"


def test_an_error_has_its_sqlstate_and_position(web: Web) -> None:
    ((kind, error),) = web.events("SELECT nothing FROM orders")
    assert (kind, error["sqlstate"], error["position"]) == ("error", "42703", 8)
    ((kind, error),) = web.events("SELECT 1; SELECT 2")
    assert (kind, error["sqlstate"]) == ("error", "42601")


def test_texts_of_rows_and_names_are_data(web: Web) -> None:
    assert web.rows(f'SELECT $tag${SCRIPT}$tag$ AS "{SCRIPT}"') == [[SCRIPT]]
    status, fields, _ = web.request("POST", "/statement", {"sql": "SELECT 1"}, Tailgate_Console="1")
    assert (status, fields["content-type"].split(";")[0], fields["cache-control"]) == (200, "text/event-stream", "no-store")


def test_a_large_result_is_cut(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROWS_MAX", 100)
    events = web.events("SELECT n FROM generate_series(1, 100000) AS g(n)")
    assert sum(len(data) for kind, data in events if kind == "rows") == 100
    assert events[-1][1]["truncated"] is True
    monkeypatch.setattr(limits, "BYTES_MAX", 1000)
    assert len(web.events("SELECT repeat('x', 600) FROM generate_series(1, 50)")[1][1]) == 2


def test_settings_and_transactions_end_with_their_statement(web: Web) -> None:
    assert web.events("SET application_name = 'other'")[-1][0] == "end"
    assert web.events("BEGIN")[-1][0] == "end"
    assert web.rows("SHOW application_name") == [["tailgate console"]]


def test_changes_are_followed_until_the_client_leaves(web: Web, world: World) -> None:
    connection = web.connection("POST", "/statement", {"sql": "TAIL orders WITH (SNAPSHOT = false)"}, Tailgate_Console="1")
    response = connection.getresponse()
    received = b""
    while b"event: columns" not in received:
        received += response.read1()
    with world.connect() as other:
        other.execute("INSERT INTO orders VALUES (901, 'followed')")
        while b"followed" not in received:
            received += response.read1()
        assert [data[0][1:] for kind, data in parsed(received) if kind == "rows"] == [["1", "901", "followed"]]
        following = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'TAIL orders%' AND state = 'active'"
        assert web.rows(following) == [["1"]]
        connection.sock.close()
        response.close()
        until(lambda: web.rows(following) == [["0"]])
        other.execute("DELETE FROM orders WHERE id = 901")


def test_a_console_that_stops_ends_its_statements(world: World) -> None:
    web = Web(world)
    connection = web.connection("POST", "/statement", {"sql": "TAIL orders WITH (SNAPSHOT = false)"}, Tailgate_Console="1")
    response = connection.getresponse()
    received = b""
    while b"event: columns" not in received:
        received += response.read1()
    web.close()
    assert parsed(received + response.read())[-1][0] == "error"  # the response has its end
    connection.close()


# of surrogate pairs
HALVES = (b'{"sql": "SELECT \\ud800"}', b'{"sql": "SELECT \xed\xa0\x80"}', json.dumps({"sql": "SELECT \ud800"}).encode("utf-16"))


def test_requests_of_other_sites_are_refused(web: Web) -> None:
    statement = {"sql": "SELECT 1"}
    mark = {"Tailgate_Console": "1"}
    assert web.request("POST", "/statement", statement)[0] == 403
    assert web.request("POST", "/statement", statement, Origin="https://evil.example", **mark)[0] == 403
    assert web.request("POST", "/statement", statement, Origin=f"http://127.0.0.1:{web.port}", **mark)[0] == 200
    assert web.request("POST", "/statement", b'\xef\xbb\xbf{"sql": "SELECT 1"}', **mark)[0] == 200
    assert web.request("POST", "/statement", statement, Host="evil.example", **mark)[0] == 403
    assert web.request("GET", "/", Host="evil.example")[0] == 403
    for body in (b"", b"[]", b'{"sql": 1}', b'{"sql": "SELECT \\u0000"}', b"\xff", b"[" * 9_999, *HALVES):
        assert web.request("POST", "/statement", body, **mark)[0] == 400
    assert web.request("POST", "/statement", b" " * (limits.REQUEST_BYTES_MAX + 1), **mark)[0] == 413


def test_statements_have_the_privileges_of_the_role_that_signs_in(web: Web, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with world.connect() as connection:
        connection.execute("CREATE ROLE eve LOGIN PASSWORD 'secret'")
    try:
        assert web.request("GET", "/sign-in")[0] == 401
        assert web.request("GET", "/sign-in", Authorization=basic("eve", "secret"))[0] == 303
        kind, error = web.events("SELECT * FROM orders", Authorization=basic("eve", "secret"))[-1]
        assert (kind, error["sqlstate"]) == ("error", "42501")
        assert web.events("SELECT current_user", Authorization=basic("eve", "secret"))[1] == ("rows", [["eve"]])
        for user, password in (("eve", "wrong"), ("eve", ""), ("tailgate", ""), ("nobody", "x")):
            status, fields, _ = web.request(
                "POST", "/statement", {"sql": "SELECT 1"}, Tailgate_Console="1", Authorization=basic(user, password)
            )
            assert (status, "www-authenticate" in fields) == (401, True), user
        with world.connect() as connection:
            connection.execute("ALTER ROLE tailgate PASSWORD 'mine'")
        monkeypatch.setattr(shared, "SESSION_S", 0)  # sessions that have signed in before are not used again
        assert web.request("POST", "/statement", {"sql": "SELECT 1"}, Tailgate_Console="1")[0] == 401
    finally:
        with psycopg.connect(world.served.dsn, user="tailgate", password="mine", autocommit=True) as connection:
            connection.execute("ALTER ROLE tailgate PASSWORD NULL")
            connection.execute("DROP ROLE eve")


def test_the_statements_of_the_pages_run(web: Web) -> None:
    """Every statement that is written in the page's files is executed, so that a column that is renamed is noticed."""
    texts = []
    for path in STATIC.glob("*.js"):
        texts += re.findall(r"const [A-Z]+ = [`\"]((?:SELECT).*?)[`\"];", path.read_text(), re.DOTALL)
    assert len(texts) >= 12
    for text in texts:
        events = web.events(text)
        assert events[-1][0] == "end", (text, events)


def test_dependencies_are_a_relation(web: Web) -> None:
    assert web.rows("SELECT schema, name, kind, on_schema, on_name, on_kind FROM tailgate.dependencies WHERE name = 'counted'") == [
        ["public", "counted", "materialized view", "public", "orders", "table"]
    ]


def test_what_readers_hold_is_a_relation(web: Web, world: World) -> None:
    held = "SELECT schema, name, kind, entries, bytes > 0, age_ms >= 0, percent >= 0, stopped FROM tailgate.holds"
    assert web.rows(held) == []
    with world.connect() as connection:
        connection.execute("CREATE SUBSCRIPTION feed FROM orders")
        try:
            reader = subscriptions.reader(world.lake.catalog().each(Subscription)[0].id)
            n = world.writer.newest.n
            holds.write(world.lake, reader, {**(holds.read(world.lake, reader) or {}), "n": n - 3})
            assert web.rows(held) == [["public", "feed", "subscription", "3", "t", "t", "t", None]]
            holds.stop(world.lake, reader, n, "it held too much")
            assert web.rows(held)[0][3:] == ["0", "f", "t", "t", "it held too much"]
        finally:
            connection.execute("DROP SUBSCRIPTION feed")
    assert web.rows(held) == []


def test_running_statements_are_limited(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STATEMENTS_MAX", 0)
    assert web.request("POST", "/statement", {"sql": "SELECT 1"}, Tailgate_Console="1")[0] == 429


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("SELECT 1", True),
        ("WITH a AS (SELECT 1) SELECT * FROM a", True),
        ("EXPLAIN SELECT 1", True),
        ("WITH a AS (SELECT 1)\nINSERT INTO t SELECT 1", False),
        ("EXPLAIN ANALYZE\nDELETE FROM t", False),
        ("EXPLAIN ANALYZE EXECUTE p", False),
        ("UPDATE t SET a = 1", False),
    ],
)
def test_statements_that_are_logged(text: str, reads: bool) -> None:
    """The log has each statement that may change something, with the role."""
    assert bool(statements.READING.match(text)) == reads
