"""Values of rows as JSON, from the text format of PostgreSQL's protocol.

    numbers, true, false, null       as they are, but a DOUBLE has a fraction; NaN and infinities are texts
    BYTES                            base64
    DATE, TIME, TIMESTAMP            ISO 8601: 2020-02-23, 10:20:30.123, 2020-02-23T10:20:30.123
    ARRAY, MAP, STRUCT               JSON, from jsonb, and from PostgreSQL's arrays

Each loader returns the bytes of the JSON value, so a row is joined and not encoded again.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from psycopg import AsyncConnection
from psycopg.adapt import Loader
from psycopg.types.array import ArrayLoader

from tailgate.formats.ksqldb.jsons import double
from tailgate.gateway.asgi.sessions import Application
from tailgate.gateway.encode.json_rows import string
from tailgate.lake.types import FACTS
from tailgate.sql.ksqldb.dialect import HTTP, SETTING

Buffer = Any  # bytes, bytearray or memoryview


def _double(data: bytes) -> bytes:
    return double(float(data)).encode()


def _decimal(data: bytes) -> bytes:
    return data if data[-1:].isdigit() else b'"%s"' % data


def _time(data: bytes) -> bytes:
    """Returns a time in milliseconds."""
    clock, _, fraction = data.partition(b".")
    return b'"%s.%s"' % (clock, fraction[:3].ljust(3, b"0")) if fraction else b'"%s"' % clock


def _timestamp(data: bytes) -> bytes:
    """Returns a timestamp in milliseconds, without its time zone, which is UTC.

    >>> _timestamp(b"2020-02-23 10:20:30.5+00")
    b'"2020-02-23T10:20:30.500"'
    """
    if data in (b"infinity", b"-infinity"):
        return b'"%s"' % data
    date, _, time = data.partition(b" ")
    clock, _, fraction = time.partition(b"+")[0].partition(b".")
    return b'"%sT%s.%s"' % (date, clock, fraction[:3].ljust(3, b"0"))


LOADED: dict[str, Callable[[bytes], bytes]] = {
    "bool": lambda data: b"true" if data == b"t" else b"false",
    "int2": bytes,
    "int4": bytes,
    "int8": bytes,
    "float4": _double,
    "float8": _double,
    "numeric": _decimal,
    "bytea": lambda data: b'"%s"' % base64.b64encode(bytes.fromhex(data[2:].decode())),
    "date": lambda data: b'"%s"' % data,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamp,
    "jsonb": bytes,
    "json": bytes,
}


@cache  # psycopg keeps each class of a loader, so connections share them
def _loader(function: Callable[[bytes], bytes]) -> type[Loader]:
    class JsonLoader(Loader):
        """A loader that returns a value's JSON."""

        def load(self, data: Buffer) -> bytes:
            return function(bytes(data))

    return JsonLoader


def _joined(values: Iterable[Any]) -> bytes:
    """Returns the JSON of an array of values, and of arrays inside it."""
    return b"[%s]" % b",".join(b"null" if v is None else _joined(v) if isinstance(v, list) else v for v in values)


@cache
def _array_loader(element: int) -> type[Loader]:
    class JsonArrayLoader(ArrayLoader):
        """A loader that returns the JSON of an array. `element`: the oid of the type of its elements."""

        base_oid = element

        def load(self, data: Buffer) -> Any:
            return _joined(super().load(data))

    return JsonArrayLoader


def register(connection: AsyncConnection[Any]) -> None:
    """Makes a connection return the JSON of values. Unknown types are texts. NULL is None."""
    connection.adapters.register_loader(0, _loader(string))
    for facts in FACTS.values():
        connection.adapters.register_loader(facts.oid, _loader(LOADED.get(facts.name, string)))
        if facts.array_oid:
            connection.adapters.register_loader(facts.array_oid, _array_loader(facts.oid))


APPLICATION = Application(
    "ksqldb", f"-c {SETTING}={HTTP} -c TimeZone=UTC -c DateStyle=ISO -c bytea_output=hex -c client_min_messages=notice", register
)
