"""The extended query protocol: one handler for each of Parse, Bind, Describe, Execute and Close. Sync ends a sequence of them.

    Parse ──► Statement ──Bind──► Portal ──Execute──► rows, some at a time

A prepared statement is bound again when the catalog has changed. It remains usable after a view that it reads was replaced, as long
as its result columns stay the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from tailgate.gateway.answers.lookups import answer_rows
from tailgate.gateway.answers.polls import Poll
from tailgate.gateway.encode.parameters import decode, utf8
from tailgate.gateway.encode.rows import description
from tailgate.gateway.encode.style import Style
from tailgate.gateway.execute import dispatch
from tailgate.gateway.handlers import delivery
from tailgate.gateway.protocol import backend
from tailgate.gateway.protocol import messages as m
from tailgate.gateway.results.copying import CopyOut
from tailgate.gateway.session import portals, statement_cache
from tailgate.gateway.session.portals import Bound, Portal, Statement, TableRows
from tailgate.gateway.session.transactions import Move
from tailgate.lake import errors as e
from tailgate.lake.types import Type
from tailgate.sql import statements as s

if TYPE_CHECKING:
    from tailgate.gateway.serving.prepared import Seen
    from tailgate.gateway.session.session import Session

LONG_VALUE_BYTES = 16 << 10  # larger parameters are decoded in another process: an array of this size takes 5 ms
COPIED = frozenset({"text", "varchar", "bpchar", "name", "bytea"})  # types whose values are copied, not parsed
LONG_VALUES = 20_000  # parameters of a message; more are decoded in another process
LONG_LIST, LIST_MAX = 1_000, 100_000  # elements of an array parameter: for the text form, and the maximum
WRITES = (s.Insert, s.Update, s.Delete, s.Truncate, s.CopyFrom, statement_cache.LongWrite)


def parse(session: Session, message: m.Parse) -> Awaitable[None] | None:
    session.activity.asked(message.text)
    known = session.gateway.bound.get((message.text, message.parameter_oids, session.naming.seen.scope))
    if known is not None and known.catalog is session.catalog:
        _check_new(session, message.statement)
        dispatch.check_failed(session, known.statement)
        session.keep(message.statement, message.text, message.parameter_oids, known)
        session.out.write(backend.PARSE_COMPLETE)
        return None
    return _parse(session, message)


async def _parse(session: Session, message: m.Parse) -> None:
    _check_new(session, message.statement)
    parts = await session.gateway.texts.read(utf8(message.text))
    if len(parts) > 1:
        raise e.SyntaxError_("cannot insert multiple commands into a prepared statement")
    empty: tuple[statement_cache.Known, s.StatementText] = (s.Empty(), s.StatementText("", 0))
    statement, text = parts[0] if parts else empty
    dispatch.check_failed(session, statement)
    bound = await _moved(dispatch.bind(session, statement, text, message.parameter_oids), text.position)
    if isinstance(statement, s.Select):
        session.gateway.remember(message.text, message.parameter_oids, session.naming.seen.scope, bound)
    session.keep(message.statement, message.text, message.parameter_oids, bound)
    session.out.write(backend.PARSE_COMPLETE)


def _check_new(session: Session, name: str) -> None:
    if name and name in session.statements:
        raise e.DuplicatePreparedStatement(f'prepared statement "{name}" already exists')


async def _moved(work: Awaitable[Bound], position: int) -> Bound:
    """Awaits `work` and adds `position`, the statement's place in the query string, to the position of an error."""
    try:
        return await work
    except e.TailgateError as error:
        if error.position is not None:
            error.position += position
        raise


def _statement(session: Session, name: str) -> Statement:
    statement = session.statements.get(name)
    if statement is None:
        raise e.InvalidSqlStatementName(
            f'prepared statement "{name}" does not exist' if name else "unnamed prepared statement does not exist"
        )
    return statement


def bind(session: Session, message: m.Bind) -> Awaitable[None] | None:
    statement = _statement(session, message.statement)
    dispatch.check_failed(session, statement.bound.statement)
    seen = session.naming.seen
    same = statement.bound.catalog is seen.catalog and not isinstance(statement.bound.statement, (s.Fetch, s.Execute))
    if same and not _is_long(message, statement.bound.parameters):
        _bind(session, message, statement, statement.bound, seen)
        return None
    return _rebind(session, message, statement)


async def _rebind(session: Session, message: m.Bind, statement: Statement) -> None:
    bound = await rebound(session, statement)
    workers = session.serving.workers
    values = None
    if _is_long(message, bound.parameters):
        values = await workers.aside(decoded, message, bound.parameters, session.settings.style, long=True)
    _bind(session, message, statement, bound, session.naming.seen, values)


async def rebound(session: Session, statement: Statement) -> Bound:
    """Returns the statement, bound again if the catalog or the cursor that it names may have changed. Raises if its columns differ."""
    old = statement.bound
    if old.catalog is session.catalog and not isinstance(old.statement, (s.Fetch, s.Execute)):
        return old
    bound = await _moved(dispatch.bind(session, old.statement, s.StatementText(old.text, old.position), statement.oids), old.position)
    if not isinstance(old.statement, (s.Fetch, s.Execute)):
        portals.check_result(old, bound)
    statement.bound = bound
    session.statements[statement.name] = statement  # updates the charged size
    return bound


def _is_long(message: m.Bind, wanted: Sequence[Type]) -> bool:
    """Returns whether decoding the values would block other sessions too long."""
    if len(message.parameters) > LONG_VALUES:
        return True
    return any(
        data is not None and len(data) > LONG_VALUE_BYTES and (type.is_array or type.name not in COPIED)
        for data, type in zip(message.parameters, wanted, strict=False)
    )


def decoded(message: m.Bind, wanted: Sequence[Type], style: Style) -> list[object]:
    """Decodes the parameters of a Bind message. Raises 08P01 if their number is wrong, and the type's error for a malformed value."""
    given, codes = message.parameters, message.parameter_formats
    if len(codes) > 1 and len(codes) != len(given):
        raise e.ProtocolViolation(f"bind message has {len(codes)} parameter formats but {len(given)} parameters")
    if len(given) != len(wanted):
        raise e.ProtocolViolation(
            f'bind message supplies {len(given)} parameters, but prepared statement "{message.statement}" requires {len(wanted)}'
        )
    values: list[object] = []
    for number, (data, type) in enumerate(zip(given, wanted, strict=True)):
        code = 0 if not codes else codes[0] if len(codes) == 1 else codes[number]
        try:
            value = None if data is None else decode(type, code, data, style, f"bind parameter {number + 1}")
            values.append(_listed(value, type) if isinstance(value, list) else value)
        except e.TailgateError as error:
            of = f'portal "{message.portal}"' if message.portal else "unnamed portal"
            error.where = f"{of} parameter ${number + 1}" + ("" if code else " = '...'")  # the value is not shown: it may be secret
            raise
    return values


def _listed(value: list[object], type: Type) -> object:
    """Converts an array for DuckDB: many integers become one text.

    DuckDB converts the elements of a Python list one by one while it holds the interpreter's lock.
    """
    if len(value) > LONG_LIST and type.element.name in ("int2", "int4", "int8"):
        return "[" + ",".join("NULL" if v is None else str(v) for v in value) + "]"
    if len(value) > LIST_MAX:
        raise e.ProgramLimitExceeded(f"an array of {type.element} as a parameter may have at most {LIST_MAX} elements")
    return value


def _bind(session: Session, message: m.Bind, statement: Statement, bound: Bound, seen: Seen, values: list[object] | None = None) -> None:
    given, wanted, codes = message.parameters, bound.parameters, message.parameter_formats
    if message.portal and message.portal in session.portals:
        raise e.DuplicateCursor(f'cursor "{message.portal}" already exists')
    style = session.settings.style
    if values is None:
        values = decoded(message, wanted, style)
    formats = _result_formats(session, message.result_formats, bound)
    portal = Portal(message.portal, bound, values, formats, given=sum(len(data) for data in given if data is not None))
    if dispatch.is_poll(bound):
        portal.key = (statement.raw, style, seen.scope, statement.oids, given, codes, formats)
    session.drop_portal("" if not message.portal else message.portal)
    session.portals[message.portal] = portal
    session.out.write(backend.BIND_COMPLETE)


def _result_formats(session: Session, codes: tuple[int, ...], bound: Bound) -> tuple[int, ...]:
    count = len(bound.columns or ())
    if isinstance(bound.statement, s.Fetch) and not codes:
        cursor = session.portals.get(bound.statement.cursor)
        return cursor.formats if cursor is not None and cursor.formats else (0,) * count
    if len(codes) <= 1:
        return (codes[0] if codes else 0,) * count
    if len(codes) != count and bound.columns is not None:
        raise e.ProtocolViolation(f"bind message has {len(codes)} result formats but query has {count} columns")
    return codes


def describe(session: Session, message: m.Describe) -> None:
    if message.kind == "S":
        bound = _statement(session, message.name).bound
        session.out.write(backend.parameter_description([t.oid for t in bound.parameters]))
        formats: Sequence[int] = (0,) * len(bound.columns or ())
    else:
        portal = _portal(session, message.name)
        bound, formats = portal.bound, portal.formats
    if bound.columns is None or isinstance(bound.statement, s.CopyTo):
        session.out.write(backend.NO_DATA)
    else:
        session.out.write(backend.row_description(description(bound.columns), formats))


def _portal(session: Session, name: str) -> Portal:
    portal = session.portals.get(name)
    if portal is None:
        raise e.InvalidCursorName(f'portal "{name}" does not exist')
    return portal


def execute(session: Session, message: m.Execute) -> Awaitable[None] | None:
    portal = _portal(session, message.portal)
    session.activity.asked(portal.bound.text.encode())
    dispatch.check_failed(session, portal.bound.statement)
    if portal.key is not None and portal.rows is None and not portal.done and session.reads_newest:
        assert portal.bound.prepared is not None
        query = session.access.authorize(portal.bound.prepared)
        lookup = session.gateway.lookups.of(query.plan)
        if lookup is not None and message.max_rows != 1:
            rows = session.gateway.lookups.rows(lookup, query, portal.values)
            if rows is not None and (message.max_rows == 0 or len(rows) < message.max_rows):
                portal.done = True
                session.out.write(answer_rows(rows, lookup, portal.formats, session.settings.style))
                return None
        poll = session.gateway.polls.find(portal.key)
        if poll is not None and (message.max_rows == 0 or poll.count < message.max_rows):
            portal.done = True
            session.out.write(poll.rows)
            return None
    return _execute(session, portal, message.max_rows)


async def _execute(session: Session, portal: Portal, max_rows: int) -> None:
    bound = portal.bound
    if isinstance(bound.statement, s.Empty):
        session.out.write(backend.EMPTY_QUERY_RESPONSE)
        return
    if portal.rows is None:
        if portal.done:
            if portal.key is not None:
                session.out.write(backend.command_complete("SELECT 0"))
                return
            raise e.ObjectNotInPrerequisiteState(f'portal "{portal.name}" cannot be run')
        await _begin(session, portal, max_rows)
        if portal.rows is None:
            return
    limit = max_rows or None
    ended = await _moved_rows(session, portal, limit)
    if not ended:
        session.out.write(backend.PORTAL_SUSPENDED)


async def _begin(session: Session, portal: Portal, max_rows: int) -> None:
    """Starts a portal. Sends the response if there are no rows or if they are cached; otherwise sets `portal.rows`."""
    bound = portal.bound
    if portal.key is not None and session.reads_newest:
        assert bound.prepared is not None
        query = session.access.authorize(bound.prepared)
        lookup = session.gateway.lookups.of(query.plan)
        if lookup is not None and max_rows != 1:
            rows = await session.gateway.lookups.rows_soon(lookup, query, portal.values)
            if rows is not None and (max_rows == 0 or len(rows) < max_rows):
                portal.done = True
                session.out.write(answer_rows(rows, lookup, portal.formats, session.settings.style))
                return
        answer = await delivery.poll(session, portal.key, bound, query, portal.values, portal.formats)
        if isinstance(answer, Poll) and (max_rows == 0 or answer.count < max_rows):
            portal.done = True
            session.out.write(answer.rows)
            return
        if not isinstance(answer, Poll):
            portal.rows = TableRows(bound.columns or (), answer)
            return
    if isinstance(bound.statement, WRITES) and not session.out.at_sync():
        session.transaction.move(Move.IMPLY)  # a pipeline is one transaction, up to Sync
    result = await dispatch.begin(session, bound, portal.values, portal.formats)
    if isinstance(result, (str, CopyOut)):
        portal.done = True
        await delivery.deliver(session, result, ())
        return
    portal.rows = result


async def _moved_rows(session: Session, portal: Portal, limit: int | None) -> bool:
    assert portal.rows is not None
    if portal.rows.ended and portal.done:
        session.out.write(backend.command_complete(portals.tag(portal.rows, 0)))
        return True
    ended = await delivery.deliver(session, portal.rows, portal.formats, limit=limit)
    portal.done = portal.done or ended
    return ended


def close(session: Session, message: m.Close) -> None:
    if message.kind == "S":
        session.statements.pop(message.name, None)
    else:
        session.drop_portal(message.name)
    session.out.write(backend.CLOSE_COMPLETE)
