"""The stream of `GET /entries`: the numbers of the log's entries, one per line, as soon as each is durable.

    tick: entry n is durable ──► announce(n) ──► "n\\n" to every gateway, by the thread that has appended the entry
    the connection's thread  ──► the newest number every HEARTBEAT_S, until the gateway disconnects

A gateway holds one such connection. A line is a hint: the gateway reads the log. A connection that does not take a line is closed.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading

from tailgate.lake.control import HEARTBEAT_S
from tailgate.lake.log.log import Log

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"


class EntryStream:
    """The open streams of a lake's entries, in the process that appends them. Safe from many threads."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        log.on_announce(self._announce)

    def _announce(self, n: int) -> None:
        """Sends the number of a durable entry to all gateways, without waiting for any of them."""
        line = b"%d\n" % n
        with self._lock:
            for connection in list(self._connections):
                self._send(connection, line)

    def serve(self, connection: socket.socket) -> None:
        """Sends the numbers until the client disconnects. Runs in the connection's thread."""
        connection.setblocking(False)
        with self._lock:
            self._connections.add(connection)
            self._send(connection, HEAD)
        while True:
            with self._lock:
                if connection not in self._connections:
                    return
                header = self._log.seen
                self._send(connection, b"%d\n" % (0 if header is None else header.n))
            readable, _, _ = select.select([connection], [], [], HEARTBEAT_S)
            if readable:  # a client sends nothing after its request
                break
        with self._lock:
            self._connections.discard(connection)

    def _send(self, connection: socket.socket, data: bytes) -> None:
        """Sends some bytes as a whole, or closes the connection. The caller holds the lock."""
        try:
            if connection.send(data) == len(data):
                return
        except OSError:  # also of a full buffer
            pass
        self._connections.discard(connection)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
