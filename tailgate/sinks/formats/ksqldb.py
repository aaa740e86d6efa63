"""ksqlDB's formats of messages: JSON and DELIMITED values, keys of the format KAFKA.

The columns of the message's key are not in the value. The bytes of a row of a table therefore begin with them, so that rows
with different keys differ. Those of a row of a stream begin with its position, so that rows are sorted by it:

    row of a table    length of the key (4 bytes), key as JSON, value
    row of a stream   length of the position (4 bytes), partition (4 bytes), offset (8 bytes), value

Names are in upper case. JSON has decimals as numbers, timestamps as milliseconds, dates as days and bytes as base64.

Source: ksqlDB 0.29, documentation, "Serialization formats".
"""

from __future__ import annotations

import base64
import csv
import io
import json
import struct
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Literal

import pyarrow as pa

from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import Field
from tailgate.sinks.formats.jsons import micros
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.translation import PSEUDO_COLUMNS, WINDOW_BOUNDS

FORMS = ("ksqldb_json", "ksqldb_delimited", "ksqldb_kafka")
LENGTH = struct.Struct(">I")
POSITION = struct.Struct(">IQ")
EPOCH = date(1970, 1, 1).toordinal()


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _integer_division(divisor: int) -> Callable[[Any], str]:
    return lambda value: str((value if isinstance(value, int) else micros(value)) // divisor)


# by type: the JSON of a value
WRITERS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("int2", "int4", "int8", "float4", "float8", "bool", "text", "varchar", "bpchar", "uuid"), _json_text),
    "numeric": lambda value: f"{value:f}",
    "bytea": lambda value: _json_text(base64.b64encode(value).decode()),
    "date": lambda value: str(value.toordinal() - EPOCH),
    "time": _integer_division(1000),
    "timestamp": _integer_division(1000),
    "timestamptz": _integer_division(1000),
    "jsonb": str,
    "json": str,
}
PACKED = {"int2": ">i", "int4": ">i", "int8": ">q", "float4": ">d", "float8": ">d"}


def form(kind: str, part: Literal["key", "value"], key: Sequence[int] | None, *, stream: bool = False) -> KsqldbValue | KsqldbKey:
    """Returns a format for the keys or the values of a sink.

    `key`: the positions of the columns in the message's key. `stream`: whether the rows are those of a stream.
    """
    if part == "key":
        return StreamKey() if stream else KsqldbKey()
    value = StreamValue if stream else KsqldbValue
    return value(kind == "ksqldb_delimited", tuple(key or ()))


class KsqldbValue:
    """A JSON object, or with `delimited` a line of fields, of the columns that are not in the message's key."""

    hidden: frozenset[str] = frozenset()  # names of columns that are not in the value

    def __init__(self, delimited: bool, key: tuple[int, ...]) -> None:
        self._delimited, self._key = delimited, key

    def rows(self, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]:
        texts = [_texts(column, array) for column, array in zip(columns, arrays, strict=True)]
        hidden = self.hidden | (set(WINDOW_BOUNDS) if len(self._key) > 1 else set())
        others = [i for i, column in enumerate(columns) if i not in self._key and column.name not in hidden]
        names = [_json_text(ksqldb_name(columns[i].name)) + ":" for i in others]
        out = []
        for n, prefix in enumerate(self._prefixes(columns, texts, length)):
            values = [texts[i][n] for i in others]
            value = _line(values) if self._delimited else "{" + ",".join(map(str.__add__, names, values)) + "}"
            out.append(LENGTH.pack(len(prefix)) + prefix + value.encode())
        return out

    def _prefixes(self, columns: Sequence[Field], texts: Sequence[Sequence[str]], length: int) -> list[bytes]:
        """Returns what distinguishes rows with equal values. `texts`: the JSON of the values by column."""
        return ["".join(f"{texts[i][n]}," for i in self._key).encode() for n in range(length)]

    def key(self, row: bytes) -> bytes | None:
        raise FeatureNotSupported("a key in this format is not supported")

    def value(self, row: bytes) -> bytes:
        (length,) = LENGTH.unpack_from(row)
        return row[LENGTH.size + length :]

    def change(self, before: bytes | None, after: bytes | None) -> bytes:
        raise FeatureNotSupported("changes with before and after are not supported in ksqlDB's formats")


class StreamValue(KsqldbValue):
    """The value of a row of a stream: without the pseudo columns."""

    hidden = frozenset(PSEUDO_COLUMNS)

    def _prefixes(self, columns: Sequence[Field], texts: Sequence[Sequence[str]], length: int) -> list[bytes]:
        values_of = {column.name: values for column, values in zip(columns, texts, strict=True)}
        return [POSITION.pack(int(p), int(o)) for p, o in zip(values_of["rowpartition"], values_of["rowoffset"], strict=True)]


class KsqldbKey:
    """A key of one column: text as it is, numbers in big-endian order.

    A second column is the start of a window in ms. It follows as 8 bytes, as Kafka's TimeWindowedSerializer writes it.
    """

    def rows(self, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]:
        if len(columns) > 1:
            parts = zip(*(KsqldbKey().rows((c,), (a,), length) for c, a in zip(columns, arrays, strict=True)), strict=True)
            return list(map(b"".join, parts))
        ((column, array),) = zip(columns, arrays, strict=True)
        write: Callable[[Any], bytes] = bytes
        if column.type.name in PACKED:
            packed = struct.Struct(PACKED[column.type.name])
            write = packed.pack
        elif column.type.name != "bytea":
            write = str.encode
        # GROUP BY ignores rows with the key NULL
        return [b"" if value is None else write(value) for value in array.to_pylist()]

    def key(self, row: bytes) -> bytes | None:
        return row

    def value(self, row: bytes) -> bytes:
        return row

    def change(self, before: bytes | None, after: bytes | None) -> bytes:
        raise FeatureNotSupported("changes with before and after are not supported in ksqlDB's formats")


class StreamKey(KsqldbKey):
    """A key that may be NULL: such a row has no bytes, the others begin with one byte."""

    def rows(self, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]:
        keys = super().rows(columns, arrays, length)
        return [b"\1" + key if valid else b"" for key, valid in zip(keys, arrays[0].is_valid().to_pylist(), strict=True)]

    def key(self, row: bytes) -> bytes | None:
        return row[1:] if row else None


def _texts(column: Field, array: pa.Array) -> list[str]:
    """Returns the JSON of a column's values."""
    write = WRITERS.get(column.type.name)
    if write is None or column.type.is_array:
        raise FeatureNotSupported(f'column "{column.name}" of type {column.type} is not supported in ksqlDB\'s formats')
    if column.type.name in ("timestamp", "timestamptz"):
        array = array.cast(pa.int64())
    return ["null" if value is None else write(value) for value in array.to_pylist()]


def _line(values: Sequence[str]) -> str:
    """Returns a line of JSON values, as DELIMITED has them: text without JSON's quotes, NULL empty."""
    out = io.StringIO()
    fields = ("" if v == "null" else json.loads(v) if v.startswith('"') else v for v in values)
    csv.writer(out, lineterminator="").writerow(list(fields))
    return out.getvalue()
