"""A Confluent-compatible schema registry over HTTP, as a separate process.

    python -m tailgate.embedded.registry --data DIR --port N

    request ──► ROUTES: the first pattern that matches ──► Subjects (durable) ──► JSON
                                                               └─ RegistryError ──► {"error_code", "message"}, status from the code

Besides Confluent's interface it supports the request with which Apicurio's Connect converter
registers a schema, so a Debezium worker can write Avro with it. It has no users (`RegistryServer` can
be given one), so it listens on 127.0.0.1 unless `--insecure` allows another address. The default
context is the only one.

Measured on a 2-core machine: ready in 0.1 to 0.3 s, 25 MB, idle under 0.1 % of a core.
"""

from __future__ import annotations

import argparse
import base64
import json
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Mapping
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tailgate.embedded.children import Child, ChildServer, await_free, remembered_port
from tailgate.embedded.registry_routes import ROUTES, Request
from tailgate.embedded.subjects import RegistryError, Subjects
from tailgate.lake.host.http import BadRequest, body_length

BODY_BYTES_MAX = 16 << 20  # Confluent's limit is 8 MB for a record with a schema
IDLE_CONNECTION = timedelta(minutes=5)  # each connection has a thread; clients reconnect automatically
READY_TIMEOUT = timedelta(seconds=30)  # 0.1 to 0.3 s measured
LOOPBACK = "127.0.0.1"
ANNOUNCEMENT = "schema registry on"
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


class _Handler(BaseHTTPRequestHandler):
    """The handler of one HTTP connection."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_CONNECTION.total_seconds()
    wbufsize = -1  # sends header and body in one packet
    disable_nagle_algorithm = True
    server: RegistryServer

    def _answer(self) -> None:
        """Checks the credentials, finds the route of the request, and sends its response."""
        if self.server.authorization not in (None, self.headers.get("Authorization")):
            return self._send(401, {"error_code": 401, "message": "Unauthorized"})
        try:
            body = self.rfile.read(body_length(self.headers, BODY_BYTES_MAX))
        except BadRequest as error:
            self.close_connection = True
            return self._send(error.status, {"error_code": error.status, "message": error.message})
        url = urlsplit(self.path)
        path = url.path.rstrip("/") or "/"
        for method, pattern, answer in ROUTES:
            if method == self.command and (match := pattern.fullmatch(path)):
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.server.subjects, match.groups(), parse_qs(url.query), body, headers)
                try:
                    return self._send(200, answer(request))
                except RegistryError as error:
                    return self._send(error.status, {"error_code": error.code, "message": error.message})
        path_exists = any(pattern.fullmatch(path) for _, pattern, _ in ROUTES)
        status = 405 if path_exists else 404
        return self._send(status, {"error_code": status, "message": f"HTTP {status}: {self.command} {path}"})

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # names that http.server requires

    def _send(self, status: int, answer: Any) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:
        """Discards the log of requests. Errors are sent to the client, and tracebacks go to standard error."""


class RegistryServer(ThreadingHTTPServer):
    """The registry in this process: `ServerThread` runs it in a thread.

    `user`: name and password that every request must have, if set. `tls`: enables HTTPS.
    """

    daemon_threads = True
    request_queue_size = 128
    address_family = socket.AF_INET

    def __init__(
        self, data: Path, port: int, host: str = LOOPBACK, user: tuple[str, str] | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self.subjects = Subjects(data / "events.jsonl")
        self.authorization = None if user is None else "Basic " + base64.b64encode(":".join(user).encode()).decode()
        super().__init__((host, port), _Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)  # the handshake is done in threads

    def server_close(self) -> None:
        super().server_close()
        self.subjects.close()


class Registry(ChildServer):
    """The registry as a child process over a data folder, which remembers its port. `environment`: variables added to ours."""

    ready_timeout = READY_TIMEOUT

    def __init__(self, data: Path, port: int | None = None, environment: Mapping[str, str] | None = None) -> None:
        self.data = data.absolute()
        self._environment = environment
        self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.port = remembered_port(self.data / "port", port, "registry")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def launch(self) -> Child:
        """Starts it without waiting; it announces itself when it accepts requests. Raises ChildFailed if its port is in use."""
        await_free(LOOPBACK, self.port)
        command = [sys.executable, "-m", "tailgate.embedded.registry", "--data", str(self.data), "--port", str(self.port)]
        log = self.data / "registry.log"
        self._child = Child("schema registry", command, log=log, environment=self._environment, announces=ANNOUNCEMENT)
        return self._child


def main() -> None:
    """Runs the registry as a process until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m tailgate.embedded.registry", description="A Confluent-compatible schema registry.")
    parser.add_argument("--data", type=Path, required=True, help="its folder")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--host", default=LOOPBACK, help=f"the address to listen on ({LOOPBACK})")
    parser.add_argument("--insecure", action="store_true", help="allow --host beyond loopback: anybody who reaches it may write")
    arguments = parser.parse_args()
    if arguments.host != LOOPBACK and not arguments.insecure:
        parser.error(f"--host {arguments.host} would let any machine write; give --insecure where something else guards the port")
    server = RegistryServer(arguments.data, arguments.port, arguments.host)
    for number in (signal.SIGTERM, signal.SIGINT):
        # shutdown() waits for serve_forever(), which runs in this thread, so it needs another thread
        signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"{ANNOUNCEMENT} http://{arguments.host}:{arguments.port}", flush=True)
    server.serve_forever()
    server.server_close()


if __name__ == "__main__":
    main()
