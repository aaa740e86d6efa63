"""The events of one object: its changes as a stream of server-sent events.

    object at time t ──► update ──► changes later than t: update, delete ──► … ──► end, with the error that ended the stream

A stream pulls changes from the log as a TAIL does, so a slow reader has no buffer here. Streams of one row share the bytes of each event.

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
    serving: Serving,
    bound: BoundEndpoint,
    query: Authorized[Prepared],
    values: Sequence[object],
    start: Page | int,
    check: Callable[[], None],
) -> AsyncGenerator[bytes, None]:
    """Yields the events of an object without end.

    `start`: the object, or the time after which its changes are sent. `check` is called after every tick; it raises the error that ends the
    stream when the caller may no longer read.
    """
    if isinstance(start, Page):
        yield event("update", str(start.time), start.rows[0])
    position = start.time if isinstance(start, Page) else start
    form = (EVENTS, bound.endpoint.id, bound.query.prepared.catalog_n)
    async with contextlib.aclosing(serving.followers.changes(query, after=position, snapshot=False, values=values)) as changes:
        pending = asyncio.ensure_future(anext(changes))
        beat = asyncio.get_running_loop().time() + HEARTBEAT_S
        try:
            while True:
                await asyncio.wait((pending,), timeout=beat - asyncio.get_running_loop().time())
                check()
                data = b""
                if pending.done():
                    batch = pending.result()
                    position = batch.time
                    if batch.table is not None and batch.table.num_rows:
                        data = batch.shared(form, lambda batch, grow: _changes(bound, batch, grow))
                    pending = asyncio.ensure_future(anext(changes))
                if not data and asyncio.get_running_loop().time() >= beat:
                    data = b"id: %d\n\n" % position
                if data:
                    yield data
                    beat = asyncio.get_running_loop().time() + HEARTBEAT_S
        finally:
            pending.cancel()
            with contextlib.suppress(BaseException):
                await pending


def _changes(bound: BoundEndpoint, batch: Batch, grow: Callable[[int], None]) -> bytes:
    """Returns the event of a change: the new object if there is one, otherwise its deletion."""
    assert batch.table is not None
    present = batch.table.filter([weight > 0 for weight in batch.table.column(WEIGHT).to_pylist()])
    kind, object = ("update", json_objects(bound, present)[0]) if present.num_rows else ("delete", b"null")
    data = event(kind, str(batch.time), object)
    grow(len(data))
    return data
