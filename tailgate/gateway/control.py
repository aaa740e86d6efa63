"""The client of the engine's control interface: HTTP requests to the address in the lake's engine.json.

    POST /statement {"sql", "settings", "resolution"} ──► 200 {"tag", "n", "time", "notices"} | 4xx {"sqlstate", "message", …}
    GET /status     ──► {"sources": {name: {"status", "error", …}}, …}

Without an engine, or if the log has a newer epoch, a request fails with 58000 within a second. Polls and TAIL do not use the engine.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailgate.lake import engines
from tailgate.lake.errors import SystemError_, TailgateError, of

if TYPE_CHECKING:
    from tailgate.lake import Lake
    from tailgate.lake.resolution import Resolution

CONNECT_TIMEOUT_S = 0.8  # 58000 is promised within a second
STATUS_TIMEOUT_S = 5.0  # the engine waits up to three seconds for a broker
ANSWER_BYTES_MAX = 16 * 1024 * 1024


Tell = Callable[[dict[str, Any]], None]  # receives notices before the answer


@dataclass(frozen=True, slots=True)
class Done:
    """The engine's answer: the statement is durable in log entry `n`, at `time`. `lines`: the output of EXPLAIN and the like."""

    tag: str
    n: int
    time: int
    notices: tuple[dict[str, Any], ...] = ()
    lines: tuple[str, ...] = ()


class Control:
    """A client of the engine."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    async def statement(self, sql: str, settings: dict[str, str], resolution: Resolution, tell: Tell | None = None) -> Done:
        """Executes a statement in the engine. Raises 40001 if a name no longer refers to the item in `resolution`.

        There is no timeout: a backfill may take minutes. `tell` receives notices while the statement runs. Cancelling the task
        cancels the statement and drops a view that is still being backfilled.
        """
        request = {"sql": sql, "settings": settings, "resolution": resolution.to_json()}
        status, answer = await self._request("POST", "/statement", request, None, tell)
        if status == 200:
            return Done(answer["tag"], answer.get("n", 0), answer.get("time", 0), tuple(answer.get("notices", ())), _lines(answer))
        raise _error(answer)

    async def write(self, body: bytes) -> dict[str, int]:
        """Sends a write to the inbox.

        Returns {"number": n}, its durable entry in the inbox, or {"conflict": c}, the entry that has changed what the write read.
        """
        status, answer = await self._request("POST", "/write", body, None)
        if status == 200:
            return answer
        raise _error(answer)

    async def status(self) -> dict[str, Any]:
        """Returns the status of the engine's sources, views and sinks, or an empty dict if the engine is not running."""
        try:
            status, answer = await self._request("GET", "/status", None, STATUS_TIMEOUT_S)
        except SystemError_:
            return {}
        return answer if status == 200 else {}

    async def recent(self, relations: Iterable[int], timeout: float) -> int:
        """Returns a time that includes all records that Kafka had for these relations at the call.

        Raises 57014 after `timeout` seconds.
        """
        path = f"/recent?relations={','.join(map(str, sorted(relations)))}&timeout={timeout:g}"
        status, answer = await self._request("GET", path, None, timeout + STATUS_TIMEOUT_S)
        if status == 200:
            return int(answer.get("time", 0))
        raise _error(answer)

    def _engine(self) -> engines.Announcement:
        there = engines.announced(self._lake)
        newest = self._lake.log.newest()
        if there is None:
            raise SystemError_("the engine is not running", hint="Views can be read; what changes the catalog needs `tailgate engine`.")
        if newest is not None and newest.epoch > there.epoch:
            raise SystemError_("the engine is being replaced", hint="Try again in a moment.")
        return there

    async def _request(
        self, method: str, path: str, body: dict[str, Any] | bytes | None, timeout: float | None, tell: Tell | None = None
    ) -> tuple[int, dict[str, Any]]:
        engine = self._engine()
        host, _, port = engine.address.rpartition(":")
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_connection(host.strip("[]"), int(port)), CONNECT_TIMEOUT_S)
        except (OSError, asyncio.TimeoutError):
            raise SystemError_("the engine does not answer", detail=f"Nothing takes connections at {engine.address}.") from None
        try:
            data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
            head = f"{method} {path} HTTP/1.1\r\nHost: {engine.address}\r\nAuthorization: Bearer {engine.token}\r\nConnection: close\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
            writer.write(head.encode() + data)
            return await asyncio.wait_for(_answer(reader, tell), timeout)
        except asyncio.TimeoutError:
            raise SystemError_("the engine does not answer", detail=f"{engine.address} gave no answer in {timeout} s.") from None
        except (OSError, asyncio.IncompleteReadError, ValueError):
            raise SystemError_(
                "the engine ended before it answered", hint="Look whether the statement took effect before sending it again."
            ) from None
        finally:
            writer.close()


async def _answer(reader: asyncio.StreamReader, tell: Tell | None) -> tuple[int, dict[str, Any]]:
    while True:
        status = int((await reader.readuntil(b"\r\n")).split(b" ", 2)[1])
        headers: dict[bytes, bytes] = {}
        while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
            name, _, value = line.partition(b":")
            headers[name.strip().lower()] = value.strip()
        if status != 102:
            break
        if tell is not None:
            tell(json.loads(headers[b"notice"]))
    if b"content-length" in headers:
        body = await reader.readexactly(min(int(headers[b"content-length"]), ANSWER_BYTES_MAX))
    elif headers.get(b"transfer-encoding", b"").lower() == b"chunked":
        body = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += (await reader.readexactly(size + 2))[:-2]
    else:
        body = await reader.read(ANSWER_BYTES_MAX)
    answer = json.loads(body or b"{}")
    return status, answer if isinstance(answer, dict) else {}


def _lines(answer: dict[str, Any]) -> tuple[str, ...]:
    said = answer.get("lines") or answer.get("text") or ()
    return tuple(said.split("\n") if isinstance(said, str) else map(str, said))


def _error(answer: dict[str, Any]) -> TailgateError:
    return of(
        answer.get("sqlstate", "XX000"),
        answer.get("message", "the engine gave an answer that cannot be read"),
        detail=answer.get("detail"),
        hint=answer.get("hint"),
        position=answer.get("position"),
    )
