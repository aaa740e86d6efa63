"""Converts the data of COPY … FROM STDIN to rows; formats text, csv and binary.

    text, csv ──► columns of strings (Arrow's reader if nothing is escaped or quoted) ──► read_column ──► Arrow
    binary    ──► values ──► Arrow

Source: PostgreSQL 15, src/backend/commands/copyfromparse.c; "File Formats" of COPY's page.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Sequence

import pyarrow as pa
from pyarrow import csv

from tailgate.gateway.encode.copying import SIGNATURE, CopyOptions
from tailgate.gateway.writes.copy_context import CopyInput
from tailgate.lake.errors import BadCopyFileFormat, TailgateError
from tailgate.lake.types import Field
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import utf8
from tailgate.values.registry import read_binary, read_column
from tailgate.values.stored import stored

_ESCAPED = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.)|$)", re.DOTALL)

BLOCK_BYTES = 8 << 20  # that Arrow's reader reads at a time; it refuses longer lines, which use the slow reader

Lines = list[list[bytes | None]]  # by row


def rows(sent: CopyInput, fields: Sequence[Field], style: Style) -> tuple[pa.Table, TailgateError | None]:
    """Returns the rows before the first invalid one, and the error of that row or None.

    Columns have the order of `fields`. Errors such as 22P04, 22P02 and 22021 have the position as
    context.
    """
    names = [f"c{i}" for i in range(len(fields))]
    broken: TailgateError | None
    if sent.options.format == "binary":
        columns: list[list[object]] = [[] for _ in fields]
        broken = _binary(sent, fields, columns)
        whole = min(map(len, columns), default=0)
        arrays = [pa.array(values[:whole], field.type.arrow) for field, values in zip(fields, columns, strict=True)]
        return pa.Table.from_arrays(arrays, names=names), broken
    data, options = _until_end(sent.data, sent.options), sent.options
    if sent.header:
        data = _after_header(data, fields, sent)
    broken = None
    table = _arrow(data, names, options)
    if table is None:
        lines, wrong = _text(data, options) if options.format == "text" else _csv(data, options)
        table, broken = _table(lines, fields, names, sent)
        if broken is None and wrong is not None:
            wrong.row, wrong.where = len(lines), sent.row(len(lines))
            broken = wrong
    read, unread = _columns(table, fields, sent, style)
    first = unread or broken
    result = pa.Table.from_arrays(read, names=names)
    return (result if first is None else result.slice(0, first.row)), first


def _columns(table: pa.Table, fields: Sequence[Field], sent: CopyInput, style: Style) -> tuple[list[pa.ChunkedArray], TailgateError | None]:
    """Converts the columns to their types, up to the first row with an invalid value.

    Returns the columns, and the error of that value or None.
    """
    columns: list[pa.ChunkedArray] = []
    first: TailgateError | None = None
    for texts, field in zip(table.columns, fields, strict=True):
        try:
            columns.append(read_column(texts if first is None else texts.slice(0, first.row), field.type, style))
        except TailgateError as error:
            row = error.row or 0
            error.where = sent.value(row, field.name, texts[row].as_py())
            first = error
            columns = [c.slice(0, row) for c in columns]
            columns.append(read_column(texts.slice(0, row), field.type, style))
    return columns, first


def _until_end(data: bytes, options: CopyOptions) -> bytes:
    r"""Returns the data before the end marker \. on its own line; `_csv` handles quoted data itself."""
    if b"\\." in data and not (options.format == "csv" and options.quote in data):
        marker = re.search(rb"(?:^|(?<=\n))\\\.(?:\r?\n|$)", data)
        if marker is not None:
            return data[: marker.start()]
    return data


def _after_header(data: bytes, fields: Sequence[Field], sent: CopyInput) -> bytes:
    """Returns the data after the header line; checks the header's names if `header` is 'match'."""
    line, _, rest = data.partition(b"\n")
    if sent.header == "match":
        lines, _ = (_text if sent.options.format == "text" else _csv)(line, sent.options)
        header = lines[0] if lines else []
        names = [None if n is None else n.decode() for n in header]
        if len(names) != len(fields):
            message = f"wrong number of fields in header line: got {len(names)}, expected {len(fields)}"
            raise BadCopyFileFormat(message, where=sent.row(-1))
        for i, (name, field) in enumerate(zip(names, fields, strict=True)):
            if name != field.name:
                shown = "got null value" if name is None else f'got "{name}"'
                message = f'column name mismatch in header line field {i + 1}: {shown}, expected "{field.name}"'
                raise BadCopyFileFormat(message, where=sent.row(-1))
    return rest


def _arrow(data: bytes, names: list[str], options: CopyOptions) -> pa.Table | None:
    """Reads the data with Arrow's reader, or returns None if Arrow might read it differently."""
    if not data or b"\0" in data or b"\r" in data:
        return None
    if len(names) > 1 and (data.startswith(b"\n") or b"\n\n" in data):
        return None  # an empty line has too few fields, but Arrow reads it as a line of NULLs
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
        return None  # the slow reader raises the exact error


def _whole_nulls(delimiter: bytes) -> re.Pattern[bytes]:
    """Returns a pattern that matches fields which are exactly \\N."""
    d = re.escape(delimiter)
    return re.compile(rb"(?<![^\n" + d + rb"])\\N(?![^\n" + d + rb"])")


def _table(lines: Lines, fields: Sequence[Field], names: list[str], sent: CopyInput) -> tuple[pa.Table, TailgateError | None]:
    """Returns the lines before the first with a wrong number of fields or invalid UTF-8, and its error.

    A line with too few fields is kept, filled with NULLs: an error in its values comes first.
    """
    wrong = next((n for n, line in enumerate(lines) if len(line) != len(fields)), None)
    error: TailgateError | None = None
    if wrong is not None:
        short, lines = lines[wrong], lines[:wrong]
        message = "extra data after last expected column"
        if len(short) < len(fields):
            message = f'missing data for column "{fields[len(short)].name}"'
            lines.append([*short, *[None] * (len(fields) - len(short))])
        error = BadCopyFileFormat(message)
        if len(short) > len(fields):  # PostgreSQL checks the bytes of a line before it counts its fields
            error = _invalid(short, sent.data) or error
        error.row, error.where = wrong, sent.row(wrong)
    columns: list[list[str | None]] = []
    for values in zip(*lines, strict=True) if lines else [()] * len(fields):
        texts: list[str | None] = []
        try:
            for value in values[: len(columns[-1])] if columns else values:
                texts.append(None if value is None else utf8(value))
        except TailgateError as invalid:
            no_text = _encoding_error(sent.data) or invalid
            no_text.row, no_text.where = len(texts), sent.row(len(texts))
            error, columns = no_text, [c[: len(texts)] for c in columns]
        columns.append(texts)
    arrays = [pa.chunked_array([pa.array(c, pa.string())]) for c in columns]
    return pa.Table.from_arrays(arrays, names=names), error


def _invalid(line: list[bytes | None], data: bytes) -> TailgateError | None:
    """Returns the error of a line with a field that is not UTF-8, or None."""
    try:
        for value in line:
            utf8(value or b"")
    except TailgateError as error:
        return _encoding_error(data) or error
    return None


def _encoding_error(data: bytes) -> TailgateError | None:
    """Returns the error of data that is not UTF-8, or None if only an escape such as \\xC3 has made a field invalid.

    PostgreSQL checks the data before it divides them, so the bytes that the message shows may include a delimiter.
    """
    try:
        utf8(data)
    except TailgateError as error:
        return error
    return None


def _text(data: bytes, options: CopyOptions) -> tuple[Lines, TailgateError | None]:
    """Splits data in text format into lines of fields; a backslash may escape a newline.

    Returns the lines before the first invalid one, and the error of that line or None.
    """
    result: Lines = []
    delimiter = re.escape(options.delimiter)
    try:
        if b"\\" not in data:
            lines = data.split(b"\n")
            if lines and not lines[-1]:
                lines.pop()
            for raw in lines:
                result.append([None if f == options.null else f for f in _line(raw).split(options.delimiter)])
            return result, None
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
                result.append(line)
                line = []
            elif at == len(data):
                line.append(None if options.null == b"" else b"")
                result.append(line)
    except BadCopyFileFormat as error:
        return result, error
    return result, None


def _line(raw: bytes) -> bytes:
    r"""Removes the \r of a line that ends in \r\n."""
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
    return b"" if other is None else _ESCAPED.get(other, other)


def _csv(data: bytes, options: CopyOptions) -> tuple[Lines, TailgateError | None]:
    """Splits data in csv format into lines of fields; quotes may begin anywhere in a field.

    Returns the lines before the first invalid one, and the error of that line or None.
    """
    quote, escape, delimiter = options.quote, options.escape, options.delimiter
    q, e, d = re.escape(quote), re.escape(escape), re.escape(delimiter)
    special = rb"[" + q + e + rb"]"
    alone = rb"" if escape == quote else rb"|" + e + rb"(?!" + special + rb")"
    inside = rb"(?:[^" + q + e + rb"]|" + e + special + alone + rb")*"
    part = re.compile(rb"((?:[^\r\n" + q + d + rb"]|" + q + inside + q + rb")*)(" + d + rb"|\r\n|\n|\r|$)", re.DOTALL)
    quoted = re.compile(q + rb"(" + inside + rb")" + q, re.DOTALL)
    escaped = re.compile(e + rb"([" + q + e + rb"])")

    def bare(match: re.Match[bytes]) -> bytes:
        return escaped.sub(rb"\1", match[1])

    result: Lines = []
    at, line = 0, list[bytes | None]()
    while at < len(data):
        match = part.match(data, at)
        if match is None:
            return result, BadCopyFileFormat("unterminated CSV quoted field")
        raw, end = match[1], match[2]
        if raw == b"\\." and not line and end != delimiter:
            return result, None
        line.append(quoted.sub(bare, raw) if quote in raw else None if raw == options.null else raw)
        at = match.end()
        if end != delimiter:
            result.append(line)
            line = []
        elif at == len(data):
            line.append(None if options.null == b"" else b"")
            result.append(line)
    return result, None


def _binary(sent: CopyInput, fields: Sequence[Field], columns: list[list[object]]) -> TailgateError | None:
    """Appends the values to `columns`; returns the first error, or raises that of the header."""
    data = sent.data
    if data[:11] != SIGNATURE[:11]:
        raise BadCopyFileFormat("COPY file signature not recognized")
    if len(data) < 19:
        raise BadCopyFileFormat("invalid COPY file header (missing flags)")
    flags, extension = struct.unpack_from("!ii", data, 11)
    if flags & 0xFFFF0000:
        raise BadCopyFileFormat("unrecognized critical flags in COPY file header")
    at, row = 19 + extension, 0
    while at + 2 <= len(data):
        (count,) = struct.unpack_from("!h", data, at)
        at += 2
        if count == -1:
            return BadCopyFileFormat("received copy data after EOF marker", where=sent.row(row)) if at != len(data) else None
        if count != len(fields):
            return BadCopyFileFormat(f"row field count is {count}, expected {len(fields)}", where=sent.row(row))
        for field, values in zip(fields, columns, strict=True):
            try:
                value, at = _field(data, at, field)
            except TailgateError as error:
                error.where = sent.value(row, field.name)
                return error
            values.append(value)
        row += 1
    return None


def _field(data: bytes, at: int, field: Field) -> tuple[object, int]:
    """Returns the value that begins at `at`, and the position after it."""
    if at + 4 > len(data):
        raise BadCopyFileFormat("unexpected EOF in COPY data")
    (length,) = struct.unpack_from("!i", data, at)
    at += 4
    if length < 0:
        return None, at
    raw = data[at : at + length]
    if len(raw) != length:
        raise BadCopyFileFormat("unexpected EOF in COPY data")
    return stored(read_binary(raw, field.type), field.type), at + length
