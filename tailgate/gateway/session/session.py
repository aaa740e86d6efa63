"""The session of one client: the states that last between its messages, and what ends a statement or a transaction in all of them.

    client         who signed in                   transaction  state, snapshot, pending writes, savepoints
    settings       SET, SHOW                       statements   prepared statements
    naming, access the catalog and the rights      portals      portals and cursors
    memory         budget                          subscriptions  positions in subscriptions
    temporary      rows of temporary tables        variables  of ksqlDB's DEFINE
    execution      the running statement           machine      the protocol's state

The handlers of messages are in `gateway.handlers`, the execution of statements is in `gateway.execute`. `fail` turns every error into an
ErrorResponse: a `TailgateError` keeps its SQLSTATE, and any other exception becomes XX000 (`lake.host.internal_errors`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial

from tailgate.gateway.control import Control
from tailgate.gateway.ksqldb.session_variables import Variables
from tailgate.gateway.notifications.channels import STEP_MAX, Notifications
from tailgate.gateway.protocol import backend
from tailgate.gateway.protocol.states import Event, Machine, Phase
from tailgate.gateway.resources.advisory_locks import AdvisoryLocks
from tailgate.gateway.resources.budgets import TASK_BUDGET, Charge
from tailgate.gateway.resources.concurrency import REQUESTER, Requester
from tailgate.gateway.serving import failures
from tailgate.gateway.serving.service import Serving
from tailgate.gateway.session.access import Access
from tailgate.gateway.session.client import Client
from tailgate.gateway.session.execution import Execution
from tailgate.gateway.session.gateway import Gateway
from tailgate.gateway.session.memory import SessionMemory
from tailgate.gateway.session.naming import Naming
from tailgate.gateway.session.output import Out
from tailgate.gateway.session.roles import CurrentRole
from tailgate.gateway.session.statements.portals import Portals, Statements
from tailgate.gateway.session.statements.templates import SUCCESS, Call
from tailgate.gateway.session.subscription_readers import SubscriptionReaders
from tailgate.gateway.session.temporary_tables import TemporaryTables
from tailgate.gateway.session.transactions import Move, State, Transaction
from tailgate.gateway.settings.settings import Settings, milliseconds
from tailgate.gateway.writes.pending import Pending
from tailgate.gateway.writes.sequence_ranges import SequenceValues
from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import ConfigurationLimitExceeded, CrashShutdown
from tailgate.sql.drop import removal
from tailgate.sql.ksqldb.dialect import HTTP

# Idle timeouts: the setting, the SQLSTATE, and the message that ends the session.
IDLE = ("idle_session_timeout", "57P05", "terminating connection due to idle-session timeout")
IDLE_IN_BLOCK = ("idle_in_transaction_session_timeout", "25P03", "terminating connection due to idle-in-transaction timeout")

# Severities of notices in the order of client_min_messages. INFO is sent always.
SEVERITIES = ("DEBUG5", "DEBUG4", "DEBUG3", "DEBUG2", "DEBUG1", "LOG", "NOTICE", "WARNING", "ERROR")


class Session:
    """The states of one client's session."""

    def __init__(self, gateway: Gateway, out: Out) -> None:
        self.gateway, self.out = gateway, out
        self.machine = Machine()
        self.client = Client()
        self.settings = Settings(gateway.defaults)
        self.settings.processes = gateway.processes
        self.memory = SessionMemory(gateway.memory.session, gateway.budget)
        self.temporary = TemporaryTables(self.memory)
        self.transaction = Transaction(self.temporary, AdvisoryLocks(gateway.background, self._lost_lock))
        self.last_write = 0  # the inbox entry of the session's last commit, which the mirrors may not contain yet
        self.sequences = SequenceValues()
        self.execution = Execution()
        self.push_query: str | None = None  # the id of the push query of ksqlDB that is bound or running
        current = CurrentRole(gateway.serving, self.client, self.settings)
        self.naming = Naming(gateway, self.client, self.settings, self.transaction, current, self.memory)
        self.access = Access(gateway.serving, current, self.naming)
        self.settings.check_mode = self.transaction.check_mode
        self.settings.superuser = lambda: current.get().superuser
        self.settings.check_role = current.check
        self.statements = Statements()
        self.portals = Portals(gateway.background)
        self.subscriptions = SubscriptionReaders(gateway.background)
        self.notifications = Notifications(gateway.exchange.channels, lambda: self.memory.budget, self.deliver, self._overflow)
        self.variables = Variables()
        self._loop = asyncio.get_running_loop()

    @property
    def serving(self) -> Serving:
        """Returns the query service."""
        return self.gateway.serving

    @property
    def control(self) -> Control:
        """Returns the client of the engine."""
        return self.gateway.control

    @property
    def catalog(self) -> Catalog:
        """Returns the catalog as this session sees it."""
        return self.naming.seen.catalog

    @property
    def reads_newest(self) -> bool:
        """Returns whether a SELECT reads at the newest time: neither a transaction nor a setting determines the time."""
        return self.transaction.state is State.IDLE and self.settings.reads_now

    def sign_in(self) -> None:
        """Charges the session's memory to its role and registers it. Raises 53200 or 53300 if a limit is exceeded."""
        role, superuser = self.client.role, self.access.role.superuser
        self.memory.sign_in(Requester(role, superuser), self.gateway.budget_of(role, superuser))
        self.statements.budget = self.portals.budget = self.memory.budget
        self.settings.charged = Charge(self.memory.budget)
        self.gateway.sessions.admit(self)

    async def run(self, work: Awaitable[None]) -> None:
        """Runs the rest of a message's work within statement_timeout. Cancelling it reports an error and keeps the session."""
        REQUESTER.set(self.memory.requester)
        TASK_BUDGET.set(self.memory.budget)
        await self.execution.run(work, milliseconds(self.settings["statement_timeout"]), self.fail)

    def end(self) -> None:
        """Releases everything that the session holds, after the connection was closed."""
        self.execution.stop_idle()
        self.portals.drop_all(held=True)
        self.subscriptions.rewind()
        self.transaction.release()
        self.transaction.advisory_locks.end()
        self.notifications.end()
        self.gateway.sessions.pop(self.client.process, None)
        self.memory.close()

    def imply(self) -> None:
        """Begins an implicit transaction, or continues the transaction. As in PostgreSQL, its settings are undone if it fails."""
        if self.transaction.state is State.IDLE:
            self.settings.begin()
        self.transaction.move(Move.IMPLY)

    def end_block(self, *, undo: bool) -> None:
        """Ends a transaction for settings, temporary relations, notifications and, on `undo`, the positions of subscriptions."""
        if undo:
            self.subscriptions.rewind()
            self.notifications.rollback()
        else:
            self.notifications.commit(self.last_write)
        self.settings.end(undo=undo)
        self.naming.end(undo=undo)

    def keep_temporary(self, writes: Pending) -> None:
        """Keeps the rows of temporary tables when `writes` are committed, and carries out ON COMMIT."""
        naming, actions = self.naming, self.temporary.on_commit
        if not naming.temporary and not self.temporary.rows:
            return
        dropped = {id: naming.temporary[id] for id, action in actions.items() if action == "drop" and id in naming.temporary}
        if dropped:
            change, _ = removal(dropped, self.catalog, [], cascade=True)
            naming.apply(change)
        rows = writes.temporary
        self.temporary.keep({id: rows[id] for id in rows if id in naming.temporary and id not in actions})
        if not self.transaction.pending:
            self.transaction.forget_writes()

    def statement_ended(self, sqlstate: str = SUCCESS) -> None:
        """Counts the statement that has ended. The next one of the same message begins now."""
        activity, now = self.execution.activity, time.monotonic()
        text, portal = activity.query if activity.part is None else activity.part, activity.portal
        types, values = ((), ()) if portal is None else (portal.bound.parameters, portal.values)
        call = Call(self.client.role, activity.lane, text, now - activity.clock, sqlstate, activity.rows, types, values)
        self.gateway.statistics.ended(call)
        activity.next(now)
        if self.settings.dialect != HTTP:  # a client of the HTTP API has described the statement: its id stays
            self.push_query = None

    def polled(self, text: bytes, answer: bytes, seconds: float) -> None:
        """Counts a SELECT that was answered from memory, outside a transaction."""
        self.execution.activity.polled(text)
        self.gateway.statistics.polled(self.client.role, text, seconds, answer)

    # --- output

    def ready(self) -> None:
        """Sends ReadyForQuery: the end of a simple Query or of Sync. Starts the idle timeout."""
        transaction = self.transaction
        if transaction.state is State.IMPLICIT:
            self.end_block(undo=False)
        transaction.move(Move.FINISH)
        self.memory.charge_savepoints(len(transaction.savepoints))
        if not transaction.in_block:
            self.portals.drop_all()
            self.notifications.commit(self.last_write)
            self._write_notifications()
        if self.settings.changed:
            # ParameterStatus is sent once for each setting, before ReadyForQuery, as in PostgreSQL.
            for name, value in self.settings.unreported():
                self.out.write(backend.parameter_status(name, value))
        self.execution.activity.ended(transaction.in_block)
        self.out.write(backend.READY_FOR_QUERY[transaction.status])
        self.out.flush()
        timeout, sqlstate, reason = IDLE_IN_BLOCK if transaction.in_block else IDLE
        if limit_ms := milliseconds(self.settings[timeout]):
            self.execution.wait_idle(limit_ms, partial(self.fatal, sqlstate, reason))

    def fail(self, error: BaseException, offset: int = 0) -> None:
        """Sends an ErrorResponse and fails the transaction. Before the greeting, sends a FATAL error.

        `offset`: characters that precede the statement in the query string; added to the error's position.
        """
        text = self.execution.activity.query.decode(errors="replace")
        reported = self.gateway.internal_errors.reported(failures.translated(error) if isinstance(error, Exception) else error, text)
        if self.machine.phase is Phase.AUTHENTICATION:
            self.fatal(reported.sqlstate, reported.message, reported.detail, reported.hint)
            return
        self.statement_ended(reported.sqlstate)
        position = None if reported.position is None else reported.position + offset + 1
        fields = (reported.sqlstate, reported.message, reported.detail, reported.hint, position, reported.where, reported.names)
        self.out.write(backend.error_response(backend.Report("ERROR", *fields)))
        self.out.flush()  # as PostgreSQL does: a client that sent Flush waits for the error, but messages up to Sync are discarded
        if self.transaction.state is State.BLOCK:
            if self.transaction.savepoints:
                self.subscriptions.rewind()
                self.settings.back(self.transaction.savepoints[-1].settings)
            else:
                self.end_block(undo=True)
        elif self.transaction.state is State.IMPLICIT:
            self.end_block(undo=True)
        elif self.transaction.state is State.IDLE:
            self.notifications.rollback()
        self.transaction.move(Move.ERROR)
        self.portals.back_to(len(self.transaction.savepoints))
        self.machine.happened(Event.FAILED)

    def deliver(self) -> None:
        """Sends the notifications that wait, if the session is idle outside a block and the client reads."""
        is_idle = self.machine.phase is Phase.READY and not self.execution.activity.running and not self.transaction.in_block
        if is_idle and not self.out.is_congested():
            self._write_notifications()
            self.out.flush()

    def _write_notifications(self) -> None:
        for notification in self.notifications.take(STEP_MAX):
            self.out.write(backend.notification_response(notification.process, notification.channel, notification.payload))
        if self.notifications.waits:
            self._loop.call_soon(self.deliver)

    def _overflow(self) -> None:
        if self.machine.phase is not Phase.CLOSED:  # else the session has been told
            self.fatal(ConfigurationLimitExceeded.sqlstate, "too many notifications wait for the client", hint="End transactions sooner.")

    def fatal(self, sqlstate: str, message: str, detail: str | None = None, hint: str | None = None) -> None:
        """Sends a FATAL error and closes the connection."""
        self.out.write(backend.error_response(backend.Report("FATAL", sqlstate, message, detail, hint)))
        self.machine.happened(Event.CLOSED)
        self.out.close()

    def _lost_lock(self) -> None:
        self.fatal(CrashShutdown.sqlstate, "terminating connection because the engine that held its advisory locks has ended")

    def notice(
        self,
        message: str,
        severity: str = "NOTICE",
        sqlstate: str = "00000",
        hint: str | None = None,
        detail: str | None = None,
        where: str | None = None,
    ) -> None:
        """Sends a NoticeResponse, unless client_min_messages is above its severity."""
        least = self.settings["client_min_messages"]
        rank = "DEBUG1" if severity == "DEBUG" else severity
        if rank in SEVERITIES and SEVERITIES.index(rank) < SEVERITIES.index(least.upper()):
            return
        self.out.write(backend.notice_response(backend.Report(severity, sqlstate, message, detail, hint, None, where)))

    def call_soon(self, function: Callable[..., object], *arguments: object) -> None:
        """Schedules a call in the event loop, from another thread. It runs before the current statement is answered."""
        self._loop.call_soon_threadsafe(function, *arguments)
