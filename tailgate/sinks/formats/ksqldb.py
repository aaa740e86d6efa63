"""The formats of ksqlDB for sinks (`formats.ksqldb`).

The columns of the message's key are not in the value. The bytes of a row of a table therefore begin with them, so that rows
with different keys differ. Those of a row of a stream begin with its position, so that rows are sorted by it:

    row of a table    length of the key (4 bytes), key as JSON, value
    row of a stream   length of the position (4 bytes), partition (4 bytes), offset (8 bytes), value
    key               key, then the start of the window (8 bytes) if the table has windows

A key or value that is not NULL begins with one byte. Names are in upper case.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa

from tailgate.formats.ksqldb import avro as ksqldb_avro
from tailgate.formats.ksqldb import jsons
from tailgate.formats.ksqldb.serde import Serde, encoded
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import Field
from tailgate.sinks.formats import avro
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.queries.scopes import value_positions
from tailgate.sql.ksqldb.queries.translation import PSEUDO_COLUMNS, WINDOW_BOUNDS

WITH_SCHEMA = ("AVRO",)  # formats whose values begin with the id of a schema
LENGTH = struct.Struct(">I")
POSITION = struct.Struct(">IQ")
WINDOW = struct.Struct(">q")
PRESENT = b"\1"


def timestamp(columns: Sequence[Field]) -> int | None:
    """Returns the position of the column with the time of a stream's rows."""
    return next((i for i, column in enumerate(columns) if column.name == "rowtime"), None)


def named(column: Field) -> Field:
    """Returns a column with its name in ksqlDB."""
    return Field(ksqldb_name(column.name), column.type, column.nullable)


class KsqldbValue:
    """The columns that are not in the message's key, whose positions `key` has.

    `is_stream`: whether rows have a position. `schema_id`: the id of the schema of AVRO.
    """

    def __init__(self, serde: Serde, key: Sequence[int] | None, *, is_stream: bool = False, schema_id: int | None = None) -> None:
        self._serde, self._key, self._is_stream, self._schema_id = serde, tuple(key or ()), is_stream, schema_id

    def rows(self, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]:
        others = value_positions(columns, self._key, is_stream=self._is_stream)
        values = self._encoded([named(columns[i]) for i in others], [arrays[i] for i in others], length)
        prefixes = self._positions(columns, arrays) if self._is_stream else self._keys(columns, arrays, length)
        parts = zip(prefixes, map(_present, values), strict=True)
        return [LENGTH.pack(len(prefix)) + prefix + value for prefix, value in parts]

    def _encoded(self, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> Sequence[bytes | None]:
        if self._schema_id is None:
            return encoded(self._serde, columns, arrays, length)
        header = avro.header(self._schema_id)
        return [header + row for row in avro.rows(*ksqldb_avro.stored(columns, arrays), length)]

    def _keys(self, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]:
        texts = [jsons.texts(columns[i], arrays[i]) for i in self._key]
        return ["".join(f"{text[n]}," for text in texts).encode() for n in range(length)]

    def _positions(self, columns: Sequence[Field], arrays: Sequence[pa.Array]) -> list[bytes]:
        values_of = {column.name: array.to_pylist() for column, array in zip(columns, arrays, strict=True) if column.name in PSEUDO_COLUMNS}
        return [POSITION.pack(p, o) for p, o in zip(values_of["rowpartition"], values_of["rowoffset"], strict=True)]

    def key(self, row: bytes) -> bytes | None:
        raise FeatureNotSupported("a key in this format is not supported")

    def value(self, row: bytes) -> bytes | None:
        (length,) = LENGTH.unpack_from(row)
        return _optional(row[LENGTH.size + length :])

    def change(self, before: bytes | None, after: bytes | None) -> bytes:
        raise FeatureNotSupported("changes with before and after are not supported in ksqlDB's formats")


class KsqldbKey:
    """The columns of the message's key. The start of a window in ms follows as 8 bytes, as Kafka's TimeWindowedSerializer writes it.

    The end of a session comes before its start, as in SessionWindowedSerializer.
    """

    def __init__(self, serde: Serde) -> None:
        self._serde = serde

    def rows(self, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]:
        keys = [i for i, column in enumerate(columns) if column.name not in WINDOW_BOUNDS]
        parts = encoded(self._serde, [named(columns[i]) for i in keys], [arrays[i] for i in keys], length)
        suffixes = [[WINDOW.pack(value) for value in arrays[i].to_pylist()] for i in range(len(columns)) if i not in keys]
        return [b"".join(row) for row in zip(map(_present, parts), *reversed(suffixes), strict=True)]

    def key(self, row: bytes) -> bytes | None:
        return _optional(row)

    def value(self, row: bytes) -> bytes | None:
        return _optional(row)

    def change(self, before: bytes | None, after: bytes | None) -> bytes:
        raise FeatureNotSupported("changes with before and after are not supported in ksqlDB's formats")


def _present(value: bytes | None) -> bytes:
    return b"" if value is None else PRESENT + value


def _optional(row: bytes) -> bytes | None:
    return row[len(PRESENT) :] if row else None
