"""The position of an error in the data of a COPY: PostgreSQL's CONTEXT `COPY t, line 3, column b: "x"`.

Rows are counted from 0 and lines from 1. Line numbers are computed only for an error, by scanning
the data from the beginning.

Source: PostgreSQL 15, src/backend/commands/copyfrom.c (CopyFromErrorCallback), copyfromparse.c (CopyReadLineText).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tailgate.gateway.encode.copying import SIGNATURE, CopyOptions

SHOWN_BYTES_MAX = 100  # of a line or a value, as in PostgreSQL


@dataclass(frozen=True, slots=True)
class CopyInput:
    """The data of a COPY. `table` is the table's name; `header` is '', 'skip' or 'match'."""

    table: str
    data: bytes
    options: CopyOptions
    header: str = ""

    def row(self, row: int, *, shown: bool = True) -> str:
        """Returns the context of a row, with the line's text if `shown`; row -1 is the header."""
        if self.options.format == "binary":
            return f"COPY {self.table}, line {row + 1}"
        line, text = self._line(row + bool(self.header))
        if not shown or not _is_text(text):
            return f"COPY {self.table}, line {line}"
        return f'COPY {self.table}, line {line}: "{_cut(text)}"'

    def value(self, row: int, column: str, value: str | None = None) -> str:
        """Returns the context of a value; the binary format does not show the value."""
        place = f"{self.row(row, shown=False)}, column {column}"
        return place if value is None else f'{place}: "{_cut(value.encode())}"'

    def end(self) -> str | None:
        """Returns the context of the end of the data, or None if even the header is missing."""
        if self.options.format != "binary":
            rows: int | None = self.data.count(b"\n")
        else:
            rows = binary_rows(self.data)
        return None if rows is None else f"COPY {self.table}, line {rows + 1}"

    def _line(self, record: int) -> tuple[int, bytes]:
        """Returns the last line number of a record, and the record's text."""
        if self.options.format == "text" and b"\\" not in self.data:
            return record + 1, self.data.split(b"\n", record + 1)[record].removesuffix(b"\r")
        line, newline, text = 0, b"\r", b""  # PostgreSQL assumes \r until the first line has ended
        for number, match in enumerate(_records(self.data, self.options)):
            text = match[1] if match[2] else match[0]
            line += 1 + (text.count(newline) if self.options.format == "csv" else 0)
            newline = b"\n" if match[2] == b"\n" else b"\r"
            if number == record:
                break
        return line, text


def _records(data: bytes, options: CopyOptions) -> Iterator[re.Match[bytes]]:
    """Yields text and line end of each record; escapes (text) and quotes (csv) may hide newlines."""
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
    """Returns the number of complete rows of binary data; None if its header is incomplete."""
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
