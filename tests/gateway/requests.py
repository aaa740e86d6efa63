"""A client of a server of HTTP on loopback, for tests."""

from __future__ import annotations

import http.client
import json
from typing import Any


class Requests:
    """Sends requests to `port`."""

    port: int

    def connection(self, method: str, path: str, body: Any = None, **headers: str) -> http.client.HTTPConnection:
        """Returns a connection on which a request was sent. `body`: bytes, or a value for JSON. `_` in names of headers stands for `-`."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, data, {name.replace("_", "-"): value for name, value in headers.items()})
        return connection

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Sends a request and returns status, header fields and body."""
        connection = self.connection(method, path, body, **headers)
        try:
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        finally:
            connection.close()
