"""Requests to the other gateways of a lake on this machine, about their sessions.

    pg_stat_activity                      ──► {"do": "sessions"} to each ──► rows
    pg_cancel_backend, pg_terminate_…     ──► {"do": "signal"}           ──► whether it has the session, or an error
    CancelRequest for a session of another gateway on the same port ──► {"do": "cancel"}

Request and response are one line of JSON each, on loopback, with the token from the peer's file (`lake.peers`). A gateway that does
not answer in time is skipped.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import secrets
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailgate.gateway.session import activity
from tailgate.lake import peers
from tailgate.lake.errors import InsufficientPrivilege

if TYPE_CHECKING:
    from tailgate.gateway.server.server import Gateway

ANSWER_S = 1.0
LINE_BYTES_MAX = 32 * 1024 * 1024  # of a response: 10,000 sessions with about 3 kB each
REQUEST_BYTES_MAX = 4096  # a request has about 200 bytes; it is read before its token is checked
CANCELS_MAX = 100  # concurrent cancel requests to peers: a client that guesses keys cannot cause unlimited work
MOMENTS = ("backend_start", "xact_start", "query_start", "state_change")

log = logging.getLogger("tailgate.gateway")


@dataclass(frozen=True, slots=True)
class Asker:
    """The role of a session in another gateway that sends a request."""

    id: int
    superuser: bool


class Peers:
    """The client and the server for requests between gateways."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._token = secrets.token_urlsafe(24)
        self._server: asyncio.Server | None = None
        self._file: Path | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cancels = 0  # in flight

    async def start(self, addresses: Sequence[tuple[str, int]]) -> None:
        """Starts the server and announces this gateway. `addresses`: where clients connect to it."""
        self._loop = asyncio.get_running_loop()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=REQUEST_BYTES_MAX)
        port = self._server.sockets[0].getsockname()[1]
        try:
            self._file = peers.announce(self._gateway.lake, str(port), port, self._token, addresses)
        except OSError as error:
            log.warning("other gateways cannot be told of this one: %s", error)

    def stop(self) -> None:
        """Stops the server and withdraws the announcement."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)
        if self._server is not None:
            self._server.close()

    # --- requests from a thread

    def sessions(self, asker: activity.Asking) -> list[activity.Row]:
        """Returns the rows of pg_stat_activity of all other gateways."""
        rows = [row for answer in self._wait(self._ask({"do": "sessions", **_asker(asker)})) for row in answer.get("rows", ())]
        for row in rows:
            row.update({k: datetime.fromtimestamp(row[k], timezone.utc) for k in MOMENTS if row.get(k) is not None})
        return rows

    def internal_errors(self) -> list[dict[str, Any]]:
        """Returns the internal errors of all other gateways."""
        return [row for answer in self._wait(self._ask({"do": "internal errors"})) for row in answer.get("rows", ())]

    def signal(self, process: int, asker: activity.Asking, *, terminate: bool) -> bool:
        """Signals a session of another gateway. Returns False if none has the process id, and raises 42501 if the role may not."""
        for answer in self._wait(self._ask({"do": "signal", "process": process, "terminate": terminate, **_asker(asker)})):
            if "error" in answer:
                raise InsufficientPrivilege(answer["error"])
            if answer.get("there"):
                return True
        return False

    def _wait(self, work: Coroutine[Any, Any, list[dict[str, Any]]]) -> list[dict[str, Any]]:
        if self._loop is None:
            work.close()
            return []
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(2 * ANSWER_S)

    # --- requests from the event loop

    def cancel(self, process: int, secret: bytes) -> None:
        """Forwards a cancel request for a session of another gateway, in the background."""
        if self._cancels < CANCELS_MAX:
            self._cancels += 1
            self._gateway.aside(self._cancel(process, secret))

    async def _cancel(self, process: int, secret: bytes) -> None:
        try:
            await self._ask({"do": "cancel", "process": process, "secret": secret.hex()}, of=process >> 16)
        finally:
            self._cancels -= 1

    async def _ask(self, request: dict[str, Any], of: int | None = None) -> list[dict[str, Any]]:
        """Sends a request to all other gateways, or to those whose process ids have the high half `of`. Returns their responses."""
        found = await asyncio.to_thread(peers.announced, self._gateway.lake, self._file)
        found = [p for p in found if of is None or p.pid & 0x7FFF == of]
        answers = await asyncio.gather(*(self._one(peer, request) for peer in found))
        return [a for a in answers if a is not None]

    async def _one(self, peer: peers.Peer, request: dict[str, Any]) -> dict[str, Any] | None:
        async def asked() -> dict[str, Any]:
            reader, writer = await asyncio.open_connection("127.0.0.1", peer.port, limit=LINE_BYTES_MAX)
            try:
                writer.write(json.dumps({"token": peer.token, **request}).encode() + b"\n")
                answer: dict[str, Any] = json.loads(await reader.readline())
                return answer
            finally:
                writer.close()

        with contextlib.suppress(OSError, ValueError, asyncio.TimeoutError):
            return await asyncio.wait_for(asked(), ANSWER_S)
        return None

    # --- the server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await asyncio.wait_for(reader.readline(), ANSWER_S)
            request = json.loads(line)
            if hmac.compare_digest(str(request.get("token", "")).encode(), self._token.encode()):
                writer.write(json.dumps(self._answer(request)).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, asyncio.TimeoutError):
            pass
        finally:
            writer.close()

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["do"]:
            case "sessions":
                rows = activity.rows(self._gateway, _asking(request))
                return {"rows": [{k: v.timestamp() if isinstance(v, datetime) else v for k, v in row.items()} for row in rows]}
            case "signal":
                try:
                    there = activity.signalled(self._gateway, request["process"], _asking(request), terminate=request["terminate"])
                except InsufficientPrivilege as error:
                    return {"error": error.message}
                return {"there": there}
            case "internal errors":
                return {"rows": self._gateway.internal_errors.rows()}
            case "cancel":
                self._gateway.cancel(request["process"], bytes.fromhex(request["secret"]), here=True)
        return {}


def _asker(asker: activity.Asking) -> dict[str, Any]:
    return {"role": asker.id, "superuser": asker.superuser}


def _asking(request: dict[str, Any]) -> Asker:
    return Asker(request["role"], request["superuser"])
