"""One client's session: what each message does, in PostgreSQL's order and words.

    Message ──► Machine.accept ──► one function here ──► routes.bind, routes.begin ──► encode ──► out

`receive` answers at once what can be answered at once (start-up, a poll whose bytes are ready, Bind, Sync) and gives back a coroutine
for the rest; the connection runs one at a time. Every error becomes an ErrorResponse here: a `TailgateError` as it is, anything else
as XX000 with its traceback in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from gateway import parsed, portals, routes
from gateway.encode.parameters import decode, utf8
from gateway.encode.rows import RowEncoder, description
from gateway.lookups import answer_rows
from gateway.polls import Again, Poll
from gateway.portals import Bound, Portal, Statement, TableRows
from gateway.protocol import backend, startup
from gateway.protocol import messages as m
from gateway.protocol.states import Event, Machine, Phase, ProtocolError, Verdict
from gateway.routes import CopyOut
from gateway.settings import Settings, milliseconds
from gateway.tail import TailRows
from gateway.transactions import Move, State, Transaction
from lake import errors as e
from sql import statements as s

if TYPE_CHECKING:
    from gateway.server import Gateway

log = logging.getLogger("tailgate.gateway")

SLICE_ROWS = 2048  # encoded in one go: 0.6-2 ms in which nobody else is served (measured: 1-4 million rows/s of five columns)
STATEMENTS_MAX = 10_000  # prepared statements of one session: a client that never closes any would fill memory
STALL_S = 60.0  # a follower that reads nothing for so long while there is something for it is cut off

Work = Coroutine[Any, Any, None]


class Out(Protocol):
    """The way to the client. `write` collects, `flush` sends in one piece.

    `drain` waits until the client has taken most of it: False if it did not within `timeout` seconds, cancelled if it is gone.
    """

    def write(self, data: bytes) -> None: ...

    def flush(self) -> None: ...

    async def drain(self, timeout: float | None = None) -> bool: ...

    def close(self) -> None: ...


class Session:
    def __init__(self, gateway: Gateway, out: Out) -> None:
        self.gateway = gateway
        self.serving = gateway.serving
        self.control = gateway.control
        self.out = out
        self.machine = Machine()
        self.transaction = Transaction()
        self.statements: OrderedDict[str, Statement] = OrderedDict()
        self.portals: dict[str, Portal] = {}
        self.user = self.database = ""
        self.process, self.secret = 0, b""
        self.settings = Settings({})
        self._told: dict[str, str] = {}  # reported settings as the client knows them
        self.following = False  # a TAIL goes on until the client leaves
        self._interrupted: str | None = None
        self._task: asyncio.Task[Any] | None = None
        self._idle: asyncio.TimerHandle | None = None  # ends a block that nothing happens in

    # --- messages

    def receive(self, message: m.Message) -> Work | None:
        """Answers a message; what takes time is given back to be run."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if isinstance(message, m.Malformed):
            self._malformed(message)
            return None
        try:
            if self.machine.accept(message) is Verdict.IGNORE:
                return None
        except ProtocolError as error:
            self.fatal(error.sqlstate, str(error))
            return None
        handler = HANDLERS[type(message)]
        return self._step(handler, message)

    def _step(self, handler: Callable[[Session, Any], Awaitable[None] | None], message: m.Message) -> Work | None:
        try:
            rest = handler(self, message)
        except Exception as error:  # noqa: BLE001  # told to the client, and logged if it is ours
            self.fail(error)
            return None
        return None if rest is None else self._guarded(rest)

    async def _guarded(self, work: Awaitable[None]) -> None:
        """Runs what takes time, with its time limit; a cancel request ends it with an error and not the session."""
        self._task = asyncio.current_task()
        self._interrupted = None
        limit = milliseconds(self.settings["statement_timeout"])
        timer = None
        if limit:
            timer = asyncio.get_running_loop().call_later(limit / 1000, self.interrupt, "canceling statement due to statement timeout")
        try:
            await work
        except asyncio.CancelledError:
            reason = self._interruption()
            if reason is None:
                raise
            self.fail(e.QueryCanceled(reason))
        except Exception as error:  # noqa: BLE001  # told to the client, and logged if it is ours
            self.fail(error)
        finally:
            self._task = None
            if timer is not None:
                timer.cancel()

    def interrupt(self, reason: str) -> None:
        """Ends the statement that runs, if one does."""
        if self._task is not None:
            self._interrupted = reason
            self._task.cancel()

    def _interruption(self) -> str | None:
        """Why the statement was ended; None if it is the session that ends. The task goes on after this."""
        reason, self._interrupted = self._interrupted, None
        uncancel = getattr(asyncio.current_task(), "uncancel", None)  # Python 3.10 does not count cancellings
        if reason is not None and uncancel is not None:
            uncancel()
        return reason

    def _malformed(self, message: m.Malformed) -> None:
        if self.machine.malformed(message) is Verdict.IGNORE:
            return
        if message.fatal or self.machine.phase is Phase.CLOSED:
            self.fatal(message.sqlstate, message.reason)
            return
        self.fail(e.of(message.sqlstate, message.reason))
        if message.letter in ("Q", "F", "S"):
            self.ready()

    # --- start-up

    def refuse_encryption(self, message: m.SSLRequest | m.GSSENCRequest) -> None:
        self.out.write(backend.SSL_REFUSED)
        self.out.flush()

    def cancel(self, message: m.CancelRequest) -> None:
        self.gateway.cancel(message.process, message.secret)
        self.out.close()

    def start(self, message: m.StartupMessage) -> None:
        try:
            negotiation = startup.negotiation(message)
            self.user, self.database, asked = startup.user_and_settings(message)
            self.gateway.admit(self)
            self.settings = Settings(dict(asked))
        except startup.Refused as refused:
            self.fatal(refused.sqlstate, refused.message)
            return
        except e.TailgateError as error:
            self.fatal(error.sqlstate, error.message, error.detail, error.hint)
            return
        self.settings.fix("session_authorization", self.user)
        self.machine.happened(Event.AUTHENTICATED)
        self._told = self.settings.reported()
        self.out.write(negotiation + startup.greeting(self._told.items(), self.process, self.secret))
        self.out.flush()

    def password(self, message: m.PasswordMessage) -> None:
        self.fatal("08P01", "no password was asked for")

    def terminate(self, message: m.Terminate) -> None:
        self.out.close()

    def end(self) -> None:
        """The connection is gone."""
        if self._idle is not None:
            self._idle.cancel()
        self.drop_portals()
        self.transaction.release()
        self.gateway.forget(self)

    # --- simple query

    def ready_answer(self, raw: bytes) -> bytes | None:
        """All that a Query is answered with, if it is ready; only asked while nothing else goes on and no transaction is open."""
        style = self.settings.style
        poll = self.gateway.polls.find((raw, style))
        return poll.ready if poll is not None else self.gateway.lookups.answer(raw, style)

    def query(self, message: m.Query) -> Awaitable[None]:
        return self._query(message.text)

    async def _query(self, raw: bytes) -> None:
        position = 0
        try:
            parts = parsed.statements(utf8(raw))
            if not parts:
                self.out.write(backend.EMPTY_QUERY_RESPONSE)
            self.drop_portal("")
            self.statements.pop("", None)
            for statement, text in parts:
                position = text.position
                routes.check_failed(self, statement)
                if len(parts) > 1:
                    self.transaction.move(Move.IMPLY)
                await self._simple(statement, text, raw)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError):
                reason = self._interruption()
                if reason is None:
                    raise
                error = e.QueryCanceled(reason)
            # texts that do not parse tell their position in the whole text themselves
            self.fail(error, position)
        self.ready()

    async def _simple(self, statement: parsed.Known, text: s.StatementText, raw: bytes) -> None:
        bound = await routes.bind(self, statement, text, ())
        if bound.parameters:
            raise e.UndefinedParameter("there is no parameter $1", position=_parameter(text.text))
        if bound.prepared is not None and isinstance(statement, s.Select) and self._reads_newest and statement.as_of is None:
            formats = (0,) * len(bound.prepared.columns)
            lookup = self.gateway.lookups.of(bound.prepared)
            if lookup is not None:
                rows = await self.gateway.lookups.rows_soon(lookup, bound.prepared, ())
                if rows is not None:
                    if text.position == 0:
                        self.gateway.lookups.learn(raw, bound.prepared, lookup)
                    described = backend.row_description(description(bound.prepared.columns), formats)
                    self.out.write(described + answer_rows(rows, lookup, formats, self.settings.style))
                    return
            answer = await self._poll((raw, self.settings.style), bound, (), formats)
            if isinstance(answer, Poll):
                self.out.write(answer.description + answer.rows)
                return
            result: routes.Result = TableRows(bound.prepared.columns, answer)
        else:
            result = await routes.begin(self, bound, (), ())
        formats = (0,) * len(bound.columns or ())
        if isinstance(statement, s.Fetch) and bound.columns is not None:
            cursor = self.portals.get(statement.cursor)
            formats = cursor.formats if cursor is not None else formats
        await self._deliver(result, formats, describe=True)

    @property
    def _reads_newest(self) -> bool:
        return self.transaction.state is State.IDLE

    async def _poll(self, key: Any, bound: Bound, values: Sequence[object], formats: tuple[int, ...]) -> Any:
        """Ready bytes of a SELECT, or its rows if they are too many."""
        assert bound.prepared is not None
        columns = bound.columns or ()
        encoder = RowEncoder(columns, formats, self.settings.style)
        while True:
            try:
                described = backend.row_description(description(columns), formats)
                return await self.gateway.polls.get(key, bound.prepared, values, encoder, described)
            except Again:
                continue

    async def _deliver(self, result: routes.Result, formats: Sequence[int], *, describe: bool = False, limit: int | None = None) -> bool:
        """Sends all of a result, or up to `limit` rows of it; whether it ended."""
        if isinstance(result, str):
            self.out.write(backend.command_complete(result))
            return True
        if isinstance(result, CopyOut):
            await self._copy(result)
            return True
        encoder = RowEncoder(result.columns, formats, self.settings.style)
        if describe:
            self.out.write(backend.row_description(description(result.columns), formats))
        count = 0
        self.following = isinstance(result, TailRows)
        try:
            while limit is None or count < limit:
                if self.following:
                    await self._send()
                table = await result.fetch(None if limit is None else limit - count)
                count += table.num_rows
                for at in range(0, table.num_rows, SLICE_ROWS):
                    self.out.write(encoder.data_rows(table.slice(at, SLICE_ROWS)))
                    if table.num_rows > SLICE_ROWS:
                        await self._send()
                        await asyncio.sleep(0)
                if result.ended:
                    break
                if self.following and limit is not None and count:
                    return False  # what there is now; the next Execute waits for more
                await self._send()
        finally:
            self.following = False
        if limit is not None and count == limit and not (result.ended and isinstance(result, TailRows)):
            return False
        self.out.write(backend.command_complete(portals.tag(result, count)))
        return True

    async def _copy(self, copy: CopyOut) -> None:
        rows, encoder, count = copy.rows, copy.encoder, 0
        self.out.write(encoder.start())
        self.following = isinstance(rows, TailRows)
        try:
            while True:
                if self.following:
                    await self._send()
                table = await rows.fetch(None)
                for at in range(0, table.num_rows, SLICE_ROWS):
                    self.out.write(encoder.rows(table.slice(at, SLICE_ROWS)))
                    await self._send()
                    await asyncio.sleep(0)
                count += table.num_rows
                if rows.ended:
                    break
        finally:
            self.following = False
            await rows.close()
        self.out.write(encoder.end() + backend.COPY_DONE + backend.command_complete(f"COPY {count}"))

    async def _send(self) -> None:
        """Sends what there is and waits until the client takes it, but not for ever."""
        self.out.flush()
        if not await self.out.drain(STALL_S if self.following else None):
            message = f"terminating connection because the client read nothing for {STALL_S:.0f} s"
            self.fatal(e.ConfigurationLimitExceeded.sqlstate, message)
            raise asyncio.CancelledError

    # --- extended query

    def parse(self, message: m.Parse) -> Awaitable[None] | None:
        known = self.gateway.bound.get((message.text, message.parameter_oids))
        if known is not None and known.catalog is self.serving.catalog:
            self._check_new(message.statement)
            routes.check_failed(self, known.statement)
            self.keep(message.statement, message.text, message.parameter_oids, known)
            self.out.write(backend.PARSE_COMPLETE)
            return None
        return self._parse(message)

    async def _parse(self, message: m.Parse) -> None:
        self._check_new(message.statement)
        parts = parsed.statements(utf8(message.text))
        if len(parts) > 1:
            raise e.SyntaxError_("cannot insert multiple commands into a prepared statement")
        empty: tuple[parsed.Known, s.StatementText] = (s.Empty(), s.StatementText("", 0))
        statement, text = parts[0] if parts else empty
        routes.check_failed(self, statement)
        bound = await self._moved(routes.bind(self, statement, text, message.parameter_oids), text.position)
        if isinstance(statement, s.Select):
            self.gateway.remember(message.text, message.parameter_oids, bound)
        self.keep(message.statement, message.text, message.parameter_oids, bound)
        self.out.write(backend.PARSE_COMPLETE)

    def _check_new(self, name: str) -> None:
        if name and name in self.statements:
            raise e.DuplicatePreparedStatement(f'prepared statement "{name}" already exists')

    async def _moved(self, work: Awaitable[Bound], position: int) -> Bound:
        """With positions in errors counted from the beginning of what was sent."""
        try:
            return await work
        except e.TailgateError as error:
            if error.position is not None:
                error.position += position
            raise

    def keep(self, name: str, raw: bytes, oids: Sequence[int], bound: Bound) -> None:
        if len(self.statements) >= STATEMENTS_MAX:
            raise e.ProgramLimitExceeded(f"a session can have at most {STATEMENTS_MAX} prepared statements", hint="Use DEALLOCATE.")
        self.statements[name] = Statement(name, raw, tuple(oids), bound)

    def _statement(self, name: str) -> Statement:
        statement = self.statements.get(name)
        if statement is None:
            raise e.InvalidSqlStatementName(
                f'prepared statement "{name}" does not exist' if name else "unnamed prepared statement does not exist"
            )
        return statement

    def bind(self, message: m.Bind) -> Awaitable[None] | None:
        statement = self._statement(message.statement)
        routes.check_failed(self, statement.bound.statement)
        if statement.bound.catalog is self.serving.catalog and not isinstance(statement.bound.statement, (s.Fetch, s.Execute)):
            self._bind(message, statement, statement.bound)
            return None
        return self._rebind(message, statement)

    async def _rebind(self, message: m.Bind, statement: Statement) -> None:
        self._bind(message, statement, await self.rebound(statement))

    async def rebound(self, statement: Statement) -> Bound:
        """What a prepared statement means now: the catalog, or the cursor it names, may be another one."""
        old = statement.bound
        if old.catalog is self.serving.catalog and not isinstance(old.statement, (s.Fetch, s.Execute)):
            return old
        bound = await self._moved(routes.bind(self, old.statement, s.StatementText(old.text, old.position), statement.oids), old.position)
        if isinstance(old.statement, s.Select) and [(c.name, c.type) for c in old.columns or ()] != [
            (c.name, c.type) for c in bound.columns or ()
        ]:
            raise e.FeatureNotSupported("cached plan must not change result type")
        statement.bound = bound
        return bound

    def _bind(self, message: m.Bind, statement: Statement, bound: Bound) -> None:
        given, wanted, codes = message.parameters, bound.parameters, message.parameter_formats
        if len(codes) > 1 and len(codes) != len(given):
            raise e.ProtocolViolation(f"bind message has {len(codes)} parameter formats but {len(given)} parameters")
        if len(given) != len(wanted):
            raise e.ProtocolViolation(
                f'bind message supplies {len(given)} parameters, but prepared statement "{message.statement}" requires {len(wanted)}'
            )
        if message.portal and message.portal in self.portals:
            raise e.DuplicateCursor(f'cursor "{message.portal}" already exists')
        style = self.settings.style
        values: list[object] = []
        for number, (data, type) in enumerate(zip(given, wanted, strict=True)):
            code = 0 if not codes else codes[0] if len(codes) == 1 else codes[number]
            values.append(None if data is None else decode(type, code, data, style, number + 1))
        formats = self._result_formats(message.result_formats, bound)
        portal = Portal(message.portal, bound, values, formats)
        if bound.prepared is not None and isinstance(bound.statement, s.Select) and bound.statement.as_of is None:
            portal.key = (statement.raw, style, statement.oids, given, codes, formats)
        self.drop_portal("" if not message.portal else message.portal)
        self.portals[message.portal] = portal
        self.out.write(backend.BIND_COMPLETE)

    def _result_formats(self, codes: tuple[int, ...], bound: Bound) -> tuple[int, ...]:
        count = len(bound.columns or ())
        if isinstance(bound.statement, s.Fetch) and not codes:
            cursor = self.portals.get(bound.statement.cursor)
            return cursor.formats if cursor is not None and cursor.formats else (0,) * count
        if len(codes) <= 1:
            return (codes[0] if codes else 0,) * count
        if len(codes) != count and bound.columns is not None:
            raise e.ProtocolViolation(f"bind message has {len(codes)} result formats but query has {count} columns")
        return codes

    def describe(self, message: m.Describe) -> None:
        if message.kind == "S":
            bound = self._statement(message.name).bound
            self.out.write(backend.parameter_description([t.oid for t in bound.parameters]))
            formats: Sequence[int] = (0,) * len(bound.columns or ())
        else:
            portal = self._portal(message.name)
            bound, formats = portal.bound, portal.formats
        if bound.columns is None or isinstance(bound.statement, s.CopyTo):
            self.out.write(backend.NO_DATA)
        else:
            self.out.write(backend.row_description(description(bound.columns), formats))

    def _portal(self, name: str) -> Portal:
        portal = self.portals.get(name)
        if portal is None:
            raise e.InvalidCursorName(f'portal "{name}" does not exist')
        return portal

    def execute(self, message: m.Execute) -> Awaitable[None] | None:
        portal = self._portal(message.portal)
        routes.check_failed(self, portal.bound.statement)
        if portal.key is not None and portal.rows is None and not portal.done and self._reads_newest:
            poll = self.gateway.polls.find(portal.key)
            if poll is not None and (message.max_rows == 0 or poll.count < message.max_rows):
                portal.done = True
                self.out.write(poll.rows)
                return None
            prepared = portal.bound.prepared
            lookup = self.gateway.lookups.of(prepared) if prepared is not None else None
            if lookup is not None and prepared is not None and message.max_rows != 1:
                rows = self.gateway.lookups.rows(lookup, prepared, portal.values)
                if rows is not None:
                    portal.done = True
                    self.out.write(answer_rows(rows, lookup, portal.formats, self.settings.style))
                    return None
        return self._execute(portal, message.max_rows)

    async def _execute(self, portal: Portal, max_rows: int) -> None:
        bound = portal.bound
        if isinstance(bound.statement, s.Empty):
            self.out.write(backend.EMPTY_QUERY_RESPONSE)
            return
        if portal.rows is None:
            if portal.done:
                if portal.key is not None:
                    self.out.write(backend.command_complete("SELECT 0"))
                    return
                raise e.ObjectNotInPrerequisiteState(f'portal "{portal.name}" cannot be run')
            await self._begin(portal, max_rows)
            if portal.rows is None:
                return
        limit = max_rows or None
        ended = await self._moved_rows(portal, limit)
        if not ended:
            self.out.write(backend.PORTAL_SUSPENDED)

    async def _begin(self, portal: Portal, max_rows: int) -> None:
        """Starts a portal. What has no rows, or has them ready, is answered here; otherwise `rows` is there afterwards."""
        bound = portal.bound
        if portal.key is not None and self._reads_newest:
            lookup = self.gateway.lookups.of(bound.prepared) if bound.prepared is not None else None
            if lookup is not None and bound.prepared is not None and max_rows != 1:
                rows = await self.gateway.lookups.rows_soon(lookup, bound.prepared, portal.values)
                if rows is not None:
                    portal.done = True
                    self.out.write(answer_rows(rows, lookup, portal.formats, self.settings.style))
                    return
            answer = await self._poll(portal.key, bound, portal.values, portal.formats)
            if isinstance(answer, Poll) and (max_rows == 0 or answer.count < max_rows):
                portal.done = True
                self.out.write(answer.rows)
                return
            if not isinstance(answer, Poll):
                portal.rows = TableRows(bound.columns or (), answer)
                return
        result = await routes.begin(self, bound, portal.values, portal.formats)
        if isinstance(result, (str, CopyOut)):
            portal.done = True
            await self._deliver(result, ())
            return
        portal.rows = result

    async def _moved_rows(self, portal: Portal, limit: int | None) -> bool:
        assert portal.rows is not None
        if portal.rows.ended and portal.done:
            self.out.write(backend.command_complete(portals.tag(portal.rows, 0)))
            return True
        ended = await self._deliver(portal.rows, portal.formats, limit=limit)
        portal.done = portal.done or ended
        return ended

    def close(self, message: m.Close) -> None:
        if message.kind == "S":
            self.statements.pop(message.name, None)
        else:
            self.drop_portal(message.name)
        self.out.write(backend.CLOSE_COMPLETE)

    def flush(self, message: m.Flush) -> None:
        self.out.flush()

    def sync(self, message: m.Sync) -> None:
        self.ready()

    def function_call(self, message: m.FunctionCall) -> None:
        self.fail(e.FeatureNotSupported("fastpath function calls are not supported"))
        self.ready()

    # --- what is said

    def ready(self) -> None:
        """The end of a simple Query, or Sync."""
        self.transaction.move(Move.FINISH)
        if not self.transaction.in_block:
            self.drop_portals()
        if self.settings.changed:
            self._report()
        self.out.write(backend.READY_FOR_QUERY[self.transaction.status])
        self.out.flush()
        if self.transaction.in_block and (limit := milliseconds(self.settings["idle_in_transaction_session_timeout"])):
            reason = "terminating connection due to idle-in-transaction timeout"
            self._idle = asyncio.get_running_loop().call_later(limit / 1000, self.fatal, "25P03", reason)

    def fail(self, error: BaseException, offset: int = 0) -> None:
        """Tells an error, and all that follows from one."""
        if isinstance(error, e.TailgateError):
            position = None if error.position is None else error.position + offset + 1
            report = backend.Report("ERROR", error.sqlstate, error.message, error.detail, error.hint, position)
        else:
            log.error("a statement of %s ended in an error of our own", self.user, exc_info=error)
            report = backend.Report("ERROR", "XX000", f"internal error: {type(error).__name__}: {error}")
        self.out.write(backend.error_response(report))
        self.out.flush()  # as PostgreSQL does: a client that asked with Flush waits for this, and its Flush is discarded
        if self.transaction.state is State.BLOCK:
            self.settings.end(undo=True)
        self.transaction.move(Move.ERROR)
        self.drop_portals()
        self.machine.happened(Event.FAILED)

    def fatal(self, sqlstate: str, message: str, detail: str | None = None, hint: str | None = None) -> None:
        """Tells an error and ends the connection."""
        self.out.write(backend.error_response(backend.Report("FATAL", sqlstate, message, detail, hint)))
        self.machine.happened(Event.CLOSED)
        self.out.close()

    def notice(self, message: str, severity: str = "NOTICE", sqlstate: str = "00000", hint: str | None = None) -> None:
        self.out.write(backend.notice_response(backend.Report(severity, sqlstate, message, None, hint)))

    def _report(self) -> None:
        """Tells the reported settings that are other than the client knows: once, before ReadyForQuery, as PostgreSQL does."""
        now = self.settings.reported()
        for name, value in now.items():
            if self._told[name] != value:
                self.out.write(backend.parameter_status(name, value))
        self._told, self.settings.changed = now, False

    def statement_settings(self) -> dict[str, str]:
        """What a statement's meaning depends on, for the engine."""
        return {name: self.settings[name] for name in ("timezone", "search_path", "datestyle", "intervalstyle")}

    # --- portals

    def drop_portal(self, name: str) -> None:
        portal = self.portals.pop(name, None)
        if portal is not None and portal.rows is not None and not portal.rows.ended:
            self.gateway.aside(portals.close(portal))

    def drop_portals(self) -> None:
        for name in list(self.portals):
            self.drop_portal(name)


def _parameter(text: str) -> int | None:
    at = text.find("$")
    return at if at >= 0 else None


HANDLERS: dict[type, Callable[[Session, Any], Awaitable[None] | None]] = {
    m.SSLRequest: Session.refuse_encryption,
    m.GSSENCRequest: Session.refuse_encryption,
    m.CancelRequest: Session.cancel,
    m.StartupMessage: Session.start,
    m.PasswordMessage: Session.password,
    m.Terminate: Session.terminate,
    m.Query: Session.query,
    m.Parse: Session.parse,
    m.Bind: Session.bind,
    m.Describe: Session.describe,
    m.Execute: Session.execute,
    m.Close: Session.close,
    m.Flush: Session.flush,
    m.Sync: Session.sync,
    m.FunctionCall: Session.function_call,
}
