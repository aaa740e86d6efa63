"""DECLARE, FETCH, MOVE and CLOSE. A cursor is a named portal. FETCH from a cursor of TAIL may have a timeout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from tailgate.gateway.execute import time_expressions
from tailgate.gateway.execute.ksqldb import push
from tailgate.gateway.results import tail
from tailgate.gateway.results.rows import Rows, TableRows, Tagged
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.portals import Bound, Portal, check_result
from tailgate.gateway.session.transactions import State
from tailgate.lake import errors as e
from tailgate.sql import statements as s

HELD_BYTES_MAX = 256 << 20  # rows of a session's cursors WITH HOLD, which outlive their block and are not limited otherwise


async def declare(session: Session, bound: Bound, statement: s.DeclareCursor, values: Sequence[object]) -> str:
    follows = isinstance(statement.statement, s.Tail | s.FollowKsqldb)
    if statement.hold and follows:
        raise e.FeatureNotSupported("WITH HOLD is unsupported for cursors of TAIL", hint="Fetch what is needed before the end.")
    if statement.scroll and follows:
        raise e.FeatureNotSupported("SCROLL is unsupported for cursors of TAIL", hint="They move forward only.")
    if session.transaction.state is State.IDLE and not statement.hold:
        raise e.NoActiveSqlTransaction("DECLARE CURSOR can only be used in transaction blocks")
    if statement.name in session.portals:
        raise e.DuplicateCursor(f'cursor "{statement.name}" already exists')
    inner: Bound = bound.body
    formats = (int(statement.binary),) * len(inner.columns or ())
    scroll = statement.scroll is not False and not follows
    portal = Portal(statement.name, inner, tuple(values), formats, None, is_cursor=True, at=session.serving.progress.time, scroll=scroll)
    portal.hold, portal.level = statement.hold, len(session.transaction.savepoints)
    session.portals[statement.name] = portal
    if isinstance(inner.statement, s.FollowKsqldb):
        await _begun(session, portal)  # with `latest`, it begins now
    if not session.transaction.in_block:
        await hold(session)
    return "DECLARE CURSOR"


async def hold(session: Session) -> None:
    """Materializes the cursors WITH HOLD before a commit, so that they outlive the block. Raises 54000 if they are too large."""
    for portal in [portal for portal in session.portals.values() if portal.hold and not portal.held]:
        rows = await _begun(session, portal)
        held_bytes = sum(p.rows.nbytes for p in session.portals.values() if p.held and isinstance(p.rows, TableRows))
        if isinstance(rows, TableRows) and held_bytes + rows.nbytes > HELD_BYTES_MAX:
            raise e.ProgramLimitExceeded(
                f"cursors WITH HOLD of a session can keep at most {HELD_BYTES_MAX >> 20} MiB", hint="Close those that are no longer read."
            )
        portal.held = True


async def _begun(session: Session, portal: Portal) -> Rows:
    if portal.rows is None:
        portal.rows = await push.begin(session, portal.bound, portal.values, portal.at)
    return portal.rows


def bind(session: Session, bound: Bound, statement: s.Fetch, oids: Sequence[int]) -> Bound:
    """Sets the columns of FETCH: those of the cursor."""
    portal = session.portals.get(statement.cursor)
    return bound if portal is None or statement.move else replace(bound, columns=portal.bound.columns)


async def fetch(session: Session, bound: Bound, statement: s.Fetch, values: Sequence[object]) -> Tagged | str:
    """Executes FETCH or MOVE. Returns the rows, or the tag of MOVE. Raises 55000 to scroll back a cursor that cannot.

    After an error the cursor cannot be used any more, as in PostgreSQL: ROLLBACK TO does not restore its position.
    """
    portal = session.portals.find(statement.cursor, "cursor")
    try:
        return await _fetched(session, bound, statement, portal)
    except BaseException:
        session.portals.drop(statement.cursor)
        raise


async def _fetched(session: Session, bound: Bound, statement: s.Fetch, portal: Portal) -> Tagged | str:
    if not statement.move:
        check_result(bound, portal.bound)
    timeout = time_expressions.timeout(statement.timeout)
    rows = await _begun(session, portal)
    columns = portal.bound.columns or ()
    if isinstance(rows, TableRows):
        before = rows.at
        table = rows.scroll(statement.way, statement.count)
        if rows.at < before and not portal.scroll:
            raise _forward_only()
        return f"MOVE {table.num_rows}" if statement.move else Tagged(TableRows(columns, table), "FETCH")
    if statement.way != "forward" or (statement.count is not None and statement.count < 0):
        raise _forward_only()
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


def _forward_only() -> e.TailgateError:
    return e.ObjectNotInPrerequisiteState("cursor can only scan forward", hint="Declare it with SCROLL option to enable backward scan.")


def close(session: Session, bound: Bound, statement: s.CloseCursor, values: Sequence[object]) -> str:
    if statement.name is None:
        for name in [name for name, portal in session.portals.items() if portal.is_cursor]:
            session.portals.drop(name)
        return "CLOSE CURSOR ALL"
    session.portals.find(statement.name, "cursor")
    session.portals.drop(statement.name)
    return "CLOSE CURSOR"
