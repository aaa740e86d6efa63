"""The events of one object: its changes as a stream of server-sent events.

    object at time t ──► update ──► changes later than t: update, delete ──► … ──► end, with the error that ended the stream

The changes of a row that is looked up by key come from `row_changes`, others from the query, which is evaluated for each change. Streams
of one row share the bytes of each event.

Source: HTML Living Standard, section 9.2, "Server-sent events".
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, Callable, Sequence

from tailgate.gateway.http.bound_endpoints import BoundEndpoint
from tailgate.gateway.http.messages import Request, error_body
from tailgate.gateway.http.reading import Page, json_objects
from tailgate.gateway.serving.following import Batch
from tailgate.gateway.serving.prepared import Prepared
from tailgate.gateway.serving.row_changes import Target
from tailgate.gateway.serving.service import Serving
from tailgate.lake.errors import TailgateError
from tailgate.lake.types import WEIGHT
from tailgate.sql.authorization import Authorized

EVENTS = b"text/event-stream"
HEARTBEAT_S = 15.0  # without an event, after which a stream sends its newest time; proxies close connections that are quiet for 60 s

_LINE_ENDS = re.compile(rb"\r\n|\r|\n")


def wants_events(request: Request) -> bool:
    """Returns whether a request accepts a stream of events."""
    accepted = request.headers.get(b"accept", b"").lower().split(b",")
    return request.method == "GET" and any(part.partition(b";")[0].strip() == EVENTS for part in accepted)


def event(kind: str, id: str, data: bytes) -> bytes:
    r"""Returns the bytes of an event.

    >>> event("update", "5", b'{"a":1}')
    b'event: update\nid: 5\ndata: {"a":1}\n\n'
    """
    return b"event: %s\nid: %s\ndata: %s\n\n" % (kind.encode(), id.encode(), _LINE_ENDS.sub(b"\ndata: ", data))


def end(error: TailgateError) -> bytes:
    """Returns the event that ends a stream. Its empty id makes a client begin again with the whole object."""
    return event("end", "", error_body(error))


async def object_events(
    changes: AsyncGenerator[tuple[int, bytes], None], start: Page | int, check: Callable[[], float]
) -> AsyncGenerator[bytes, None]:
    """Yields the events of an object without end.

    `changes`: times with events, or without (`of_query`, `row_changes`). `start`: the object or, if a page has none, its deletion, or the
    time after which its changes are sent. `check` raises the error that ends the stream when the caller may no longer read.
    """
    if isinstance(start, Page):
        yield event("update", str(start.time), start.rows[0]) if start.rows else event("delete", str(start.time), b"null")
    loop = asyncio.get_running_loop()
    beat = loop.time() + HEARTBEAT_S
    async with contextlib.aclosing(changes):
        async for time, data in changes:
            check()
            if not data and loop.time() >= beat:
                data = b"id: %d\n\n" % time
            if data:
                yield data
                beat = loop.time() + HEARTBEAT_S


async def of_query(
    serving: Serving,
    bound: BoundEndpoint,
    query: Authorized[Prepared],
    values: Sequence[object],
    after: int,
    every: Callable[[], float],
) -> AsyncGenerator[tuple[int, bytes], None]:
    """Yields the times later than `after` with the event of each, which is empty if the object stays as it is. Evaluates the query.

    Yields the newest time without event after at most `every()` seconds.
    """
    form = (EVENTS, bound.endpoint.id, bound.query.prepared.catalog_n)
    async with contextlib.aclosing(serving.followers.changes(query, after=after, snapshot=False, values=values)) as changes:
        pending = asyncio.ensure_future(anext(changes))
        try:
            while True:
                await asyncio.wait((pending,), timeout=every())
                data = b""
                if pending.done():
                    batch = pending.result()
                    pending = asyncio.ensure_future(anext(changes))
                    after = batch.time
                    if batch.table is not None and batch.table.num_rows:
                        data = batch.shared(form, lambda batch, grow: _changes(bound, batch, grow))
                yield after, data
        finally:
            pending.cancel()
            with contextlib.suppress(BaseException):
                await pending


def target_of(bound: BoundEndpoint, values: Sequence[object]) -> Target | None:
    """Returns the row that a stream of an endpoint follows, or None if the stream is not one of a row by the relation's key."""
    lookup, write = bound.lookup, bound.write_found
    if lookup is None or write is None or not bound.single or lookup.way.key != lookup.way.columns:
        return None
    keys, others = lookup.keys(values), lookup.others(values)
    if len(bound.query.prepared.items) != 1 or len(keys) != 1 or others is None:
        return None
    return Target(lookup, keys[0], others, (bound.endpoint.id, bound.query.prepared.catalog_n), write, change_event)


def change_event(time: int, object: bytes | None) -> bytes:
    """Returns the event of a change: the new object, or None for its deletion."""
    return event("delete", str(time), b"null") if object is None else event("update", str(time), object)


def _changes(bound: BoundEndpoint, batch: Batch, grow: Callable[[int], None]) -> bytes:
    """Returns the event of a change: the new object if there is one, otherwise its deletion."""
    assert batch.table is not None
    present = batch.table.filter([weight > 0 for weight in batch.table.column(WEIGHT).to_pylist()])
    data = change_event(batch.time, json_objects(bound, present)[0] if present.num_rows else None)
    grow(len(data))
    return data
