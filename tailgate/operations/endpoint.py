"""The HTTP server of metrics and health checks.

    GET /metrics    Prometheus' text format, or OpenMetrics if the client accepts it
    GET /livez      200 while the process answers
    GET /startupz   200 once the process has started, 503 before
    GET /readyz     200 if the process is ready, 503 and the reason otherwise

Requests need no token. Nothing that they return contains a value of a row or a secret.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client.exposition import choose_encoder

from tailgate.lake.errors import InvalidParameterValue, ObjectInUse
from tailgate.lake.host import ports, process_tls
from tailgate.lake.host.server_thread import ServerThread
from tailgate.operations.definitions import Metric
from tailgate.operations.health import Health
from tailgate.operations.metrics import Metrics
from tailgate.operations.otlp import active as otlp
from tailgate.operations.settings.addresses import is_port

REQUESTS_MAX = 8  # at once; further ones get 503, so that a scraper cannot take the threads of a process
IDLE_S = 15.0  # of a connection that sends nothing; Prometheus keeps connections between scrapes and opens new ones
TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Address:
    """An address on which metrics are served."""

    host: str
    port: int

    def __str__(self) -> str:
        return process_tls.joined(self.host, self.port)

    def plus(self, number: int) -> Address:
        """Returns the address with a port that is higher by `number`."""
        return Address(self.host, self.port + number)


def address(text: str) -> Address:
    """Returns the address that an option names: HOST:PORT, or a port of loopback. Raises 22023.

    >>> str(address("9100")), str(address("[::1]:9100"))
    ('127.0.0.1:9100', '[::1]:9100')
    """
    host, _, port = text.rpartition(":")
    if not is_port(port):
        raise InvalidParameterValue(f"--metrics {text} is not HOST:PORT")
    return Address(host.strip("[]") or "127.0.0.1", int(port))


def opened(at: Address | None, definitions: Sequence[Metric]) -> Endpoint | None:
    """Starts the endpoint of a process, announces its URL in the log, and exports its metrics with --otlp.

    Returns None if they are neither served nor exported.
    """
    exporter = otlp.exporter()
    if at is None and exporter is None:
        return None
    endpoint = Endpoint(at or Address("", 0), Metrics(definitions), Health())
    if exporter is not None:
        exporter.export(endpoint.metrics)
    if at is not None:
        print(f"metrics {endpoint.start()}", file=sys.stderr, flush=True)
    return endpoint


class Endpoint:
    """The server of one process. It listens from `start` until `stop`."""

    def __init__(self, at: Address, metrics: Metrics, health: Health) -> None:
        self.metrics, self.health = metrics, health
        self._at = at
        self._thread: ServerThread | None = None

    def start(self) -> str:
        """Starts to listen and returns the URL. Raises 55006 if the port is in use."""
        try:
            server = _Server(self._at, self.metrics, self.health)
        except OSError as error:
            raise ObjectInUse(f"metrics cannot be served at {self._at}: {ports.taken(self._at.host, self._at.port)}") from error
        self._thread = ServerThread(server, "metrics")
        self._thread.start()
        return f"http://{self._at.plus(server.server_address[1] - self._at.port)}/metrics"

    def stop(self) -> None:
        if self._thread is not None:
            self._thread.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, at: Address, metrics: Metrics, health: Health) -> None:
        self.metrics, self.health = metrics, health
        self.turns = threading.Semaphore(REQUESTS_MAX)
        self.address_family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
        super().__init__((at.host, at.port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores clients that disconnect before they have read the answer."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    wbufsize = -1

    def do_GET(self) -> None:
        if not self.server.turns.acquire(blocking=False):
            self._answer(503, TEXT, b"too many requests at once\n")
            return
        try:
            self._get(self.path.partition("?")[0])
        finally:
            self.server.turns.release()

    do_HEAD = do_GET

    def _get(self, path: str) -> None:
        health = self.server.health
        match path:
            case "/metrics":
                encode, content_type = choose_encoder(self.headers.get("Accept", ""))
                self._answer(200, content_type, encode(self.server.metrics.registry))
            case "/livez":
                self._check(None)
            case "/startupz":
                self._check(health.unstarted())
            case "/readyz":
                self._check(health.unready())
            case _:
                self._answer(404, TEXT, b"no such path: /metrics, /livez, /readyz, /startupz\n")

    def _check(self, reason: str | None) -> None:
        self._answer(200 if reason is None else 503, TEXT, f"{reason or 'ok'}\n".encode())

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        pass
