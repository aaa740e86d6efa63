"""Requests that a server refuses before a statement runs."""

from __future__ import annotations

UNAUTHORIZED, FORBIDDEN, TOO_LARGE, TOO_MANY, UNAVAILABLE = 401, 403, 413, 429, 503
CHALLENGE = {"WWW-Authenticate": 'Basic realm="tailgate"'}  # the header field of a response with UNAUTHORIZED


class Refused(Exception):
    """A refused request, with the status of HTTP and a message for the client."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message
