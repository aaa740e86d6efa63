"""The extended query protocol: one handler for each of Parse, Bind, Describe, Execute and Close. Sync ends a sequence of them.

    Parse ──► Statement ──Bind──► Portal ──Execute──► rows, some at a time

A prepared statement is bound again when the catalog has changed. It remains usable after a view that it reads was replaced, as long
as its result columns stay the same.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Sequence

from tailgate.gateway.answers.answers import Request
from tailgate.gateway.encode.rows import description
from tailgate.gateway.execute import queries
from tailgate.gateway.handlers import delivery, dispatch, statement_log, texts
from tailgate.gateway.protocol import backend
from tailgate.gateway.protocol import messages as m
from tailgate.gateway.results.copying import CopyOut
from tailgate.gateway.results.rows import TableRows, tag
from tailgate.gateway.serving.prepared import SessionCatalog
from tailgate.gateway.session.session import Session
from tailgate.gateway.session.statements.lanes import lane_of
from tailgate.gateway.session.statements.parsing import ParsedStatement
from tailgate.gateway.session.statements.portals import Bound, Portal, Statement
from tailgate.lake import errors as e
from tailgate.lake.types import Type
from tailgate.sql import statements as s
from tailgate.values.codec.binary import TrailingData
from tailgate.values.codec.codec import Value
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import utf8
from tailgate.values.composites.arrays import Multidimensional
from tailgate.values.registry import read_binary, read_text
from tailgate.values.stored import stored

LONG_VALUE_BYTES = 16 << 10  # larger parameters are decoded in another process: an array of this size takes 5 ms
COPIED = frozenset({"text", "varchar", "bpchar", "name", "bytea"})  # types whose values are copied, not parsed
LONG_VALUES = 20_000  # parameters of a message; more are decoded in another process
LONG_LIST, LIST_MAX = 1_000, 100_000  # elements of an array parameter: for the text form, and the maximum


def parse(session: Session, message: m.Parse) -> Awaitable[None] | None:
    session.execution.activity.asked(message.text)
    bound = session.gateway.bound.get((message.text, message.parameter_oids, session.naming.seen.scope))
    if bound is not None and bound.catalog is session.catalog:
        _check_new(session, message.statement)
        dispatch.check_failed(session, bound.statement)
        session.statements.add(Statement(message.statement, message.text, tuple(message.parameter_oids), bound))
        session.out.write(backend.PARSE_COMPLETE)
        return None
    return _parse(session, message)


async def _parse(session: Session, message: m.Parse) -> None:
    _check_new(session, message.statement)
    parts = await texts.statements(session, message.text)
    if len(parts) > 1:
        raise e.SyntaxError_("cannot insert multiple commands into a prepared statement")
    empty: tuple[ParsedStatement, s.StatementText] = (s.Empty(), s.StatementText("", 0))
    statement, text = parts[0] if parts else empty
    bound = await dispatch.bind_at(session, statement, text, message.parameter_oids)
    if isinstance(statement, s.Select):
        session.gateway.remember(message.text, message.parameter_oids, session.naming.seen.scope, bound)
    session.statements.add(Statement(message.statement, message.text, tuple(message.parameter_oids), bound))
    session.out.write(backend.PARSE_COMPLETE)


def _check_new(session: Session, name: str) -> None:
    if name and name in session.statements:
        raise e.DuplicatePreparedStatement(f'prepared statement "{name}" already exists')


def bind(session: Session, message: m.Bind) -> Awaitable[None] | None:
    statement = session.statements.find(message.statement)
    dispatch.check_failed(session, statement.bound.statement)
    session_catalog = session.naming.seen
    same = statement.bound.catalog is session_catalog.catalog and not isinstance(statement.bound.statement, (s.Fetch, s.Execute))
    if same and not _is_long(message, statement.bound.parameters):
        try:
            values = decoded(message, statement.bound.parameters, session.settings.style)
        except Multidimensional:
            return _rebind(session, message, statement)
        _bind(session, message, statement, statement.bound, session_catalog, values)
        return None
    return _rebind(session, message, statement)


async def _rebind(session: Session, message: m.Bind, statement: Statement) -> None:
    bound = await dispatch.rebound(session, statement)
    try:
        values = await _decoded(session, message, bound.parameters)
    except Multidimensional:
        bound = await dispatch.with_dimensions(session, statement, bound)
        values = await _decoded(session, message, bound.parameters)
    _bind(session, message, statement, bound, session.naming.seen, values)


async def _decoded(session: Session, message: m.Bind, types: Sequence[Type]) -> list[object]:
    style = session.settings.style
    if _is_long(message, types):
        return await session.serving.workers.run_bounded(decoded, message, types, style, long=True)
    return decoded(message, types, style)


def _is_long(message: m.Bind, types: Sequence[Type]) -> bool:
    """Returns whether decoding the values would block other sessions too long."""
    if len(message.parameters) > LONG_VALUES:
        return True
    return any(
        data is not None and len(data) > LONG_VALUE_BYTES and (type.is_array or type.name not in COPIED)
        for data, type in zip(message.parameters, types, strict=False)
    )


def decoded(message: m.Bind, types: Sequence[Type], style: Style) -> list[object]:
    """Decodes the parameters of a Bind message. Raises 08P01 if their number is wrong, and the type's error for a malformed value."""
    parameters, codes = message.parameters, message.parameter_formats
    if len(codes) > 1 and len(codes) != len(parameters):
        raise e.ProtocolViolation(f"bind message has {len(codes)} parameter formats but {len(parameters)} parameters")
    if len(parameters) != len(types):
        raise e.ProtocolViolation(
            f'bind message supplies {len(parameters)} parameters, but prepared statement "{message.statement}" requires {len(types)}'
        )
    values: list[object] = []
    for number, (data, type) in enumerate(zip(parameters, types, strict=True)):
        code = 0 if not codes else codes[0] if len(codes) == 1 else codes[number]
        try:
            value = None if data is None else read_binary(data, type) if code else read_text(utf8(data), type, style)
            values.append(_listed(value, type) if type.is_array and value is not None else stored(value, type))
        except e.TailgateError as error:
            if isinstance(error, TrailingData):
                error.message += f" in bind parameter {number + 1}"
            of = f'portal "{message.portal}"' if message.portal else "unnamed portal"
            error.where = f"{of} parameter ${number + 1}" + ("" if code else " = '...'")  # the value is not shown: it may be secret
            raise
    return values


def _listed(value: Value, type: Type) -> object:
    """Converts an array for DuckDB: many integers become one text.

    DuckDB converts the elements of a Python list one by one while it holds the interpreter's lock.
    """
    assert isinstance(value, tuple)
    if type.multidimensional:
        _listed(value[0], type.array())
        return stored(value, type)
    if len(value) > LONG_LIST and type.element.name in ("int2", "int4", "int8"):
        return "[" + ",".join("NULL" if v is None else str(v) for v in value) + "]"
    if len(value) > LIST_MAX:
        raise e.ProgramLimitExceeded(f"an array of {type.element} as a parameter may have at most {LIST_MAX} elements")
    return stored(value, type)


def _bind(
    session: Session,
    message: m.Bind,
    statement: Statement,
    bound: Bound,
    session_catalog: SessionCatalog,
    values: list[object],
) -> None:
    parameters, codes = message.parameters, message.parameter_formats
    if message.portal and message.portal in session.portals:
        raise e.DuplicateCursor(f'cursor "{message.portal}" already exists')
    style = session.settings.style
    formats = _result_formats(session, message.result_formats, bound)
    portal = Portal(message.portal, bound, values, formats, value_bytes=sum(len(data) for data in parameters if data is not None))
    portal.statement, portal.level = message.statement, len(session.transaction.savepoints)
    if queries.is_poll(bound):
        portal.key = (statement.raw, style, session_catalog.scope, statement.oids, parameters, codes, formats)
    session.portals.drop("" if not message.portal else message.portal)
    session.portals[message.portal] = portal
    session.out.write(backend.BIND_COMPLETE)


def _result_formats(session: Session, codes: tuple[int, ...], bound: Bound) -> tuple[int, ...]:
    count = len(bound.columns or ())
    if isinstance(bound.statement, s.Fetch) and not codes:
        return session.portals.formats(bound.statement.cursor) or (0,) * count
    if len(codes) <= 1:
        return (codes[0] if codes else 0,) * count
    if len(codes) != count and bound.columns is not None:
        raise e.ProtocolViolation(f"bind message has {len(codes)} result formats but query has {count} columns")
    return codes


def describe(session: Session, message: m.Describe) -> None:
    if message.kind == "S":
        bound = session.statements.find(message.name).bound
        session.out.write(backend.parameter_description([t.oid for t in bound.parameters]))
        formats: Sequence[int] = (0,) * len(bound.columns or ())
    else:
        portal = session.portals.find(message.name)
        bound, formats = portal.bound, portal.formats
    if bound.columns is None or isinstance(bound.statement, s.CopyTo):
        session.out.write(backend.NO_DATA)
    else:
        session.out.write(backend.row_description(description(bound.columns), formats))


def execute(session: Session, message: m.Execute) -> Awaitable[None] | None:
    portal = session.portals.find(message.portal)
    text = portal.bound.text.encode()
    session.execution.activity.asked(text)
    session.execution.activity.portal = portal
    dispatch.check_failed(session, portal.bound.statement)
    request = _request(session, portal, message.max_rows)
    if request is not None:
        answer = session.gateway.answers.find(request)
        if answer is not None:
            portal.exhausted = True
            session.out.write(answer)
            seconds = time.monotonic() - session.execution.activity.clock
            session.gateway.statistics.polled(session.client.role, text, seconds, answer)
            if session.settings.logs:
                statement_log.answered(session, statement_log.execution(portal), text, seconds)
            return None
    session.execution.activity.lane = lane_of(portal.bound)
    return _logged(session, portal, message.max_rows, request)


async def _logged(session: Session, portal: Portal, max_rows: int, request: Request | None) -> None:
    """Executes a portal, and logs it if the settings say so."""
    bound, what = portal.bound, statement_log.execution(portal)
    logged = statement_log.started(session, (bound.statement,), what, bound.text.encode())
    await _execute(session, portal, max_rows, request)
    if logged is not None:
        logged.ended()


def _request(session: Session, portal: Portal, max_rows: int) -> Request | None:
    """Returns the request for an answer in memory, or None if the portal must run its statement or continue."""
    if portal.key is None or portal.rows is not None or portal.exhausted or not session.reads_newest:
        return None
    assert portal.bound.prepared is not None
    query = session.access.authorize(portal.bound.prepared)
    columns = portal.bound.columns or ()
    return Request(portal.key, query, columns, portal.values, portal.formats, session.settings.style, max_rows)


async def _execute(session: Session, portal: Portal, max_rows: int, request: Request | None) -> None:
    bound = portal.bound
    if isinstance(bound.statement, s.Empty):
        session.out.write(backend.EMPTY_QUERY_RESPONSE)
        return
    if portal.rows is None:
        if portal.exhausted:
            if portal.key is not None:
                session.out.write(backend.command_complete("SELECT 0"))
                return
            raise e.ObjectNotInPrerequisiteState(f'portal "{portal.name}" cannot be run')
        await _begin(session, portal, request)
        if portal.rows is None:
            session.statement_ended()
            return
    ended = await _send_rows(session, portal, max_rows or None)
    if ended:
        session.statement_ended()
    else:
        session.out.write(backend.PORTAL_SUSPENDED)


async def _begin(session: Session, portal: Portal, request: Request | None) -> None:
    """Starts a portal. Sends the response if it has a tag only or its rows are in memory; otherwise sets `portal.rows`."""
    bound = portal.bound
    if request is not None:
        answer = await session.gateway.answers.get(request)
        if isinstance(answer, bytes):
            portal.exhausted = True
            session.execution.activity.rows = backend.rows_sent(answer)
            session.out.write(answer)
            return
        if answer is not None:
            portal.rows = TableRows(bound.columns or (), answer)
            return
    changes = isinstance(bound.statement, s.Do) or dispatch.writes(session, bound.statement) or dispatch.defines(bound.statement)
    if changes and not session.out.at_sync():
        session.imply()  # a pipeline is one transaction, up to Sync
    result = await dispatch.begin(session, bound, portal.values)
    if isinstance(result, (str, CopyOut)):
        portal.exhausted = True
        await delivery.deliver(session, result, ())
        return
    portal.rows = result


async def _send_rows(session: Session, portal: Portal, limit: int | None) -> bool:
    assert portal.rows is not None
    if portal.rows.ended and portal.exhausted:
        session.out.write(backend.command_complete(tag(portal.rows, 0)))
        return True
    ended = await delivery.deliver(session, portal.rows, portal.formats, limit=limit)
    portal.exhausted = portal.exhausted or ended
    return ended


def close(session: Session, message: m.Close) -> None:
    if message.kind == "S":
        session.statements.pop(message.name, None)
    else:
        session.portals.drop(message.name)
    session.out.write(backend.CLOSE_COMPLETE)
