"""Redirects of a registry are refused, so that other servers do not get its credentials."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tailgate.engine.ddl import Registry
from tailgate.formats import registry as sinks
from tailgate.lake.catalog.secrets import Vault
from tailgate.lake.errors import ConnectionFailure
from tailgate.lake.host.server_thread import ServerThread


class Elsewhere(HTTPServer):
    """A server that records requests. `registry` answers every request with a redirect to it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Remember)
        self.came: list[tuple[str, str | None]] = []
        self.registry = HTTPServer(("127.0.0.1", 0), _Redirect)
        self.registry.__dict__["target"] = f"http://127.0.0.1:{self.server_address[1]}"
        self.registry.__dict__["code"] = 302


class _Remember(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        assert isinstance(self.server, Elsewhere)
        self.server.came.append((self.command, self.headers.get("Authorization")))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"id": 1, "schema": "\\"string\\""}')

    do_GET = do_POST = do_PUT = _answer

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class _Redirect(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(self.server.__dict__["code"])
        self.send_header("Location", self.server.__dict__["target"] + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST = do_PUT = _answer

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    server = Elsewhere()
    threads = [ServerThread(each, "registry") for each in (server, server.registry)]
    for thread in threads:
        thread.start()
    yield server
    for thread in threads:
        thread.stop()


CLIENTS: dict[str, Callable[[str], object]] = {
    "engine": lambda url: Registry(Vault()).latest(url, "s"),
    "sinks": lambda url: sinks.register(url, {}, "s", {"type": "string"}),
    "sinks' compatibility": lambda url: sinks.compatibility(url, {}, "s", "FULL"),
}


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_redirect_is_not_followed(elsewhere: Elsewhere, client: str, code: int) -> None:
    elsewhere.registry.__dict__["code"] = code
    url = f"http://ann:secret@127.0.0.1:{elsewhere.registry.server_address[1]}"
    with pytest.raises(ConnectionFailure, match=f"{code}.*not followed") as raised:
        CLIENTS[client](url)
    assert "secret" not in str(raised.value)
    assert elsewhere.came == []
