"""Push queries, PRINT and streams of inserts over HTTP: rows as they arrive, their ends, and clients that vanish or do not read."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from psycopg import AsyncConnection
from psycopg.adapt import AdaptersMap
from psycopg.pq import Format

from tailgate.embedded.kafka import Kafka
from tailgate.engine.runtime.control import source_statements
from tailgate.gateway.asgi import limits as shared
from tailgate.gateway.asgi.rows import Rows
from tailgate.gateway.asgi.sessions import Caller, Session
from tailgate.gateway.ksqldb.server.http import limits
from tailgate.gateway.ksqldb.server.printing import printed
from tailgate.gateway.ksqldb.server.queries import Push
from tailgate.gateway.ksqldb.server.values import register
from tailgate.lake.types import FACTS
from testing.engine_process import until
from tests.gateway.ksqldb.world import Api, KsqldbWorld

PUSH = "SELECT * FROM t EMIT CHANGES;"


class Stream:
    """A running push query over HTTP/1.1."""

    def __init__(self, api: Api, sql: str, path: str = "/query-stream", **headers: str) -> None:
        self.connection = api.connection("POST", path, {"sql": sql}, **headers)
        self.response = self.connection.getresponse()
        self.header = self.line()

    def line(self) -> Any:
        """Waits for the next line."""
        line = self.response.readline().rstrip(b",\n")
        return json.loads(line[1:] if line.startswith(b"[{") else line)

    def rest(self) -> bytes:
        """Waits for the end of the response and returns its rest."""
        data = self.response.read()
        self.close()
        return data

    def close(self) -> None:
        self.response.close()
        self.connection.close()


def sql(world: KsqldbWorld, text: str) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        connection.execute(text.encode())


def sessions(world: KsqldbWorld) -> int:
    with psycopg.connect(world.dsn, autocommit=True) as connection:
        counts = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ksqldb' AND state = 'active'"
        ).fetchall()
    return int(counts[0][0])


def test_changes_arrive_until_the_query_is_closed(api: Api, world: KsqldbWorld) -> None:
    stream = Stream(api, PUSH)
    assert (stream.header["columnNames"], stream.header["columnTypes"]) == (["ID", "NAME", "PRICE"], ["INTEGER", "STRING", "DECIMAL(6, 2)"])
    sql(world, "INSERT INTO t VALUES (1, 'a', 1.5)")
    assert stream.line() == [1, "a", 1.5]
    sql(world, "UPDATE t SET name = 'b\n' WHERE id = 1")
    assert stream.line() == [1, "b\n", 1.5]
    status, _ = api.failed("/close-query", {"queryId": "x"})
    assert status == 400
    accept = {"Accept": "application/vnd.ksqlapi.delimited.v1"}  # of ksqlDB's Java client
    assert api.request("POST", "/close-query", {"queryId": stream.header["queryId"]}, **accept)[0] == 200
    assert stream.rest() == b""
    assert api.failed("/close-query", {"queryId": stream.header["queryId"]})[1]["error_code"] == 40000
    sql(world, "DELETE FROM t")


@pytest.mark.parametrize("text", [PUSH, "SELECT * FROM readings EMIT CHANGES;"])
def test_the_id_of_a_query_is_that_of_show_queries(api: Api, world: KsqldbWorld, text: str) -> None:
    """With and without a view. TERMINATE ends the query."""
    stream = Stream(api, text)
    id = stream.header["queryId"]

    def listed() -> list[str]:
        (entity,) = api.ksql("SHOW QUERIES;")
        return [query["id"] for query in entity["queries"] if query["queryType"] == "PUSH"]

    until(lambda: listed() == [id])
    with psycopg.connect(world.dsn, autocommit=True) as connection:

        def shown() -> list[tuple[str, ...]]:
            rows = [row for row in connection.execute("SHOW QUERIES").fetchall() if row[1] == "PUSH"]
            return [(row[0], row[2], row[5].rstrip(";")) for row in rows]

        until(lambda: shown() == [(id, "RUNNING", text.rstrip(";"))])  # CREATING before
    (entity,) = api.ksql(f"TERMINATE {id};")
    assert entity["commandStatus"] == {"status": "SUCCESS", "message": "Query terminated."}
    assert b'"message"' in stream.rest()
    until(lambda: listed() == [])
    assert f"Unknown queryId: {id}" in api.failed("/ksql", {"ksql": f"TERMINATE {id};"})[1]["message"]


def test_a_query_that_the_gateway_has_not_begun_is_closed(world: KsqldbWorld) -> None:
    """A cancel request that arrives between two statements has no effect."""

    async def query() -> None:
        async with await AsyncConnection.connect(world.dsn, autocommit=True) as connection:
            push = Push(Caller(), Session(connection, Caller()))
            push.close()
            rows = await Rows.started(push.session, PUSH)
            while await rows.next() is not None:
                pass

    with pytest.raises(psycopg.OperationalError):
        asyncio.run(asyncio.wait_for(query(), 10))


def test_a_query_whose_connection_has_ended_is_closed(world: KsqldbWorld) -> None:
    """The server closes all queries when it stops, also if the gateway has ended."""

    async def query() -> None:
        connection = await AsyncConnection.connect(world.dsn, autocommit=True)
        push = Push(Caller(), Session(connection, Caller()))
        with suppress(psycopg.OperationalError):
            await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        with pytest.raises(psycopg.OperationalError):
            await connection.execute("SELECT 1")
        push.close()
        await connection.close()
        push.close()

    asyncio.run(asyncio.wait_for(query(), 10))


def test_deleted_rows_are_tombstones(api: Api, world: KsqldbWorld) -> None:
    stream = Stream(api, "SELECT name, id FROM t EMIT CHANGES LIMIT 3;", "/query")
    sql(world, "INSERT INTO t VALUES (2, 'a'), (3, NULL)")
    assert sorted((stream.line(), stream.line()), key=str) == [{"row": {"columns": ["a", 2]}}, {"row": {"columns": [None, 3]}}]
    sql(world, "DELETE FROM t WHERE id = 2")
    assert stream.line() == {"row": {"columns": [None, 2], "tombstone": True}}
    assert stream.rest() == b'{"finalMessage":"Limit Reached"}]\n'
    sql(world, "DELETE FROM t")


def test_a_client_that_vanishes_ends_its_query(api: Api, world: KsqldbWorld) -> None:
    stream = Stream(api, PUSH)
    until(lambda: sessions(world) == 1)
    stream.close()
    until(lambda: sessions(world) == 0 and api.server._api.queries.running == 0)


def test_a_client_that_does_not_read_is_disconnected(world: KsqldbWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "SLOW_S", 0.5)
    api = Api(world)
    sql(world, "INSERT INTO t SELECT g, repeat('x', 2000) FROM generate_series(1, 20000) AS g")
    client = socket.create_connection(("127.0.0.1", api.port))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    body = json.dumps({"sql": "SELECT * FROM t EMIT CHANGES;", "properties": {"auto.offset.reset": "earliest"}}).encode()
    client.sendall(b"POST /query-stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    client.settimeout(10)
    assert client.recv(100)
    until(lambda: sessions(world) == 0 and api.server._api.queries.running == 0)  # a push query has no end
    client.close()
    api.close()
    sql(world, "DELETE FROM t")


def test_the_number_of_push_queries_is_limited(api: Api, world: KsqldbWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STREAMS_MAX", 1)
    stream = Stream(api, PUSH)
    status, document = api.failed("/query-stream", {"sql": PUSH})
    assert (status, document["error_code"]) == (429, 42900)
    stream.close()
    until(lambda: sessions(world) == 0 and api.server._api.queries.running == 0)


def test_the_rate_of_requests_is_limited(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RATE_MAX", 0.001)  # one is admitted, and the next after 1,000 s
    assert [api.request("GET", "/info")[0] for _ in range(3)] == [200, 429, 429]
    assert api.failed("/ksql", {"ksql": "SHOW STREAMS;"})[1]["error_code"] == 42900
    monkeypatch.undo()
    assert api.request("GET", "/info")[0] == 200


class Topic:
    """A new topic with two partitions, which the broker knows."""

    def __init__(self, kafka: Kafka, name: str) -> None:
        self.name = name
        self._producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 0, "log_level": 2})
        admin = AdminClient({"bootstrap.servers": kafka.address, "log_level": 2})
        admin.create_topics([NewTopic(name, 2)])[name].result(30)
        until(lambda: name in admin.list_topics(timeout=10).topics)

    def send(self, *keys: str) -> None:
        """Writes a record for each key and waits until the broker has them. The last letter of the key is its partition."""
        for key in keys:
            self._producer.produce(self.name, json.dumps({"A": key}), key=key, partition=int(key[-1]), timestamp=1_000)
        self._producer.flush()


class Printing:
    """A running PRINT over HTTP/1.1."""

    def __init__(self, api: Api, text: str, path: str = "/query") -> None:
        self._connection = api.connection("POST", path, {"ksql": text})
        self._response = self._connection.getresponse()

    def line(self) -> str:
        """Waits for the next line."""
        return self._response.readline().decode().rstrip("\n")

    def keys(self, count: int) -> list[str]:
        """Waits for so many records and returns their keys in order."""
        return sorted(self.line().partition("key: ")[2].partition(",")[0] for _ in range(count))

    def rest(self) -> str:
        """Waits for the end of the response and returns its rest."""
        data = self._response.read().decode()
        self.close()
        return data

    def close(self) -> None:
        self._response.close()
        self._connection.close()


@pytest.mark.kafka
def test_print_continues_until_its_client_leaves(api: Api, world: KsqldbWorld, kafka: Kafka) -> None:
    topic = Topic(kafka, "printed")
    topic.send("a0", "b1")
    of = f"'printed' FROM BROKER '{kafka.address}'"
    first, next_ = Printing(api, f"PRINT {of} FROM BEGINNING;"), Printing(api, f"PRINT {of};", "/query-stream")
    assert [first.line(), first.line()] == ["Key format: KAFKA_STRING", "Value format: JSON or KAFKA_STRING"]
    assert first.keys(2) == ["a0", "b1"]
    topic.send("c0")
    assert first.line() == 'rowtime: 1970/01/01 00:00:01.000 Z, key: c0, value: {"A": "c0"}, partition: 0'
    assert [next_.line(), next_.line()] == ["Key format: KAFKA_STRING", "Value format: JSON or KAFKA_STRING"]
    assert next_.keys(1) == ["c0"]
    assert [api.failed("/close-query", {"queryId": id})[0] for id in ("", "record")] == [400, 400]
    assert sessions(world) == api.server._api.queries.running == 2
    first.close()
    next_.close()
    until(lambda: sessions(world) == 0 and api.server._api.queries.running == 0)
    following = attending(api)._following
    until(lambda: following._value == source_statements.FOLLOWING_MAX)  # the engine has ended both


@pytest.mark.kafka
def test_print_ends_at_its_limit(api: Api, kafka: Kafka) -> None:
    topic = Topic(kafka, "limited")
    of = f"'limited' FROM BROKER '{kafka.address}'"
    printing = Printing(api, f"PRINT {of} FROM BEGINNING INTERVAL 2 LIMIT 2;")
    topic.send("a0", "b0")
    printing.line(), printing.line()
    assert printing.keys(1) == ["a0"]
    topic.send("c0", "d0", "e0")
    assert printing.keys(1) == ["c0"]
    assert printing.rest() == "Topic printing ceased\n"
    assert Printing(api, f"PRINT {of} LIMIT 0;").rest().splitlines()[1:] == [
        r"Value format: ¯\_(ツ)_/¯ - no data processed",
        "Topic printing ceased",
    ]
    _, document = api.failed("/query", {"ksql": f"PRINT 'nowhere' FROM BROKER '{kafka.address}';"})
    assert 'topic "nowhere" does not exist' in document["message"]
    following = attending(api)._following
    until(lambda: following._value == source_statements.FOLLOWING_MAX)
    for _ in range(source_statements.FOLLOWING_MAX):
        following.acquire()
    assert api.failed("/query", {"ksql": f"PRINT {of};"})[1]["message"].startswith("too many PRINT statements")
    following.release(source_statements.FOLLOWING_MAX)


class Available:
    """Rows of PRINT, which have all arrived."""

    waiting = False

    def __init__(self, *lines: str) -> None:
        self._left = list(lines)

    async def next(self) -> list[str] | None:
        return [json.dumps(self._left.pop(0))] if self._left else None


def parts(*lines: str) -> list[str]:
    """Returns the parts of a response for lines of the gateway."""

    async def collected() -> list[str]:
        return [part.decode() async for part in printed(cast(Rows, Available(*lines)))]

    return asyncio.run(collected())


def test_large_records_are_printed_in_parts() -> None:
    lines = (f"timestamp: 1, key: k, value: {'x' * 20_000}, partition: 0, offset: {n}" for n in range(10))
    assert max(map(len, parts(*lines))) < 2 * shared.ROWS_BYTES


def test_records_before_1970_are_printed() -> None:
    (text,) = parts("timestamp: -1, key: k, value: v, partition: 0, offset: 0")
    assert text.splitlines()[2] == "rowtime: 1969/12/31 23:59:59.999 Z, key: k, value: v, partition: 0"


def attending(api: Api) -> source_statements.Attending:
    """Returns the engine's statements about topics."""
    attending: source_statements.Attending = api.world.engine._statements._attending
    return attending


def test_inserts_are_acknowledged_while_the_body_is_open(api: Api, world: KsqldbWorld) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", api.port, timeout=30)
    connection.putrequest("POST", "/inserts-stream")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()

    def send(value: Any) -> None:
        data = json.dumps(value).encode() + b"\n"
        connection.send(b"%x\r\n%s\r\n" % (len(data), data))

    send({"target": "Readings"})
    response = connection.getresponse()
    send({"SENSOR": "i1", "reading": 4})
    assert json.loads(response.readline()) == {"status": "ok", "seq": 0}
    send({"sensor": "i2", "reading": "many"})
    failure = json.loads(response.readline())
    assert (failure["status"], failure["seq"], failure["error_code"]) == ("error", 1, 40001)
    send({"sensor": "i3", "`AREA`": "it's"})
    assert json.loads(response.readline()) == {"status": "ok", "seq": 2}
    connection.send(b"0\r\n\r\n")
    assert response.read() == b""
    connection.close()
    messages = world.engine._statements.ksqldb.messages
    assert [message for message in messages if message[1] in (b"i1", b"i2", b"i3")] == [
        ("r", b"i1", b'{"AREA":null,"READING":4}'),
        ("r", b"i3", b'{"AREA":"it\'s","READING":null}'),
    ]


@pytest.mark.kafka
def test_a_stopped_server_ends_its_queries(world: KsqldbWorld, kafka: Kafka) -> None:
    api = Api(world)
    stream = Stream(api, PUSH)
    topic = Topic(kafka, "stopped")
    printing = Printing(api, f"PRINT '{topic.name}' FROM BROKER '{kafka.address}';")
    began = time.monotonic()
    api.close()
    assert (stream.rest(), printing.rest()) == (b"", "")
    assert time.monotonic() - began < 10


def test_connections_share_the_classes_that_load_values() -> None:
    """Psycopg keeps each class: a connection for each push query would take 290 KB for ever."""
    first, second = (SimpleNamespace(adapters=AdaptersMap(psycopg.adapters)) for _ in range(2))
    for connection in (first, second):
        register(connection)  # type: ignore[arg-type]
    text = FACTS["text"]
    for oid in (0, text.oid, text.array_oid):
        loaders = {connection.adapters.get_loader(oid, Format.TEXT) for connection in (first, second)}
        assert len(loaders) == 1
        assert None not in loaders
