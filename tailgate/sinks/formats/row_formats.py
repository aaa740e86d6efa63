"""The formats of rows and events: Avro, JSON and text. The envelope (tailgate/sinks/envelope.py) uses them through one interface.

row     the bytes of a row's columns; equal rows have equal bytes, so they also sort and compare rows
key     a message's key, from a row of the key columns
value   a message's value, from a row (UPSERT, NONE)
change  a message's value, from the row before and the row after (DEBEZIUM)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from tailgate.formats.wire import header
from tailgate.lake.types import Field
from tailgate.sinks.formats import avro, jsons
from tailgate.sinks.formats.avro import NULL, PRESENT


class Form(Protocol):
    """The interface of a format, as described at the top of this module."""

    def rows(self, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]: ...
    def key(self, row: bytes) -> bytes | None: ...
    def value(self, row: bytes) -> bytes | None: ...
    def change(self, before: bytes | None, after: bytes | None) -> bytes: ...


class Avro:
    """The format AVRO: Confluent's header with the schema's id, then the record."""

    def __init__(self, value_id: int, key_id: int | None) -> None:
        self._value = header(value_id)
        self._key = b"" if key_id is None else header(key_id)

    def rows(self, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]:
        return avro.rows(columns, arrays, length)

    def key(self, row: bytes) -> bytes:
        return self._key + row

    def value(self, row: bytes) -> bytes:
        return self._value + row

    def change(self, before: bytes | None, after: bytes | None) -> bytes:
        old = NULL if before is None else PRESENT + before
        new = NULL if after is None else PRESENT + after
        return self._value + old + new


class Json:
    """The format JSON: an object with a member per column. A change is an object with `before` and `after`."""

    def rows(self, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]:
        return jsons.rows(columns, arrays, length)

    def key(self, row: bytes) -> bytes:
        return row

    def value(self, row: bytes) -> bytes:
        return row

    def change(self, before: bytes | None, after: bytes | None) -> bytes:
        return b'{"before":' + (before or b"null") + b',"after":' + (after or b"null") + b"}"


class Text:
    """The format TEXT: the only column as text. NULL and changes cannot be represented."""

    def rows(self, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]:
        if len(columns) != 1:
            raise ValueError("one column")
        return jsons.texts(columns[0], arrays[0])

    def key(self, row: bytes) -> bytes:
        return row

    def value(self, row: bytes) -> bytes:
        return row

    def change(self, before: bytes | None, after: bytes | None) -> bytes:
        raise ValueError("an envelope is no text")
