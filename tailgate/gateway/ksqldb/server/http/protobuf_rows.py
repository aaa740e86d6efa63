"""The form application/vnd.ksql.v1+protobuf: the rows of a query as messages of Protobuf, in base64.

    [{"header":{"queryId":…,"schema":…,"protoSchema":"syntax = …"}},⏎{"row":{"protobufBytes":"…"}},⏎…{"finalMessage":…}]

The message is ConnectDefault1, as in topics of the format PROTOBUF.

Source: ksqlDB 0.29, documentation, "ksqlDB HTTP API Reference", "Content Types".
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from tailgate.formats.ksqldb import protobuf
from tailgate.formats.ksqldb import values as v
from tailgate.gateway.ksqldb.server.http import errors, media
from tailgate.gateway.ksqldb.server.http.errors import ApiError
from tailgate.gateway.ksqldb.server.http.forms import Column, Row, StreamedRows, streamed_header
from tailgate.lake.errors import FeatureNotSupported
from tailgate.sql.ksqldb.expression_parser import KsqldbCursor, type_name
from tailgate.sql.ksqldb.types import described, is_complete

EPOCH = datetime(1970, 1, 1)
MILLISECOND = timedelta(milliseconds=1)


class ProtobufRows(StreamedRows):
    """One JSON array of objects, as `StreamedRows`, with rows as messages. Its schema is that of the header that it has returned."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._readers: list[Callable[[Any], Any]] = []
        self._encode: protobuf.Encode = bytes

    def header(self, query: str | None, columns: Sequence[Column]) -> bytes:
        described = [v.Column(column.name, _described(column)) for column in columns]
        self._names = [column.name for column in described]
        self._readers = [_reader(column.type) for column in described]
        self._encode = protobuf.value(["struct", *([column.name, column.type] for column in described)], "")
        return streamed_header(query, columns, protoSchema=protobuf.schema(described))

    def row(self, row: Row, *, tombstone: bool) -> bytes:
        parsed = (None if value is None else json.loads(value, parse_float=Decimal) for value in row)
        try:
            values = {name: read(value) for name, read, value in zip(self._names, self._readers, parsed, strict=True)}
            message = self._encode(values)
        except (ValueError, ArithmeticError):
            raise ApiError(errors.BAD_STATEMENT, f"a row has a value that {media.PROTOBUF} does not support") from None
        except FeatureNotSupported as error:
            raise ApiError(errors.BAD_STATEMENT, error.message) from None
        return b'{"row":{"protobufBytes":"%s"%s}},\n' % (base64.b64encode(message), b',"tombstone":true' if tombstone else b"")


def _described(column: Column) -> v.Type:
    """Returns the type of a column as formats have it. Raises 400 for a type that they lack."""
    type = type_name(KsqldbCursor(column.type))
    if not is_complete(type):
        raise ApiError(errors.BAD_STATEMENT, f"the type of column {column.name} is not supported in {media.PROTOBUF}")
    return described(type)


def _reader(type: v.Type) -> Callable[[Any], Any]:
    """Returns a function from the JSON of a row to the value of a type.

    Outside of maps and structures, dates and times are texts. Raises ValueError for one beyond the years 1 to 9999.
    """
    match type:
        case ["array", inner]:
            of_element = _reader(inner)
            return lambda value: None if value is None else [of_element(item) for item in value]
        case "date" | "time" | "timestamp":
            parse = PARSERS[type]
            return lambda value: parse(value) if isinstance(value, str) else value
    return v.reader(type)


def _date(text: str) -> int:
    """Returns the number of days since 1970.

    >>> _date("1970-02-01")
    31
    """
    return (date.fromisoformat(text) - EPOCH.date()).days


def _time(text: str) -> int:
    """Returns a time of day in milliseconds.

    >>> _time("00:00:01.500")
    1500
    """
    return (datetime.combine(EPOCH, time.fromisoformat(text)) - EPOCH) // MILLISECOND


def _timestamp(text: str) -> int:
    """Returns milliseconds since 1970.

    >>> _timestamp("1970-01-01T00:00:01.500")
    1500
    """
    return (datetime.fromisoformat(text) - EPOCH) // MILLISECOND


PARSERS = {"date": _date, "time": _time, "timestamp": _timestamp}
