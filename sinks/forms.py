"""How rows and events are written: what the envelope (sinks/envelope.py) puts together, in one form or another.

row     the bytes of a row's columns: equal rows give equal bytes, which also sort and compare rows
key     a message's key of a row's key columns
value   a message's value of a row (UPSERT, NONE)
change  a message's value of the row before and the row after (DEBEZIUM)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from lake.types import Field
from sinks import avro, jsons
from sinks.avro import NULL, PRESENT


class Form(Protocol):
    def rows(self, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]: ...
    def key(self, row: bytes) -> bytes: ...
    def value(self, row: bytes) -> bytes: ...
    def change(self, before: bytes | None, after: bytes | None) -> bytes: ...


class Avro:
    """Confluent's header with the schema's id, and Avro."""

    def __init__(self, value_id: int, key_id: int | None) -> None:
        self._value = avro.header(value_id)
        self._key = b"" if key_id is None else avro.header(key_id)

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
    """An object of the columns; an envelope is an object of two."""

    def rows(self, columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]:
        return jsons.rows(columns, arrays, length)

    def key(self, row: bytes) -> bytes:
        return row

    def value(self, row: bytes) -> bytes:
        return row

    def change(self, before: bytes | None, after: bytes | None) -> bytes:
        return b'{"before":' + (before or b"null") + b',"after":' + (after or b"null") + b"}"


class Text:
    """The one column as text; a NULL is no text and no row of this form."""

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
