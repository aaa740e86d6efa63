"""The session of one client: handles each message of the protocol and keeps the state between messages.

    Message ──► Machine.accept ──► HANDLERS: starting, simple, extended ──► routes.bind, routes.begin ──► delivery ──► out

`receive` answers some messages immediately: start-up, Bind, Sync, and a poll whose result is cached. For all others it returns a
coroutine. The connection runs one coroutine at a time. `fail` turns every error into an ErrorResponse: a `TailgateError` keeps its
SQLSTATE, and any other exception becomes XX000 (`lake.internal_errors`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tailgate.gateway.execute import committing, subscriptions
from tailgate.gateway.handlers import extended, simple
from tailgate.gateway.handlers import startup as sign_in
from tailgate.gateway.protocol import backend, startup
from tailgate.gateway.protocol import messages as m
from tailgate.gateway.protocol.states import Event, Machine, Phase, ProtocolError, Verdict
from tailgate.gateway.resources.budgets import CHARGED, SESSION_BYTES, Budget, Charged, Kept
from tailgate.gateway.resources.concurrency import ASKING, NOBODY, Asking
from tailgate.gateway.security.authentication import Challenged, Peer
from tailgate.gateway.serving import failures
from tailgate.gateway.session import activity, portals
from tailgate.gateway.session.access import Access
from tailgate.gateway.session.naming import Naming
from tailgate.gateway.session.portals import Bound, Portal, Statement
from tailgate.gateway.session.transactions import Move, State, Transaction
from tailgate.gateway.settings.settings import Settings, milliseconds
from tailgate.lake import errors as e

if TYPE_CHECKING:
    from tailgate.gateway.security.tls import Identity
    from tailgate.gateway.server.server import Gateway
    from tailgate.lake.catalog import Catalog, Item
    from tailgate.lake.roles import Role

EXPORT_TIMEOUT_S = 10.0  # limits the wait for a snapshot: an event loop that is shutting down never takes one
STATEMENTS_MAX = 10_000  # prepared statements per session: a client that never closes them would fill memory
SAVEPOINT_BYTES = 12 << 10  # memory of one savepoint: a copy of the settings

# Idle timeouts: the setting, the SQLSTATE, and the message that ends the session.
IDLE = ("idle_session_timeout", "57P05", "terminating connection due to idle-session timeout")
IDLE_IN_BLOCK = ("idle_in_transaction_session_timeout", "25P03", "terminating connection due to idle-in-transaction timeout")

NAMING = (m.Query, m.Parse, m.Bind, m.Execute)  # messages whose statements refer to catalog objects

Work = Coroutine[Any, Any, None]


class Out(Protocol):
    """The output to a client, and the messages that it has already sent.

    `write` appends to a buffer and `flush` sends the buffer. `drain` waits until the client has read most of the output. It returns
    False after `timeout` seconds and raises CancelledError if the client has disconnected. `at_sync` returns whether the next
    message is Sync, and `pipelined` whether it is another message. `message` waits for the next message and returns it, for a
    statement that reads from the client (COPY … FROM STDIN).
    """

    def write(self, data: bytes) -> None: ...

    def flush(self) -> None: ...

    def at_sync(self) -> bool: ...

    def pipelined(self) -> bool: ...

    async def message(self) -> m.Message: ...

    async def drain(self, timeout: float | None = None) -> bool: ...

    def encrypt(self, identity: Identity) -> None:
        """Starts TLS on the connection."""

    def close(self) -> None: ...


class Session:
    """The state of one client's session."""

    def __init__(self, gateway: Gateway, out: Out) -> None:
        self.gateway = gateway
        self.serving = gateway.serving
        self.control = gateway.control
        self.out = out
        self.machine = Machine()
        self.transaction = Transaction()
        self.budget = Budget("the session", gateway.memory.session, gateway.budget)
        self.statements: Kept[Statement] = Kept(lambda statement: statement.size)
        self.portals: Kept[Portal] = Kept(lambda portal: portal.size)
        self.asking = NOBODY  # the role whose turns and quotas the statements use
        self._savepoints = Charged(self.budget)
        self.user = self.database = ""
        self.peer = Peer()
        self.asked: list[tuple[str, str]] = []  # settings from the startup message
        self.challenged: Challenged | None = None  # the password exchange, while it runs
        self.process, self.secret, self.secret_bytes = 0, b"", startup.SECRET_BYTES
        self.settings = Settings({})
        self.access = Access(self)
        self.naming = Naming(self)
        self.activity = activity.Activity()
        self.told: dict[str, str] = {}  # the reported settings that the client last received
        self.following = False  # a TAIL is running: it ends when the client disconnects
        self.following_durably: dict[int, subscriptions.Follower] = {}  # by id of the subscription
        self._interrupted: str | None = None
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Any] | None = None
        self._idle: asyncio.TimerHandle | None = None  # ends an idle session or block

    # --- messages

    def receive(self, message: m.Message) -> Work | None:
        """Handles a message. Returns a coroutine if the rest of the work takes time."""
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
        if self.naming.behind and isinstance(message, NAMING):
            return self._guarded(self._caught_up(handler, message))
        return self._step(handler, message)

    async def _caught_up(self, handler: Callable[[Session, Any], Awaitable[None] | None], message: m.Message) -> None:
        await self.naming.catch_up()
        rest = handler(self, message)
        if rest is not None:
            await rest

    def _step(self, handler: Callable[[Session, Any], Awaitable[None] | None], message: m.Message) -> Work | None:
        try:
            rest = handler(self, message)
        except Exception as error:  # noqa: BLE001  # sent to the client; logged if it is a bug
            self.fail(error)
            return None
        return None if rest is None else self._guarded(rest)

    async def _guarded(self, work: Awaitable[None]) -> None:
        """Runs `work` within statement_timeout. Cancelling it reports an error and keeps the session."""
        self._task = asyncio.current_task()
        ASKING.set(self.asking)
        CHARGED.set(self.budget)
        self._interrupted = None
        limit = milliseconds(self.settings["statement_timeout"])
        timer = None
        if limit:
            timer = asyncio.get_running_loop().call_later(limit / 1000, self.interrupt, "canceling statement due to statement timeout")
        try:
            await work
        except asyncio.CancelledError:
            reason = self.interruption()
            if reason is None:
                raise
            self.fail(e.QueryCanceled(reason))
        except Exception as error:  # noqa: BLE001  # sent to the client; logged if it is a bug
            self.fail(error)
        finally:
            self._task = None
            if timer is not None:
                timer.cancel()

    def interrupt(self, reason: str) -> None:
        """Cancels the running statement, if there is one."""
        if self._task is not None:
            self._interrupted = reason
            self._task.cancel()

    def interruption(self) -> str | None:
        """Returns why the statement was canceled, or None if the session itself ends. Clears the cancellation of the task."""
        reason, self._interrupted = self._interrupted, None
        uncancel = getattr(asyncio.current_task(), "uncancel", None)  # not in Python 3.10
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

    def end(self) -> None:
        """Releases everything that the session holds, after the connection was closed."""
        if self._idle is not None:
            self._idle.cancel()
        self.drop_portals(held=True)
        subscriptions.rewind(self)
        self.transaction.release()
        self.gateway.forget(self)
        self.budget.close()

    def charge(self) -> None:
        """Charges the session's memory to its role, after the sign-in. Raises 53200 if the limit is exceeded."""
        role = self.access.role
        self.asking = Asking(self.access.identity, role.superuser)
        self.budget = Budget("the session", self.gateway.memory.session, self.gateway.budget_of(self.access.identity, role.superuser))
        self.budget.charge(SESSION_BYTES)
        for kept in (self.statements, self.portals):
            kept.budget = self.budget
        self.settings.charged = Charged(self.budget)
        self._savepoints = Charged(self.budget)

    def charge_savepoints(self, coming: int = 0) -> None:
        """Charges the memory of the existing savepoints and of `coming` more. Raises 53200 if the limit is exceeded."""
        self._savepoints.set(SAVEPOINT_BYTES * (len(self.transaction.savepoints) + coming))

    # --- statements and portals

    @property
    def reads_newest(self) -> bool:
        """Whether a SELECT reads at the newest time: neither a transaction nor a setting determines the time."""
        return self.transaction.state is State.IDLE and self.settings.reads_now

    def keep(self, name: str, raw: bytes, oids: Sequence[int], bound: Bound) -> None:
        """Stores a prepared statement. Raises 54000 if there are too many, and 53200 if memory is short."""
        if len(self.statements) >= STATEMENTS_MAX:
            raise e.ProgramLimitExceeded(f"a session can have at most {STATEMENTS_MAX} prepared statements", hint="Use DEALLOCATE.")
        self.statements[name] = Statement(name, raw, tuple(oids), bound)

    def drop_portal(self, name: str) -> None:
        """Closes a portal, if it exists."""
        portal = self.portals.pop(name, None)
        if portal is not None and portal.rows is not None and not portal.rows.ended:
            self.gateway.aside(portals.close(portal))

    def drop_portals(self, *, held: bool = False) -> None:
        """Closes all portals. Unless `held`, keeps cursors WITH HOLD whose block was committed."""
        for name, portal in list(self.portals.items()):
            if held or not portal.held:
                self.drop_portal(name)

    def end_block(self, *, undo: bool) -> None:
        """Ends the block for settings, temporary views and, on `undo`, the positions of subscriptions."""
        if undo:
            subscriptions.rewind(self)
        self.settings.end(undo=undo)
        self.naming.end(undo=undo)

    # --- output

    def ready(self) -> None:
        """Sends ReadyForQuery: the end of a simple Query or of Sync. Starts the idle timeout."""
        self.transaction.move(Move.FINISH)
        if self._savepoints.size:
            self.charge_savepoints()
        if not self.transaction.in_block:
            self.drop_portals()
        if self.settings.changed:
            self._report()
        self.activity.ended(self.transaction.in_block)
        self.out.write(backend.READY_FOR_QUERY[self.transaction.status])
        self.out.flush()
        timeout, sqlstate, reason = IDLE_IN_BLOCK if self.transaction.in_block else IDLE
        if limit := milliseconds(self.settings[timeout]):
            self._idle = asyncio.get_running_loop().call_later(limit / 1000, self.fatal, sqlstate, reason)

    def fail(self, error: BaseException, offset: int = 0) -> None:
        """Sends an ErrorResponse and fails the transaction.

        `offset`: characters that precede the statement in the query string; added to the error's position.
        """
        told = self.gateway.internal_errors.reported(
            failures.translated(error) if isinstance(error, Exception) else error, self.activity.query.decode(errors="replace")
        )
        position = None if told.position is None else told.position + offset + 1
        report = backend.Report("ERROR", told.sqlstate, told.message, told.detail, told.hint, position, told.where, told.names)
        self.out.write(backend.error_response(report))
        self.out.flush()  # as PostgreSQL does: a client that sent Flush waits for the error, but messages up to Sync are discarded
        if self.transaction.state is State.BLOCK:
            if self.transaction.savepoints:
                subscriptions.rewind(self)
                self.settings.back(self.transaction.savepoints[-1][2])
            else:
                self.end_block(undo=True)
        elif self.transaction.state is State.IMPLICIT:
            subscriptions.rewind(self)
        self.transaction.move(Move.ERROR)
        self.drop_portals()
        self.machine.happened(Event.FAILED)

    def fatal(self, sqlstate: str, message: str, detail: str | None = None, hint: str | None = None) -> None:
        """Sends a FATAL error and closes the connection."""
        self.out.write(backend.error_response(backend.Report("FATAL", sqlstate, message, detail, hint)))
        self.machine.happened(Event.CLOSED)
        self.out.close()

    def notice(
        self, message: str, severity: str = "NOTICE", sqlstate: str = "00000", hint: str | None = None, detail: str | None = None
    ) -> None:
        """Sends a NoticeResponse."""
        self.out.write(backend.notice_response(backend.Report(severity, sqlstate, message, detail, hint)))

    def _report(self) -> None:
        """Sends ParameterStatus for each reported setting that changed: once, before ReadyForQuery, as PostgreSQL does."""
        now = self.settings.reported()
        for name, value in now.items():
            if self.told[name] != value:
                self.out.write(backend.parameter_status(name, value))
        self.told, self.settings.changed = now, False

    def statement_settings(self) -> dict[str, str]:
        """Returns the settings and the role on which a statement's meaning depends, for the engine."""
        named = {name: self.settings[name] for name in ("timezone", "datestyle", "intervalstyle")}
        return {**named, "role": self.access.role.name}

    @property
    def catalog(self) -> Catalog:
        """The catalog as this session sees it."""
        return self.naming.seen.catalog

    # --- used by queries of the system catalog

    @property
    def role(self) -> Role:
        """The role whose privileges apply to statements."""
        return self.access.role

    def may_see(self, item: Item) -> bool:
        """Returns whether the role may see an item's errors, which can contain values of rows.

        The role must own the item, or be allowed to read it or the relation that it reads.
        """
        return self.access.owns(item) or self.access.may_read(item if item.is_relation else self.serving.catalog[item.depends[0]])

    def sessions(self) -> list[dict[str, Any]]:
        """Returns the rows of pg_stat_activity, including those of other gateways. Blocks: runs on a thread."""
        return [*activity.rows(self.gateway, self.role, self), *self.gateway.peers.sessions(self.role)]

    def internal_errors(self) -> list[dict[str, Any]]:
        """Returns the internal errors of all gateways of the lake on this machine. Blocks: runs on a thread."""
        return [*self.gateway.internal_errors.rows(), *self.gateway.peers.internal_errors()]

    def subscriptions(self) -> dict[str, dict[str, Any]]:
        """Returns the progress of each subscription. Blocks: runs on a thread."""
        return subscriptions.told(self.gateway.lake, self.catalog)

    def export_snapshot(self) -> str:
        """Exports the transaction's snapshot and returns its id. Runs on a thread and waits for the event loop."""

        async def export() -> str:
            return self.transaction.export(self.serving, self.process)

        return asyncio.run_coroutine_threadsafe(export(), self._loop).result(EXPORT_TIMEOUT_S)

    def signal(self, process: int, *, terminate: bool) -> bool:
        """Cancels or terminates the session with this process id. Returns whether it exists. Runs on a thread."""
        return activity.signal(self, process, terminate=terminate)

    def call_soon(self, function: Callable[..., object], *arguments: object) -> None:
        """Schedules a call in the event loop, from another thread. It runs before the current statement is answered."""
        self._loop.call_soon_threadsafe(function, *arguments)


def terminate(session: Session, message: m.Terminate) -> None:
    session.out.close()


def sync(session: Session, message: m.Sync) -> Awaitable[None] | None:
    if session.transaction.state is State.IMPLICIT and session.transaction.writes:
        return _commit(session)
    session.ready()
    return None


async def _commit(session: Session) -> None:
    """Commits an implicit transaction that has written, at Sync."""
    try:
        await committing.commit(session)
    except Exception as error:  # noqa: BLE001  # sent to the client; logged if it is a bug
        session.fail(error)
    session.ready()


def flush(session: Session, message: m.Flush) -> None:
    session.out.flush()


def function_call(session: Session, message: m.FunctionCall) -> None:
    session.fail(e.FeatureNotSupported("fastpath function calls are not supported"))
    session.ready()


HANDLERS: dict[type, Callable[[Session, Any], Awaitable[None] | None]] = {
    m.SSLRequest: sign_in.encrypt,
    m.GSSENCRequest: sign_in.refuse_encryption,
    m.CancelRequest: sign_in.cancel,
    m.StartupMessage: sign_in.start,
    m.PasswordMessage: sign_in.password,
    m.Terminate: terminate,
    m.Query: simple.query,
    m.Parse: extended.parse,
    m.Bind: extended.bind,
    m.Describe: extended.describe,
    m.Execute: extended.execute,
    m.Close: extended.close,
    m.Flush: flush,
    m.Sync: sync,
    m.FunctionCall: function_call,
}
