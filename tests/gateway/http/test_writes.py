"""Endpoints that write: statements, values of parameters, Idempotency-Keys, errors."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailgate.gateway.http import idempotency
from tailgate.gateway.http.server import HttpOptions
from tailgate.gateway.http.writing import EndpointWriter
from tailgate.lake.errors import SystemError_
from tests.authorization.world import World
from tests.gateway.http.conftest import Web

KEYS = "pg_endpoint.idempotency_keys"


@pytest.fixture(scope="module", autouse=True)
def endpoints(world: World) -> None:
    world.sql(
        "tailgate",
        "CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item text NOT NULL, n int CHECK (n > 0), "
        "code text UNIQUE)",
        "CREATE TABLE documents (id int PRIMARY KEY, j jsonb, tags text[], b bool, x numeric, d date)",
        "CREATE ENDPOINT new_order POST '/orders' (:n int DEFAULT 1, :code text DEFAULT NULL) AS "
        "INSERT INTO orders (item, n, code) VALUES (:item, :n, :code) RETURNING id, item, n",
        "CREATE ENDPOINT orders GET '/orders' AS SELECT id, item, n FROM orders ORDER BY id",
        "CREATE ENDPOINT change_order PATCH '/orders/:id' AS UPDATE orders SET n = :n WHERE id = :id RETURNING id, n",
        "CREATE ENDPOINT drop_order DELETE '/orders/:id' AS DELETE FROM orders WHERE id = :id RETURNING id",
        "CREATE ENDPOINT drop_all POST '/clear' AS DELETE FROM orders WHERE item = :item RETURNING id",
        "CREATE ENDPOINT put_document PUT '/documents/:id' (:id int, :j jsonb DEFAULT NULL, :tags text[] DEFAULT NULL, "
        ":b bool DEFAULT NULL, :x numeric DEFAULT NULL, :d date DEFAULT NULL) AS "
        "INSERT INTO documents VALUES (:id, :j, :tags, :b, :x, :d) ON CONFLICT (id) DO UPDATE SET j = excluded.j, tags = excluded.tags, "
        "b = excluded.b, x = excluded.x, d = excluded.d RETURNING *",
        "CREATE ENDPOINT copies POST '/copies' (:n int) AS "
        "INSERT INTO orders (item) SELECT 'copy ' || i FROM generate_series(1, :n) AS i RETURNING item",
        "CREATE VIEW small AS SELECT item, n FROM orders WHERE n < 100 WITH CHECK OPTION",
        "CREATE ENDPOINT new_small POST '/small' (:n int) AS INSERT INTO small VALUES ('small', :n) RETURNING *",
        "CREATE ENDPOINT once POST '/once' AS INSERT INTO orders (item, code) VALUES ('once', :code) ON CONFLICT DO NOTHING RETURNING id",
    )


def send(web: Web, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], Any]:
    """Sends a request with a JSON body. Returns status, header fields and the JSON of the response."""
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    fields = {"Content-Type": "application/json"} if data else {}
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)
    try:
        connection.request(method, path, data, fields | {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return (
            response.status,
            {k.lower(): v for k, v in response.getheaders()},
            json.loads(response.read() or b"null", parse_float=Decimal),
        )
    finally:
        connection.close()


def refused_head(web: Web, head: bytes) -> bytes:
    """Sends the head of a request whose body is refused, and returns the first line of the response."""
    with socket.create_connection(("127.0.0.1", web.port), timeout=30) as client:
        client.sendall(head)
        return client.recv(100).split(b"\r\n")[0]


def failed(web: Web, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
    status, _, answer = send(web, method, path, body, **headers)
    return status, answer["error"]["sqlstate"]


def count(world: World, where: str) -> int:
    return int(world.sql("tailgate", f"SELECT count(*) FROM orders WHERE {where}")[0][0])


def test_insert_update_delete(web: Web) -> None:
    status, fields, order = send(web, "POST", "/orders", {"item": "tea", "n": 3})
    assert (status, order, fields["cache-control"]) == (201, {"id": order["id"], "item": "tea", "n": 3}, "no-store")
    assert order in web.get("/orders")  # readable at once
    assert send(web, "PATCH", f"/orders/{order['id']}", {"n": 5})[::2] == (200, {"id": order["id"], "n": 5})
    assert send(web, "DELETE", f"/orders/{order['id']}")[::2] == (200, {"id": order["id"]})
    assert failed(web, "DELETE", f"/orders/{order['id']}") == (404, "02000")
    assert order["id"] not in [o["id"] for o in web.get("/orders")]
    assert send(web, "POST", "/copies", {"n": 2})[::2] == (201, [{"item": "copy 1"}, {"item": "copy 2"}])
    assert send(web, "POST", "/clear", {"item": "nothing"})[::2] == (200, [])
    assert send(web, "POST", "/once", {"code": "o1"})[0] == 201
    assert failed(web, "POST", "/once", {"code": "o1"}) == (409, "02000")


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("POST", "/orders", {}, (400, "22023")),
        ("POST", "/orders", {"item": "a", "other": 1}, (400, "42P02")),
        ("POST", "/orders?item=b", {"item": "a"}, (400, "22023")),
        ("POST", "/orders", {"item": 5}, (400, "22023")),
        ("POST", "/orders", {"item": "a", "n": "x"}, (400, "22P02")),
        ("POST", "/orders", {"item": "a", "n": True}, (400, "22023")),
        ("POST", "/orders", {"item": "a", "n": 1.5}, (400, "22P02")),
        ("POST", "/orders", {"item": "a", "n": 1e99}, (400, "22P02")),
        ("POST", "/orders", {"item": "a\0"}, (400, "22023")),
        ("POST", "/orders", b'{"item": "\\ud800"}', (400, "22021")),
        ("POST", "/orders", b'{"\\ud800": 1}', (400, "22021")),
        ("POST", "/orders", b'{"item": "a", "item": "b"}', (400, "22023")),
        ("POST", "/orders", b'{"item": NaN}', (400, "22P02")),
        ("POST", "/orders", b'["item"]', (400, "22P02")),
        ("POST", "/orders", b'{"item": "\xff"}', (400, "22021")),
        ("POST", "/orders", b"[" * 100_000, (400, "22P02")),
        ("PUT", "/documents/1", b'{"j": ' + b"[" * 900 + b"]" * 900 + b"}", None),
        ("POST", "/orders", {"item": None}, (422, "23502")),
        ("POST", "/orders", {"item": "a", "n": 0}, (422, "23514")),
        ("POST", "/small", {"n": 100}, (422, "44000")),
        ("POST", "/orders", {"item": "a", "code": "taken"}, (409, "23505")),
        ("PATCH", "/orders/x", {"n": 1}, (400, "22P02")),
        ("PATCH", "/orders/0", {"n": 1}, (404, "02000")),
        ("PUT", "/orders", {}, (405, "0A000")),
        ("POST", "/absent", {}, (404, "42704")),
        ("POST", "/copies", {"n": 1001}, (422, "54000")),
    ],
)  # fmt: skip
def test_errors(web: Web, method: str, path: str, body: Any, expected: tuple[int, str] | None) -> None:
    if body == {"item": "a", "code": "taken"}:
        send(web, method, path, body)
    before = count(web.world, "true")
    status, _, answer = send(web, method, path, body)
    assert (expected is None and status < 500) or (status, answer["error"]["sqlstate"]) == expected, answer
    assert "Key (" not in str(answer)  # no value of a row
    assert count(web.world, "true") == before


def test_content_types_and_sizes(web: Web) -> None:
    assert failed(web, "POST", "/orders", {"item": "a"}, Content_Type="text/plain") == (415, "0A000")
    assert send(web, "POST", "/orders", {"item": "a"}, Content_Type="application/json; charset=utf-8")[0] == 201
    assert b" 413 " in refused_head(web, b"POST /orders HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048577\r\n\r\n")
    assert b" 413 " in refused_head(web, b"GET /orders HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n")
    assert send(web, "POST", "/orders", {"item": "a" * 900_000}, Expect="100-continue")[0] == 201
    assert web.error("/orders/1") == (405, "0A000")
    assert set(send(web, "GET", "/orders/1")[1]["allow"].split(", ")) == {"PATCH", "DELETE", "OPTIONS"}


def chunked(web: Web, parts: list[bytes], end: bytes = b"\r\n") -> bytes:
    """Sends a request with a body in chunks, each in its own packet, and returns the first line of the response."""
    head = b"POST /orders HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", web.port), timeout=30) as client, contextlib.suppress(ConnectionError):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.sendall(head)
        for part in parts:
            client.sendall(b"%x\r\n%s\r\n" % (len(part), part))
        client.sendall(b"0\r\n" + end)
        return client.recv(100).split(b"\r\n")[0]
    return b"closed"


def test_a_body_in_chunks(web: Web) -> None:
    before = count(web.world, "item = 'chunks'")
    assert b" 201 " in chunked(web, [b'{"item"', b': "chu', b'nks"}'])
    assert b" 201 " in chunked(web, [b'{"item": "chunks"}'], b"Content-Type: text/plain\r\nHost: other\r\n\r\n")  # trailers are not read
    assert b" 422 " in chunked(web, [b'{"item": null}'])
    assert b" 413 " in chunked(web, [b"x" * 1024] * 1025)
    assert b" 431 " in chunked(web, [b"{}"], b"A: " + b"x" * 10_000 + b"\r\nB: " + b"x" * 10_000 + b"\r\n\r\n")
    assert count(web.world, "item = 'chunks'") == before + 2
    assert web.server._bodies.used == 0


def test_pages_of_other_sites_cannot_write(web: Web) -> None:
    host = f"127.0.0.1:{web.port}"
    for origin in ("https://evil.example", "null", f"http://evil.example/{host}"):
        assert failed(web, "POST", "/orders", {"item": "evil"}, Origin=origin) == (403, "42501")
        assert failed(web, "POST", "/clear?item=tea", Origin=origin) == (403, "42501")
    for origin in ("https://app.example", f"http://{host}"):
        assert send(web, "POST", "/orders", {"item": "ours"}, Origin=origin)[0] == 201
    web.world.sql("tailgate", "CREATE ROLE site LOGIN", "GRANT EXECUTE ON ENDPOINT new_order TO site")
    token = web.world.sql("tailgate", "CREATE TOKEN site FOR site")[0][0]
    assert send(web, "POST", "/orders", {"item": "ours"}, Origin="https://evil.example", Authorization=f"Bearer {token}")[0] == 201
    assert count(web.world, "item = 'evil'") == 0


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**25), 10**25) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    j=JSON,
    tags=st.none() | st.lists(st.none() | TEXTS, max_size=4),
    b=st.none() | st.booleans(),
    x=st.none() | st.integers(-(10**20), 10**20),
    day=st.none() | st.dates(),
)
def test_values_come_back(web: Web, j: Any, tags: Any, b: bool | None, x: int | None, day: Any) -> None:
    body = {"j": j, "tags": tags, "b": b, "x": x, "d": None if day is None else str(day)}
    status, _, document = send(web, "PUT", "/documents/7", body)
    assert (status, document) == (201, {"id": 7, **body})


def test_large_bodies_are_read_in_another_process(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a large document would block other requests for seconds."""
    calls: list[int] = []
    workers = web.gateway.serving.workers
    run = workers.run_in_worker

    async def counted(*arguments: Any) -> Any:
        calls.append(len(arguments[-1]))
        return await run(*arguments)

    monkeypatch.setattr(workers, "run_in_worker", counted)
    for n in (100, 300_000):
        status, _, document = send(web, "PUT", "/documents/8", {"j": [1] * n})
        assert (status, len(document["j"])) == (201, n)
    assert failed(web, "PUT", "/documents/8", {"j": 1, "x": "a" * 100_000}) == (400, "22P02")
    assert [n > 100_000 for n in calls] == [True, True]


# --- Idempotency-Keys


def test_a_request_with_a_key_is_executed_once(web: Web) -> None:
    first = send(web, "POST", "/orders", {"item": "once"}, Idempotency_Key="k1")
    again = send(web, "POST", "/orders", {"item": "once"}, Idempotency_Key="k1")
    assert first[0] == again[0] == 201
    assert first[2] == again[2]
    assert ("idempotency-replayed" in first[1], again[1]["idempotency-replayed"]) == (False, "true")
    assert count(web.world, "item = 'once' AND code IS NULL") == 1
    assert failed(web, "POST", "/orders", {"item": "other"}, Idempotency_Key="k1") == (422, "22023")
    assert failed(web, "POST", "/orders?n=2", {"item": "once"}, Idempotency_Key="k1") == (422, "22023")
    assert send(web, "POST", "/once", {"code": "k1"}, Idempotency_Key="k1")[0] == 201  # keys belong to an endpoint
    for key in ("", "é", "x" * 256):
        assert failed(web, "POST", "/orders", {"item": "once"}, Idempotency_Key=key) == (400, "22023")


def test_a_failed_request_leaves_its_key_free(web: Web) -> None:
    assert failed(web, "POST", "/orders", {"item": "free", "n": 0}, Idempotency_Key="free") == (422, "23514")
    assert send(web, "POST", "/orders", {"item": "free", "n": 1}, Idempotency_Key="free")[0] == 201


def test_keys_of_roles_are_separate(web: Web) -> None:
    web.world.sql("tailgate", "CREATE ROLE ann LOGIN", "GRANT EXECUTE ON ENDPOINT new_order TO ann")
    ids = [
        send(web, "POST", "/orders", {"item": "r"}, Idempotency_Key="r", Tailgate_Role=role)[2]["id"] for role in ("ann", "tailgate", "ann")
    ]
    assert ids[0] == ids[2] != ids[1]
    assert failed(web, "DELETE", "/orders/1", Tailgate_Role="ann") == (403, "42501")


def test_concurrent_requests_at_two_gateways(web: Web, world: World) -> None:
    other = Web(world, HttpOptions("127.0.0.1", 0))
    barrier = threading.Barrier(12)

    def one(i: int) -> tuple[str, int, Any]:
        barrier.wait(60)
        status, _, order = send((web, other)[i % 2], "POST", "/orders", {"item": f"race {i % 3}"}, Idempotency_Key=f"race {i % 3}")
        return f"race {i % 3}", status, order["id"]

    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(one, range(12)))
    other.close()
    assert {status for _, status, _ in answers} == {201}
    assert len({(item, id) for item, _, id in answers}) == 3
    assert [count(world, f"item = 'race {i}'") for i in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("durable", [False, True])
def test_a_repeated_request_after_a_lost_answer(web: Web, world: World, durable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine, or the gateway, ends after it was sent the write: the client sends the request again, to any gateway."""
    control = web.gateway.control
    write = control.write

    async def lost(body: bytes) -> Any:
        if durable:
            await write(body)
        raise SystemError_("the engine ended before it answered")

    key, body = f"lost {durable}", {"item": f"lost {durable}"}
    monkeypatch.setattr(control, "write", lost)
    assert failed(web, "POST", "/orders", body, Idempotency_Key=key) == (503, "58000")
    monkeypatch.setattr(control, "write", write)
    other = Web(world, HttpOptions("127.0.0.1", 0))
    answers = [send(w, "POST", "/orders", body, Idempotency_Key=key) for w in (other, web)]
    other.close()
    assert [a[0] for a in answers] == [201, 201]
    assert answers[0][2] == answers[1][2]
    assert count(world, f"item = 'lost {durable}'") == 1
    assert ("idempotency-replayed" in answers[0][1]) is durable


def test_expired_keys(web: Web, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.sql(
        "tailgate",
        "CREATE ENDPOINT short POST '/short' WITH (idempotency_keys = '2 seconds') AS "
        "INSERT INTO orders (item) VALUES (:item) RETURNING id",
    )
    now = idempotency._now_ms()
    monkeypatch.setattr(idempotency, "_now_ms", lambda: now)
    first, again = (send(web, "POST", "/short", {"item": "s"}, Idempotency_Key="s")[2]["id"] for _ in range(2))
    send(web, "POST", "/short", {"item": "s"}, Idempotency_Key="s2")
    assert first == again
    now += 2_000
    assert send(web, "POST", "/short", {"item": "other"}, Idempotency_Key="s")[2]["id"] != first
    keys = "SELECT key FROM pg_endpoint.idempotency_keys WHERE key LIKE 's%' ORDER BY key"
    assert world.sql("tailgate", keys) == [("s",), ("s2",)]

    def remove(writer: EndpointWriter) -> int:
        return asyncio.run_coroutine_threadsafe(writer.remove_expired(), world.served.loop).result(60)

    assert remove(EndpointWriter(web.gateway)) == 1  # as after the start of a gateway, without a request
    assert world.sql("tailgate", keys) == [("s",)]
    assert remove(web.server._service.writer) == 0
    monkeypatch.setattr(idempotency, "KEYS_OF_ROLE_MAX", 1)
    assert failed(web, "POST", "/short", {"item": "s"}, Idempotency_Key="s3") == (429, "53400")
    assert send(web, "POST", "/short", {"item": "other"}, Idempotency_Key="s")[0] == 201  # kept
    monkeypatch.setattr(idempotency, "RESPONSE_BYTES_MAX", 1)
    assert failed(web, "POST", "/orders", {"item": "s"}, Idempotency_Key="big", Tailgate_Role="tailgate")[0] in (422, 429)


def test_the_table_of_keys(world: World) -> None:
    for statement in (f"DROP TABLE {KEYS}", f"ALTER TABLE {KEYS} ADD COLUMN x int", f"ALTER TABLE {KEYS} RENAME TO k"):
        with pytest.raises(Exception, match='"idempotency_keys" is a system catalog'):
            world.sql("tailgate", statement)
    world.sql("tailgate", "CREATE ROLE eve LOGIN")
    for statement in (f"SELECT * FROM {KEYS}", f"DELETE FROM {KEYS}"):
        with pytest.raises(Exception, match="permission denied for schema pg_endpoint"):
            world.sql("eve", statement)
    columns = Counter(str(c) for c in world.sql("tailgate", f"SELECT body, until > now() FROM {KEYS} LIMIT 1")[0])
    assert sum(columns.values()) == 2


# --- the catalog


def test_names_of_statements_follow_renames(web: Web, world: World) -> None:
    world.sql(
        "tailgate",
        "CREATE SCHEMA shop",
        "CREATE TABLE carts (id int PRIMARY KEY, n int)",
        "CREATE ENDPOINT put_cart PUT '/carts/:id' (:id int, :n int) AS INSERT INTO carts VALUES (:id, :n) "
        "ON CONFLICT (id) DO UPDATE SET n = carts.n + excluded.n RETURNING *, carts.n AS m",
        "CREATE ENDPOINT patch_cart PATCH '/carts/:id' AS "
        "UPDATE carts SET n = carts.n + (SELECT count(*) FROM carts) WHERE carts.id = :id RETURNING n",
        "ALTER TABLE carts RENAME TO baskets",
        "ALTER TABLE baskets SET SCHEMA shop",
        "ALTER TABLE shop.baskets ADD COLUMN note text",
    )
    assert send(web, "PUT", "/carts/1", {"n": 2})[2] == {"id": 1, "n": 2, "m": 2}
    assert send(web, "PUT", "/carts/1", {"n": 3})[2] == {"id": 1, "n": 5, "m": 5}
    assert send(web, "PATCH", "/carts/1", {})[2] == {"n": 6}
    world.sql("tailgate", "ALTER TABLE shop.baskets ALTER COLUMN note SET DEFAULT current_user")
    assert failed(web, "PUT", "/carts/2", {"n": 1}) == (500, "0A000")  # a request has no session
    with pytest.raises(Exception, match="other objects depend on it"):
        world.sql("tailgate", "DROP TABLE shop.baskets")
    assert "shop.baskets AS carts" in world.sql("tailgate", "SHOW CREATE ENDPOINT put_cart")[0][1]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("GET '/x' AS INSERT INTO orders (item) VALUES ('a') RETURNING id", "an endpoint of GET cannot write"),
        ("POST '/x' AS SELECT 1", "an endpoint of POST must write"),
        ("POST '/x' AS INSERT INTO orders (item) VALUES ('a')", "needs RETURNING"),
        ("POST '/orders' AS INSERT INTO orders (item) VALUES ('a') RETURNING id", "already has the path"),
        ("POST '/x' AS INSERT INTO orders (item) VALUES (:a) RETURNING id, id", "specified more than once"),
        ("POST '/x' AS INSERT INTO orders (n) VALUES (currval('orders_id_seq')) RETURNING id", "currval in an endpoint"),
        (
            "POST '/x' WITH (idempotency_keys = '8 days') AS INSERT INTO orders (item) VALUES (:a) RETURNING id",
            "at most 7 days|invalid value",
        ),
        ("GET '/x' WITH (idempotency_keys = '1 day') AS SELECT 1", "not supported"),
        ("POST '/x' AS MERGE INTO orders USING orders AS o ON false WHEN MATCHED THEN DELETE", "MERGE in an endpoint"),
    ],
)
def test_definitions_that_are_refused(world: World, statement: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        world.sql("tailgate", f"CREATE ENDPOINT x {statement}")


def test_writes_with_the_privileges_of_the_owner(web: Web, world: World) -> None:
    world.sql(
        "tailgate",
        "CREATE ROLE keeper LOGIN",
        "CREATE ROLE guest LOGIN",
        "CREATE SCHEMA k AUTHORIZATION keeper",
        "CREATE TABLE k.visits (id int PRIMARY KEY)",
        "GRANT INSERT ON k.visits TO keeper",
    )
    create = "CREATE ENDPOINT k.visit POST '/visits' (:id int) AS INSERT INTO k.visits VALUES (:id) RETURNING id"
    with pytest.raises(Exception, match="permission denied for table visits"):
        world.sql("keeper", create)  # RETURNING needs SELECT of what it reads
    world.sql("tailgate", "GRANT SELECT ON k.visits TO keeper")
    world.sql("keeper", create, "GRANT EXECUTE ON ENDPOINT k.visit TO guest", "GRANT USAGE ON SCHEMA k TO guest")
    assert send(web, "POST", "/visits", {"id": 1}, Tailgate_Role="guest")[0] == 201
    world.sql("tailgate", "REVOKE INSERT ON k.visits FROM keeper")
    assert failed(web, "POST", "/visits", {"id": 2}, Tailgate_Role="guest") == (403, "42501")


def test_openapi(web: Web) -> None:
    paths = web.get("/openapi.json")["paths"]
    assert {m for p, ms in paths.items() if p.startswith("/orders") for m in ms} == {"get", "post", "patch", "delete"}
    create = paths["/orders"]["post"]
    assert set(create["responses"]) == {"201", "default"}
    schema = create["requestBody"]["content"]["application/json"]["schema"]
    assert (set(schema["properties"]), schema["required"]) == ({"item", "n", "code"}, ["item"])
    assert [p["name"] for p in create["parameters"]] == ["Idempotency-Key"]
    assert "requestBody" not in paths["/orders/{id}"]["delete"]
