"""A webhook for tests: an HTTP server that keeps the requests."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Receiver:
    """A webhook on loopback. Answers with the next of `statuses`, and with 204 after them. Keeps the requests answered with 2xx."""

    def __init__(self, port: int = 0) -> None:
        self.statuses: list[int] = []
        self.requests = 0
        self.bodies: list[dict[str, Any]] = []
        self.everything: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests += 1
                status = receiver.statuses.pop(0) if receiver.statuses else 204
                if status < 300:
                    receiver.raw.append(body)
                    receiver.headers.append(dict(self.headers.items()))
                    receiver.bodies.append(json.loads(body))
                    receiver.everything.append(receiver.bodies[-1])
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/alerts"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def events(self, alert: str, key: str | None = None) -> list[str]:
        """Returns the events of an alert, in order."""
        return [b["event"] for b in list(self.bodies) if b["alert"] == alert and key in (None, b["key"])]

    def all_events(self) -> list[list[str]]:
        """Returns the events of each alert."""
        return [self.events(alert, key) for alert, key in {(b["alert"], b["key"]) for b in list(self.bodies)}]

    def clear(self) -> None:
        """Empties `bodies`."""
        self.bodies = []

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
