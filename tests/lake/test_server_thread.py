"""The threads of HTTP servers end before `stop` returns, and before the number of their socket's descriptor is free."""

from __future__ import annotations

import socket
import threading
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

import pytest

from tailgate.embedded.registry import RegistryServer
from tailgate.engine.runtime.control.control import Answers, Control
from tailgate.gateway.presto.main import Server as Presto
from tailgate.lake.host.server_thread import ServerThread
from tailgate.operations.endpoint import Address, Endpoint
from tailgate.operations.health import Health
from tailgate.operations.metrics import Metrics

NUMBERS = 100  # of descriptors below that of a server which may be free


class Stoppable(Protocol):
    def start(self) -> object: ...
    def stop(self) -> None: ...


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


SERVERS: dict[str, Callable[[Path], Stoppable]] = {
    "control": lambda folder: Control(Answers(lambda *_: {}, lambda *_: {}, lambda lags: {}, lambda _: {})),
    "metrics": lambda folder: Endpoint(Address("127.0.0.1", 0), Metrics(()), Health()),
    "presto": lambda folder: ServerThread(Presto(0, "127.0.0.1:1"), "presto"),
    "registry": lambda folder: ServerThread(RegistryServer(folder, 0), "registry"),
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_stopped_server_has_no_thread(tmp_path: Path, name: str) -> None:
    before = set(threading.enumerate())
    server = SERVERS[name](tmp_path)
    server.start()
    (thread,) = (each for each in set(threading.enumerate()) - before if each.name == name)
    server.stop()
    assert not thread.is_alive()
    server.stop()


def test_a_stopped_server_leaves_later_sockets_alone() -> None:
    """A later socket gets the descriptor's number; only its owner accepts its connections, and no thread of the server remains."""
    before = set(threading.enumerate())
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    number, port = server.fileno(), server.server_port
    thread = ServerThread(server, "one")
    thread.start()
    assert urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10).status == 204
    thread.stop()
    assert not any(each.name == "one" for each in set(threading.enumerate()) - before)
    later: list[socket.socket] = []
    try:
        while number not in [each.fileno() for each in later]:  # other threads may free smaller numbers
            assert len(later) < NUMBERS
            later.append(socket.create_server(("127.0.0.1", 0)))
        for each in later:
            client = socket.create_connection(each.getsockname(), timeout=10)
            each.settimeout(10)
            accepted, address = each.accept()
            assert address == client.getsockname()
            accepted.close()
            client.close()
    finally:
        for each in later:
            each.close()


def test_the_port_is_free_after_stop() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = ServerThread(server, "one")
    thread.start()
    thread.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.server_port), timeout=10)


def test_a_server_that_was_not_started_is_closed() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ServerThread(server, "one").stop()
    assert server.fileno() == -1


def test_many_threads_stop_one_server() -> None:
    thread = ServerThread(ThreadingHTTPServer(("127.0.0.1", 0), Handler), "one")
    thread.start()
    stoppers = [threading.Thread(target=thread.stop) for _ in range(8)]
    for each in stoppers:
        each.start()
    for each in stoppers:
        each.join(10)
    assert not any(each.is_alive() for each in stoppers)
