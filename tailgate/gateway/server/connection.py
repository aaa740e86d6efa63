"""The connection of one client: an asyncio protocol that passes messages to a session and sends its output.

    data_received ──► [a poll that is ready?] ──► send
                          └─ no ──► Decoder ──► queue ──► Session.receive ──► (a task, while it takes time)

A connection runs one statement at a time and needs no thread. Output is buffered until the session flushes it. If a client does not
read, its statement waits at a high-water mark. If it sends faster than it is answered, the gateway stops reading from it. A
disconnect is noticed at any time and cancels the running statement.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import deque
from dataclasses import replace
from typing import Any, cast

from tailgate.gateway.handlers import messages, simple, statement_log
from tailgate.gateway.protocol import messages as m
from tailgate.gateway.protocol.frames import Decoder
from tailgate.gateway.protocol.limits import AUTHENTICATION_BYTES_MAX, MESSAGE_FACTOR, RECEIVE_BYTES_MAX
from tailgate.gateway.protocol.states import Phase
from tailgate.gateway.resources.budgets import Charge
from tailgate.gateway.security.authentication import Peer
from tailgate.gateway.security.tls import Identity
from tailgate.gateway.server.addresses import is_loopback
from tailgate.gateway.server.handshake import Refusals
from tailgate.gateway.session.gateway import Gateway
from tailgate.gateway.session.session import Session
from tailgate.lake.errors import OutOfMemory
from tailgate.lake.host.keepalive import keep_alive

log = logging.getLogger("tailgate.gateway")

# Unsent bytes at which a client's statement waits: enough to keep a link of 10 Gbit/s and 1 ms busy, and at most 1.3 GB for
# 5,000 clients that stop reading.
WRITE_BYTES_HIGH = 256 * 1024
UNSENT_BYTES = 1024 * 1024  # charged for a client that does not read: the unsent bytes, and the next encoded slice
RECEIVED_FREE = 64 * 1024  # received bytes that are not charged
RETRY_S = 0.005  # interval at which the write buffer is checked
SEND_BYTES = 64 * 1024  # buffered output that is sent without a flush
CONNECTIONS_MAX = 20_000  # including unauthenticated ones; beyond it the oldest unauthenticated one is closed
STARTUP_TIMEOUT_S = 60.0  # PostgreSQL's authentication_timeout
AUTHENTICATED = (Phase.READY, Phase.EXTENDED, Phase.SKIPPING)


def peer_of(transport: asyncio.BaseTransport, insecure: bool, *, tls: bool = False) -> Peer:
    """Returns the client of a connection. `tls`: the connection has begun with TLS."""
    name = transport.get_extra_info("peername")
    host, port = name[:2] if isinstance(name, tuple) else ("", None)
    loopback = not host or is_loopback(host)  # without a host: a Unix socket
    certificate = _common_name(transport.get_extra_info("peercert")) if tls else None
    return Peer(host, port, loopback, tls, certificate, insecure=insecure)


def _common_name(certificate: dict[str, Any] | None) -> str | None:
    return next((value for part in (certificate or {}).get("subject", ()) for key, value in part if key == "commonName"), None)


class Connections(set["Connection"]):
    """The open connections of a gateway. `unauthenticated`: those that have not signed in, oldest first. `refusals`: failed handshakes."""

    def __init__(self) -> None:
        super().__init__()
        self.unauthenticated: dict[Connection, None] = {}
        self.refusals = Refusals()

    def admit(self, connection: Connection) -> None:
        """Adds a connection. If there are too many, closes the oldest that has not signed in."""
        if len(self) >= CONNECTIONS_MAX:
            oldest = next(iter(self.unauthenticated), connection)
            self.unauthenticated.pop(oldest, None)
            oldest.abort()
        self.add(connection)
        self.unauthenticated[connection] = None

    def forget(self, connection: Connection) -> None:
        """Removes a closed connection."""
        self.discard(connection)
        self.unauthenticated.pop(connection, None)


class Connection(asyncio.Protocol):
    """The connection of one client. It implements the session's `Out`."""

    def __init__(self, gateway: Gateway, connections: Connections) -> None:
        self._gateway, self._connections = gateway, connections
        self._loop = asyncio.get_running_loop()
        self._decoder = Decoder()
        self._queue: deque[m.Message] = deque()
        self._waiting = 0  # approximate bytes of the messages in the queue
        self._paused = False
        self._ended = False  # the client has closed its side of the connection
        self._task: asyncio.Task[None] | None = None
        self._out: list[bytes] = []
        self._collected = 0
        self._writable: asyncio.Future[None] | None = None
        self._arrived: asyncio.Future[None] | None = None  # set if a statement waits for the client's next message
        self._transport: asyncio.Transport | None = None
        self._accepted = False  # an SSLRequest was accepted, and the handshake has not begun
        self._received: Charge | None = None  # received bytes that the session is charged for, including incomplete messages
        self._unsent: Charge | None = None
        self._early: list[bytes] | None = None  # data received over TLS before `start_tls` returns
        self.session = Session(gateway, self)

    # --- asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is not a subclass
        self._transport.set_write_buffer_limits(high=WRITE_BYTES_HIGH)
        peer = transport.get_extra_info("socket")
        if peer is not None and peer.family != getattr(socket, "AF_UNIX", None):
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            keep_alive(peer)
        self._connections.admit(self)
        self.session.client.peer = peer_of(transport, self._gateway.insecure)
        self._impatience = self._loop.call_later(STARTUP_TIMEOUT_S, self._give_up)

    def _give_up(self) -> None:
        """Closes a connection that is not authenticated within STARTUP_TIMEOUT_S."""
        if self.session.machine.phase in (Phase.STARTUP, Phase.AUTHENTICATION):
            self.close()

    def data_received(self, data: bytes) -> None:
        if self._accepted:
            self._refuse_unencrypted()
            return
        if self._early is not None:
            self._early.append(data)
            return
        session = self.session
        if (
            data[0] == 0x51  # Query
            and self._task is None
            and self._writable is None
            and not self._queue
            and not self._decoder.buffered
            and session.machine.phase is Phase.READY
            and session.reads_newest
            and int.from_bytes(data[1:5], "big") + 1 == len(data)
        ):
            began = time.monotonic()
            answer = simple.ready_answer(session, data[5:-1])
            if answer is not None and self._transport is not None:
                self._transport.write(answer)
                seconds = time.monotonic() - began
                session.polled(data[5:-1], answer, seconds)
                if session.settings.logs:
                    statement_log.answered(session, "statement", data[5:-1].rstrip(b"\0"), seconds)
                return
        messages = self._decoder.feed(data)
        if messages:
            self._queue.extend(messages)
            self._waiting += len(data)
            if self._arrived is not None and not self._arrived.done():
                self._arrived.set_result(None)
            self._pump()
        held = self._decoder.buffered + MESSAGE_FACTOR * self._waiting
        if held > RECEIVED_FREE or self._received is not None:
            self._hold_received(held)
        limit = RECEIVE_BYTES_MAX if self._decoder.authenticated else AUTHENTICATION_BYTES_MAX
        if self._waiting > limit and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def _hold_received(self, size: int) -> None:
        """Charges the session for received bytes that are not yet processed. Closes it if its budget does not allow them."""
        if self._received is None:
            self._received = Charge(self.session.memory.budget)
        try:
            self._received.set(size if size > RECEIVED_FREE else 0)
        except OutOfMemory as error:
            self.session.fatal(error.sqlstate, error.message, error.detail)

    def eof_received(self) -> bool:
        """Handles the end of the client's input. Finishes the running statement, unless it is a TAIL or waits for input."""
        self._ended = True
        if self._task is None:
            self.close()
            return False
        if self.session.execution.following or (self._arrived is not None and not self._arrived.done()):
            self._task.cancel()
            return False
        return True

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._impatience.cancel()
        self._queue.clear()
        self._out.clear()
        self._wake()
        if self._task is not None:
            self._task.cancel()
        self.session.end()
        self._connections.forget(self)

    def pause_writing(self) -> None:
        if self._writable is None:
            self._writable = self._loop.create_future()
            self._unsent = Charge(self.session.memory.budget)
            try:
                self._unsent.set(UNSENT_BYTES)
            except OutOfMemory:
                log.warning("a connection of %s is closed: its client does not read, and memory is short", self.session.client.user)
                self.abort()

    def resume_writing(self) -> None:
        self._wake()
        if self._unsent is not None:
            self._unsent.set(0)
            self._unsent = None
        self._loop.call_soon(self._pump)
        self._loop.call_soon(self.session.deliver)

    def _wake(self) -> None:
        if self._writable is not None:
            if not self._writable.done():
                self._writable.set_result(None)
            self._writable = None

    # --- TLS

    def encrypt(self, identity: Identity) -> None:
        """Starts TLS. Closes the connection if data precedes the handshake: an attacker may have injected it."""
        if self._queue or self._decoder.buffered:
            self._refuse_unencrypted()
            return
        self._accepted = True
        self._task = self._loop.create_task(self._shake_hands(identity))

    def _refuse_unencrypted(self) -> None:
        self._accepted = False
        if self._task is not None:
            self._task.cancel()
        self.session.fatal("08P01", "received unencrypted data after SSL request")

    async def _shake_hands(self, identity: Identity) -> None:
        assert self._transport is not None
        self._accepted, self._early = False, []  # data that arrives from now on is decrypted first
        try:
            transport = await self._loop.start_tls(
                self._transport, self, identity.context, server_side=True, ssl_handshake_timeout=STARTUP_TIMEOUT_S
            )
        except (OSError, asyncio.TimeoutError) as error:  # ssl.SSLError is an OSError
            self._connections.refusals.add_failed(self.session.client.peer.host, error)
            self.abort()
            return
        finally:
            self._task = None
        if transport is None or self._transport is None:
            return  # the client has disconnected
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_BYTES_HIGH)
        client = self.session.client
        client.peer = replace(
            client.peer, tls=True, certificate=_common_name(transport.get_extra_info("peercert")), end_point=identity.end_point
        )
        early, self._early = self._early or [], None
        for data in early:
            self.data_received(data)

    # --- messages

    def _pump(self) -> None:
        """Handles queued messages until one takes time, or until the client must read its output first."""
        while self._queue and self._task is None and self._transport is not None:
            if self._writable is not None:
                return  # `resume_writing` continues
            if self._transport.get_write_buffer_size() > WRITE_BYTES_HIGH:
                self._loop.call_later(RETRY_S, self._pump)  # the buffer may drain without pause_writing
                return
            work = messages.receive(self.session, self._queue.popleft())
            if not self._decoder.authenticated:
                self._start_up()
            if work is not None:
                self._task = self._loop.create_task(self._run(work))
        if not self._queue:
            self._resume()
            if self._ended and self._task is None:
                self.close()

    def _start_up(self) -> None:
        """Decodes the next message of the start-up, or all buffered messages once the client is authenticated."""
        self._decoder.authenticated = self.session.machine.phase in AUTHENTICATED
        if self._decoder.authenticated:
            self._connections.unauthenticated.pop(self, None)
        if self._early is None:  # during the handshake the buffer has no plain messages
            self._queue.extend(self._decoder.feed(b""))

    def _resume(self) -> None:
        """Resumes reading after the queue has been emptied."""
        self._waiting = 0
        if self._received is not None:
            self._hold_received(self._decoder.buffered)
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    async def _run(self, work: messages.Work) -> None:
        try:
            await work
        except asyncio.CancelledError:
            self.close()
        except Exception as error:  # noqa: BLE001  # counted and logged
            self.close()  # first, because the client would wait forever if reporting the error failed, too
            self._gateway.internal_errors.reported(error, self.session.execution.activity.query.decode(errors="replace"))
        finally:
            self._task = None
        if not self._decoder.authenticated:
            self._start_up()
        self._pump()

    # --- Out

    def write(self, data: bytes) -> None:
        self._out.append(data)
        self._collected += len(data)
        if self._collected >= SEND_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._out:
            data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
            self._out.clear()
            self._collected = 0
            if self._transport is not None and data:
                self._transport.write(data)

    def at_sync(self) -> bool:
        return bool(self._queue) and isinstance(self._queue[0], m.Sync)

    def pipelined(self) -> bool:
        return bool(self._queue) and not isinstance(self._queue[0], m.Sync)

    async def message(self) -> m.Message:
        while not self._queue:
            self._resume()
            self._arrived = self._loop.create_future()
            await self._arrived
        return self._queue.popleft()

    async def drain(self, timeout: float | None = None) -> bool:
        # Not wait_for: before Python 3.12 it may return a result although it was cancelled.
        if self._writable is not None:
            await asyncio.wait((self._writable,), timeout=timeout)
        if self._transport is None or (self._ended and self.session.execution.following):
            raise asyncio.CancelledError  # the client has disconnected, perhaps before the statement began to follow
        return self._writable is None

    def is_congested(self) -> bool:
        return self._writable is not None

    def close(self) -> None:
        self.flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
