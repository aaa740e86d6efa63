"""The forms of a query's results: a header, rows and an end, each as bytes.

    application/vnd.ksqlapi.delimited.v1    {"queryId":…,"columnNames":[…],"columnTypes":[…]} ⏎ [1,"a"] ⏎ …
    application/json, of /query-stream      the same as one array: [{"queryId":…},⏎[1,"a"],⏎…]
    application/vnd.ksql.v1+json            [{"header":{"queryId":…,"schema":…}},⏎{"row":{"columns":[…]}},⏎…{"finalMessage":…}]
    messages of a WebSocket                 [{"name":…,"schema":{"type":…,…}},…] ⏎ {"row":{"columns":[…]}} ⏎ …

The delimited form has no place for tombstones and final messages: they are left out, as in ksqlDB.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from tailgate.gateway.ksqldb.fields import schema
from tailgate.gateway.ksqldb.server.http.errors import ApiError
from tailgate.sql.ksqldb.expression_parser import KsqldbCursor, type_name
from tailgate.sql.ksqldb.types import KEY

COLUMNS_CACHED = 1_000  # parsed declarations of columns
LIMIT_REACHED, QUERY_COMPLETED = "Limit Reached", "Query Completed"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result, with ksqlDB's name and type. `key`: whether it is a part of the key of a table's pull query."""

    name: str
    type: str
    key: bool = False

    @property
    def declaration(self) -> str:
        return f"`{self.name.replace('`', '``')}` {self.type}{KEY if self.key else ''}"

    @staticmethod
    @lru_cache(COLUMNS_CACHED)
    def of(declaration: str) -> Column:
        """Returns the column of a declaration.

        >>> Column.of("`A``B` STRING"), Column.of("`C` INTEGER KEY")
        (Column(name='A`B', type='STRING', key=False), Column(name='C', type='INTEGER', key=True))
        """
        end = declaration.rindex("` ") if "STRUCT<" not in declaration else declaration.index("` ", 1)
        type = declaration[end + 2 :]
        return Column(declaration[1:end].replace("``", "`"), type.removesuffix(KEY), type.endswith(KEY))


Row = Sequence[bytes | None]  # values as JSON, None for NULL


class Form(Protocol):
    """A form of results. `error` is the end of a query that fails after its header was sent."""

    def header(self, query: str | None, columns: Sequence[Column]) -> bytes: ...
    def row(self, row: Row, *, tombstone: bool) -> bytes: ...
    def end(self, message: str) -> bytes: ...
    def error(self, error: ApiError) -> bytes: ...


class Delimited:
    """One JSON value per line."""

    def header(self, query: str | None, columns: Sequence[Column]) -> bytes:
        return _dumped(_head(query, columns)) + b"\n"

    def row(self, row: Row, *, tombstone: bool) -> bytes:
        return b"" if tombstone else _array(row) + b"\n"

    def end(self, message: str) -> bytes:
        return b""

    def error(self, error: ApiError) -> bytes:
        return _dumped(error.document) + b"\n"


class JsonArray:
    """One JSON array with the header and the rows."""

    def header(self, query: str | None, columns: Sequence[Column]) -> bytes:
        return b"[" + _dumped(_head(query, columns))

    def row(self, row: Row, *, tombstone: bool) -> bytes:
        return b"" if tombstone else b",\n" + _array(row)

    def end(self, message: str) -> bytes:
        return b"]\n"

    def error(self, error: ApiError) -> bytes:
        return b",\n" + _dumped(error.document) + b"]\n"


class StreamedRows:
    """One JSON array of objects, each with one member: header, row, finalMessage or errorMessage."""

    def header(self, query: str | None, columns: Sequence[Column]) -> bytes:
        return streamed_header(query, columns)

    def row(self, row: Row, *, tombstone: bool) -> bytes:
        return _row(row, tombstone=tombstone) + b",\n"

    def end(self, message: str) -> bytes:
        return _dumped({"finalMessage": message}) + b"]\n"

    def error(self, error: ApiError) -> bytes:
        return _dumped({"errorMessage": error.document}) + b"]\n"


class Messages:
    """A message of a WebSocket per line: the schema, then each row."""

    def header(self, query: str | None, columns: Sequence[Column]) -> bytes:
        return _dumped([{"name": c.name, "schema": schema(type_name(KsqldbCursor(c.type)))} for c in columns]) + b"\n"

    def row(self, row: Row, *, tombstone: bool) -> bytes:
        return _row(row, tombstone=tombstone) + b"\n"

    def end(self, message: str) -> bytes:
        return b""

    def error(self, error: ApiError) -> bytes:
        return _dumped({"errorMessage": error.document}) + b"\n"


def streamed_header(query: str | None, columns: Sequence[Column], **members: str) -> bytes:
    """Returns the beginning of an array of objects. `members`: others of the header."""
    schema = ", ".join(column.declaration for column in columns)
    return b"[" + _dumped({"header": {"queryId": query or "", "schema": schema, **members}}) + b",\n"


def _head(query: str | None, columns: Sequence[Column]) -> dict[str, object]:
    return {"queryId": query, "columnNames": [c.name for c in columns], "columnTypes": [c.type for c in columns]}


def _row(row: Row, *, tombstone: bool) -> bytes:
    return b'{"row":{"columns":%s%s}}' % (_array(row), b',"tombstone":true' if tombstone else b"")


def _array(row: Row) -> bytes:
    return b"[" + b",".join(b"null" if value is None else value for value in row) + b"]"


def _dumped(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
