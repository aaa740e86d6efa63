"""Evaluates the calls in a statement that depend on the session (`sql.plan.session_calls`), other than of advisory locks.

Source: PostgreSQL 15, src/backend/commands/sequence.c.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence as Values

from tailgate.gateway.execute.catalog_session import CatalogSession
from tailgate.gateway.session.session import Session
from tailgate.gateway.writes.rows.row_queries import Arguments, CallEvaluator
from tailgate.lake.catalog import Sequence
from tailgate.lake.catalog.schemas import is_temporary
from tailgate.lake.errors import (
    FeatureNotSupported,
    InsufficientPrivilege,
    ObjectNotInPrerequisiteState,
    TailgateError,
    UndefinedTable,
)
from tailgate.sql.authorization import OR, Demand, Required
from tailgate.sql.binder.sequence_calls import PRIVILEGES, sequence_id
from tailgate.sql.functions.session_values import NAMES
from tailgate.sql.plan.session_calls import ROW_FUNCTIONS, SEQUENCE_FUNCTIONS, SessionCall
from tailgate.sql.sequence_definitions import moved, numbers

ROWS_AT_ONCE = 1_000  # of which calls are evaluated before other tasks of the event loop run
CATALOG_WAIT_S = 5.0  # a change of the catalog is normally in this gateway's mirrors within milliseconds


def evaluator(session: Session) -> CallEvaluator:
    """Returns a function for another thread that evaluates calls in the event loop and waits for their values."""
    loop = asyncio.get_running_loop()
    return lambda calls, arguments, rows: asyncio.run_coroutine_threadsafe(evaluated(session, calls, arguments, rows), loop).result()


async def evaluated(session: Session, calls: tuple[SessionCall, ...], arguments: Arguments, rows: int) -> list[Values[object]]:
    """Returns the values of each call, for this number of rows. Rows come one after the other, and calls in a row from left to right.

    Raises 55000, 2200H, 22003, 25006.
    """
    if rows and all(call.is_reservable and not call.conditional for call in calls):
        ids = [call.sequence for call in calls]
        new_values = {id: await _next(session, _sequence(session, id), rows * ids.count(id)) for id in dict.fromkeys(ids)}
        return [new_values[id][ids[:i].count(id) :: ids.count(id)] for i, id in enumerate(ids)]
    results: list[list[object]] = [[] for _ in calls]
    for row in range(rows):
        for i, call in enumerate(calls):
            results[i].append(await called(session, call, arguments[row][i] if arguments else ()))
        if row % ROWS_AT_ONCE == ROWS_AT_ONCE - 1:
            await asyncio.sleep(0)
    return list(results)


async def called(session: Session, call: SessionCall, arguments: Values[object]) -> object:
    """Returns the value of one call. Raises as `evaluated` does, and 0A000 for a call of another function."""
    if call.conditional and arguments[0] is not True:
        return None
    if call.name == "lastval":
        return _last(session)
    if call.name in NAMES:
        return await _value(session, call, arguments)
    if not call.sequence and call.name not in SEQUENCE_FUNCTIONS:
        raise FeatureNotSupported(f"{call.name} in a statement that writes is not supported", hint="Call it in a SELECT without FROM.")
    if call.sequence:
        sequence = _sequence(session, call.sequence)
    else:
        name, *arguments = arguments
        if name is None:
            return None
        sequence = _named(session, call.name, str(name))
    if call.name in ROW_FUNCTIONS:
        return (await _row(session, sequence))[call.name]
    match call.name:
        case "nextval":
            return (await _next(session, sequence, 1))[0]
        case "currval":
            current = session.sequences.value(sequence.id)
            if current is None:
                raise ObjectNotInPrerequisiteState(f'currval of sequence "{sequence.name}" is not yet defined in this session')
            return current
    value, called = arguments
    return await _set(session, sequence, value, called)


async def _value(session: Session, call: SessionCall, arguments: Values[object]) -> object:
    """Returns the value of current_user and the like, and the outcome of a call of current_setting that may fail."""
    if None in arguments:
        return None
    try:
        value = await session.serving.system.value(call.name, arguments, CatalogSession(session), session.catalog)
    except TailgateError as error:
        if not call.may_fail:
            raise
        return f"[{error.sqlstate}] {error.message}"
    return f"={value}" if call.may_fail else value


async def _set(session: Session, sequence: Sequence, value: object, called: object) -> object:
    if value is None or called is None:
        return None
    _check_writable(session, sequence, "setval")
    assert isinstance(value, int) and isinstance(called, bool)
    if is_temporary(sequence.id):
        _move_temporary(session, moved(sequence, value, called=called))
    elif session.transaction.holds(sequence):
        session.transaction.move_sequence(sequence, moved(sequence, value, called=called))
    else:
        await session.gateway.ranges.set(sequence, value, called=called)
    if called:
        session.sequences.got(sequence.id, value, last=False)
    return value


async def _next(session: Session, sequence: Sequence, count: int) -> list[int]:
    _check_writable(session, sequence, "nextval")
    if is_temporary(sequence.id):
        after, values = numbers(sequence, count)
        _move_temporary(session, after)
    elif session.transaction.holds(sequence):
        after, values = numbers(sequence, count)
        session.transaction.move_sequence(sequence, after)
    else:
        values = await session.gateway.ranges.take(sequence, count)
    session.sequences.got(sequence.id, values[-1])
    return values


async def _row(session: Session, sequence: Sequence) -> dict[str, int | bool]:
    """Returns the row of a sequence. Waits until the catalog has the values that this gateway has reserved."""
    if not is_temporary(sequence.id) and not session.transaction.holds(sequence):
        ranges, progress = session.gateway.ranges, session.serving.progress
        await progress.wait(ranges.changed_at(sequence.id) - 1, CATALOG_WAIT_S)
        return ranges.row(_sequence(session, sequence.id))
    return {"last_value": sequence.position, "log_cnt": 0, "is_called": sequence.called}


def _last(session: Session) -> int:
    """Returns the value of lastval. Raises 55000, and 42501 if the role may not read the sequence."""
    id = session.sequences.last
    catalog = session.naming.durable
    exists = id in catalog.items or id in session.naming.temporary
    value = session.sequences.value(id) if id is not None and exists else None
    if id is None or value is None:
        raise ObjectNotInPrerequisiteState("lastval is not yet defined in this session")
    if not is_temporary(id) and not any(catalog.may(session.access.role, privilege, id) for privilege in ("USAGE", "SELECT")):
        raise InsufficientPrivilege(f"permission denied for sequence {catalog[id].name}")
    return value


def _sequence(session: Session, id: int) -> Sequence:
    temporary = is_temporary(id)
    item = session.naming.temporary.get(id) if temporary else session.naming.durable.items.get(id)
    if not isinstance(item, Sequence):
        raise UndefinedTable("a sequence that the statement uses was dropped")
    return session.sequences.at_position(item) if temporary else session.transaction.moved_sequence(item)


def _named(session: Session, function: str, name: str) -> Sequence:
    """Returns the sequence with a computed name. Raises 3F000, 42P01, 42809, 42501, 22003."""
    id = sequence_id(name, session.catalog)
    session.access.authorize(Required((Demand(OR.join(PRIVILEGES[function]), id),)))
    return _sequence(session, id)


def _move_temporary(session: Session, after: Sequence) -> None:
    """Records the position of a temporary sequence. As in PostgreSQL, ROLLBACK does not move it back."""
    temporary = session.naming.temporary
    item = temporary[after.id]
    assert isinstance(item, Sequence)
    session.sequences.move(item, after, None if session.transaction.pending else temporary)  # ROLLBACK restores dropped ones


def _check_writable(session: Session, sequence: Sequence, function: str) -> None:
    """Raises 25006 in a read-only transaction, unless the sequence is temporary."""
    if not is_temporary(sequence.id):
        session.settings.check_writable(f"{function}()")
