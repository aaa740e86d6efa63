"""Queries over a WebSocket: messages, their end, errors, and clients that leave."""

from __future__ import annotations

import json
import socket
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Ping, RejectConnection, RejectData, Request, TextMessage

from tailgate.gateway.asgi import limits as shared
from tailgate.gateway.ksqldb.server.http import limits
from testing.engine_process import until
from tests.gateway.ksqldb.test_access import basic
from tests.gateway.ksqldb.test_streams import sessions
from tests.gateway.ksqldb.world import Api, KsqldbWorld

QUERY = "SELECT * FROM t EMIT CHANGES;"


class Client:
    """A WebSocket at /ws/query."""

    def __init__(self, port: int, request: Any, path: str = "/ws/query", **headers: str) -> None:
        text = request if isinstance(request, str) else json.dumps(request)
        self.connection = WSConnection(ConnectionType.CLIENT)
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        fields = [(name.encode(), value.encode()) for name, value in headers.items()]
        self.send(Request(host="localhost", target=f"{path}?request={quote(text)}", extra_headers=fields))
        self._events: list[Any] = []
        self.accepted = self.next()

    def send(self, event: Any) -> None:
        self._socket.sendall(self.connection.send(event))

    def next(self) -> Any:
        """Waits for the next event."""
        while not self._events:
            data = self._socket.recv(1 << 16)
            self.connection.receive_data(data or None)
            self._events += list(self.connection.events())
        event = self._events.pop(0)
        if isinstance(event, Ping):
            self.send(event.response())
            return self.next()
        return event

    def message(self) -> Any:
        event = self.next()
        assert isinstance(event, TextMessage), event
        return json.loads(event.data)

    def end(self) -> tuple[int, str | None]:
        """Waits for the end. Returns its code and its reason."""
        event = self.next()
        assert isinstance(event, CloseConnection), event
        self.close()
        return event.code, event.reason

    def close(self) -> None:
        self._socket.close()


def run(world: KsqldbWorld, text: str) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute(text.encode())


def scalar(name: str, type: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "schema": {"type": type, "fields": None, "memberSchema": None, **members}}


def test_a_push_query_sends_its_schema_and_its_rows(api: Api, world: KsqldbWorld) -> None:
    client = Client(api.port, {"ksql": "SELECT * FROM t EMIT CHANGES LIMIT 2;", "streamsProperties": {"auto.offset.reset": "latest"}})
    assert isinstance(client.accepted, AcceptConnection)
    price = scalar("PRICE", "DECIMAL", parameters={"precision": 6, "scale": 2})
    assert client.message() == [scalar("ID", "INTEGER"), scalar("NAME", "STRING"), price]
    run(world, "INSERT INTO t VALUES (1, 'a\nb', 1.5)")
    assert client.message() == {"row": {"columns": [1, "a\nb", 1.5]}}
    run(world, "DELETE FROM t")
    assert client.message() == {"row": {"columns": [1, None, None], "tombstone": True}}
    assert client.end() == (1000, "done")


def test_a_pull_query_sends_its_rows(api: Api) -> None:
    client = Client(api.port, {"sql": "SELECT average, sensor FROM averages WHERE sensor = 's1';"})
    assert client.message() == [scalar("AVERAGE", "DOUBLE"), scalar("SENSOR", "STRING")]
    assert client.message() == {"row": {"columns": [1.5, "s1"]}}
    assert client.end() == (1000, "done")


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ("{", "Malformed JSON in the request body"),
        ({}, 'Missing member "ksql" in the request body'),
        ({"ksql": "SELECT nope FROM averages;"}, "Line: 1, Col: 8: SELECT column 'NOPE' cannot be resolved."),
        ({"ksql": "SHOW STREAMS;"}, "Statement type `ListItems` not supported for this resource"),
        ({"ksql": f"SELECT {'é' * 100} FROM averages;"}, f"Line: 1, Col: 8: SELECT column '{'é' * 45}"),
    ],
)
def test_an_error_is_the_reason_of_the_end(api: Api, request_: Any, reason: str) -> None:
    assert Client(api.port, request_).end() == (1011, reason)


def test_a_client_that_leaves_ends_its_query(api: Api, world: KsqldbWorld) -> None:
    for says_so in (True, False):
        client = Client(api.port, {"ksql": QUERY})
        client.message()
        until(lambda: sessions(world) == 1)
        if says_so:
            client.send(CloseConnection(1000))
        else:
            client.close()
        until(lambda: sessions(world) == 0)
        client.close()


def test_a_client_that_does_not_read_is_disconnected(world: KsqldbWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "SLOW_S", 0.5)
    api = Api(world)
    run(world, "INSERT INTO t SELECT g, repeat('x', 2000) FROM generate_series(1, 20000) AS g")
    client = Client(api.port, {"ksql": QUERY, "streamsProperties": {"auto.offset.reset": "earliest"}})
    client.message()
    until(lambda: sessions(world) == 0 and api.server._api.queries.running == 0)
    client.close()
    api.close()
    run(world, "DELETE FROM t")


def test_messages_of_the_client_are_ignored(api: Api, world: KsqldbWorld) -> None:
    client = Client(api.port, {"ksql": QUERY})
    client.message()
    client.send(TextMessage("x"))
    client.send(TextMessage("y" * 100_000))
    run(world, "INSERT INTO t VALUES (2)")
    assert client.message() == {"row": {"columns": [2, None, None]}}
    run(world, "DELETE FROM t")
    client.close()


def test_the_number_of_queries_is_limited(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STREAMS_MAX", 0)
    assert Client(api.port, {"ksql": QUERY}).end() == (1011, "The server runs at most 0 queries")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://elsewhere"}, 403),
        ({"origin": "http://elsewhere", **basic("nobody", "wrong")}, 403),  # a page of another site, in a browser that knows a password
        (basic("nobody", "wrong"), 401),
        ({"Authorization": "x"}, 401),
    ],
)
def test_a_client_without_access_is_refused(api: Api, headers: dict[str, str], status: int) -> None:
    client = Client(api.port, {"ksql": QUERY}, **headers)
    if isinstance(client.accepted, AcceptConnection):  # the password is checked with the query
        assert "origin" not in headers
        assert client.end() == (1011, "Unauthorized")
        return
    assert isinstance(client.accepted, RejectConnection)
    assert client.accepted.status_code == status
    body = client.next()
    assert isinstance(body, RejectData)
    assert json.loads(body.data)["error_code"] == status * 100
    client.close()


def test_a_page_of_this_site_may_open_one(api: Api) -> None:
    client = Client(api.port, {"ksql": QUERY}, origin="http://localhost")
    assert client.message()[0]["name"] == "ID"
    client.close()


def test_one_that_starts_is_a_running_request(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SEQUENCE_S", 2.0)
    monkeypatch.setattr(limits, "REQUESTS_MAX", 1)
    client = Client(api.port, {"ksql": QUERY, "commandSequenceNumber": 2**60})
    until(lambda: api.request("GET", "/info")[0] == 429)
    assert client.end()[0] == 1011
    until(lambda: api.request("GET", "/info")[0] == 200)


def test_a_running_response_ends_with_its_connection(api: Api, world: KsqldbWorld) -> None:
    """A request for a WebSocket that follows it does not take the connection over."""
    connection = api.connection("POST", "/query-stream", {"sql": QUERY})
    response = connection.getresponse()
    response.readline()
    until(lambda: sessions(world) == 1)
    connection.sock.sendall(WSConnection(ConnectionType.CLIENT).send(Request(host="localhost", target="/ws/query?request=x")))
    connection.sock.close()
    response.close()
    until(lambda: sessions(world) == 0)


def test_other_paths_have_no_websockets(api: Api) -> None:
    """The request is one without Upgrade, as for all other protocols."""
    client = Client(api.port, {"ksql": QUERY}, "/info")
    assert isinstance(client.accepted, RejectConnection)
    assert client.accepted.status_code == 200
    client.close()


def test_a_stopped_server_ends_its_queries(world: KsqldbWorld) -> None:
    api = Api(world)
    client = Client(api.port, {"ksql": QUERY})
    client.message()
    api.close()
    assert client.end()[0] in (1000, 1012)  # the end of the query, or a service that restarts
