"""What a client sends after COPY … FROM STDIN, to rows: text, csv, binary.

    bytes ──► fields, a column of texts each (Arrow's reader where nothing is escaped or quoted) ──► inputs ──► Arrow
    binary ──► values ──► Arrow

Source: PostgreSQL 15, src/backend/commands/copyfromparse.c; "File Formats" of COPY's page.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Sequence

import pyarrow as pa
from pyarrow import csv

from gateway.encode.copying import SIGNATURE, CopyOptions
from gateway.encode.parameters import from_binary, utf8
from gateway.encode.style import Style
from gateway.writing.inputs import column, within
from lake.errors import BadCopyFileFormat, InvalidBinaryRepresentation
from lake.types import Field

_ESCAPED = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.)|$)", re.DOTALL)

BLOCK_BYTES = 8 << 20  # that Arrow's reader takes at a time; a longer line goes the slow way

Texts = list[list[bytes | None]]  # by row


def rows(data: bytes, fields: Sequence[Field], options: CopyOptions, header: str, style: Style) -> pa.Table:
    """The rows of what was sent, columns in the order of `fields`. `header`: '', 'skip' or 'match'. Raises 22P04, 22P02, 22021 …"""
    if options.format == "binary":
        return _binary(data, fields)
    names = [f"c{i}" for i in range(len(fields))]
    data = _until_end(data, options)
    if header:
        data = _after_header(data, fields, options, header)
    table = _arrow(data, names, options)
    if table is None:
        lines = _text(data, options) if options.format == "text" else _csv(data, options)
        table = _table(lines, fields, names)
    return pa.Table.from_arrays([column(c, f.type, style) for c, f in zip(table.columns, fields, strict=True)], names=names)


def _until_end(data: bytes, options: CopyOptions) -> bytes:
    r"""Up to the line \. that ends the data; where there are quotes, `_csv` looks for it."""
    if b"\\." in data and not (options.format == "csv" and options.quote in data):
        found = re.search(rb"(?:^|(?<=\n))\\\.(?:\r?\n|$)", data)
        if found is not None:
            return data[: found.start()]
    return data


def _after_header(data: bytes, fields: Sequence[Field], options: CopyOptions, header: str) -> bytes:
    line, _, rest = data.partition(b"\n")
    if header == "match":
        (found,) = (_text if options.format == "text" else _csv)(line, options) or [[]]
        names = [None if n is None else n.decode() for n in found]
        if len(names) != len(fields):
            raise BadCopyFileFormat(f"wrong number of fields in header line: got {len(names)}, expected {len(fields)}")
        for i, (name, field) in enumerate(zip(names, fields, strict=True)):
            if name != field.name:
                shown = "got null value" if name is None else f'got "{name}"'
                raise BadCopyFileFormat(f'column name mismatch in header line field {i + 1}: {shown}, expected "{field.name}"')
    return rest


def _arrow(data: bytes, names: list[str], options: CopyOptions) -> pa.Table | None:
    """By Arrow's reader, where the data is so plain that both read it alike; None otherwise."""
    if not data or b"\0" in data or b"\r" in data:
        return None
    if options.format == "csv":
        if options.quote in data:
            return None
    elif b"\\" in data and (options.null != b"\\N" or data.count(b"\\") != len(_whole_nulls(options.delimiter).findall(data))):
        return None
    try:
        return csv.read_csv(
            io.BytesIO(data),
            read_options=csv.ReadOptions(column_names=names, use_threads=False, block_size=BLOCK_BYTES),
            parse_options=csv.ParseOptions(
                delimiter=options.delimiter.decode(), quote_char=False, double_quote=False, escape_char=False, ignore_empty_lines=False
            ),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=[options.null.decode()], strings_can_be_null=True
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError):
        return None  # the slow reader says what is wrong


def _whole_nulls(delimiter: bytes) -> re.Pattern[bytes]:
    """Fields that are \\N and nothing else."""
    d = re.escape(delimiter)
    return re.compile(rb"(?<![^\n" + d + rb"])\\N(?![^\n" + d + rb"])")


def _table(lines: Texts, fields: Sequence[Field], names: list[str]) -> pa.Table:
    for line in lines:
        if len(line) < len(fields):
            raise BadCopyFileFormat(f'missing data for column "{fields[len(line)].name}"')
        if len(line) > len(fields):
            raise BadCopyFileFormat("extra data after last expected column")
    columns = list(zip(*lines, strict=True)) if lines else [()] * len(fields)
    decoded = [pa.chunked_array([pa.array([None if v is None else utf8(v) for v in c], pa.string())]) for c in columns]
    return pa.Table.from_arrays(decoded, names=names)


def _text(data: bytes, options: CopyOptions) -> Texts:
    """Lines and fields of the text format; a backslash takes the next byte as it is, a newline too."""
    found: Texts = []
    delimiter = re.escape(options.delimiter)
    if b"\\" not in data:
        lines = data.split(b"\n")
        if lines and not lines[-1]:
            lines.pop()
        return [[None if f == options.null else f for f in _line(line).split(options.delimiter)] for line in lines]
    part = re.compile(rb"((?:[^\\\n" + delimiter + rb"]|\\.|\\$)*)(" + delimiter + rb"|\n|$)", re.DOTALL)
    at, line = 0, list[bytes | None]()
    while at < len(data):
        match = part.match(data, at)
        assert match is not None
        raw, end = match[1], match[2]
        if end == b"\n" or match.end() == len(data):
            raw = _line(raw)
        line.append(None if raw == options.null else _ESCAPE.sub(_unescaped, raw) if b"\\" in raw else raw)
        at = match.end()
        if end != options.delimiter:
            found.append(line)
            line = []
        elif at == len(data):
            line.append(None if options.null == b"" else b"")
            found.append(line)
    return found


def _line(raw: bytes) -> bytes:
    r"""Without the \r of a line that ends in \r\n."""
    if raw.endswith(b"\r"):
        raw = raw[:-1]
    if b"\r" in raw:
        raise BadCopyFileFormat("literal carriage return found in data", hint='Use "\\r" to represent carriage return.')
    return raw


def _unescaped(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, other = match.groups()
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    if hexadecimal is not None:
        return bytes([int(hexadecimal, 16)])
    return b"\\" if other is None else _ESCAPED.get(other, other)


def _csv(data: bytes, options: CopyOptions) -> Texts:
    """Lines and fields of the csv format: quotes may begin anywhere in a field, newlines may stand in quotes."""
    quote, escape, delimiter = options.quote, options.escape, options.delimiter
    q, e, d = re.escape(quote), re.escape(escape), re.escape(delimiter)
    inside = rb"(?:[^" + q + e + rb"]|" + e + rb"[" + q + e + rb"]" + (rb"|" + e if escape != quote else rb"") + rb")*"
    part = re.compile(rb"((?:[^\r\n" + q + d + rb"]|" + q + inside + q + rb")*)(" + d + rb"|\r\n|\n|\r|$)", re.DOTALL)
    quoted = re.compile(q + rb"(" + inside + rb")" + q, re.DOTALL)
    escaped = re.compile(e + rb"([" + q + e + rb"])")

    def bare(match: re.Match[bytes]) -> bytes:
        return escaped.sub(rb"\1", match[1])

    found: Texts = []
    at, line = 0, list[bytes | None]()
    while at < len(data):
        match = part.match(data, at)
        if match is None:
            raise BadCopyFileFormat("unterminated CSV quoted field")
        raw, end = match[1], match[2]
        if raw == b"\\." and not line and end != delimiter:
            return found
        line.append(quoted.sub(bare, raw) if quote in raw else None if raw == options.null else raw)
        at = match.end()
        if end != delimiter:
            found.append(line)
            line = []
        elif at == len(data):
            line.append(None if options.null == b"" else b"")
            found.append(line)
    return found


def _binary(data: bytes, fields: Sequence[Field]) -> pa.Table:
    if data[:11] != SIGNATURE[:11]:
        raise BadCopyFileFormat("COPY file signature not recognized")
    if len(data) < 19:
        raise BadCopyFileFormat("invalid COPY file header (missing flags)")
    flags, extension = struct.unpack_from("!ii", data, 11)
    if flags & 0xFFFF0000:
        raise BadCopyFileFormat("unrecognized critical flags in COPY file header")
    at = 19 + extension
    columns: list[list[object]] = [[] for _ in fields]
    while at < len(data):
        (count,) = struct.unpack_from("!h", data, at)
        at += 2
        if count == -1:
            if at != len(data):
                raise BadCopyFileFormat("received copy data after EOF marker")
            break
        if count != len(fields):
            raise BadCopyFileFormat(f"row field count is {count}, expected {len(fields)}")
        for field, values in zip(fields, columns, strict=True):
            if at + 4 > len(data):
                raise BadCopyFileFormat("unexpected EOF in COPY data")
            (length,) = struct.unpack_from("!i", data, at)
            at += 4
            if length < 0:
                values.append(None)
                continue
            raw = data[at : at + length]
            if len(raw) != length:
                raise BadCopyFileFormat("unexpected EOF in COPY data")
            try:
                values.append(within(from_binary(field.type, raw), field.type))
            except (struct.error, ValueError, IndexError, OverflowError):
                raise InvalidBinaryRepresentation("incorrect binary data format") from None
            at += length
    arrays = [pa.array(values, field.type.arrow) for field, values in zip(fields, columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=[f"c{i}" for i in range(len(fields))])
