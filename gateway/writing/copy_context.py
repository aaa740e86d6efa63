"""Where in the data of a COPY an error is: PostgreSQL's CONTEXT, `COPY t, line 3, column b: "x"`.

Rows are counted from 0 and lines from 1. Lines are looked for when there is an error, in the data from its beginning.

Source: PostgreSQL 15, src/backend/commands/copyfrom.c (CopyFromErrorCallback), copyfromparse.c (CopyReadLineText).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.encode.copying import SIGNATURE, CopyOptions

SHOWN_BYTES_MAX = 100  # of a line or a value, as PostgreSQL


@dataclass(frozen=True, slots=True)
class Sent:
    """What a COPY was sent. `table`: its name; `header`: '', 'skip' or 'match'."""

    table: str
    data: bytes
    options: CopyOptions
    header: str = ""

    def row(self, row: int, *, shown: bool = True) -> str:
        """Of a row; -1 is the header. `shown`: with its line's text."""
        if self.options.format == "binary":
            return f"COPY {self.table}, line {row + 1}"
        line, text = self._line(row + bool(self.header))
        if not shown or not _is_text(text):
            return f"COPY {self.table}, line {line}"
        return f'COPY {self.table}, line {line}: "{_cut(text)}"'

    def value(self, row: int, column: str, value: str | None = None) -> str:
        """Of a value; in the binary format it is not shown."""
        place = f"{self.row(row, shown=False)}, column {column}"
        return place if value is None else f'{place}: "{_cut(value.encode())}"'

    def end(self) -> str | None:
        """Of what should have come next."""
        if self.options.format != "binary":
            rows: int | None = self.data.count(b"\n")
        else:
            rows = binary_rows(self.data)
        return None if rows is None else f"COPY {self.table}, line {rows + 1}"

    def _line(self, record: int) -> tuple[int, bytes]:
        """The last line of a record, and the record's text."""
        if self.options.format == "text" and b"\\" not in self.data:
            return record + 1, self.data.split(b"\n", record + 1)[record].removesuffix(b"\r")
        line, newline, text = 0, b"\r", b""  # as long as no line has ended PostgreSQL does not know what ends one
        for number, match in enumerate(_records(self.data, self.options)):
            text = match[1] if match[2] else match[0]
            line += 1 + (text.count(newline) if self.options.format == "csv" else 0)
            newline = b"\n" if match[2] == b"\n" else b"\r"
            if number == record:
                break
        return line, text


def _records(data: bytes, options: CopyOptions) -> Iterator[re.Match[bytes]]:
    """Text and end of each record: a backslash takes a newline with it in the text format, quotes do in csv."""
    if options.format == "text":
        content = rb"(?:[^\\\r\n]|\\.|\\$)*"
    else:
        q, e = re.escape(options.quote), re.escape(options.escape)
        inside = rb"[^" + q + rb"]" if q == e else rb"[^" + q + e + rb"]|" + e + rb"(?:.|$)"
        content = rb"(?:[^\r\n" + q + rb"]|" + q + rb"(?:" + inside + rb")*(?:" + q + rb"|$))*"
    return re.compile(rb"(" + content + rb")(\r\n|\n|\r|$)", re.DOTALL).finditer(data)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _cut(text: bytes) -> str:
    if len(text) <= SHOWN_BYTES_MAX:
        return text.decode()
    return text[:SHOWN_BYTES_MAX].decode("utf-8", "ignore") + "..."


def binary_rows(data: bytes) -> int | None:
    """How many whole rows there are in the binary format; None while its head has not come."""
    if len(data) < len(SIGNATURE):
        return None
    at, rows = len(SIGNATURE) + struct.unpack_from("!i", data, len(SIGNATURE) - 4)[0], 0
    while at + 2 <= len(data):
        (count,) = struct.unpack_from("!h", data, at)
        at += 2
        for _ in range(count):
            if at + 4 > len(data):
                return rows
            at += 4 + max(0, struct.unpack_from("!i", data, at)[0])
        if at > len(data) or count < 0:
            return rows
        rows += 1
    return rows
