"""DECLARE, FETCH, MOVE, CLOSE: a cursor is a portal with a name, read some rows at a time; of a TAIL, with a timeout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from gateway import routes, tail, times
from gateway.copying import CopyOut
from gateway.portals import Bound, Portal, TableRows, Tagged
from gateway.transactions import State
from lake import errors as e
from sql import statements as s

if TYPE_CHECKING:
    from gateway.session import Session


async def declare(session: Session, bound: Bound, statement: s.DeclareCursor, values: Sequence[object]) -> str:
    if statement.hold:
        raise e.FeatureNotSupported("WITH HOLD is unsupported for cursors", hint="Fetch what is needed before the transaction ends.")
    if statement.scroll:
        raise e.FeatureNotSupported("SCROLL is unsupported for cursors", hint="Cursors move forward only.")
    if session.transaction.state is State.IDLE:
        raise e.NoActiveSqlTransaction("DECLARE CURSOR can only be used in transaction blocks")
    if statement.name in session.portals:
        raise e.DuplicateCursor(f'cursor "{statement.name}" already exists')
    inner: Bound = bound.body
    formats = (int(statement.binary),) * len(inner.columns or ())
    portal = Portal(statement.name, inner, tuple(values), formats, is_cursor=True, at=session.serving.time)
    session.portals[statement.name] = portal
    return "DECLARE CURSOR"


async def fetch(session: Session, bound: Bound, statement: s.Fetch) -> routes.Result:
    portal = cursor(session, statement.cursor)
    timeout = times.timeout(statement.timeout)
    if statement.count is not None and statement.count < 0:
        raise e.ObjectNotInPrerequisiteState("cursor can only scan forward", hint="Declare it with SCROLL option to enable backward scan.")
    if portal.rows is None:
        rows = await routes.begin(session, portal.bound, portal.values, portal.formats, portal.at)
        assert not isinstance(rows, (str, CopyOut))
        portal.rows = rows
    rows = portal.rows
    columns = portal.bound.columns or ()
    parts: list[pa.Table] = []
    count = 0
    while statement.count is None or count < statement.count:
        table = await rows.fetch(None if statement.count is None else statement.count - count, timeout)
        parts.append(table)
        count += table.num_rows
        if rows.ended or isinstance(rows, tail.TailRows):
            break
    if statement.move:
        return f"MOVE {count}"
    if not parts:
        parts = [pa.schema([pa.field(f"c{i}", f.type.arrow) for i, f in enumerate(columns)]).empty_table()]
    return Tagged(TableRows(columns, pa.concat_tables(parts) if len(parts) > 1 else parts[0]), "FETCH")


def close(session: Session, bound: Bound, statement: s.CloseCursor, values: Sequence[object]) -> str:
    if statement.name is None:
        for name in [name for name, portal in session.portals.items() if portal.is_cursor]:
            session.drop_portal(name)
        return "CLOSE CURSOR ALL"
    cursor(session, statement.name)
    session.drop_portal(statement.name)
    return "CLOSE CURSOR"


def cursor(session: Session, name: str) -> Portal:
    portal = session.portals.get(name)
    if portal is None:
        raise e.InvalidCursorName(f'cursor "{name}" does not exist')
    return portal
