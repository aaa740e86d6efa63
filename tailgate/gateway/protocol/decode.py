"""Converts the body of a frame to a message.

`READERS` maps a letter to the function that reads its body. An invalid body raises `Unreadable`
with PostgreSQL's message. The frame's length is known, so the connection can continue with the next
frame.

Source: PostgreSQL 15, src/backend/tcop/postgres.c, PostgresMain; src/backend/libpq/pqformat.c for the messages.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct, unpack_from

from tailgate.gateway.protocol import messages as m
from tailgate.gateway.protocol.limits import FRAME_BYTES_MAX, SMALL_FRAME_BYTES_MAX, STATEMENT_BYTES_MAX

PROTOCOL_VIOLATION, PROGRAM_LIMIT_EXCEEDED = "08P01", "54000"
SSL_CODE, GSSENC_CODE, CANCEL_CODE = 80877103, 80877104, 80877102

_int16 = Struct("!h").unpack_from
_int32 = Struct("!i").unpack_from


class Unreadable(Exception):
    """The body of a frame is invalid for its letter."""

    def __init__(self, reason: str = "invalid message format", sqlstate: str = PROTOCOL_VIOLATION) -> None:
        super().__init__(reason)
        self.reason, self.sqlstate = reason, sqlstate


def _string(body: bytes, at: int) -> tuple[bytes, int]:
    end = body.find(b"\0", at)
    if end < 0:
        raise Unreadable("invalid string in message")
    return body[at:end], end + 1


def _name(body: bytes, at: int) -> tuple[str, int]:
    raw, at = _string(body, at)
    return (raw.decode("utf-8", "surrogateescape") if raw else ""), at


def _end(body: bytes, at: int) -> None:
    if at != len(body):
        raise Unreadable()


def _text(raw: bytes) -> bytes:
    if len(raw) > STATEMENT_BYTES_MAX:
        raise Unreadable(f"statement text of {len(raw)} bytes exceeds the limit of {STATEMENT_BYTES_MAX} bytes", PROGRAM_LIMIT_EXCEEDED)
    return raw


def _count(body: bytes, at: int, size: int) -> tuple[int, int]:
    """Reads a 16-bit count of elements; raises Unreadable if that many elements do not fit.

    An element takes at least `size` bytes.
    """
    (count,) = _int16(body, at)
    if count < 0 or count * size > len(body) - at - 2:
        raise Unreadable("insufficient data left in message")
    return count, at + 2


def read_query(body: bytes) -> m.Query:
    text, at = _string(body, 0)
    _end(body, at)
    return m.Query(_text(text))


def read_parse(body: bytes) -> m.Parse:
    name, at = _name(body, 0)
    text, at = _string(body, at)
    count, at = _count(body, at, 4)
    oids = unpack_from(f"!{count}I", body, at)
    _end(body, at + 4 * count)
    return m.Parse(name, _text(text), oids)


def read_bind(body: bytes) -> m.Bind:
    portal, at = _name(body, 0)
    statement, at = _name(body, at)
    count, at = _count(body, at, 2)
    parameter_formats = unpack_from(f"!{count}h", body, at)
    at += 2 * count
    count, at = _count(body, at, 4)
    parameters: list[bytes | None] = []
    for _ in range(count):
        (length,) = _int32(body, at)
        at += 4
        if length == -1:
            parameters.append(None)
            continue
        if length < -1 or at + length > len(body):
            raise Unreadable("insufficient data left in message")
        parameters.append(body[at : at + length])
        at += length
    count, at = _count(body, at, 2)
    result_formats = unpack_from(f"!{count}h", body, at)
    _end(body, at + 2 * count)
    for code in (*parameter_formats, *result_formats):
        if code not in (0, 1):
            raise Unreadable(f"unsupported format code: {code}", "22023")
    return m.Bind(portal, statement, parameter_formats, tuple(parameters), result_formats)


def _kind(body: bytes, verb: str) -> tuple[str, str]:
    kind = chr(body[0]) if body else ""
    name, at = _name(body, 1)
    _end(body, at)
    if kind not in ("S", "P"):
        raise Unreadable(f"invalid {verb} message subtype {body[0]}")
    return kind, name


def read_describe(body: bytes) -> m.Describe:
    return m.Describe(*_kind(body, "DESCRIBE"))


def read_close(body: bytes) -> m.Close:
    return m.Close(*_kind(body, "CLOSE"))


def read_execute(body: bytes) -> m.Execute:
    portal, at = _name(body, 0)
    (rows,) = _int32(body, at)
    _end(body, at + 4)
    return m.Execute(portal, max(rows, 0))


def read_copy_fail(body: bytes) -> m.CopyFail:
    reason, at = _name(body, 0)
    _end(body, at)
    return m.CopyFail(reason)


def _nothing(message: m.Message) -> Callable[[bytes], m.Message]:
    def read(body: bytes) -> m.Message:
        _end(body, 0)
        return message

    return read


# letter: (reader, maximum size of the body in bytes)
READERS: dict[int, tuple[Callable[[bytes], m.Message], int]] = {
    ord("Q"): (read_query, FRAME_BYTES_MAX),
    ord("P"): (read_parse, FRAME_BYTES_MAX),
    ord("B"): (read_bind, FRAME_BYTES_MAX),
    ord("D"): (read_describe, SMALL_FRAME_BYTES_MAX),
    ord("E"): (read_execute, SMALL_FRAME_BYTES_MAX),
    ord("C"): (read_close, SMALL_FRAME_BYTES_MAX),
    ord("S"): (_nothing(m.Sync()), SMALL_FRAME_BYTES_MAX),
    ord("H"): (_nothing(m.Flush()), SMALL_FRAME_BYTES_MAX),
    ord("X"): (_nothing(m.Terminate()), SMALL_FRAME_BYTES_MAX),
    ord("d"): (m.CopyData, FRAME_BYTES_MAX),
    ord("c"): (_nothing(m.CopyDone()), SMALL_FRAME_BYTES_MAX),
    ord("f"): (read_copy_fail, SMALL_FRAME_BYTES_MAX),
    ord("p"): (m.PasswordMessage, SMALL_FRAME_BYTES_MAX),
    ord("F"): (m.FunctionCall, FRAME_BYTES_MAX),
}


def read_startup(body: bytes) -> m.Message:
    """Reads the first packet, without its length: a StartupMessage or one of three special requests.

    The requests have a code in place of the version.
    """
    (code,) = _int32(body, 0)
    if code == SSL_CODE:
        return m.SSLRequest()
    if code == GSSENC_CODE:
        return m.GSSENCRequest()
    if code == CANCEL_CODE:
        if not 8 < len(body) <= 8 + 256:
            raise Unreadable("invalid length of cancel request packet")
        return m.CancelRequest(_int32(body, 4)[0], body[8:])
    version = (code >> 16 & 0xFFFF, code & 0xFFFF)
    parameters: list[tuple[str, str]] = []
    at = 4
    if version[0] == 3:
        while at < len(body) and body[at] != 0:
            name, at = _name(body, at)
            value, at = _name(body, at)
            parameters.append((name, value))
        if at + 1 != len(body):
            raise Unreadable("invalid startup packet layout: expected terminator as last byte")
    return m.StartupMessage(version, tuple(parameters))
