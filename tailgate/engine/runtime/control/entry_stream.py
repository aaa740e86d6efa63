"""The stream of `GET /entries`: the log's entries, as soon as each is durable.

    tick: entry n is durable ──► announce(n) ──► "n length\\n" and its bytes to every gateway, by the thread that has appended the entry
    the connection's thread  ──► bytes that the socket does not take at once; "n 0\\n" with the newest number every HEARTBEAT_S

A gateway or sinks process holds one such connection. An entry above SENT_BYTES_MAX is sent without its bytes, with length 0: the reader
gets it from the store. A connection with more than WAITING_BYTES_MAX that were not taken is closed.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
import time

from tailgate.lake.control import HEARTBEAT_S
from tailgate.lake.log.log import Log

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nConnection: close\r\n\r\n"
SEND_BYTES = 1 << 16  # at once, because TLS takes all bytes of a call or none
WAITING_BYTES_MAX = 8 << 20  # of a connection: seconds of a busy log, which the reader then gets from the store


class EntryStream:
    """The open streams of a lake's entries, in the process that appends them. Safe from many threads."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._connections: set[_Connection] = set()
        log.on_announce(self._announce)

    def _announce(self, n: int, content: bytes | None) -> None:
        """Sends a durable entry to all gateways, without waiting for any of them."""
        data = _line(n, content or b"")
        with self._lock:
            for connection in list(self._connections):
                self._send(connection, data)

    def serve(self, connection: socket.socket) -> None:
        """Sends the entries until the client disconnects. Runs in the connection's thread."""
        connection.setblocking(False)
        own = _Connection(connection)
        with self._lock:
            self._connections.add(own)
            self._send(own, HEAD)
        heartbeat = 0.0
        try:
            while True:
                now = time.monotonic()
                with self._lock:
                    if own not in self._connections:
                        return
                    if now >= heartbeat:
                        header, heartbeat = self._log.seen, now + HEARTBEAT_S
                        self._send(own, _line(0 if header is None else header.n, b""))
                    else:
                        self._send(own, b"")
                    writing = select.POLLOUT if own.waiting else 0
                poll = select.poll()  # `select` refuses descriptors above 1023
                poll.register(connection, select.POLLIN | writing)
                poll.register(own.sleeping, select.POLLIN)
                events = dict(poll.poll((heartbeat - now) * 1000))
                if events.get(connection.fileno(), 0) & ~select.POLLOUT:  # a client sends nothing after its request
                    return
                if own.sleeping.fileno() in events:
                    own.sleeping.recv(1 << 10)
        finally:
            with self._lock:
                self._connections.discard(own)
                own.close()

    def _send(self, connection: _Connection, data: bytes) -> None:
        """Sends bytes, or lets the connection's thread send them. Ends the connection if too many wait. The caller holds the lock."""
        try:
            if connection.send(data):
                return
        except OSError:
            pass
        self._connections.discard(connection)
        with contextlib.suppress(OSError):
            connection.socket.shutdown(socket.SHUT_RDWR)


class _Connection:
    """An open stream. `waiting`: bytes that the socket has not taken yet, which its thread sends."""

    def __init__(self, socket_: socket.socket) -> None:
        self.socket = socket_
        self.waiting = bytearray()
        self.sleeping, self._waking = socket.socketpair()
        self._waking.setblocking(False)

    def send(self, data: bytes) -> bool:
        """Sends as much as the socket takes, and keeps the rest. Returns False if too much waits."""
        had_waiting = bool(self.waiting)
        self.waiting += data
        try:
            while self.waiting and (sent := self.socket.send(self.waiting[:SEND_BYTES])):
                del self.waiting[:sent]
        except (BlockingIOError, ssl.SSLWantWriteError):
            if not had_waiting:
                with contextlib.suppress(BlockingIOError):
                    self._waking.send(b"\0")  # its thread waits until the socket takes more
        return len(self.waiting) <= WAITING_BYTES_MAX

    def close(self) -> None:
        self.sleeping.close()
        self._waking.close()


def _line(n: int, content: bytes) -> bytes:
    return b"%d %d\n" % (n, len(content)) + content
