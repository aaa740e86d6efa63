"""The rows of an endpoint as JSON objects, with the time of the data.

look-up by key ──► an index of the relation, if it is current
other queries  ──► DuckDB, in one transaction with the clock
at a past time ──► a snapshot of the lake
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tailgate.gateway.answers.lookups import Lookups
from tailgate.gateway.http.bound_endpoints import BoundEndpoint, BoundWrite
from tailgate.gateway.http.messages import Request
from tailgate.gateway.serving.prepared import Prepared
from tailgate.gateway.serving.service import Serving
from tailgate.lake.errors import Gone, InvalidParameterValue, ProgramLimitExceeded
from tailgate.sql.authorization import Authorized
from tailgate.values import raw

AS_OF_WAIT_S = 5.0  # how long a request waits for a time that is not reached yet
PAGE_ROWS, PAGE_ROWS_MAX = 100, 1_000  # rows of a response without and with `limit`
UNORDERED_ROWS_MAX = 100_000  # rows that a query without ORDER BY may have, because they are sorted here


@dataclass(frozen=True, slots=True)
class Page:
    """Rows at `time`, as JSON objects. `more`: whether further rows follow."""

    time: int
    rows: list[bytes]
    more: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """The rows that a request asks for: `limit` rows after `offset`, at a time or, if that is None, the newest."""

    at: int | None = None
    offset: int = 0
    limit: int = 1


def range_of(bound: BoundEndpoint, request: Request, fields: Mapping[str, str]) -> Range:
    """Returns the rows that a request asks for. Raises 22023."""
    as_of = request.headers.get(b"tailgate-as-of")
    at = None if as_of is None else integer(as_of.decode("latin-1"), "Tailgate-As-Of", 0, 2**63 - 1)
    if bound.query.single:
        return Range(at)
    limit = integer(fields["limit"], "limit", 1, PAGE_ROWS_MAX) if "limit" in fields else PAGE_ROWS
    if "cursor" not in fields:
        return Range(at, 0, limit)
    cursor = _decoded(fields["cursor"])
    if at is not None and at != cursor[0]:
        raise InvalidParameterValue("the cursor belongs to another time than Tailgate-As-Of")
    return Range(cursor[0], cursor[1], limit)


def integer(text: str, name: str, least: int, most: int) -> int:
    """Returns the integer of a text. Raises 22023."""
    if not re.fullmatch(r"[0-9]{1,19}", text) or not least <= int(text) <= most:
        raise InvalidParameterValue(f'invalid value for "{name}": an integer from {least} to {most} is required')
    return int(text)


def cursor_at(time: int, offset: int) -> bytes:
    """Returns the cursor behind `offset` rows at a time: later pages are read at the time of the first."""
    return base64.urlsafe_b64encode(b"%d.%d" % (time, offset)).rstrip(b"=")


def _decoded(cursor: str) -> tuple[int, int]:
    try:
        time, offset = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).split(b".")
        if not (time.isdigit() and offset.isdigit() and len(time) < 19 and len(offset) < 19):
            raise ValueError
        return int(time), int(offset)
    except ValueError:
        raise InvalidParameterValue('invalid value for "cursor"') from None


class EndpointReader:
    """Evaluates bound endpoints."""

    def __init__(self, serving: Serving, lookups: Lookups) -> None:
        self._serving, self._lookups = serving, lookups

    def page_in_memory(self, bound: BoundEndpoint, query: Authorized[Prepared], values: Sequence[object], rows: Range) -> Page | None:
        """Returns a range of rows if an index has them now, else None."""
        lookup, write = bound.lookup, bound.write_found
        if lookup is None or write is None or _past_time(query, rows) is not None:
            return None
        progress = self._serving.progress
        time, matches = progress.time, self._lookups.rows(lookup, query, values)
        while matches is not None and time != progress.time:  # the mirrors' thread may advance while rows are found
            time, matches = progress.time, self._lookups.rows(lookup, query, values)
        if matches is None:
            return None
        objects = [write(row) for row in matches]
        return _slice(time, objects if bound.query.single else sorted(objects), rows)

    async def page(self, bound: BoundEndpoint, query: Authorized[Prepared], values: Sequence[object], rows: Range) -> Page:
        """Returns a range of rows that `page_in_memory` does not return. Raises 22023 for a time that cannot be read."""
        at = _past_time(query, rows)
        if at is not None:
            table = await self._at(query, values, at)
            return _page(bound, at, table, rows)
        if bound.lookup is not None and await self._lookups.catch_up(bound.lookup, query.plan):
            page = self.page_in_memory(bound, query, values, rows)
            if page is not None:
                return page
        _, time, table = await self._serving.queries.run_at_entry(query, values)
        return _page(bound, time, table, rows)

    async def _at(self, query: Authorized[Prepared], values: Sequence[object], at: int) -> pa.Table:
        await self.check_time(query, at)
        with await self._serving.queries.open_snapshot({}, at) as snapshot:
            return await self._serving.queries.run(query, values, at=snapshot)

    async def check_time(self, query: Authorized[Prepared], at: int) -> None:
        """Raises Gone for a time that is too old to be read, and 22023 for one in the future."""
        progress = self._serving.progress
        oldest = await progress.readable_since(query.plan.relations)
        if at < oldest:
            raise Gone(f"time {at} is too old: the oldest readable time is {oldest}")
        if progress.time < at and await progress.wait(at - 1, AS_OF_WAIT_S) < at:
            raise InvalidParameterValue(f"time {at} is in the future: the newest time is {progress.time}")


def _past_time(query: Authorized[Prepared], rows: Range) -> int | None:
    """Returns the time at which the rows are read: that of the request, or when a view of the query failed. None if it is the newest."""
    return rows.at if rows.at is not None else query.plan.failed_at


def _page(bound: BoundEndpoint, time: int, table: pa.Table, rows: Range) -> Page:
    """Returns the range as objects. Without ORDER BY the rows are sorted, so that the pages of one time fit together."""
    if bound.query.ordered or bound.query.single:
        part = table.slice(rows.offset, rows.limit)
        return Page(time, json_objects(bound, part), table.num_rows > rows.offset + rows.limit)
    if table.num_rows > UNORDERED_ROWS_MAX:
        raise ProgramLimitExceeded("the endpoint has too many rows without an order", hint="Add ORDER BY to its query.")
    return _slice(time, sorted(json_objects(bound, table)), rows)


def _slice(time: int, objects: list[bytes], rows: Range) -> Page:
    end = rows.offset + rows.limit
    return Page(time, objects[rows.offset : end], len(objects) > end)


def json_objects(bound: BoundEndpoint | BoundWrite, table: pa.Table) -> list[bytes]:
    """Returns the objects of rows. Columns behind those of the query are left out."""
    types = [c.type for c in bound.columns]
    columns = [raw.values(raw.stored(table.column(i), t), t) for i, t in enumerate(types)]
    return [bound.write(row) for row in zip(*columns, strict=True)]
