"""Rows of a table to what COPY … TO STDOUT sends: text, csv or binary, each row a CopyData message.

Source: PostgreSQL 15, src/backend/commands/copyto.c: CopyAttributeOutText, CopyAttributeOutCSV; "Binary Format" of COPY's page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.encode.rows import FEW_ROWS, RowEncoder, buffer_of, sized
from tailgate.gateway.protocol.backend import copy_data, copy_out_response
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue
from tailgate.lake.types import Field, Type
from tailgate.values.codec.columns import fixed_width
from tailgate.values.codec.style import Style

SIGNATURE = b"PGCOPY\n\xff\r\n\0" + b"\0\0\0\0" + b"\0\0\0\0"
TRAILER = b"\xff\xff"

# of text format: what stands for what; the backslash first
_ESCAPES = ((b"\\", b"\\\\"), (b"\b", b"\\b"), (b"\f", b"\\f"), (b"\n", b"\\n"), (b"\r", b"\\r"), (b"\t", b"\\t"), (b"\v", b"\\v"))
_PLAIN = frozenset(
    ("bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "date", "time", "timestamp", "timestamptz", "uuid")
)


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """The options of COPY, named as in PostgreSQL's manual. `force_quote`: names of columns, or None for all."""

    format: str = "text"
    delimiter: bytes = b"\t"
    null: bytes = b"\\N"
    header: bool = False
    quote: bytes = b'"'
    escape: bytes = b'"'
    force_quote: frozenset[str] | None = frozenset()

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1:
            raise FeatureNotSupported("COPY delimiter must be a single one-byte character")
        if self.delimiter in b"\r\n":
            raise InvalidParameterValue("COPY delimiter cannot be newline or carriage return")
        if b"\n" in self.null or b"\r" in self.null:
            raise InvalidParameterValue("COPY null representation cannot use newline or carriage return")
        if self.format == "text" and self.delimiter in b"\\.abcdefghijklmnopqrstuvwxyz0123456789":
            raise InvalidParameterValue(f'COPY delimiter cannot be "{self.delimiter.decode()}"')
        if len(self.quote) != 1 or len(self.escape) != 1:
            raise FeatureNotSupported(f"COPY {'quote' if len(self.quote) != 1 else 'escape'} must be a single one-byte character")
        if self.format == "csv" and self.delimiter == self.quote:
            raise InvalidParameterValue("COPY delimiter and quote must be different")


CSV = CopyOptions("csv", b",", b"")


class CopyEncoder:
    """The messages between the statement and CopyDone: `start`, `rows` for each table, then `end`.

    The signature of the binary format goes with the first row: psycopg looks for it there.
    """

    def __init__(self, fields: Sequence[Field], options: CopyOptions, style: Style) -> None:
        self.fields = fields
        self.options = options
        self.binary = options.format == "binary"
        self._signed = not self.binary
        self.encoder = RowEncoder(fields, [int(self.binary)] * len(fields), style)
        self._special = re.compile(b"[" + re.escape(b"\\\b\f\n\r\t\v" + options.delimiter) + b"]")
        self._quoted = re.compile(b"[\r\n" + re.escape(options.delimiter + options.quote) + b"]")
        self._forced = [options.force_quote is None or f.name in options.force_quote for f in fields]

    def start(self) -> bytes:
        out = copy_out_response(self.binary, len(self.fields))
        if self.options.header:
            names = [self._field(f.name.encode(), False) for f in self.fields]
            return out + copy_data(self.options.delimiter.join(names) + b"\n")
        return out

    def end(self) -> bytes:
        if not self.binary:
            return b""
        return copy_data(TRAILER if self._signed else SIGNATURE + TRAILER)

    def rows(self, table: pa.Table) -> bytes:
        """Returns all rows of a table, each in a CopyData message."""
        return self.signed(self.frames(table))

    @property
    def form(self) -> tuple[object, ...]:
        """Encoders of an equal form give the same frames."""
        return ("copy", self.options, self.encoder.style)

    def signed(self, frames: bytes) -> bytes:
        """Returns the frames to send. The signature of the binary format precedes the first frame."""
        if self._signed or not frames:
            return frames
        self._signed = True
        size = int.from_bytes(frames[1:5], "big")
        return copy_data(SIGNATURE + frames[5 : size + 1]) + frames[size + 1 :]

    def frames(self, table: pa.Table) -> bytes:
        if table.num_rows == 0:
            return b""
        if not self.fields:
            return copy_data(b"\0\0" if self.binary else b"\n") * int(table.num_rows)
        if table.num_rows > FEW_ROWS:
            return self._joined(self.encoder.field_arrays(table))
        values = self.encoder.field_values(table)
        if self.binary:
            width = len(values).to_bytes(2, "big")
            return b"".join(copy_data(width + b"".join(map(_sized, row))) for row in zip(*values, strict=True))
        options = self.options
        out = []
        for row in zip(*values, strict=True):
            line = [options.null if v is None else self._field(v, f) for v, f in zip(row, self._forced, strict=True)]
            out.append(copy_data(options.delimiter.join(line) + b"\n"))
        return b"".join(out)

    def _field(self, value: bytes, forced: bool) -> bytes:
        options = self.options
        if options.format == "csv":
            if forced or value == options.null or self._quoted.search(value) or (value == b"\\." and len(self.fields) == 1):
                return self._quote(value)
            return value
        if self._special.search(value):
            for character, escaped in _ESCAPES:
                value = value.replace(character, escaped)
            if options.delimiter != b"\t":
                value = value.replace(options.delimiter, b"\\" + options.delimiter)
        return value

    def _quote(self, value: bytes) -> bytes:
        quote, escape = self.options.quote, self.options.escape
        if escape != quote:
            value = value.replace(escape, escape + escape)
        return quote + value.replace(quote, escape + quote) + quote

    def _joined(self, fields: list[pa.Array]) -> bytes:
        if self.binary:
            parts, total = sized(fields)
        else:
            delimiter = pa.scalar(self.options.delimiter)
            parts, total = [], np.zeros(len(fields[0]), dtype=np.int64)
            for number, array in enumerate(fields):
                text = self._column(array, self.fields[number].type, self._forced[number])
                total += np.asarray(pc.binary_length(text)) + 1
                parts += [text, delimiter]
            parts[-1] = pa.scalar(b"\n")
        head = [("letter", "S1"), ("length", ">u4"), *([("width", ">u2")] if self.binary else [])]
        heads = np.empty(len(total), dtype=head)
        heads["letter"], heads["length"] = b"d", total + (6 if self.binary else 4)
        if self.binary:
            heads["width"] = len(fields)
        return buffer_of(pc.binary_join_element_wise(fixed_width(heads), *parts, b""))

    def _column(self, array: pa.Array, type: Type, forced: bool) -> pa.Array:
        """Returns `_field` of every value, and the word for null."""
        options = self.options
        clean = type.name in _PLAIN and not type.is_array and not forced and options.delimiter in b"\t," and options.null in (b"", b"\\N")
        if not clean and self._needs_care(array, forced):
            values = [None if v is None else self._field(v, forced) for v in array.to_pylist()]
            array = pa.array(values, pa.binary())
        return array.fill_null(options.null)

    def _needs_care(self, array: pa.Array, forced: bool) -> bool:
        """Returns whether any value of a column needs quotes or escapes, by one search of all of its bytes."""
        if self.options.format == "csv":
            equal = pc.any(pc.equal(array, pa.scalar(self.options.null, pa.binary()))).as_py()
            return bool(forced or equal or len(self.fields) == 1 or self._quoted.search(buffer_of(array)))
        return self._special.search(buffer_of(array)) is not None


def _sized(value: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value
