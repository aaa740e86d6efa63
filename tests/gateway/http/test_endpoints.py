"""Requests and responses of endpoints."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import re
import socket
import ssl
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tailgate.gateway.http import connection
from tailgate.gateway.http.reading import EndpointReader, Page, Range
from tailgate.gateway.http.server import HttpOptions
from tailgate.gateway.security.tls import Files, Tls
from testing.engine_process import until
from tests.authorization.world import World
from tests.gateway.http.conftest import Web
from tests.wire.certificates import Authority


@pytest.fixture(scope="module", autouse=True)
def endpoints(world: World) -> None:
    world.sql(
        "tailgate",
        "CREATE TABLE users (id bigint PRIMARY KEY, name text, score numeric(10, 2), seen timestamptz, data jsonb, tags text[])",
        """INSERT INTO users VALUES (1, 'Ann "the" Å', 1.50, '2026-01-02 03:04:05.5+00', '{"a": 1}', '{x,NULL}')""",
        "INSERT INTO users VALUES (9007199254740993, NULL, NULL, NULL, NULL, NULL)",
        "INSERT INTO users (id, name) SELECT i, 'user ' || i FROM generate_series(10, 259) AS i",
        """CREATE ENDPOINT users GET '/users/:id' (:id bigint) AS SELECT id::text AS "userId", * FROM users WHERE id = :id""",
        "CREATE ENDPOINT texts GET '/texts/:id' WITH (numbers = 'text') AS SELECT id, score, 1 AS n FROM users WHERE id = :id",
        "CREATE ENDPOINT all_users GET '/users' (:prefix text DEFAULT '', :least int DEFAULT NULL) AS "
        "SELECT id FROM users WHERE name LIKE :prefix || '%' AND (:least IS NULL OR id >= :least) ORDER BY id",
        "CREATE ENDPOINT unordered GET '/unordered' AS SELECT id, name FROM users",
        "CREATE ENDPOINT me GET '/users/me' AS SELECT current_date IS NOT NULL AS ok",
        "CREATE ENDPOINT named GET '/names/:name' AS SELECT id, name FROM users WHERE name = :name",
        "CREATE ENDPOINT failing GET '/failing/:n' (:n int) AS SELECT 1 / :n AS x FROM users",
        "CREATE ENDPOINT root GET '/' AS SELECT 1 AS one",
    )


ANN = {
    "userId": "1", "id": 1, "name": 'Ann "the" Å', "score": 1.5, "seen": "2026-01-02T03:04:05.5+00:00",
    "data": {"a": 1}, "tags": ["x", None],
}  # fmt: skip


def test_one_object(web: Web) -> None:
    status, fields, body = web.request("/users/1")
    assert (status, json.loads(body), fields["content-type"]) == (200, ANN, "application/json")
    assert b'"score":1.50,' in body
    assert int(fields["tailgate-time"]) == web.world.writer.newest.time
    nothing = dict.fromkeys(("name", "score", "seen", "data", "tags"))
    assert web.get("/users/9007199254740993") == {"userId": "9007199254740993", "id": 9007199254740993, **nothing}
    assert web.error("/users/2") == (404, "02000")
    assert web.get("/texts/9007199254740993") == {"id": "9007199254740993", "score": None, "n": 1}
    assert web.get("/texts/1")["score"] == "1.50"


def test_an_index_gives_the_same_bytes(web: Web) -> None:
    before = [web.request(f"/users/{id}")[2] for id in (1, 10, 9007199254740993)]
    for _ in range(30):  # builds the index
        web.request("/users/1")
    assert [web.request(f"/users/{id}")[2] for id in (1, 10, 9007199254740993)] == before
    web.world.sql("tailgate", "UPDATE users SET name = 'Anna' WHERE id = 1")
    assert web.get("/users/1")["name"] == "Anna"
    web.world.sql("tailgate", """UPDATE users SET name = 'Ann "the" Å' WHERE id = 1""")
    assert web.get("/users/1") == ANN


def test_rows_in_memory_have_their_time() -> None:
    """Else a stream that begins with them misses a change or repeats one. The mirrors' thread may advance at any moment."""
    progress = SimpleNamespace(time=5)
    times = iter((5, 6, 6))

    def rows(*arguments: object) -> list[tuple[int]]:
        progress.time = next(times)
        return [(progress.time,)]

    lookups: Any = SimpleNamespace(rows=rows)
    serving: Any = SimpleNamespace(progress=progress)
    bound: Any = SimpleNamespace(lookup="", write_found=lambda row: b"%d" % row, query=SimpleNamespace(single=True))
    query: Any = SimpleNamespace(plan=SimpleNamespace(failed_at=None))
    assert EndpointReader(serving, lookups).page_in_memory(bound, query, (), Range()) == Page(5, [b"5"])
    assert EndpointReader(serving, lookups).page_in_memory(bound, query, (), Range()) == Page(6, [b"6"])


def test_paths(web: Web) -> None:
    assert web.get("/users/me") == {"ok": True}
    assert web.get("/") == {"one": 1}
    assert web.get("/names/user%2010") == [{"id": 10, "name": "user 10"}]
    assert web.get("/names/%C3%A9") == []
    assert web.error("/names/%FF") == (400, "22021")
    for path in ("/absent", "/users/1/2", "/users/", "//", "/USERS/1", "/users/1/"):
        assert web.error(path) == (404, "42704"), path


@pytest.mark.parametrize(
    ("path", "sqlstate"),
    [
        ("/users/x", "22P02"),
        ("/users/99999999999999999999", "22003"),
        ("/users/1?other=1", "42P02"),
        ("/users/1?id=1", "42P02"),
        ("/users/1?limit=1", "42P02"),
        ("/users?least=1&least=2", "22023"),
        ("/users?least=one", "22P02"),
        ("/users?limit=0", "22023"),
        ("/users?limit=1001", "22023"),
        ("/users?cursor=x", "22023"),
        ("/users?prefix=%00", "22023"),
        ("/users?" + "&".join(f"a{i}=1" for i in range(200)), "54000"),
    ],
)
def test_wrong_parameters(web: Web, path: str, sqlstate: str) -> None:
    assert web.error(path) == (400, sqlstate)


def test_pages_are_of_one_time(web: Web) -> None:
    for path, ids in (("/users?prefix=user&least=20", range(20, 260)), ("/unordered?limit=100", {1, 9007199254740993, *range(10, 260)})):
        rows, following = [], path
        while following:
            status, fields, body = web.request(following)
            assert status == 200
            rows += [row["id"] for row in json.loads(body)]
            web.world.sql("tailgate", "DELETE FROM users WHERE id = 300", f"INSERT INTO users (id, name) VALUES (300, 'user {len(rows)}')")
            match = re.fullmatch(r'<(.*)>; rel="next"', fields.get("link", ""))
            following = match[1] if match else ""
        web.world.sql("tailgate", "DELETE FROM users WHERE id = 300")
        assert (rows if isinstance(ids, range) else set(rows)) == (list(ids) if isinstance(ids, range) else ids)
        assert len(rows) == len(ids)


def test_as_of(web: Web) -> None:
    before = web.world.writer.newest.time
    web.world.sql("tailgate", "UPDATE users SET name = 'later' WHERE id = 11")
    assert web.get("/users/11")["name"] == "later"
    status, fields, body = web.request("/users/11", Tailgate_As_Of=str(before))
    assert (status, json.loads(body)["name"], fields["tailgate-time"]) == (200, "user 11", str(before))
    assert web.error("/users/11", Tailgate_As_Of="1") == (400, "22023")
    assert web.error("/users/11", Tailgate_As_Of="now") == (400, "22023")


def test_conditional_requests(web: Web) -> None:
    _, fields, _ = web.request("/users/12")
    for tags in (fields["etag"], f'"x", {fields["etag"].removeprefix("W/")}', "*"):
        status, repeated, body = web.request("/users/12", If_None_Match=tags)
        assert (status, repeated["etag"], body) == (304, fields["etag"], b"")
    web.world.sql("tailgate", "UPDATE users SET name = 'new' WHERE id = 12")
    assert web.request("/users/12", If_None_Match=fields["etag"])[0] == 200


def test_gzip_and_head(web: Web) -> None:
    _, plain, body = web.request("/users?limit=1000")
    _, packed, data = web.request("/users?limit=1000", Accept_Encoding="br, gzip")
    assert (packed["content-encoding"], gzip.decompress(data), packed["etag"]) == ("gzip", body, plain["etag"])
    assert "content-encoding" not in web.request("/users?limit=1000", Accept_Encoding="gzip;q=0")[1]
    status, fields, nothing = web.request("/users?limit=1000", "HEAD")
    assert (status, fields["content-length"], fields["etag"], nothing) == (200, str(len(body)), plain["etag"], b"")


def test_methods_and_bodies(web: Web) -> None:
    status, fields, _ = web.request("/users/1", "PUT")
    assert (status, fields["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert web.error("/users/1", Content_Length="5") == (413, "54000")
    assert web.error("/" + "x" * 9000) == (414, "54000")
    assert web.error("/users/1", X="x" * 20_000) == (431, "54000")


def test_errors_of_rows_are_not_told(web: Web) -> None:
    assert web.error("/failing/0") == (500, "22012")
    assert b"division" not in web.request("/failing/0")[2]


def test_cross_origin(web: Web) -> None:
    assert web.request("/users/1", Origin="https://app.example")[1]["access-control-allow-origin"] == "https://app.example"
    assert "access-control-allow-origin" not in web.request("/users/1", Origin="https://evil.example")[1]
    status, fields, _ = web.request("/users/1", "OPTIONS", Origin="https://app.example", Access_Control_Request_Headers="authorization")
    assert (status, "Authorization" in fields["access-control-allow-headers"]) == (204, True)


def _exchange(web: Web, data: bytes) -> bytes:
    """Sends bytes, ends the sending side and returns everything that comes back."""
    with socket.create_connection(("127.0.0.1", web.port), timeout=30) as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        received = b""
        while part := client.recv(65536):
            received += part
        return received


def test_pipelining(web: Web) -> None:
    ids = list(range(10, 210))
    answers = _exchange(web, b"".join(b"GET /users/%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % id for id in ids))
    assert [int(id) for id in re.findall(rb'"userId":"(\d+)"', answers)] == ids


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n", 400),
    ],
)
def test_invalid_requests_close_the_connection(web: Web, data: bytes, status: int) -> None:
    answers = _exchange(web, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + data)
    statuses = [int(s) for s in re.findall(rb"HTTP/1.1 (\d+)", answers)]
    assert statuses == [200, status]
    assert b"Connection: close" in answers


@pytest.mark.parametrize(
    "head", [b"GET / HTTP/1.1\r\nA: ", b"GET / HTTP/1.1\r\nA", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: "]
)
def test_a_header_field_without_end_is_refused(web: Web, head: bytes) -> None:
    with socket.create_connection(("127.0.0.1", web.port), timeout=30) as client:
        client.sendall(head)
        for _ in range(3):
            time.sleep(0.05)  # another packet
            client.sendall(b"x" * (connection.HEADER_BYTES_MAX // 2))
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while more := client.recv(1 << 16):
                answer += more
    assert answer.startswith(b"HTTP/1.1 431 ")


def test_connections_are_limited(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECTIONS_MAX", 2)
    request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with contextlib.ExitStack() as opened:
        for _ in range(2):
            client = opened.enter_context(socket.create_connection(("127.0.0.1", web.port), timeout=30))
            client.sendall(request)
            assert client.recv(12) == b"HTTP/1.1 200"
        refused = opened.enter_context(socket.create_connection(("127.0.0.1", web.port), timeout=30))
        with contextlib.suppress(ConnectionResetError):
            assert refused.recv(1) == b""
    for _ in range(100):  # the server notices the ends
        with contextlib.suppress(ConnectionError, http.client.HTTPException):
            if web.request("/")[0] == 200:
                return
        time.sleep(0.1)
    raise AssertionError("connections that ended are still counted")


def test_connections_in_their_handshake_are_limited(web: Web, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(connection, "CONNECTIONS_MAX", 2)
    authority = Authority(tmp_path)
    encrypted = Web(web.world, HttpOptions("127.0.0.1", 0), Tls(Files(*authority.sign("server"))))
    context = ssl.create_default_context(cafile=authority.certificate)

    def answered() -> bool:
        client = http.client.HTTPSConnection("127.0.0.1", encrypted.port, timeout=30, context=context)
        with contextlib.suppress(OSError), contextlib.closing(client):
            client.request("GET", "/openapi.json")
            return client.getresponse().status in (200, 401)
        return False

    try:
        silent = [socket.create_connection(("127.0.0.1", encrypted.port), timeout=30) for _ in range(2)]
        until(lambda: encrypted.server._is_full())
        assert not answered()
        silent.pop().close()
        until(answered)
        until(answered)  # connections that have ended do not count
        silent.pop().close()
    finally:
        encrypted.close()
