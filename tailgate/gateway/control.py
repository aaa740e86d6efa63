"""The client of the engine's control interface (`lake.control`), at the address in the lake's engine.json.

Without an engine, or if the log has a newer epoch, a request fails with 58000 within a second. Polls and TAIL do not use the engine.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable

from tailgate.lake import control
from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.control import FilledTable, Notice, StatementResult
from tailgate.lake.errors import SystemError_
from tailgate.lake.folder import Lake
from tailgate.lake.writer import engines

CONNECT_TIMEOUT_S = 0.8  # 58000 is promised within a second
WITHDRAWAL_TIMEOUT_S = 10.0  # the engine needs about a second to remove a view that is being filled
STATUS_TIMEOUT_S = 5.0  # the engine waits up to three seconds for a broker
SEQUENCE_TIMEOUT_S = 30.0  # a statement that changes the catalog may hold its lock
ANSWER_BYTES_MAX = 16 * 1024 * 1024


NoticeHandler = Callable[[Notice], None]  # receives notices before the answer


class Control:
    """A client of the engine."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    async def statement(
        self, sql: str, settings: dict[str, str], resolution: Resolution, tell: NoticeHandler | None = None
    ) -> StatementResult:
        """Executes a statement in the engine. Raises 40001 if a name no longer refers to the item in `resolution`.

        There is no timeout: a backfill may take minutes. `tell` receives notices while the statement runs.

        If the task is canceled, the statement is withdrawn: this raises CancelledError when the engine has undone it, or returns the
        answer if it has taken effect already.
        """
        request = control.StatementRequest(sql, settings, resolution).encode()
        status, answer = await self._request("POST", control.STATEMENT, request, None, tell, withdraws=True)
        if status == 200:
            return StatementResult.of(answer)
        raise control.error_of(answer)

    async def write(self, body: bytes) -> control.WriteResult:
        """Sends a write to the inbox."""
        status, answer = await self._request("POST", control.WRITE, body, None)
        if status == 200:
            return control.WriteResult.of(answer)
        raise control.error_of(answer)

    async def filled_table(self, table: FilledTable) -> StatementResult | int:
        """Creates a table with rows. Returns the entry of the inbox with which the rows conflict, if there is one.

        Raises 40001 if a name no longer refers to the item in the resolution. If the task is canceled: see `statement`.
        """
        body = await asyncio.to_thread(table.encode)
        status, answer = await self._request("POST", control.TABLE, body, None, withdraws=True)
        if status == 200:
            return int(answer["conflict"]) if "conflict" in answer else StatementResult.of(answer)
        raise control.error_of(answer)

    async def sequence(self, request: control.SequenceRequest) -> control.SequenceValues:
        """Reserves values of a sequence, or sets it."""
        status, answer = await self._request("POST", control.SEQUENCE, request.encode(), SEQUENCE_TIMEOUT_S)
        if status == 200:
            return control.SequenceValues.of(answer)
        raise control.error_of(answer)

    async def status(self) -> control.Answer:
        """Returns the status of the engine's sources, views and sinks, or an empty dict if the engine is not running."""
        try:
            status, answer = await self._request("GET", control.STATUS, b"", STATUS_TIMEOUT_S)
        except SystemError_:
            return {}
        return answer if status == 200 else {}

    async def recent(self, relations: Iterable[int], timeout: float) -> int:
        """Returns a time that includes all records that Kafka had for these relations at the call.

        Raises 57014 after `timeout` seconds.
        """
        status, answer = await self._request("GET", control.recent_path(relations, timeout), b"", timeout + STATUS_TIMEOUT_S)
        if status == 200:
            return int(answer.get("time", 0))
        raise control.error_of(answer)

    def _engine(self) -> engines.Announcement:
        announcement = engines.announced(self._lake)
        newest = self._lake.log.seen  # the mirrors follow the log, so this is not older than they are
        if announcement is None:
            raise SystemError_("the engine is not running", hint="Views can be read; what changes the catalog needs `tailgate engine`.")
        if newest is not None and newest.epoch > announcement.epoch:
            raise SystemError_("the engine is being replaced", hint="Try again in a moment.")
        return announcement

    async def _request(
        self, method: str, path: str, body: bytes, timeout: float | None, tell: NoticeHandler | None = None, *, withdraws: bool = False
    ) -> tuple[int, control.Answer]:
        """Sends a request and returns the status and the body of the answer.

        If the task is canceled: with `withdraws`, see `statement`; without, the connection is closed.
        """
        engine = self._engine()
        host, _, port = engine.address.rpartition(":")
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_connection(host.strip("[]"), int(port)), CONNECT_TIMEOUT_S)
        except (OSError, asyncio.TimeoutError):
            raise SystemError_("the engine does not answer", detail=f"Nothing takes connections at {engine.address}.") from None
        headers = {"Host": engine.address, **control.headers(engine.token), "Connection": "close"}
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        answer = asyncio.ensure_future(_answer(reader, tell))
        try:
            return await asyncio.wait_for(asyncio.shield(answer), timeout)
        except asyncio.TimeoutError:
            raise SystemError_("the engine does not answer", detail=f"{engine.address} gave no answer in {timeout} s.") from None
        except (OSError, asyncio.IncompleteReadError, ValueError):
            raise SystemError_(
                "the engine ended before it answered", hint="Look whether the statement took effect before sending it again."
            ) from None
        except asyncio.CancelledError:
            if withdraws and await _took_effect(writer, answer):
                return answer.result()
            raise
        finally:
            answer.cancel()
            writer.transport.abort()


async def _took_effect(writer: asyncio.StreamWriter, answer: asyncio.Future[tuple[int, control.Answer]]) -> bool:
    """Withdraws a statement and waits until the engine has ended it. Returns whether it had taken effect before.

    The end of the client's half of the connection withdraws it. The client of the gateway may send its next statement as soon as it
    has the error, so the error must not come before the end of the statement.
    """
    with contextlib.suppress(OSError):
        writer.write_eof()
    await asyncio.wait((answer,), timeout=WITHDRAWAL_TIMEOUT_S)
    return answer.done() and not answer.cancelled() and answer.exception() is None and answer.result()[0] == 200


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
