"""Arrays, maps and structures in rows: the text of a jsonb as JSON of the declared type, as in topics.

Fields of structures are in the order of the type, and a DOUBLE has a fraction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache

from tailgate.formats.ksqldb.jsons import writer
from tailgate.formats.ksqldb.values import reader
from tailgate.gateway.ksqldb.server.http.forms import Column, Row
from tailgate.lake.types import FACTS
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expression_parser import KsqldbCursor, type_name

JSONB = FACTS["jsonb"].oid
TYPES_CACHED = 1_000
BEGINNINGS = tuple(f"{name.upper()}<" for name in types.STRUCTURES)  # of the declarations of these types

Converter = Callable[[Row], Row]


def converter(columns: Sequence[Column], oids: Sequence[int]) -> Converter:
    """Returns a function that writes the values of rows by their declared types. `oids`: the types in the results of the gateway."""
    writers = {
        place: write
        for place, (column, oid) in enumerate(zip(columns, oids, strict=True))
        if oid == JSONB and (write := _writer(column.type)) is not None
    }
    if not writers:
        return lambda row: row

    def written(row: Row) -> Row:
        return [value if value is None or place not in writers else writers[place](value) for place, value in enumerate(row)]

    return written


@lru_cache(TYPES_CACHED)
def _writer(declaration: str) -> Callable[[bytes], bytes] | None:
    """Returns a function that writes values of a type; None for a type without fields or elements that are known.

    >>> write = _writer("ARRAY<STRUCT<`B` INTEGER, `A` DOUBLE>>")
    >>> write(b'[{"A": 1, "B": 2}, null]')
    b'[{"B":2,"A":1.0},null]'
    """
    if not declaration.startswith(BEGINNINGS):
        return None
    type = type_name(KsqldbCursor(declaration))
    if not types.is_complete(type):
        return None
    read, write = reader(described := types.described(type)), writer(described)
    return lambda text: write(read(json.loads(text, parse_float=Decimal))).encode()
