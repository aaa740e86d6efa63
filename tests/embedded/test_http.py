"""Tests how control, Presto and registry answer malformed HTTP requests."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tailgate.embedded.registry import RegistryServer
from tailgate.engine.runtime.control.control import Answers, Control
from tailgate.gateway.presto.main import Server as Presto
from tailgate.lake.host.server_thread import ServerThread

SERVERS = ("control", "presto", "registry")
PATHS = {"control": "/statement", "presto": "/v1/statement", "registry": "/subjects/s/versions"}

Doors = dict[str, tuple[int, str]]  # port, and headers that authenticate a request


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    control = Control(Answers(lambda *_: {}, lambda *_: {}, lambda lags: {}, lambda _: {}))
    control.start()
    presto, registry = Presto(0, "127.0.0.1:1"), RegistryServer(tmp_path_factory.mktemp("registry"), 0)
    threads = [ServerThread(presto, "presto"), ServerThread(registry, "registry")]
    for thread in threads:
        thread.start()
    yield {
        "control": (int(control.address.rpartition(":")[2]), f"Authorization: Bearer {control.token}\r\n"),
        "presto": (presto.server_address[1], "X-Trino-User: ann\r\n"),
        "registry": (registry.server_address[1], ""),
    }
    control.stop()
    for thread in threads:
        thread.stop()


def answered(port: int, request: str) -> bytes:
    """Sends bytes. Returns everything received until the server closes the connection."""
    response = b""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(request.encode())
        while data := connection.recv(1 << 16):
            response += data
    return response


def status(answer: bytes) -> int:
    return int(answer.split()[1])


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("length", ["-1", "-9223372036854775808", "+5", "1_000", "0x10", "5.0", "five", "5, 6", "²", ""])
def test_a_length_that_is_not_a_number_is_400(doors: Doors, server: str, length: str) -> None:
    port, headers = doors[server]
    head = f"POST {PATHS[server]} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}"
    assert status(answered(port, f"{head}Content-Length: {length}\r\n\r\nhello")) == 400


@pytest.mark.parametrize("server", SERVERS)
def test_two_lengths_are_400(doors: Doors, server: str) -> None:
    port, headers = doors[server]
    head = f"POST {PATHS[server]} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}"
    assert status(answered(port, f"{head}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello")) == 400


@pytest.mark.parametrize("server", SERVERS)
def test_bodies_in_chunks_are_501(doors: Doors, server: str) -> None:
    """Otherwise the server would read the chunks as the next request."""
    port, headers = doors[server]
    head = f"POST {PATHS[server]} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}"
    answer = answered(port, f"{head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    assert status(answer) == 501
    assert answer.count(b"HTTP/1.") == 1


@pytest.mark.parametrize("server", SERVERS)
def test_bodies_that_are_too_long_are_413(doors: Doors, server: str) -> None:
    port, headers = doors[server]
    head = f"POST {PATHS[server]} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}"
    assert status(answered(port, f"{head}Content-Length: {1 << 40}\r\n\r\n")) == 413


@pytest.mark.parametrize(
    "query", ["/freshness?after=x", "/freshness?after=-", "/recent?relations=x", "/recent?timeout=x", "/recent?timeout=nan"]
)
def test_invalid_numbers_in_control_requests_are_400(doors: Doors, query: str) -> None:
    port, headers = doors["control"]
    head = f"GET {query} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{headers}"
    assert status(answered(port, f"{head}\r\n")) == 400


@pytest.mark.parametrize("token", ["x", "é"])
def test_a_wrong_token_is_401(doors: Doors, token: str) -> None:
    port, _ = doors["control"]
    assert status(answered(port, f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n")) == 401
