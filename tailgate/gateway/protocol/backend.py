"""Encodes the server's messages: one function per message, as in PostgreSQL's chapter "Message Formats".

Messages without fields are constants. Functions return complete frames, ready to be joined and sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct, pack

_frame = Struct("!cI").pack
_column = Struct("!IhIhih").pack


def frame(letter: bytes, body: bytes) -> bytes:
    return _frame(letter, len(body) + 4) + body


def string(text: str) -> bytes:
    """Encodes text with its terminator; cuts it at a zero character, which the format cannot express."""
    return text.split("\0", 1)[0].encode("utf-8", "surrogateescape") + b"\0"


AUTHENTICATION_OK = frame(b"R", pack("!I", 0))
BIND_COMPLETE = frame(b"2", b"")
CLOSE_COMPLETE = frame(b"3", b"")
COPY_DONE = frame(b"c", b"")
EMPTY_QUERY_RESPONSE = frame(b"I", b"")
NO_DATA = frame(b"n", b"")
PARSE_COMPLETE = frame(b"1", b"")
PORTAL_SUSPENDED = frame(b"s", b"")
READY_FOR_QUERY = {status: frame(b"Z", status.encode()) for status in "ITE"}

# One-byte responses to SSLRequest and GSSENCRequest.
SSL_REFUSED = b"N"
SSL_ACCEPTED = b"S"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result.

    `relation` and `attribute` are 0 unless it is an unchanged column of a relation.
    """

    name: str
    oid: int
    size: int
    typmod: int = -1
    relation: int = 0
    attribute: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """The fields of an ErrorResponse or NoticeResponse. `position` counts characters from 1."""

    severity: str
    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None
    position: int | None = None
    where: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)  # s, t, c, n: schema, table, column, constraint


def authentication(kind: int, body: bytes = b"") -> bytes:
    """Encodes an authentication request.

    `kind` is 3 (cleartext password), 10 (SASL), 11 (SASLContinue) or 12 (SASLFinal).
    """
    return frame(b"R", pack("!I", kind) + body)


def backend_key_data(process: int, secret: bytes) -> bytes:
    return frame(b"K", pack("!I", process) + secret)


def command_complete(tag: str) -> bytes:
    return frame(b"C", string(tag))


SELECTED = b"SELECT "  # the tag of a SELECT, before its number of rows


def rows_of(tag: str) -> int:
    """Returns the number of rows in a command tag, or 0 for a command without one.

    >>> rows_of("INSERT 0 5"), rows_of("SELECT 12"), rows_of("BEGIN")
    (5, 12, 0)
    """
    count = tag.rpartition(" ")[2]
    return int(count) if count.isdigit() else 0


def rows_sent(answer: bytes) -> int:
    """Returns the number of rows of a complete answer to a SELECT, from its CommandComplete."""
    return rows_of(answer[answer.rfind(SELECTED) :].partition(b"\0")[0].decode())


def copy_data(row: bytes) -> bytes:
    return frame(b"d", row)


def copy_out_response(binary: bool, columns: int) -> bytes:
    return frame(b"H", pack(f"!bh{columns}h", binary, columns, *[int(binary)] * columns))


def copy_in_response(binary: bool, columns: int) -> bytes:
    return frame(b"G", pack(f"!bh{columns}h", binary, columns, *[int(binary)] * columns))


def data_row(values: Sequence[bytes | None]) -> bytes:
    parts = [pack("!h", len(values))]
    for value in values:
        parts.append(b"\xff\xff\xff\xff" if value is None else pack("!I", len(value)) + value)
    return frame(b"D", b"".join(parts))


def _report(kind: bytes, report: Report) -> bytes:
    fields = [b"S", string(report.severity), b"V", string(report.severity), b"C", string(report.sqlstate), b"M", string(report.message)]
    optional = (
        (b"D", report.detail),
        (b"H", report.hint),
        (b"P", None if report.position is None else str(report.position)),
        (b"W", report.where),
    )
    for code, value in optional:
        if value is not None:
            fields += [code, string(value)]
    for letter, name in report.names.items():
        fields += [letter.encode(), string(name)]
    return frame(kind, b"".join(fields) + b"\0")


def error_response(report: Report) -> bytes:
    return _report(b"E", report)


def notice_response(report: Report) -> bytes:
    return _report(b"N", report)


def notification_response(process: int, channel: str, payload: str) -> bytes:
    return frame(b"A", pack("!i", process) + string(channel) + string(payload))


def negotiate_protocol_version(minor: int, unknown: Iterable[str]) -> bytes:
    """Encodes the newest supported version 3.x and the client's unknown protocol options."""
    names = [string(name) for name in unknown]
    return frame(b"v", pack("!HHI", 3, minor, len(names)) + b"".join(names))


def parameter_description(oids: Sequence[int]) -> bytes:
    return frame(b"t", pack(f"!H{len(oids)}I", len(oids), *oids))


def parameter_status(name: str, value: str) -> bytes:
    return frame(b"S", string(name) + string(value))


def row_description(columns: Sequence[Column], formats: Sequence[int]) -> bytes:
    parts = [pack("!H", len(columns))]
    for column, code in zip(columns, formats, strict=True):
        parts.append(string(column.name) + _column(column.relation, column.attribute, column.oid, column.size, column.typmod, code))
    return frame(b"T", b"".join(parts))
