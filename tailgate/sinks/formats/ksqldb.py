"""The formats of ksqlDB for sinks (`formats.ksqldb`).

The columns of the message's key are not in the value. The bytes of a row of a table therefore begin with them, so that rows
with different keys differ. Those of a row of a stream begin with its position, so that rows are sorted by it:

    row of a table    length of the key (4 bytes), key as JSON, value
    row of a stream   length of the position (4 bytes), arrival, partition (4 bytes), offset (8 bytes), number, value
    key               key, then the start of the window (8 bytes) if the table has windows

A key or value that is not NULL begins with one byte. Names are in upper case.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from tailgate.formats.ksqldb import jsons
from tailgate.formats.ksqldb.serde import Serde, encoded
from tailgate.formats.ksqldb.values import Column, Type, values
from tailgate.lake.catalog import Item, ksqldb_of
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import Field
from tailgate.sql.ksqldb.names import ksqldb_name
from tailgate.sql.ksqldb.parser import parse
from tailgate.sql.ksqldb.pseudo_columns import ARRIVAL, HIDDEN_COLUMNS, ROW_NUMBER, WINDOW_BOUNDS
from tailgate.sql.ksqldb.queries.scopes import column_types, value_positions
from tailgate.sql.ksqldb.statements import CreateAs, InsertQuery, KsqldbStatement
from tailgate.sql.ksqldb.types import UNKNOWN, described

LENGTH = struct.Struct(">I")
POSITION = struct.Struct(">IQ")
WINDOW = struct.Struct(">q")
PRESENT = b"\1"
JSONS = ("json", "jsonb")


def timestamp(columns: Sequence[Field]) -> int | None:
    """Returns the position of the column with the time of the rows."""
    return next((i for i, column in enumerate(columns) if column.name == "rowtime"), None)


Types: TypeAlias = Mapping[str, Type]  # by the names of the catalog


def types_of(relation: Item) -> Types:
    """Returns the types of a relation's columns. A column of type json or jsonb of another dialect has the type "json"."""
    types = column_types(relation)
    return {c.name: "json" if types[c.name] == UNKNOWN and c.type.name in JSONS else described(types[c.name]) for c in relation.columns}


def named(columns: Sequence[Field], types: Types) -> list[Column]:
    """Returns columns with their names and types in ksqlDB."""
    return [Column(ksqldb_name(c.name), types[c.name]) for c in columns]


def key_columns(columns: Sequence[Field]) -> list[Field]:
    """Returns the columns of a message's key that its format writes: those without the bounds of its window."""
    return [column for column in columns if column.name not in WINDOW_BOUNDS]


class KsqldbValue:
    """The columns that are not in the message's key, whose positions `key` has.

    `is_stream`: whether rows have a position. `schema_id`: the id of the value's schema in the registry.
    """

    def __init__(
        self, serde: Serde, key: Sequence[int] | None, types: Types, *, is_stream: bool = False, schema_id: int | None = None
    ) -> None:
        self._serde, self._key, self._types = serde, tuple(key or ()), types
        self._is_stream, self._schema_id = is_stream, schema_id

    def rows(self, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]:
        others = value_positions(columns, self._key)
        of_value = named([columns[i] for i in others], self._types)
        encoded_rows = encoded(self._serde, of_value, [arrays[i] for i in others], length, self._schema_id)
        prefixes = self._positions(columns, arrays) if self._is_stream else self._keys(columns, arrays, length)
        pack = LENGTH.pack
        return [
            pack(len(prefix)) + prefix + (b"" if value is None else PRESENT + value)
            for prefix, value in zip(prefixes, encoded_rows, strict=True)
        ]

    def _keys(self, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]:
        """Returns the keys of the rows of a table, with their times: a row with another time is another message."""
        keys = zip(named([columns[i] for i in self._key], self._types), (arrays[i] for i in self._key), strict=True)
        texts = [jsons.texts(column, values(column, array)) for column, array in keys]
        time = timestamp(columns)
        times = None if time is None else arrays[time].cast(pa.int64()).to_pylist()
        return ["".join(f"{text[n]}," for text in (*texts, *(() if times is None else (times,)))).encode() for n in range(length)]

    def _positions(self, columns: Sequence[Field], arrays: Sequence[pa.Array]) -> list[bytes]:
        values_of = {column.name: array.to_pylist() for column, array in zip(columns, arrays, strict=True) if column.name in HIDDEN_COLUMNS}
        partitions, offsets = values_of["rowpartition"], values_of["rowoffset"]
        arrivals, numbers = (values_of.get(name) or [""] * len(offsets) for name in (ARRIVAL, ROW_NUMBER))
        parts = zip(arrivals, partitions, offsets, numbers, strict=True)
        pack = POSITION.pack
        return [arrival.encode() + pack(p, o) + number.encode() for arrival, p, o, number in parts]

    def key(self, row: bytes) -> bytes | None:
        raise FeatureNotSupported("a key in this format is not supported")

    def value(self, row: bytes) -> bytes | None:
        (length,) = LENGTH.unpack_from(row)
        return _optional(row[LENGTH.size + length :])

    def change(self, before: bytes | None, after: bytes | None) -> bytes:
        raise FeatureNotSupported("changes with before and after are not supported in ksqlDB's formats")


def has_new_key(relation: Item) -> bool:
    """Returns whether PARTITION BY gives the rows of a query of ksqlDB a key of several columns."""
    statement = _statement(relation)
    return isinstance(statement, CreateAs | InsertQuery) and len(statement.query.partition_by) > 1


def joins(relation: Item) -> bool:
    """Returns whether a query of ksqlDB joins tables, and no column has the time of the results."""
    statement = _statement(relation)
    return isinstance(statement, CreateAs) and bool(statement.query.joins) and "TIMESTAMP" not in dict(statement.properties)


def _statement(relation: Item) -> KsqldbStatement | None:
    ksqldb = ksqldb_of(relation)
    return parse(ksqldb.statement) if ksqldb is not None and ksqldb.statement else None


class KsqldbKey:
    """The columns of the message's key.

    The message of a row in which all are NULL has no key, as the message that it results from. With `is_new`, these columns are a key
    that PARTITION BY gives, which is present.

    The start of a window in ms follows as 8 bytes, as Kafka's TimeWindowedSerializer writes it. The end of a session comes before its
    start, as in SessionWindowedSerializer.
    """

    def __init__(self, serde: Serde, types: Types, schema_id: int | None = None, *, is_new: bool = False) -> None:
        self._serde, self._types, self._schema_id, self._is_new = serde, types, schema_id, is_new

    def rows(self, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]:
        of_key = key_columns(columns)
        keys = [i for i, column in enumerate(columns) if column in of_key]
        of_format = encoded(self._serde, named(of_key, self._types), [arrays[i] for i in keys], length, self._schema_id)
        bounds = [arrays[i].to_pylist() for i in reversed(range(len(columns))) if i not in keys]
        rows = [b"" if value is None else PRESENT + value for value in of_format]
        absent: list[bool] = [False] * length
        if not self._is_new and all(arrays[i].null_count for i in keys):
            nulls = [arrays[i].is_null().to_pylist() for i in keys]
            absent = [all(is_null[n] for is_null in nulls) for n in range(length)]
            rows = [b"" if is_absent else row for is_absent, row in zip(absent, rows, strict=True)]
        if bounds:
            windows = zip(*bounds, strict=True)
            rows = [
                row if is_absent else row + b"".join(map(WINDOW.pack, window))
                for is_absent, row, window in zip(absent, rows, windows, strict=True)
            ]
        return rows

    def key(self, row: bytes) -> bytes | None:
        return _optional(row)

    def value(self, row: bytes) -> bytes | None:
        return _optional(row)

    def change(self, before: bytes | None, after: bytes | None) -> bytes:
        raise FeatureNotSupported("changes with before and after are not supported in ksqlDB's formats")


def _optional(row: bytes) -> bytes | None:
    return row[len(PRESENT) :] if row else None
