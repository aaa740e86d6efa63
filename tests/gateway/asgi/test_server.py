"""The server of HTTP/1.1 and HTTP/2: which protocol a connection has, limits, invalid requests, and the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import uvloop
from starlette.types import Receive, Scope, Send

from tailgate.gateway.asgi import limits
from tailgate.gateway.asgi.http1 import Http1
from tailgate.gateway.asgi.http2 import PREFACE
from tailgate.gateway.asgi.server import AsgiServer
from tailgate.gateway.security.tls import Files, Tls
from tailgate.gateway.server import handshake
from testing.engine_process import until
from tests.wire.certificates import Authority

GET = b"GET /first HTTP/1.1\r\nHost: localhost\r\n\r\n"
PING, PONG = b"\x89\x80\0\0\0\0", b"\x8a\0"  # frames of WebSockets: of a client, and of a server


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with its path and the size of the body. /stream has no Content-Length, /early does not read, /late waits, /error fails."""
    size, path = 0, scope["path"]
    if path == "/error":
        raise RuntimeError("an error of the application")
    while path != "/early":
        message = await receive()
        size += len(message.get("body", b""))
        if not message.get("more_body", False):
            break
    if path == "/late":
        await asyncio.sleep(60)
    body = f"{path} {size}".encode()
    headers = [] if path == "/stream" else [(b"content-length", str(len(body)).encode())]
    headers.append((b"count", b"fields %d" % len(scope["headers"])))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": path == "/stream"})
    if path == "/stream":
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class Served:
    """A server of `app` in a thread."""

    def __init__(self, tls: Tls | None = None) -> None:
        self._tls = tls
        self._ready, self._thread = threading.Event(), threading.Thread(target=lambda: uvloop.run(self._run()), daemon=True)
        self._thread.start()
        assert self._ready.wait(30)

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        listening = socket.create_server(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        self.server = AsgiServer(app, self._tls, _nothing)
        await self.server.start([listening])
        self._ready.set()
        await self._stop.wait()
        await self.server.stop()

    def connect(self, data: bytes = b"") -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        client.sendall(data)
        return client

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(30)
        assert not self._thread.is_alive()


class Transport(asyncio.Transport):
    """A transport that keeps the bytes of all writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol


async def accepting(scope: Scope, receive: Receive, send: Send) -> None:
    """Accepts a WebSocket."""
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


async def _nothing() -> None:
    pass


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served()
    yield served
    served.close()


def rest(client: socket.socket) -> bytes:
    """Waits for the end of a connection and returns the bytes of the server."""
    data = b""
    with client:
        while more := client.recv(1 << 16):
            data += more
    return data


def received(client: socket.socket, end: bytes) -> bytes:
    """Waits for bytes that end with `end`."""
    data = b""
    while not data.endswith(end):
        more = client.recv(1 << 16)
        assert more, data
        data += more
    return data


def test_pipelined_requests_are_answered_in_order(served: Served) -> None:
    client = served.connect(
        GET + b"POST /second HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc" + GET.replace(b"first", b"stream")
    )
    data = received(client, b"0\r\n\r\n")
    client.close()
    assert [data.index(text) for text in (b"/first 0", b"/second 3", b"/stream 0")] == sorted(
        data.index(p) for p in (b"/first", b"/second", b"/stream")
    )
    assert data.startswith(b"HTTP/1.1 200 OK\r\n")
    assert data.count(b"\r\ndate: ") == 3


@pytest.mark.parametrize("size", [1, 10, len(PREFACE) - 1])
def test_http2_begins_with_its_preface(served: Served, size: int) -> None:
    client = served.connect(PREFACE[:size])
    client.settimeout(0.2)
    with pytest.raises(TimeoutError):
        client.recv(1)
    client.settimeout(30)
    client.sendall(PREFACE[size:] + b"\0\0\0\4\0\0\0\0\0")  # an empty SETTINGS frame
    assert client.recv(9)[3] == 4  # the server's SETTINGS
    client.close()


def test_a_word_that_begins_as_the_preface_is_a_request_of_http1(served: Served) -> None:
    client = served.connect(b"P")
    client.sendall(b"UT /put HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert received(client, b"/put 0").startswith(b"HTTP/1.1 200")
    client.close()


@pytest.mark.parametrize("version", ["1.1", "2"])
def test_a_body_in_chunks(served: Served, version: str) -> None:
    with httpx2.Client(base_url=f"http://127.0.0.1:{served.port}", http1=version == "1.1", http2=version == "2", trust_env=False) as client:
        assert client.post("/chunks", content=iter([b"a" * 100_000] * 5)).text == "/chunks 500000"
        assert client.get("/error").status_code == 500
        assert client.get("/stream").text == "/stream 0"


CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("head", [b"GET / HTTP/1.1\r\nA: ", b"GET / HTTP/1.1\r\nA: b\r\nx", b"GET /"])
def test_header_fields_above_the_limit_are_refused(served: Served, head: bytes) -> None:
    client = served.connect(head)
    time.sleep(0.05)  # two packets
    client.sendall(b"x" * (limits.HEADER_BYTES_MAX + 1))
    assert rest(client).startswith(b"HTTP/1.1 431 ")
    assert rest(served.connect(head + b"x" * limits.HEADER_BYTES_MAX + b": 1\r\n\r\n")).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("part", [b"0\r\nA: ", b"1;a="])
def test_trailers_and_extensions_above_the_limit_end_the_connection(served: Served, part: bytes) -> None:
    client = served.connect(CHUNKED + part)
    with contextlib.suppress(ConnectionError):
        for _ in range(3):
            time.sleep(0.05)  # another packet
            client.sendall(b"x" * (limits.HEADER_BYTES_MAX // 2))
        assert b" 200 " not in rest(client)


def test_trailers_are_not_header_fields(served: Served) -> None:
    client = served.connect(CHUNKED + b"1\r\na\r\n")
    time.sleep(0.05)  # the application has begun
    client.sendall(b"0\r\nAuthorization: x\r\n\r\n" + GET)
    data = received(client, b"/first 0")
    assert b"/ 1" in data and b"fields 1" in data
    client.close()


def test_the_limit_of_header_fields_is_for_one_request(served: Served) -> None:
    count = 2 * limits.HEADER_BYTES_MAX // len(GET)
    client, data = served.connect(GET * count), b""
    while data.count(b"/first 0") < count:
        data += client.recv(1 << 16)
    client.close()


def test_an_invalid_request_is_refused(served: Served) -> None:
    assert rest(served.connect(b"nonsense\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
    assert rest(served.connect(b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n")).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("upgrade", [b"websocket", b"h2c"])
def test_an_upgrade_is_ignored(served: Served, upgrade: bytes) -> None:
    client = served.connect(b"GET /first HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n" % upgrade)
    assert received(client, b"/first 0").startswith(b"HTTP/1.1 200")
    client.sendall(GET)
    assert received(client, b"/first 0").startswith(b"HTTP/1.1 200")
    client.close()


@pytest.mark.parametrize("framing", [b"Content-Length: 6\r\n\r\nabcdef", b"Transfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n0\r\n\r\n"])
def test_a_request_for_an_upgrade_has_its_body(served: Served, framing: bytes) -> None:
    """Java's HttpClient sends such requests."""
    fields = b"Host: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    client = served.connect(b"POST /x HTTP/1.1\r\n" + fields + framing[:-10])
    client.sendall(framing[-10:] + GET)
    assert b"/x 6" in received(client, b"/first 0")
    client.close()


def test_connect_is_refused(served: Served) -> None:
    assert rest(served.connect(b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n")).startswith(b"HTTP/1.1 400 ")


def test_a_client_may_wait_for_100_continue(served: Served) -> None:
    client = served.connect(b"POST /x HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert received(client, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.sendall(b"ab")
    received(client, b"/x 2")
    client.close()


def test_a_response_before_the_end_of_its_request_ends_the_connection(served: Served) -> None:
    client = served.connect(b"POST /early HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc")
    assert rest(client).endswith(b"/early 0")


def test_clients_of_http_1_0_get_no_chunks(served: Served) -> None:
    assert rest(served.connect(b"GET /stream HTTP/1.0\r\n\r\n")).endswith(b"\r\n\r\n/stream 0")


@pytest.mark.parametrize("data", [b"", b"GET", PREFACE[:5], GET, GET[:-2], PREFACE + b"\0\0\0\4\0\0\0\0\0"])
def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(limits, "IDLE_S", 0.3)
    served = Served()
    began = time.monotonic()
    rest(served.connect(data))
    assert 0.2 < time.monotonic() - began < 10
    served.close()


def test_connections_are_limited(monkeypatch: pytest.MonkeyPatch, served: Served) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS_MAX", 2)
    clients = [served.connect(GET), served.connect()]
    received(clients[0], b"/first 0")
    refused = served.connect()
    with contextlib.suppress(ConnectionError):
        assert rest(refused) == b""
    clients[0].close()
    deadline = time.monotonic() + 10
    while served.server._open > 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    client = served.connect(GET)
    received(client, b"/first 0")
    client.close()
    clients[1].close()


def test_connections_in_their_handshake_are_limited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS_MAX", 2)
    monkeypatch.setattr(handshake, "HANDSHAKE_S", 60.0)
    authority = Authority(tmp_path)
    served = Served(Tls(Files(*authority.sign("server"))))

    def encrypted() -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=authority.certificate)
        return context.wrap_socket(served.connect(), server_hostname="127.0.0.1")

    first = encrypted()
    first.sendall(GET)
    received(first, b"/first 0")
    silent = served.connect()
    refused = served.connect()
    with contextlib.suppress(ConnectionError):
        assert rest(refused) == b""
    silent.close()
    until(lambda: not served.server._is_full())
    second = encrypted()
    second.sendall(GET)
    received(second, b"/first 0")
    first.close()
    second.close()
    served.close()


def test_refused_connections_are_logged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One line in LOG_S seconds, which counts the others."""
    monkeypatch.setattr(handshake, "LOG_S", 60.0)
    caplog.set_level(logging.INFO, "tailgate.gateway")
    served = Served(Tls(Files(*Authority(tmp_path).sign("server"))))

    def refuse() -> None:
        with contextlib.suppress(ConnectionError):
            assert b"HTTP" not in rest(served.connect(GET))

    for _ in range(3):
        refuse()
    (line,) = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert line.startswith("a TLS connection from 127.0.0.1 is refused: the handshake has failed: ")
    monkeypatch.setattr(handshake, "LOG_S", 0.0)
    served.connect().close()
    until(lambda: "the handshake has failed: the client has closed the connection (2 more since the last message)" in caplog.text)
    monkeypatch.setattr(limits, "CONNECTIONS_MAX", 0)
    refuse()
    until(lambda: "refused: there are too many connections" in caplog.text)
    served.close()


def test_a_handshake_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(handshake, "HANDSHAKE_S", 0.3)
    served = Served(Tls(Files(*Authority(tmp_path).sign("server"))))
    with contextlib.suppress(ConnectionError):
        assert rest(served.connect()) == b""
    with contextlib.suppress(ConnectionError):
        assert b"HTTP" not in rest(served.connect(GET))
    served.close()


def test_the_end_of_the_server_ends_its_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STOP_S", 0.3)
    served = Served()
    clients = [served.connect(data) for data in (b"", GET, GET.replace(b"first", b"late"), PREFACE + b"\0\0\0\4\0\0\0\0\0")]
    received(clients[1], b"/first 0")
    assert clients[3].recv(1)
    served.close()
    for client in clients:
        with contextlib.suppress(ConnectionError):
            rest(client)


def test_a_client_that_does_not_read_gets_no_answers_to_its_pings() -> None:
    async def check() -> None:
        transport = Transport()
        connection = Http1(accepting, (b"/ws",)).protocol()
        connection.connection_made(transport)
        fields = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: YQ==\r\n\r\n"
        connection.data_received(b"GET /ws HTTP/1.1\r\nHost: localhost\r\n" + fields)
        while not transport.written:
            await asyncio.sleep(0)
        socket, transport.written = transport.protocol, b""
        assert isinstance(socket, asyncio.Protocol)
        socket.pause_writing()
        for _ in range(3):
            socket.data_received(PING)
        assert transport.written == b""
        socket.resume_writing()
        socket.data_received(PING)
        assert transport.written == PONG
        socket.connection_lost(None)

    asyncio.run(asyncio.wait_for(check(), 30))
