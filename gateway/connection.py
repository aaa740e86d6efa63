"""A socket's bytes to a session and back: one asyncio protocol a client, no thread, one statement at a time.

    data_received ──► [a poll that is ready?] ──► send
                          └─ no ──► Decoder ──► queue ──► Session.receive ──► (a task, while it takes time)

What is written is collected and sent in one piece when the session says so. A client that does not read stops its own statement
at a high-water mark; one that sends more than it is answered stops being read. When the client is gone its statement ends, a TAIL too:
the socket is always being watched.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from gateway import simple
from gateway.authentication import Peer
from gateway.budgets import Charged
from gateway.protocol import messages as m
from gateway.protocol.frames import Decoder
from gateway.protocol.limits import AUTHENTICATION_BYTES_MAX, MESSAGE_FACTOR, RECEIVE_BYTES_MAX
from gateway.protocol.states import Phase
from gateway.session import Session, Work
from lake.errors import OutOfMemory

if TYPE_CHECKING:
    from gateway.server import Gateway
    from gateway.tls import Identity

log = logging.getLogger("tailgate.gateway")

# Bytes on their way to a client before its statement waits: enough for a full pipe at 10 Gbit/s and 1 ms, and 5,000
# clients that stop reading cost 1.3 GB at most.
WRITE_BYTES_HIGH = 256 * 1024
UNSENT_BYTES = 1024 * 1024  # what a client that does not read is charged for: that, and a slice that was encoded meanwhile
RECEIVED_FREE = 64 * 1024  # of what is received, for which nobody is charged
RETRY_S = 0.005  # until it is looked again whether a client has read
SEND_BYTES = 64 * 1024  # collected before it is sent without being asked to
CONNECTIONS_MAX = 20_000  # signed in or not; then the oldest that is not signed in makes room for the next
STARTUP_TIMEOUT_S = 60.0  # PostgreSQL's authentication_timeout: a client that says nothing does not hold a connection
AUTHENTICATED = (Phase.READY, Phase.EXTENDED, Phase.SKIPPING)
KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))  # s: a machine that vanished is noticed in a minute


def peer_of(transport: asyncio.BaseTransport, insecure: bool) -> Peer:
    name = transport.get_extra_info("peername")
    host, port = name[:2] if isinstance(name, tuple) else ("", None)
    try:
        loopback = ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        loopback = not host  # a Unix socket
    return Peer(host, port, loopback, insecure=insecure)


def _common_name(certificate: dict[str, Any] | None) -> str | None:
    return next((value for part in (certificate or {}).get("subject", ()) for key, value in part if key == "commonName"), None)


class Connection(asyncio.Protocol):
    """Also the session's `Out`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._loop = asyncio.get_running_loop()
        self._decoder = Decoder()
        self._queue: deque[m.Message] = deque()
        self._waiting = 0  # bytes of messages in the queue, about
        self._paused = False
        self._ended = False  # the client sends no more
        self._task: asyncio.Task[None] | None = None
        self._out: list[bytes] = []
        self._collected = 0
        self._writable: asyncio.Future[None] | None = None
        self._arrived: asyncio.Future[None] | None = None  # a statement waits for the client's next message
        self._transport: asyncio.Transport | None = None
        self._accepted = False  # an SSLRequest, and the handshake has not begun
        self._received: Charged | None = None  # bytes of messages, incomplete ones among them, that the session is charged for
        self._unsent: Charged | None = None
        self._early: list[bytes] | None = None  # what comes inside TLS before asyncio has told that it stands
        self.session = Session(gateway, self)

    # --- asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self._transport.set_write_buffer_limits(high=WRITE_BYTES_HIGH)
        peer = transport.get_extra_info("socket")
        if peer is not None and peer.family != getattr(socket, "AF_UNIX", None):
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in KEEPALIVE:
                if hasattr(socket, name):
                    peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        if len(self._gateway.connections) >= CONNECTIONS_MAX:
            oldest = next(iter(self._gateway.strangers), self)
            self._gateway.strangers.pop(oldest, None)
            oldest.abort()
        self._gateway.connections.add(self)
        self._gateway.strangers[self] = None
        self.session.peer = peer_of(transport, self._gateway.insecure)
        self._impatience = self._loop.call_later(STARTUP_TIMEOUT_S, self._give_up)

    def _give_up(self) -> None:
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
            answer = simple.ready_answer(session, data[5:-1])
            if answer is not None and self._transport is not None:
                session.activity.polled(data[5:-1])
                self._transport.write(answer)
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
        """Charges the session for what was received and not yet worked on; one that may not hold it is ended."""
        if self._received is None:
            self._received = Charged(self.session.budget)
        try:
            self._received.set(size if size > RECEIVED_FREE else 0)
        except OutOfMemory as error:
            self.session.fatal(error.sqlstate, error.message, error.detail)

    def eof_received(self) -> bool:
        """The client sends no more. What it asked before is still answered, unless that would never end."""
        self._ended = True
        if self._task is None:
            self.close()
            return False
        if self.session.following or (self._arrived is not None and not self._arrived.done()):
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
        self._gateway.connections.discard(self)
        self._gateway.strangers.pop(self, None)

    def pause_writing(self) -> None:
        if self._writable is None:
            self._writable = self._loop.create_future()
            self._unsent = Charged(self.session.budget)
            try:
                self._unsent.set(UNSENT_BYTES)
            except OutOfMemory:
                log.warning("a connection of %s is closed: its client does not read, and memory is short", self.session.user)
                self.abort()

    def resume_writing(self) -> None:
        self._wake()
        if self._unsent is not None:
            self._unsent.set(0)
            self._unsent = None
        self._loop.call_soon(self._pump)

    def _wake(self) -> None:
        if self._writable is not None:
            if not self._writable.done():
                self._writable.set_result(None)
            self._writable = None

    # --- TLS

    def encrypt(self, identity: Identity) -> None:
        """Starts TLS. Bytes that come before the handshake end the connection: somebody between us and the client may have sent them."""
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
        self._accepted, self._early = False, []  # what comes from here on goes through TLS first
        try:
            transport = await self._loop.start_tls(
                self._transport, self, identity.context, server_side=True, ssl_handshake_timeout=STARTUP_TIMEOUT_S
            )
        except (OSError, asyncio.TimeoutError) as error:  # ssl.SSLError is an OSError
            log.info("no TLS with %s: %s", self.session.peer.host, error)
            self.abort()
            return
        finally:
            self._task = None
        if transport is None or self._transport is None:
            return  # gone meanwhile
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_BYTES_HIGH)
        self.session.peer = replace(
            self.session.peer, tls=True, certificate=_common_name(transport.get_extra_info("peercert")), end_point=identity.end_point
        )
        early, self._early = self._early or [], None
        for data in early:
            self.data_received(data)

    # --- messages

    def _pump(self) -> None:
        """Works on what was received until something takes time, or the client is to read first."""
        while self._queue and self._task is None and self._transport is not None:
            if self._writable is not None:
                return  # until `resume_writing`
            if self._transport.get_write_buffer_size() > WRITE_BYTES_HIGH:
                self._loop.call_later(RETRY_S, self._pump)  # it may be sent before it is paused
                return
            work = self.session.receive(self._queue.popleft())
            if not self._decoder.authenticated:
                self._start_up()
            if work is not None:
                self._task = self._loop.create_task(self._run(work))
        if not self._queue:
            self._resume()
            if self._ended and self._task is None:
                self.close()

    def _start_up(self) -> None:
        """Decodes the next message of the start-up, or all that is buffered once the client is authenticated."""
        self._decoder.authenticated = self.session.machine.phase in AUTHENTICATED
        if self._decoder.authenticated:
            self._gateway.strangers.pop(self, None)
        if self._early is None:  # inside TLS the bytes come from elsewhere
            self._queue.extend(self._decoder.feed(b""))

    def _resume(self) -> None:
        """Nothing waits any more."""
        self._waiting = 0
        if self._received is not None:
            self._hold_received(self._decoder.buffered)
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    async def _run(self, work: Work) -> None:
        try:
            await work
        except asyncio.CancelledError:
            self.close()
        except Exception as error:  # noqa: BLE001  # counted and logged
            self._gateway.internal_errors.reported(error, self.session.activity.query.decode(errors="replace"))
            self.close()
        finally:
            self._task = None
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
        # not wait_for, which may answer a cancelling with a result (until Python 3.12)
        if self._writable is not None:
            await asyncio.wait((self._writable,), timeout=timeout)
        if self._transport is None:
            raise asyncio.CancelledError
        return self._writable is None

    def close(self) -> None:
        self.flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
