"""Requests to a server of ksqlDB's HTTP API."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 60.0  # of a request that is not a push query
MEDIA = "application/vnd.ksql.v1+json"


class ServerError(Exception):
    """An error that the server reports, or a server that cannot be reached."""


class Server:
    """A server at a URL. `user`, `password`: for Basic authentication, or None."""

    def __init__(self, url: str, user: str | None = None, password: str | None = None) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ServerError(f"{url} is not the URL of a server")
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._host, self._port, self._secure = parts.hostname, parts.port or 8088, parts.scheme == "https"
        self._headers = {"Accept": MEDIA, "Content-Type": MEDIA}
        if (user or parts.username) is not None:
            credentials = f"{user or parts.username}:{password or parts.password or ''}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(credentials.encode()).decode()

    def get(self, path: str) -> Any:
        """Returns a document. Raises ServerError."""
        return self._document("GET", path, None)

    def run(self, statement: str, properties: Mapping[str, str], variables: Mapping[str, str]) -> list[dict[str, Any]]:
        """Returns the entities of a statement. Raises ServerError."""
        body = {"ksql": statement, "streamsProperties": dict(properties), "sessionVariables": dict(variables)}
        entities: list[dict[str, Any]] = self._document("POST", "/ksql", body)
        return entities

    def query(self, statement: str, properties: Mapping[str, str], variables: Mapping[str, str], *, push: bool) -> Iterator[dict[str, Any]]:
        """Returns the parts of a query's result as they arrive: header, row, finalMessage, errorMessage. Raises ServerError."""
        for line in self._lines(statement, properties, variables, None if push else TIMEOUT_S):
            if text := line.strip().removeprefix(b"[").rstrip(b",").removesuffix(b"]"):
                yield json.loads(text)

    def printed(self, statement: str, properties: Mapping[str, str], variables: Mapping[str, str]) -> Iterator[str]:
        """Returns the lines of a PRINT. Raises ServerError."""
        for line in self._lines(statement, properties, variables, None):
            yield line.decode("utf-8", "replace").rstrip("\n")

    def _lines(self, statement: str, properties: Mapping[str, str], variables: Mapping[str, str], timeout: float | None) -> Iterator[bytes]:
        """Returns the lines of the response of /query as they arrive. Raises ServerError."""
        body = {"ksql": statement, "streamsProperties": dict(properties), "sessionVariables": dict(variables)}
        with closing(self._sent("POST", "/query", body, timeout)) as connection:
            yield from self._response(connection)

    def _document(self, method: str, path: str, body: Any) -> Any:
        with closing(self._sent(method, path, body, TIMEOUT_S)) as connection:
            return json.loads(self._response(connection).read())

    def _sent(self, method: str, path: str, body: Any, timeout: float | None) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        if self._secure:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=ssl.create_default_context())
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        try:
            connection.request(method, path, None if body is None else json.dumps(body).encode(), self._headers)
        except OSError as error:
            connection.close()
            raise ServerError(f"could not connect to {self.url}: {error}") from None
        return connection

    def _response(self, connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
        try:
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise ServerError(f"no response from {self.url}: {error}") from None
        if response.status != 200:
            raise ServerError(_message(response.read()))
        return response


def _message(body: bytes) -> str:
    """Returns the message of an error document."""
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace") or "the server returned no message"
