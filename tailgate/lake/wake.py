"""Wakes the thread that follows the log when there is a new entry.

    engine: entry n is durable ──"n\\n" on the stream of GET /entries──► wait() returns ──► the thread reads the log

A line is a hint: the thread reads the log itself, so a lost one delays an entry by a second. Without an engine, the log is polled
every 20 to 50 ms. An engine that sends no heartbeat counts as gone. In a bucket, where each look is a request, looks are less frequent.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time

from tailgate.lake import control
from tailgate.lake.folder import Lake
from tailgate.lake.writer.engines import announced

POLL = 0.02  # seconds between polls of the log without an engine; the average delay is half of it
POLL_IDLE = 0.05  # the same after IDLE_AFTER without a new entry: 0.3 % of a core
IDLE_AFTER = 2.0  # seconds
POLL_WOKEN = 1.0  # seconds between polls while an engine answers, in case a line is lost
LOOKS_WOKEN = 20  # the same, at least so many times `Store.look_s`: 10 s in a bucket
SILENCE = 3 * control.HEARTBEAT_S  # seconds without a line until an engine counts as gone
RETRY = 0.5  # seconds between attempts to reach an engine
CONNECT_TIMEOUT = 0.1  # seconds; the engine listens on this machine
LINE_BYTES_MAX = 1 << 16  # of the answer's head, and of lines that are read at once


class Wake:
    """Waits for new log entries. One thread calls `start`, `wait` and `seen`; any thread may call `interrupt`."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._sleeping: socket.socket | None = None
        self._waking: socket.socket | None = None
        self._stream: _Stream | None = None
        self._retry_at = 0.0
        self._n = 0
        self._seen = 0.0

    def start(self, n: int) -> None:
        """Begins after entry `n`."""
        self._n = n
        self._sleeping, self._waking = socket.socketpair()

    @property
    def answering(self) -> bool:
        """Returns whether an engine announces entries."""
        return self._stream is not None and self._stream.answered

    def wait(self) -> None:
        """Returns when there may be a new entry."""
        self._connect()
        began = time.monotonic()
        assert self._sleeping is not None
        while (left := began + self._poll_s - time.monotonic()) > 0:
            stream = self._stream
            readable = _readable([self._sleeping] if stream is None else [self._sleeping, stream.socket], left)
            if self._sleeping.fileno() in readable:
                return
            if stream is None:
                continue
            if not self._is_alive(stream, bool(readable)):
                self._disconnect()
                return  # the newest lines may be lost
            if stream.newest > self._n:
                self._lake.log.durable(stream.newest)
                return

    def seen(self, n: int) -> None:
        """Says that entries up to `n` need no wake-up."""
        self._n = max(self._n, n)
        self._seen = time.monotonic()

    def interrupt(self) -> None:
        """Ends the wait of the thread, and all later ones at once."""
        if self._waking is not None:
            with contextlib.suppress(OSError):
                self._waking.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Closes the sockets. No thread waits any more."""
        self._disconnect()
        for end in (self._sleeping, self._waking):
            if end is not None:
                end.close()

    @property
    def _poll_s(self) -> float:
        if self.answering:
            return max(POLL_WOKEN, LOOKS_WOKEN * self._lake.store.look_s)
        return max(POLL_IDLE if time.monotonic() - self._seen > IDLE_AFTER else POLL, self._lake.store.look_s)

    def _connect(self) -> None:
        if self._stream is not None or time.monotonic() < self._retry_at:
            return
        self._retry_at = time.monotonic() + RETRY
        with contextlib.suppress(OSError, ValueError, KeyError):
            engine = announced(self._lake)
            self._stream = None if engine is None else _Stream(engine.address, engine.token)

    def _is_alive(self, stream: _Stream, is_readable: bool) -> bool:
        """Reads from the stream, if there is something. Returns whether the engine still sends lines."""
        if is_readable:
            try:
                stream.read()
            except (OSError, ValueError):
                return False
        return time.monotonic() - stream.heard < SILENCE

    def _disconnect(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def _readable(sockets: list[socket.socket], timeout_s: float) -> set[int]:
    """Returns the descriptors that can be read. Unlike `select`, it takes those of a process with thousands of clients."""
    poll = select.poll()
    for one in sockets:
        poll.register(one, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(timeout_s * 1000)}


class _Stream:
    """An open stream of an engine. `newest`: the last number. `heard`: when data arrived."""

    def __init__(self, address: str, token: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT)
        headers = {"Host": address, **control.headers(token)}
        lines = [f"GET {control.ENTRIES} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        try:
            self.socket.sendall("\r\n".join(lines).encode())
        except OSError:
            self.socket.close()
            raise
        self.socket.setblocking(False)
        self._rest = b""
        self.answered = False
        self.newest = 0
        self.heard = time.monotonic()

    def read(self) -> None:
        """Reads the data that has arrived. Raises OSError if the stream ends, ValueError if it is not one."""
        data = self.socket.recv(LINE_BYTES_MAX)
        if not data:
            raise ConnectionError("the engine has ended the stream")
        self.heard = time.monotonic()
        self._rest += data
        if not self.answered:
            head, end, rest = self._rest.partition(b"\r\n\r\n")
            if not end:
                if len(self._rest) > LINE_BYTES_MAX:
                    raise ValueError("the engine does not answer with HTTP")
                return
            if head.split(b" ", 2)[1:2] != [b"200"]:
                raise ValueError("the engine refuses the stream")
            self.answered, self._rest = True, rest
        *lines, self._rest = self._rest.split(b"\n")
        if lines:
            self.newest = max(self.newest, *map(int, lines))

    def close(self) -> None:
        self.socket.close()
