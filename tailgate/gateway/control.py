"""The client of the engine's control interface (`lake.control`), at the address in the lake's engine.json.

Without an engine, or if the log has a newer epoch, a request fails with 58000 at once. While another engine stands by
(`lake.writer.stand_by`), or a busy engine has not taken the connection, a request waits: up to CONNECT_S. A write or a statement that
the old engine has not answered is sent again under the same id, so it takes effect once. Polls and TAIL do not use the engine.

Connections of writes stay open for the next ones; each other request has a connection, and its end cancels the request. The lake is
looked at only if the engine of the last request does not take a connection: in a bucket, a look is two requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from tailgate.gateway.engine_connection import REPLACED_LOOK_S, Connection, HeldLock, Printed, PushView
from tailgate.gateway.engine_looks import EngineLooks
from tailgate.lake import control
from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.control import BlockCommit, FilledTable, Notice, StatementResult
from tailgate.lake.errors import AdminShutdown, CrashShutdown, Replaced, SystemError_, TailgateError
from tailgate.lake.folder import Lake
from tailgate.lake.host import process_tls
from tailgate.lake.host.keepalive import keep_alive
from tailgate.lake.uncommitted import Uncommitted
from tailgate.lake.writer import engines

KNOWN_S = 1.0  # that the engine of the last request has to take a connection, before the lake is looked at
CONNECT_S = 10.0  # that a request waits for a connection; TCP tries again after 1, 3 and 7 s; an engine that stands by needs 1 s
WITHDRAWAL_TIMEOUT_S = 10.0  # the engine needs about a second to remove a view that is being filled
STATUS_TIMEOUT_S = 5.0  # the engine waits up to three seconds for a broker
SEQUENCE_TIMEOUT_S = 30.0  # a statement that changes the catalog may hold its lock
ANSWER_BYTES_MAX = 16 * 1024 * 1024
NEXT_ENGINE_LOOK_S = 0.05  # between two attempts to reach an engine that stands by
KEPT_MAX = 8  # connections that wait for the next write
KEPT_S = 30.0  # that one waits; the engine closes it after a minute
ENDED = (Replaced.sqlstate, CrashShutdown.sqlstate, AdminShutdown.sqlstate)  # of requests that the next engine answers


NoticeHandler = Callable[[Notice], None]  # receives notices before the answer


class Control:
    """A client of the engine."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._kept: list[tuple[Connection, float]] = []  # connections without a request, and since when
        self._looks = EngineLooks(lake)
        self._known: engines.Announcement | None = None  # the engine of the last request

    async def statement(
        self,
        sql: str,
        settings: dict[str, str],
        resolution: Resolution,
        tell: NoticeHandler | None = None,
        block: Uncommitted | None = None,
    ) -> StatementResult:
        """Executes a statement in the engine. Raises 40001 if a name no longer refers to the item in `resolution`.

        With a `block`, only plans it: the result has the block's changes with those of the statement.

        There is no timeout: a backfill may take minutes. `tell` receives notices while the statement runs.

        If the task is canceled, the statement is withdrawn: this raises CancelledError when the engine has undone it, returns the
        answer if it has taken effect already, or raises 58000 if the engine ends meanwhile.
        """
        request = control.StatementRequest(sql, settings, resolution, block).encode()
        _, answer = await self._answered(_Request("POST", control.STATEMENT, request), None, tell, withdraws=True)
        return StatementResult.of(answer)

    async def write(self, body: bytes) -> control.WriteResult:
        """Sends a write to the inbox."""
        connection, answer = await self._answered(_Request("POST", control.WRITE, body, keeps=True), None)
        self._keep(connection)
        return control.WriteResult.of(answer)

    async def filled_table(self, table: FilledTable) -> StatementResult | int:
        """Creates a table with rows. Returns the entry of the inbox with which the rows conflict, if there is one.

        Raises 40001 if a name no longer refers to the item in the resolution. If the task is canceled: see `statement`.
        """
        return await self._committed(control.TABLE, await asyncio.to_thread(table.encode))

    async def commit_block(self, commit: BlockCommit, tell: NoticeHandler) -> StatementResult | int:
        """Commits a block that has changed the catalog. Returns the entry of the inbox with which it conflicts, if there is one.

        Raises 40001, 42P07 or 42P06 if it conflicts with other changes of the catalog. If the task is canceled: see `statement`.
        """
        return await self._committed(control.BLOCK, await asyncio.to_thread(commit.encode), tell)

    async def _committed(self, path: str, body: bytes, tell: NoticeHandler | None = None) -> StatementResult | int:
        _, answer = await self._answered(_Request("POST", path, body), None, tell, withdraws=True)
        return int(answer["conflict"]) if "conflict" in answer else StatementResult.of(answer)

    async def push_query(self, sql: str, settings: dict[str, str], resolution: Resolution, tell: NoticeHandler) -> PushView:
        """Creates the view of a push query, which exists until it is closed. Raises 40001 as `statement` does."""
        connection, answer = await self._held(control.PUSH, control.StatementRequest(sql, settings, resolution), tell)
        return PushView(StatementResult.of(answer), connection)

    async def print(self, sql: str, settings: dict[str, str], resolution: Resolution) -> Printed:
        """Starts a PRINT that continues with new records. Raises 40001 as `statement` does."""
        connection, _ = await self._held(control.PRINT, control.StatementRequest(sql, settings, resolution))
        return Printed(connection)

    async def _held(
        self, path: str, statement: control.StatementRequest, tell: NoticeHandler | None = None
    ) -> tuple[Connection, control.Answer]:
        """Starts a statement that ends with its connection. Returns the connection and the answer."""
        return await self._answered(_Request("POST", path, statement.encode(), keeps=True), None, tell)

    async def sequence(self, request: control.SequenceRequest) -> control.SequenceValues:
        """Reserves values of a sequence, or sets it."""
        _, answer = await self._answered(_Request("POST", control.SEQUENCE, request.encode()), SEQUENCE_TIMEOUT_S)
        return control.SequenceValues.of(answer)

    async def advisory_lock(self, request: control.LockRequest) -> HeldLock | None:
        """Gets an advisory lock. Returns None if the request does not wait and another session has the lock. Raises 40P01, 53200."""
        connection, answer = await self._answered(_Request("POST", control.LOCK, request.encode(), keeps=True), None)
        if answer["granted"]:
            return HeldLock(connection, self._is_replaced)
        connection.close()
        return None

    async def _answered(
        self, request: _Request, timeout: float | None, tell: NoticeHandler | None = None, *, withdraws: bool = False
    ) -> tuple[Connection, control.Answer]:
        """Sends a request that changes something until an engine answers, under one id. Raises the error of the answer.

        If the task is canceled between two engines, or the next one cannot be reached, raises 58000: the request may have had effect.
        """
        newest = self._lake.log.seen
        attempt = control.Attempt(secrets.token_hex(8), after=newest.n if newest is not None else 0)
        while True:
            try:
                connection = (self._open_connection() if request.path == control.WRITE else None) or await self._connected()
            except (asyncio.CancelledError, SystemError_):
                if attempt.again:
                    raise _ended() from None
                raise
            sent = replace(request, headers=attempt.headers())
            try:
                status, answer = await self._exchange(connection, sent, timeout, tell, withdraws=withdraws)
            except _Unanswered:
                failure: TailgateError = _ended()
            else:
                if status == 200:
                    return connection, answer
                connection.close()
                failure = control.error_of(answer)
                if failure.sqlstate not in ENDED:
                    raise failure
            try:
                if failure.sqlstate != Replaced.sqlstate and not (await self._looks.look()).has_next(connection.engine):
                    raise failure
                await self._replaced(connection.engine)
            except asyncio.CancelledError:
                raise _ended() from None
            attempt = replace(attempt, again=True)

    async def status(self, *, lags: bool = True) -> control.Answer:
        """Returns the status of the engine's sources, views and sinks, or an empty dict if the engine is not running.

        `lags`: with the numbers of unread records of sources, for which the engine asks their brokers.
        """
        try:
            status, answer = await self._request(control.status_path(lags=lags), STATUS_TIMEOUT_S)
        except SystemError_:
            return {}
        return answer if status == 200 else {}

    async def recent(self, relations: Iterable[int], timeout: float) -> int:
        """Returns a time that includes all records that Kafka had for these relations at the call.

        Raises 57014 after `timeout` seconds.
        """
        status, answer = await self._request(control.recent_path(relations, timeout), timeout + STATUS_TIMEOUT_S)
        if status == 200:
            return int(answer.get("time", 0))
        raise control.error_of(answer)

    def _checked(self, announcement: engines.Announcement | None) -> engines.Announcement:
        """Returns the announcement of an engine that may answer. Raises 58000 if there is none."""
        if announcement is None:
            raise SystemError_("the engine is not running", hint="Views can be read; what changes the catalog needs `tailgate engine`.")
        if self._is_replaced(announcement):
            raise SystemError_("the engine is being replaced", hint="Try again in a moment.")
        return announcement

    def _open_connection(self) -> Connection | None:
        """Returns a connection that an earlier write has left open, if there is one."""
        while self._kept:
            connection, since = self._kept.pop()
            if time.monotonic() - since < KEPT_S and not connection.ended and not self._is_replaced(connection.engine):
                return connection
            connection.close()
        return None

    def _keep(self, connection: Connection) -> None:
        """Keeps a connection open for the next write. Closes the oldest ones that were not used for KEPT_S, or if there are too many."""
        now = time.monotonic()
        self._kept.append((connection, now))
        while len(self._kept) > KEPT_MAX or now - self._kept[0][1] > KEPT_S:
            self._kept.pop(0)[0].close()

    def close(self) -> None:
        """Closes the connections that wait for a write."""
        while self._kept:
            self._kept.pop()[0].close()

    async def _connected(self, timeout: float = CONNECT_S) -> Connection:
        """Connects to the engine. Waits for one that stands by, at most `timeout` seconds. Raises 58000 if none can be reached."""
        deadline = time.monotonic() + timeout
        if self._known is not None and not self._is_replaced(self._known):
            with contextlib.suppress(SystemError_):
                return await _opened(self._known, min(timeout, KNOWN_S))
        while True:
            announcement = (await self._looks.look()).engine
            try:
                connection = await _opened(self._checked(announcement), deadline - time.monotonic())
                self._known = connection.engine
                return connection
            except SystemError_:
                if time.monotonic() > deadline or not (await self._looks.look()).has_next(announcement):
                    raise
            await asyncio.sleep(NEXT_ENGINE_LOOK_S)

    async def _replaced(self, engine: engines.Announcement) -> None:
        """Waits until a later engine is announced, at most CONNECT_S."""
        deadline = time.monotonic() + CONNECT_S
        while not (await self._looks.look()).is_later(engine):
            if time.monotonic() > deadline:
                raise _ended()
            await asyncio.sleep(NEXT_ENGINE_LOOK_S)
        self._known = None  # the log that this process has read may not have the later epoch yet

    async def _request(self, path: str, timeout: float) -> tuple[int, control.Answer]:
        """Sends a request that changes nothing, and returns the status and the body of the answer."""
        connection = await self._connected(min(timeout, CONNECT_S))
        try:
            return await self._exchange(connection, _Request("GET", path, b""), timeout)
        except _Unanswered:
            raise _ended() from None

    async def _exchange(
        self,
        connection: Connection,
        request: _Request,
        timeout: float | None,
        tell: NoticeHandler | None = None,
        *,
        withdraws: bool = False,
    ) -> tuple[int, control.Answer]:
        """Sends a request on a connection. Raises _Unanswered if the engine ends or is replaced before it answers.

        If the task is canceled: with `withdraws`, see `_withdrawn`; without, the connection is closed. It is also closed after the answer,
        unless the request keeps it.
        """
        engine, reader, writer = connection.engine, connection.reader, connection.writer
        headers = {"Host": engine.address, **control.headers(engine.token), **request.headers}
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(request.body))}
        if not request.keeps:
            headers["Connection"] = "close"
        is_kept = False
        lines = [f"{request.method} {request.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        try:
            writer.write("\r\n".join(lines).encode() + request.body)
        except RuntimeError:  # uvloop's error for a connection that the engine has closed
            raise _Unanswered from None
        answer = asyncio.ensure_future(_answer(reader, tell))
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        try:
            while not answer.done():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise SystemError_("the engine does not answer", detail=f"{engine.address} gave no answer in {timeout} s.")
                await asyncio.wait((answer,), timeout=min(left, REPLACED_LOOK_S))
                if not answer.done() and self._is_replaced(engine):
                    raise _Unanswered
            result = answer.result()
            is_kept = request.keeps
            return result
        except (OSError, asyncio.IncompleteReadError, ValueError):
            raise _Unanswered from None
        except asyncio.CancelledError:
            if not withdraws or (ended := await _withdrawn(writer, answer)) is None:
                raise
            return ended
        finally:
            answer.cancel()
            if not is_kept:
                connection.close()

    def _is_replaced(self, engine: engines.Announcement) -> bool:
        newest = self._lake.log.seen  # the mirrors follow the log, so this is not older than they are
        return newest is not None and newest.epoch > engine.epoch


class _Unanswered(Exception):
    """The engine ended, or was replaced, before it answered. The request may have taken effect."""


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    keeps: bool = False  # whether the connection stays open after the answer


async def _opened(engine: engines.Announcement, timeout: float) -> Connection:
    """Connects to an engine. Raises 58000 if the address refuses connections, or takes none in `timeout` seconds."""
    host, port = process_tls.split(engine.address)
    context = process_tls.trusting(engine.certificate)
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(host, port, ssl=context), timeout)
        peer = writer.get_extra_info("socket")
        if peer is None:
            raise ConnectionResetError("the connection ended at once")
        keep_alive(peer)
    except (OSError, asyncio.TimeoutError):
        raise SystemError_("the engine does not answer", detail=f"Nothing takes connections at {engine.address}.") from None
    return Connection(engine, reader, writer)


def _ended() -> SystemError_:
    return SystemError_("the engine ended before it answered", hint="Check whether the statement took effect before you send it again.")


async def _withdrawn(writer: asyncio.StreamWriter, answer: asyncio.Future[tuple[int, control.Answer]]) -> tuple[int, control.Answer] | None:
    """Withdraws a statement and waits until the engine has ended it. Returns its answer if it had taken effect before, otherwise None.

    The client of the gateway may send its next statement as soon as it has the error, so the error must not come before the end of the
    statement. Raises 58000 if the engine ends before it answers.
    """
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: as in `_exchange`
        writer.write(control.WITHDRAWAL)
    await asyncio.wait((answer,), timeout=WITHDRAWAL_TIMEOUT_S)
    if not answer.done():
        return None
    try:
        status, result = answer.result()
    except (OSError, asyncio.IncompleteReadError, ValueError):
        raise _ended() from None
    if status != 200 and control.error_of(result).sqlstate in ENDED:
        raise _ended()
    return (status, result) if status == 200 else None


async def _answer(reader: asyncio.StreamReader, tell: NoticeHandler | None) -> tuple[int, control.Answer]:
    while True:
        status = int((await reader.readuntil(b"\r\n")).split(b" ", 2)[1])
        headers: dict[bytes, bytes] = {}
        while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
            name, _, value = line.partition(b":")
            headers[name.strip().lower()] = value.strip()
        if status != 102:
            break
        if tell is not None:
            tell(Notice.of(control.decode(headers[b"notice"])))
    if b"content-length" in headers:
        body = await reader.readexactly(min(int(headers[b"content-length"]), ANSWER_BYTES_MAX))
    elif headers.get(b"transfer-encoding", b"").lower() == b"chunked":
        body = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += (await reader.readexactly(size + 2))[:-2]
    else:
        body = await reader.read(ANSWER_BYTES_MAX)
    return status, control.decode(body)
