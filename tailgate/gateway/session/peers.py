"""Requests to the other gateways of a lake, about their sessions and statements.

    pg_stat_activity                      ──► {"do": "sessions"} to each ──► rows
    tailgate.statements                   ──► {"do": "statements"} to each ──► rows
    a session of a role with a limit      ──► {"do": "connections"} to each ──► the number of the role's sessions
    pg_cancel_backend, pg_terminate_…     ──► {"do": "signal"}           ──► whether it has the session, or an error
    tailgate watch                        ──► {"do": "freshness"}        ──► steps of the history of freshness lag
    tailgate status                       ──► {"do": "lags"}             ──► the present freshness lags by relation
    tailgate watch                        ──► {"do": "alert", "id": n}   ──► rows of an alert's query
    tailgate sinks                        ──► {"do": "sink", "id": n}    ──► rows of a sink's query
    CancelRequest for a session of another gateway ──► {"do": "cancel"}
    NOTIFY                                ──► {"do": "notify"}           ──► delivers notifications to its sessions

Request and response are one line of JSON each. A request begins with the token from the peer's file (`lake.peers`), which is checked
before the rest is read. They use loopback, or TLS at the address of --control-listen, by which gateways on other machines reach this one.
A gateway that does not answer in time is skipped.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from typing import Any

from tailgate.gateway.resources.background import Background
from tailgate.gateway.resources.concurrency import Requester
from tailgate.gateway.session.registry import Row, Sessions
from tailgate.lake import peers
from tailgate.lake.errors import InsufficientPrivilege, TailgateError
from tailgate.lake.folder import Lake
from tailgate.lake.host import process_tls
from tailgate.lake.host.internal_errors import InternalErrors

ANSWER_S = 1.0
LINE_BYTES_MAX = 32 * 1024 * 1024  # of a response: 10,000 sessions with about 3 kB each
REQUEST_BYTES_MAX = 128 << 10  # of a request with 16 kB of notifications, escaped
CONNECTIONS_MAX = 1000  # at once; further ones are closed
CANCELS_MAX = 100  # concurrent cancel requests to peers: a client that guesses keys cannot cause unlimited work
MOMENTS = ("backend_start", "xact_start", "query_start", "state_change")

StatementRows = Callable[[Requester], list[dict[str, Any]]]  # the rows of tailgate.statements that a role may see
Evaluated = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]  # answers a request with the rows of a query
FreshnessSteps = Callable[[int], Sequence[object]]  # of the history, later than a step
PresentLags = Callable[[], dict[str, float | None]]

log = logging.getLogger("tailgate.gateway")


class Peers:
    """The client and the server for requests between gateways.

    `own`: the sessions of this gateway. `statements`: returns its rows of tailgate.statements that a role may see. `freshness`: returns
    the steps of the history of freshness lag. `lags`: returns the present freshness lag of each relation.
    `listen`: the address by which gateways on other machines reach this one, or None.
    """

    listen: str | None = None

    def __init__(
        self,
        lake: Lake,
        own: Sessions,
        internal_errors: InternalErrors,
        statements: StatementRows,
        freshness: FreshnessSteps,
        lags: PresentLags,
        background: Background,
    ) -> None:
        self._freshness, self._lags = freshness, lags
        self._lake, self._own, self._internal_errors, self._background = lake, own, internal_errors, background
        self._statements = statements
        self._token = secrets.token_urlsafe(24)
        self._server: asyncio.Server | None = None
        self._announcement: peers.Announcement | None = None
        self._renewing: asyncio.Task[None] | None = None
        self.connections = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cancels = 0  # in flight
        self.queries: dict[str, Evaluated] = {}  # by the word of the request

    async def start(self, addresses: Sequence[tuple[str, int]]) -> None:
        """Starts the server and announces this gateway. `addresses`: where clients connect to it. Raises 55006 if it cannot listen."""
        self._loop = asyncio.get_running_loop()
        certificate = None if self.listen is None else process_tls.create()
        address = self.listen or process_tls.LOOPBACK
        host, _ = process_tls.split(address)
        context = None if certificate is None else certificate.context
        try:
            self._server = await asyncio.start_server(
                lambda reader, writer: self._background.run(self._serve(reader, writer)),
                *process_tls.split(address),
                limit=REQUEST_BYTES_MAX,
                ssl=context,
                ssl_handshake_timeout=None if context is None else process_tls.HANDSHAKE_S,
            )
        except OSError as error:
            raise process_tls.cannot_listen(address, error) from error
        reached = process_tls.joined(host, self._server.sockets[0].getsockname()[1])
        pem = None if certificate is None else certificate.pem
        announce = partial(peers.Announcement, self._lake, reached, self._token, addresses, pem, self._own.number)
        await self._announce(announce)
        if certificate is not None or self._announcement is None:
            self._renewing = asyncio.ensure_future(self._renew(announce, certificate is not None))

    async def _announce(self, announce: Callable[[], peers.Announcement]) -> None:
        """Announces this gateway, or renews its announcement. Failures are logged: a store that does not answer will later."""
        try:
            if self._announcement is None:
                self._announcement = await asyncio.to_thread(announce)
            else:
                await asyncio.to_thread(self._announcement.renew)
        except (OSError, TailgateError) as error:
            log.warning("this gateway cannot be announced to the others: %s", error)
        if self._announcement is not None:
            self._own.number = self._announcement.number

    async def _renew(self, announce: Callable[[], peers.Announcement], is_reached: bool) -> None:
        """Tries again to announce this gateway. Renews the announcement if gateways on other machines reach this one."""
        while is_reached or self._announcement is None:
            await asyncio.sleep(peers.RENEW_S)
            await self._announce(announce)

    def stop(self) -> None:
        """Stops the server and withdraws the announcement."""
        if self._renewing is not None:
            self._renewing.cancel()
        if self._announcement is not None:
            self._announcement.withdraw()
        if self._server is not None:
            self._server.close()

    # --- requests from a thread

    def sessions(self, requester: Requester) -> list[Row]:
        """Returns the rows of pg_stat_activity of all other gateways."""
        rows = [
            row for answer in self._wait(self.ask({"do": "sessions", **_requester_fields(requester)})) for row in answer.get("rows", ())
        ]
        for row in rows:
            row.update({k: datetime.fromtimestamp(row[k], timezone.utc) for k in MOMENTS if row.get(k) is not None})
        return rows

    def internal_errors(self) -> list[dict[str, Any]]:
        """Returns the internal errors of all other gateways."""
        return [row for answer in self._wait(self.ask({"do": "internal errors"})) for row in answer.get("rows", ())]

    def statements(self, requester: Requester) -> list[dict[str, Any]]:
        """Returns the rows of tailgate.statements of all other gateways."""
        request = {"do": "statements", **_requester_fields(requester)}
        return [row for answer in self._wait(self.ask(request)) for row in answer.get("rows", ())]

    def signal(self, process: int, requester: Requester, *, terminate: bool) -> bool:
        """Signals a session of another gateway. Returns False if none has the process id, and raises 42501 if the role may not."""
        for answer in self._wait(self.ask({"do": "signal", "process": process, "terminate": terminate, **_requester_fields(requester)})):
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
            self._background.run(self._cancel(process, secret))

    async def _cancel(self, process: int, secret: bytes) -> None:
        try:
            await self.ask({"do": "cancel", "process": process, "secret": secret.hex()}, of=process >> 16)
        finally:
            self._cancels -= 1

    async def ask(self, request: dict[str, Any], of: int | None = None) -> list[dict[str, Any]]:
        """Sends a request to all other gateways, or to the one with the number `of`. Returns their responses."""
        own = None if self._announcement is None else self._announcement.name
        gateways = [p for p in await asyncio.to_thread(peers.announced, self._lake, own) if of is None or p.number == of]
        answers = await asyncio.gather(*(self._one(peer, request) for peer in gateways))
        return [a for a in answers if a is not None]

    async def _one(self, peer: peers.Peer, request: dict[str, Any]) -> dict[str, Any] | None:
        async def asked() -> dict[str, Any]:
            context = process_tls.trusting(peer.certificate)
            reader, writer = await asyncio.open_connection(*process_tls.split(peer.address), limit=LINE_BYTES_MAX, ssl=context)
            try:
                writer.write(peers.request_line(peer.token, request))
                answer: dict[str, Any] = json.loads(await reader.readline())
                return answer
            finally:
                writer.close()

        with contextlib.suppress(OSError, ValueError, asyncio.TimeoutError):
            return await asyncio.wait_for(asked(), ANSWER_S)
        return None

    # --- the server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            if self.connections > CONNECTIONS_MAX:
                return
            request = await asyncio.wait_for(self._request(reader), ANSWER_S)
            if request is None:
                return
            evaluated = self.queries.get(request["do"])
            answer = self._answer(request) if evaluated is None else await evaluated(request)
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, asyncio.TimeoutError):
            pass
        finally:
            self.connections -= 1
            writer.close()

    async def _request(self, reader: asyncio.StreamReader) -> dict[str, Any] | None:
        """Reads a request. Returns None if it does not begin with the token of this gateway, without waiting for the rest."""
        expected = peers.token_part(self._token)
        beginning = await reader.readexactly(len(expected))
        if not hmac.compare_digest(beginning, expected):
            return None
        request: dict[str, Any] = json.loads(beginning + await reader.readline())
        return request

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["do"]:
            case "sessions":
                rows = self._own.rows(_requester_of(request))
                return {"rows": [{k: v.timestamp() if isinstance(v, datetime) else v for k, v in row.items()} for row in rows]}
            case "signal":
                try:
                    exists = self._own.signal(request["process"], _requester_of(request), terminate=request["terminate"])
                except InsufficientPrivilege as error:
                    return {"error": error.message}
                return {"there": exists}
            case "freshness":
                return {"rows": self._freshness(int(request.get("after", 0)))}
            case "lags":
                return {"lags": self._lags()}
            case "internal errors":
                return {"rows": self._internal_errors.rows()}
            case "connections":
                return {"count": self._own.count_of(int(request["role"]))}
            case "statements":
                return {"rows": self._statements(_requester_of(request))}
            case "cancel":
                self._own.cancel(request["process"], bytes.fromhex(request["secret"]))
        return {}


def _requester_fields(requester: Requester) -> dict[str, Any]:
    return {"role": requester.role, "superuser": requester.superuser}


def _requester_of(request: dict[str, Any]) -> Requester:
    return Requester(request["role"], request["superuser"])
