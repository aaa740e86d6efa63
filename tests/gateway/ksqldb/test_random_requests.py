"""Random statements and bodies: the HTTP API answers each, with an error of ksqlDB or a result, and without an internal error.

`TAILGATE_FUZZ` sets the number of requests; the long test sends a million. One in four statements is also sent over PostgreSQL's protocol.
A failure prints the seed and the number of its request, and the folder with the output of the run (`run_output`).

Memory is compared without the caches, which have limits of their own. The lake is swept, so that it keeps its size.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.gateway.workers import pool
from tailgate.lake.readers import reading
from tailgate.lake.tables import checkpoints
from tailgate.lake.writer import maintenance, retention
from tailgate.sql.definition_cache import DefinitionCache
from tests.gateway.ksqldb.random_requests import Request, request
from tests.gateway.ksqldb.run_output import FOLDER, RunOutput
from tests.gateway.ksqldb.world import STREAM, TABLE, Api, KsqldbWorld

FAST, LONG = int(os.environ.get("TAILGATE_FUZZ", 400)), 1_000_000
DAY_S = 86_400.0  # a million requests take many hours
ITEMS_EVERY = 2_000  # requests, after which their streams and tables are dropped
ANSWER_S = 2 * (pool.START_S + pool.PREPARE_S)  # on a busy machine; of a statement that has a process of its own
STREAM_S = 0.05  # wait for the end of a response that may have none
PROGRESS_S = 30.0
GROWTH_MIB = 200  # of this process, after the first tenth of the requests
LAKE_MIB = 500  # of the lake after a sweep
RETAIN_MS = 60_000  # age of the entries that sweeps keep: the gateway reads them within seconds
STATUSES = frozenset((200, 307, 400, 404, 405, 406, 415, 503))  # 503: the world has no broker
MEMORY = Path("/dev/shm")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Client:
    """A connection that stays open, over HTTP/1.1."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def send(self, sent: Request) -> tuple[int, bytes]:
        """Returns the status and the body of the response, or the part that has arrived of one that may have no end."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=ANSWER_S)
        head = [f"{sent.method} {sent.path} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in sent.headers)]
        head += [f"Content-Length: {len(sent.body)}", "", ""]
        self._socket.settimeout(ANSWER_S)
        self._socket.sendall("\r\n".join(head).encode() + sent.body)
        head_bytes, _, body = self._until(b"\r\n\r\n").partition(b"\r\n\r\n")
        status = int(head_bytes.split(b" ", 2)[1])
        fields = head_bytes.lower()
        if b"transfer-encoding: chunked" in fields:
            body = self._chunked(body, may_continue=sent.may_continue)
        elif sent.method != "HEAD":
            length = int(fields.partition(b"content-length:")[2].split(b"\r\n")[0] or b"0")
            while len(body) < length:
                body += self._received()
        if b"connection: close" in fields:
            self.close()
        return status, body

    def _chunked(self, body: bytes, *, may_continue: bool) -> bytes:
        assert self._socket is not None
        if may_continue:
            self._socket.settimeout(STREAM_S)
        try:
            while not body.endswith(b"0\r\n\r\n"):
                body += self._received()
        except TimeoutError:
            if not may_continue:
                raise
            self.close()
        return body

    def _until(self, end: bytes) -> bytes:
        data = b""
        while end not in data:
            data += self._received()
        return data

    def _received(self) -> bytes:
        assert self._socket is not None
        data = self._socket.recv(1 << 16)
        if not data:
            raise ConnectionError("the server has closed the connection")
        return data

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Errors(logging.Handler):
    """The records of the log that are errors."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(logging.Formatter().format(record))


@pytest.fixture
def errors() -> Iterator[Errors]:
    handler = Errors()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    """A server over a lake in memory, if possible: one in three requests changes the catalog, and waits for the disk."""
    monkeypatch.setattr(kafka, "ANSWER_S", 0.01)
    monkeypatch.setattr(pool, "START_S", ANSWER_S)  # after which the response is 429
    monkeypatch.setattr(logging.getLogger("sqlglot"), "disabled", True)  # pytest keeps its warnings in memory
    for module, name, value in (
        (reading, "RETAIN_HISTORY_MS", RETAIN_MS),
        (retention, "AGE_MIN_MS", RETAIN_MS),
        (maintenance, "GRACE_S", 0.0),
        (checkpoints, "RECENT_MS", 0),
        (checkpoints, "SPACING_MS", 0),
    ):
        monkeypatch.setattr(module, name, value)
    with TemporaryDirectory(prefix="tailgate-requests-", dir=MEMORY if MEMORY.exists() else None) as folder:
        world = KsqldbWorld.filled(Path(folder) / "lake")
        api = Api(world)
        yield api
        api.close()
        world.close()


def resident_mib() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / (1 << 20)


def resident_mib_without_caches(api: Api) -> float:
    """Returns the memory of this process after its caches were emptied."""
    for gateway in api.world.gateways:
        gateway.serving.budget.evict()
    for cache in [each for each in gc.get_objects() if isinstance(each, DefinitionCache)]:
        cache._results.clear()
    gc.collect()
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:  # of glibc
        trim(0)
    return resident_mib()


def lake_mib(api: Api) -> float:
    """Returns the size of the files of the lake."""
    size = 0
    for path in api.world.path.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            size += path.stat().st_size
    return size / (1 << 20)


def check(sent: Request, status: int, body: bytes) -> None:
    assert status in STATUSES, (status, body[:2_000])
    assert b"Internal server error" not in body, body
    if status >= 400 and sent.method != "HEAD":
        document = json.loads(body)
        assert document["error_code"] // 100 == status, document
        assert document["message"], document


def clean(api: Api) -> None:
    """Drops the streams and tables that requests have created, and creates those that they use."""
    while True:
        entities = api.ksql("LIST STREAMS; LIST TABLES;")
        names = [item["name"] for entity in entities for item in (*entity.get("streams", ()), *entity.get("tables", ()))]
        names = [name for name in names if name != "KSQL_PROCESSING_LOG" and name != "t"]
        dropped = 0
        for entity, kind in zip(entities, ("STREAM", "TABLE"), strict=True):
            for item in entity.get(f"{kind.lower()}s", ()):
                if item["name"] in names:
                    quoted = item["name"].replace("`", "``")
                    dropped += api.request("POST", "/ksql", {"ksql": f"DROP {kind} IF EXISTS `{quoted}`;"})[0] == 200
        if not dropped:
            break
    for text in (STREAM, TABLE):
        api.request("POST", "/ksql", {"ksql": text})
    api.world.engine.sweep()
    for kept in (api.world.engine._statements.ksqldb.messages, api.world.engine._statements.ksqldb.deleted):
        kept.clear()
    assert (size := lake_mib(api)) < LAKE_MIB, f"the lake has {size:.0f} MiB"


def send_all(api: Api, seed: int, count: int, errors: Errors) -> Counter[int]:
    """Sends requests. Returns how many have each status."""
    output = RunOutput(FOLDER / f"{seed}-{os.getpid()}")
    with output.kept():
        return _sent(api, seed, count, errors, output)


def _sent(api: Api, seed: int, count: int, errors: Errors, output: RunOutput) -> Counter[int]:
    statuses: Counter[int] = Counter()
    client, shown, flat = Client(api.port), time.monotonic(), 0.0
    postgresql = psycopg.connect(api.world.dsn, autocommit=True)
    for number in range(count):
        sent, began = request(seed, number), time.monotonic()
        status, body = 0, b""
        try:
            status, body = client.send(sent)
            check(sent, status, body)
            if number % 4 == 0 and sent.statement is not None and not sent.may_continue:
                with contextlib.suppress(psycopg.DataError):  # a text with a zero byte is refused before it is sent
                    statuses[0] += over_postgresql(postgresql, sent.statement)
            assert not errors.texts, "\n".join(errors.texts)
        except Exception as error:
            raise AssertionError(f"request {number} of the seed {seed}: {sent}") from error
        finally:
            output.add(number, sent, status, body, time.monotonic() - began)
        statuses[status] += 1
        if number % ITEMS_EVERY == ITEMS_EVERY - 1:
            client.close()  # the server closes idle connections
            clean(api)
        if number == count // 10:
            flat = resident_mib_without_caches(api)
        if time.monotonic() - shown > PROGRESS_S:
            shown = time.monotonic()
            print(f"{number} requests, {dict(statuses)}, {resident_mib():.0f} MiB", flush=True)
    client.close()
    postgresql.close()
    grown = resident_mib_without_caches(api) - flat
    assert grown < GROWTH_MIB, f"the memory has grown by {grown:.0f} MiB"
    return statuses


def over_postgresql(connection: psycopg.Connection[tuple[object, ...]], text: str) -> int:
    """Sends a statement of ksqlDB over PostgreSQL's protocol. Returns 1."""
    if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:  # BEGIN was the only word of a statement
        connection.execute("ROLLBACK")
    connection.execute("SET tailgate.dialect = ksqldb")
    failure: psycopg.Error | None = None
    try:
        connection.execute(text.encode())
    except psycopg.Error as error:
        failure = error
    if failure is not None:
        assert failure.sqlstate is not None, failure  # otherwise the connection is lost
        assert not failure.sqlstate.startswith("XX"), failure
    return 1


def test_random_requests(alone: Api, seed: int, errors: Errors) -> None:
    statuses = send_all(alone, seed, FAST, errors)
    assert statuses[200]
    assert statuses[400]


@pytest.mark.long
@pytest.mark.timeout(DAY_S)
def test_a_million_random_requests(alone: Api, seed: int, errors: Errors) -> None:
    print(send_all(alone, seed, LONG, errors))
