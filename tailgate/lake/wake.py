"""Wakes the thread that follows the log when there is a new entry, and receives the entries that the engine sends.

    engine: entry n is durable ──"n length\\n" and its bytes, on the stream of GET /entries──► Log.receive ──► wait() returns
                                                                                     ──► the thread reads entry n from memory

While an engine sends entries, the log is not looked at, except every few seconds: a replaced engine may not have noticed it yet. Without
an engine, the log is polled every 20 to 50 ms. An engine that sends no heartbeat counts as gone. In a bucket, where each look is a request,
looks are less frequent.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time

from tailgate.lake import control
from tailgate.lake.folder import Lake
from tailgate.lake.host import process_tls, readiness
from tailgate.lake.log.recent import SENT_BYTES_MAX
from tailgate.lake.writer.engines import Announcement, announced

POLL = 0.02  # seconds between polls of the log without an engine; the average delay is half of it
POLL_IDLE = 0.05  # the same after IDLE_AFTER without a new entry: 0.3 % of a core
IDLE_AFTER = 2.0  # seconds
POLL_WOKEN = 1.0  # seconds between polls while an engine answers
LOOKS_WOKEN = 60  # the same, at least so many times `Store.look_s`: 30 s in a bucket
SILENCE = 3 * control.HEARTBEAT_S  # seconds without a line until an engine counts as gone
RETRY = 0.5  # seconds between attempts to reach an engine
CONNECT_TIMEOUT = 0.1  # seconds, to an engine on this machine
REMOTE_CONNECT_TIMEOUT = 1.0  # seconds, to one that other machines reach; the log is not polled meanwhile
HEAD_BYTES_MAX = 1 << 16  # of the answer's head, and of a line
READ_BYTES = 1 << 18  # at once


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
            readable = readiness.readable([self._sleeping] if stream is None else [self._sleeping, stream.socket], left)
            if self._sleeping.fileno() in readable:
                return
            if stream is None:
                continue
            if not self._is_alive(stream, bool(readable)):
                self._disconnect()
                return  # the newest entries may be lost
            if stream.newest > self._n:
                return
        if self.answering:
            with contextlib.suppress(OSError):
                self._lake.log.look()

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
            self._stream = None if engine is None else _Stream(engine)

    def _is_alive(self, stream: _Stream, is_readable: bool) -> bool:
        """Reads from the stream, if there is something. Returns whether the engine still sends lines."""
        if is_readable:
            try:
                entries = stream.read()
            except (OSError, ValueError):
                return False
            for n, content in entries:
                self._lake.log.receive(n, content)
            self._lake.log.looks = stream.newest == 0
        return time.monotonic() - stream.heard < SILENCE

    def _disconnect(self) -> None:
        if self._stream is not None:
            self._lake.log.looks = True
            self._stream.close()
            self._stream = None


class _Stream:
    """An open stream of an engine. `newest`: the last number. `heard`: when data arrived."""

    def __init__(self, engine: Announcement) -> None:
        timeout_s = CONNECT_TIMEOUT if engine.certificate is None else REMOTE_CONNECT_TIMEOUT
        self.socket = process_tls.connect(engine.address, engine.certificate, timeout_s)
        headers = {"Host": engine.address, **control.headers(engine.token)}
        lines = [f"GET {control.ENTRIES} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        try:
            self.socket.sendall("\r\n".join(lines).encode())
        except OSError:
            self.socket.close()
            raise
        self.socket.setblocking(False)
        self._rest = bytearray()
        self.answered = False
        self.newest = 0
        self.heard = time.monotonic()

    def read(self) -> list[tuple[int, bytes | None]]:
        """Returns the entries that have arrived, each with its bytes, if the engine sends them.

        Raises OSError if the stream ends, ValueError if it is not one.
        """
        try:
            data = self.socket.recv(READ_BYTES)
        except ssl.SSLWantReadError:  # a part of a record of TLS
            return []
        if not data:
            raise ConnectionError("the engine has ended the stream")
        self.heard = time.monotonic()
        self._rest += data
        if not self.answered:
            head, end, rest = self._rest.partition(b"\r\n\r\n")
            if not end:
                if len(self._rest) > HEAD_BYTES_MAX:
                    raise ValueError("the engine does not answer with HTTP")
                return []
            if head.split(b" ", 2)[1:2] != [b"200"]:
                raise ValueError("the engine refuses the stream")
            self.answered, self._rest = True, rest
        entries = []
        while (entry := self._next()) is not None:
            entries.append(entry)
            self.newest = max(self.newest, entry[0])
        return entries

    def _next(self) -> tuple[int, bytes | None] | None:
        """Removes the first entry from the data and returns it, or None if it is not complete. An earlier engine sends numbers only."""
        end = self._rest.find(b"\n", 0, HEAD_BYTES_MAX)
        if end < 0:
            return None
        number, _, length = self._rest[:end].partition(b" ")
        size = int(length or b"0")
        if size > SENT_BYTES_MAX:
            raise ValueError("the engine sends an entry that is too large")
        if len(self._rest) < end + 1 + size:
            return None
        content = bytes(self._rest[end + 1 : end + 1 + size]) if size else None
        del self._rest[: end + 1 + size]
        return int(number), content

    def close(self) -> None:
        self.socket.close()
