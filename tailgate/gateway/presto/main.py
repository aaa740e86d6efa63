"""The HTTP server of the Presto protocol: POST /v1/statement, GET and DELETE of pages, GET /v1/info.

It is a separate process with a thread per connection, and listens on loopback only. It trusts the
client's user name as far as the gateway accepts users without a password.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tailgate.gateway.presto.backend import Backend
from tailgate.gateway.presto.statements import Document, Statements, TooMany, encoded
from tailgate.lake.host.http import BadRequest, body_length

HOST = "127.0.0.1"
BODY_BYTES_MAX = 4 * 1024 * 1024  # like the limit of a statement in PostgreSQL's protocol
CONNECTIONS_MAX = 200
IDLE_S = 60.0  # seconds after which an idle connection is closed

log = logging.getLogger("tailgate.presto")


@dataclass(frozen=True, slots=True)
class Options:
    """The port to listen on, and the gateway as HOST:PORT."""

    port: int
    gateway: str


class Server(ThreadingHTTPServer):
    """The HTTP server, with at most CONNECTIONS_MAX connections."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, gateway: str) -> None:
        super().__init__((HOST, port), Handler)
        self.started = time.monotonic()
        self.places = threading.Semaphore(CONNECTIONS_MAX)
        self.statements = Statements(Backend(gateway), f"http://{HOST}:{self.server_address[1]}")

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()

    def server_close(self) -> None:
        self.statements.close()
        super().server_close()


class Handler(BaseHTTPRequestHandler):
    """The handler of one HTTP connection."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    server: Server

    def do_GET(self) -> None:
        parts = self.path.split("?")[0].strip("/").split("/")
        if parts == ["v1", "info"]:
            minutes = (time.monotonic() - self.server.started) / 60
            self._answer(200, {"nodeVersion": {"version": "tailgate"}, "environment": "tailgate", "coordinator": True, "starting": False,
                               "uptime": f"{minutes:.2f}m"})  # fmt: skip
            return
        place = _place(parts)
        document = self.server.statements.page(*place) if place is not None else None
        self._answer(*((200, document) if document is not None else (404, {"message": "no such page"})))

    def do_DELETE(self) -> None:
        place = _place(self.path.split("?")[0].strip("/").split("/"))
        exists = place is not None and self.server.statements.cancel(place[0], place[1])
        self._answer(204 if exists else 404, None)

    def do_POST(self) -> None:
        try:
            body = self.rfile.read(body_length(self.headers, BODY_BYTES_MAX))
        except BadRequest as e:
            self.close_connection = True
            self._answer(e.status, {"message": e.message})
            return
        if self.path.split("?")[0] != "/v1/statement":
            self._answer(404, {"message": "no such path"})
            return
        if self.headers.get("Authorization"):
            self._answer(401, {"message": "passwords are not taken here: connect by the PostgreSQL protocol"})
            return
        user = self._header("User")
        # another Host header may come from a web page in a browser (DNS rebinding)
        if not user or self.headers.get("Host", "").rpartition(":")[0] not in (HOST, "localhost"):
            self._answer(400 if user else 401, {"message": "say X-Trino-User, and connect to 127.0.0.1"})
            return
        if self._header("Transaction-Id") not in (None, "NONE"):
            self._answer(400, {"message": "transactions are not supported over Presto's protocol"})
            return
        schema = self._header("Schema")
        try:
            text = body.decode()
            self._answer(200, self.server.statements.begin(text, user, None if schema in (None, "", "default") else schema))
        except UnicodeDecodeError:
            self._answer(400, {"message": "a statement is UTF-8"})
        except TooMany:
            self._answer(503, {"message": "too many statements are open"})

    def _header(self, name: str) -> str | None:
        return self.headers.get(f"X-Trino-{name}") or self.headers.get(f"X-Presto-{name}")

    def _answer(self, status: int, document: Document | None) -> None:
        data = b"" if document is None else encoded(document)
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        log.debug(format, *arguments)


def _place(parts: list[str]) -> tuple[str, str, int] | None:
    """Returns statement id, slug and token from the path of a page; None for another path."""
    if len(parts) != 6 or parts[:3] != ["v1", "statement", "executing"] or not parts[5].isdecimal():
        return None
    return parts[3], parts[4], int(parts[5])


def run(options: Options) -> int:
    """Serves until SIGTERM or SIGINT; returns the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    server = Server(options.port, options.gateway)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"ready presto=http://{HOST}:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    finally:
        server.server_close()
    return 0
