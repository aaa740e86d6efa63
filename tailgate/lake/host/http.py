"""The length of an HTTP request's body, checked before the body is read. Every HTTP server of Tailgate uses it.

Source: RFC 9110, section 8.6; RFC 9112, section 6.3.
"""

from __future__ import annotations

from email.message import Message

DIGITS_MAX = 18  # of a length, which is then below 2^63


class BadRequest(Exception):
    """A request that is refused with `status`. The connection is closed, because the end of the request is not known."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


def body_length(headers: Message, limit: int) -> int:
    """Returns the number of bytes of the body; 0 without Content-Length.

    Raises BadRequest: 400 for an invalid length, 413 for one above `limit`, 501 for a transfer encoding.

    >>> request = Message()
    >>> request["Content-Length"] = "12"
    >>> body_length(request, 100)
    12
    """
    if "Transfer-Encoding" in headers:
        raise BadRequest(501, "transfer encodings are not supported: send Content-Length")
    values = {value.strip() for value in headers.get_all("Content-Length", ["0"])}
    text = values.pop()
    if values or not (text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX):
        raise BadRequest(400, "Content-Length is not a number of bytes")
    if int(text) > limit:
        raise BadRequest(413, f"the request has {int(text)} bytes; the limit is {limit}")
    return int(text)
