"""Requests and responses as values, and the bytes of responses. No I/O.

Source: RFC 9110, "HTTP Semantics"; RFC 9112, "HTTP/1.1".
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from time import time

from tailgate.lake.errors import TailgateError

REASONS = {
    200: "OK",
    201: "Created",
    204: "No Content",
    304: "Not Modified",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    409: "Conflict",
    410: "Gone",
    413: "Content Too Large",
    414: "URI Too Long",
    415: "Unsupported Media Type",
    422: "Unprocessable Content",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
}
# by SQLSTATE or its class: whether the caller, the definition or the moment causes the error
# of requests that write, whose values cause the errors of data and constraints
WRITE_STATUSES = {"23505": 409, "40001": 409, "23": 422, "44": 422, "22": 422, "54": 422}
STATUSES = {"28": 401, "42501": 403, "53": 503, "55": 503, "57": 503, "58": 503, "40": 503, "08": 503}
JSON = b"application/json"


@dataclass(frozen=True, slots=True)
class Request:
    """A request. The names of `headers` are in lower case; `path`, `query` and `body` are as sent, without decoding."""

    method: str
    path: str
    query: str
    headers: Mapping[bytes, bytes]
    keep_alive: bool = True
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    """A response.

    `fields`: header fields besides Content-Length, Content-Type, Date and Connection. `stream`: the parts of a body whose length is not
    known; the end of the connection ends it.
    """

    status: int
    body: bytes = b""
    fields: tuple[tuple[bytes, bytes], ...] = ()
    type: bytes = JSON
    stream: AsyncGenerator[bytes, None] | None = None


class HttpError(Exception):
    """An error with an HTTP status. `error`: the error for the client."""

    def __init__(self, status: int, error: TailgateError, *fields: tuple[bytes, bytes]) -> None:
        super().__init__(error.message)
        self.status, self.error, self.fields = status, error, fields


def status_of(error: TailgateError, *, writes: bool = False) -> int:
    """Returns the status for an error of SQL: 500 unless the caller or the moment causes it. `writes`: the request writes."""
    if writes and (status := WRITE_STATUSES.get(error.sqlstate) or WRITE_STATUSES.get(error.sqlstate[:2])):
        return status
    return STATUSES.get(error.sqlstate) or STATUSES.get(error.sqlstate[:2], 500)


def error_response(status: int, error: TailgateError, fields: tuple[tuple[bytes, bytes], ...] = ()) -> Response:
    """Returns the response for an error: a JSON object with SQLSTATE and message."""
    return Response(status, error_body(error), fields)


def error_body(error: TailgateError) -> bytes:
    """Returns the JSON object of an error."""
    members = {"sqlstate": error.sqlstate, "message": error.message, "detail": error.detail, "hint": error.hint}
    return json.dumps({"error": {name: value for name, value in members.items() if value}}, ensure_ascii=False).encode()


@dataclass(slots=True)
class _Date:
    """The header field Date, computed once in a second."""

    second: int = 0
    line: bytes = field(default=b"")

    def get(self) -> bytes:
        now = int(time())
        if now != self.second:
            self.second, self.line = now, b"Date: " + formatdate(now, usegmt=True).encode() + b"\r\n"
        return self.line


_DATE = _Date()
_FIRST_LINES = {status: f"HTTP/1.1 {status} {reason}\r\n".encode() for status, reason in REASONS.items()}


def encoded(response: Response, *, head: bool, keep_alive: bool) -> bytes:
    """Returns the bytes of a response. `head`: the request was HEAD, so the body is left out."""
    parts = [_FIRST_LINES[response.status], _DATE.get()]
    if response.status not in (204, 304):
        length = b"Content-Length: %d\r\n" % len(response.body) if response.stream is None else b""
        parts += (b"Content-Type: ", response.type, b"\r\n", length)
    for name, value in response.fields:
        parts += (name, b": ", value, b"\r\n")
    parts.append(b"\r\n" if keep_alive else b"Connection: close\r\n\r\n")
    if not head and response.status not in (204, 304):
        parts.append(response.body)
    return b"".join(parts)
