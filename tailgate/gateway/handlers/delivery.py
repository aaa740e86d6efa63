"""Sends results to clients: rows in slices, COPY data, or a command tag. Waits while the client does not read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence

import pyarrow as pa

from tailgate.gateway.answers.answers import Request
from tailgate.gateway.encode.rows import RowEncoder, description
from tailgate.gateway.protocol import backend
from tailgate.gateway.results.copying import CopyOut, Result
from tailgate.gateway.results.rows import TableRows, Tagged, tag
from tailgate.gateway.results.tail import TailRows
from tailgate.gateway.results.topic import TopicRows
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound
from tailgate.lake import errors as e

SLICE_ROWS = 2048  # rows encoded at once: blocks the event loop for 0.6-2 ms (measured: 1-4 million rows/s of five columns)
ROW_BYTES_MAX = 16 << 20  # a row is encoded at once: 1-2 ms for a MiB
SLICE_BYTES = 512 * 1024  # bytes of wide rows encoded at once, which takes about as long
STALL_S = 60.0  # a follower that does not read pending output for this time is disconnected


def _step(table: pa.Table) -> int:
    """Returns how many rows to encode at once. Raises 54000 if a single row is too large."""
    step: int = max(1, min(SLICE_ROWS, SLICE_BYTES * table.num_rows // max(table.nbytes, 1)))
    if table.nbytes > ROW_BYTES_MAX:
        for at in range(0, table.num_rows, step):
            if table.slice(at, step).nbytes > ROW_BYTES_MAX:
                raise e.ProgramLimitExceeded(f"a row may have at most {ROW_BYTES_MAX} bytes", hint="Ask for parts of its values.")
    return step


async def deliver_newest(session: Session, bound: Bound, raw: bytes) -> None:
    """Sends the rows of a SELECT at the newest time, and keeps the response for equal texts unless it is too large for the cache."""
    assert bound.prepared is not None
    columns, style, scope = bound.columns or (), session.settings.style, session.naming.seen.scope
    formats = (0,) * len(columns)
    request = Request((raw, style, scope), session.access.authorize(bound.prepared), columns, (), formats, style, scope=scope)
    request.text, request.literals = raw if bound.position == 0 else None, bound.literals
    answer = await session.gateway.answers.get(request)
    if isinstance(answer, bytes):
        session.execution.activity.rows = backend.rows_sent(answer)
        session.out.write(backend.row_description(description(columns), formats) + answer)
    else:
        await deliver(session, TableRows(columns, answer), formats, describe=True)


async def deliver(session: Session, result: Result, formats: Sequence[int], *, describe: bool = False, limit: int | None = None) -> bool:
    """Sends a result, or up to `limit` rows of it. Returns whether it is complete. `describe`: sends a RowDescription first."""
    if isinstance(result, str):
        complete(session, result)
        return True
    if isinstance(result, CopyOut):
        await _copy(session, result)
        return True
    encoder = RowEncoder(result.columns, formats, session.settings.style)
    if describe:
        session.out.write(backend.row_description(description(result.columns), formats))
    if isinstance(result, TailRows) and limit is None:
        try:
            count = await _follow(session, result, encoder.form, encoder.data_rows)
        finally:
            await result.close()
        complete(session, tag(result, count))
        return True
    count = 0
    follows = session.execution.following = isinstance(result.rows if isinstance(result, Tagged) else result, TailRows | TopicRows)
    try:
        while limit is None or count < limit:
            if session.execution.following:
                await _send(session)
            table = await result.fetch(None if limit is None else limit - count)
            count += table.num_rows
            step = _step(table)
            for at in range(0, table.num_rows, step):
                session.out.write(encoder.data_rows(table.slice(at, step)))
                if table.num_rows > step:
                    await _send(session)
                    await asyncio.sleep(0)
            if result.ended:
                break
            if session.execution.following and limit is not None and count:
                return False  # all available rows are sent; the next Execute waits for more
            await _send(session)
    finally:
        session.execution.following = False
        if follows and limit is None:
            await result.close()
    if limit is not None and count == limit and not (result.ended and isinstance(result, TailRows)):
        return False
    complete(session, tag(result, count))
    return True


def complete(session: Session, tag: str) -> None:
    """Sends a CommandComplete, and counts its rows."""
    session.execution.activity.rows = backend.rows_of(tag)
    session.out.write(backend.command_complete(tag))


async def _copy(session: Session, copy: CopyOut) -> None:
    rows, encoder, count = copy.rows, copy.encoder, 0
    session.out.write(encoder.start())
    try:
        if isinstance(rows, TailRows):
            count = await _follow(session, rows, encoder.form, encoder.frames, encoder.signed)
        else:
            while not rows.ended:
                table = await rows.fetch(None)
                step = _step(table)
                for at in range(0, table.num_rows, step):
                    session.out.write(encoder.rows(table.slice(at, step)))
                    await _send(session)
                    await asyncio.sleep(0)
                count += table.num_rows
    finally:
        await rows.close()
    session.out.write(encoder.end() + backend.COPY_DONE)
    complete(session, f"COPY {count}")


async def _follow(
    session: Session,
    rows: TailRows,
    form: Hashable,
    encode: Callable[[pa.Table], bytes],
    finish: Callable[[bytes], bytes] = lambda data: data,
) -> int:
    """Sends the rows of a TAIL until it ends, if ever. Returns their number.

    The rows of a tick are encoded once for all followers of the same relation in the same format.
    """
    count = 0
    session.execution.following = True
    try:
        while True:
            if rows.waiting:
                await _send(session)
            piece = await rows.piece()
            if piece is None:
                return count
            size = piece.table.num_rows
            count += size
            step = _step(piece.table)
            if size <= step:
                session.out.write(finish(piece.encoded(form, encode)))
                continue
            for at in range(0, size, step):
                session.out.write(finish(encode(piece.table.slice(at, step))))
                await _send(session)
                await asyncio.sleep(0)
    finally:
        session.execution.following = False


async def _send(session: Session) -> None:
    """Flushes the output and waits until the client reads it. Disconnects a follower that does not read for STALL_S."""
    session.out.flush()
    if not await session.out.drain(STALL_S if session.execution.following else None):
        message = f"terminating connection because the client read nothing for {STALL_S:.0f} s"
        session.fatal(e.ConfigurationLimitExceeded.sqlstate, message)
        raise asyncio.CancelledError
