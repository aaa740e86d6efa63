"""Bytes to frames to messages, however the network cut or merged them.

A frame is one type byte, a four-byte big-endian length that counts itself, and the body. The first frame of a connection has
no type byte; there may be several such (SSLRequest, GSSENCRequest, then the start-up).

    feed(bytes) ──► buffer ──► [complete frame?] ──► Message
                                   └─ no ──► wait for more

The buffer never holds more than one incomplete frame, and a frame's length is checked when its first five bytes are there.
After a fatal `Malformed` nothing more is read. Until the client is authenticated, messages are read one at a time, only those of
the authentication are read, and each has at most AUTHENTICATION_BYTES_MAX bytes.

Source: PostgreSQL 15, chapter "Frontend/Backend Protocol", "Message Formats"; h11 for the shape.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError

from gateway.protocol import messages as m
from gateway.protocol.decode import PROTOCOL_VIOLATION, READERS, Unreadable, read_startup
from gateway.protocol.limits import AUTHENTICATION_BYTES_MAX, STARTUP_BYTES_MAX

AUTHENTICATING = frozenset(b"pX")  # letters of the messages that a client may send before it is authenticated

_length_at = Struct("!I").unpack_from


class Decoder:
    """`started`: the start-up has been read, so frames have a type byte. Set by the decoder itself.

    `authenticated`: all messages are allowed. Set by the owner, who then calls `feed(b"")` for what is buffered.
    """

    __slots__ = ("_buffer", "_dead", "_needed", "authenticated", "started")

    def __init__(self, *, started: bool = False) -> None:
        self.started = self.authenticated = started
        self._buffer = bytearray()
        self._needed = 0  # bytes the buffer must hold before another look at it is worth while
        self._dead = False

    @property
    def buffered(self) -> int:
        return len(self._buffer)

    def feed(self, data: bytes) -> list[m.Message]:
        """Returns the messages that `data` completes, in order. Never raises; what cannot be read is a `Malformed` among them.

        Returns at most one message while the client is not authenticated: the answer to it decides what may follow.
        """
        if self._dead:
            return []
        if self._buffer:
            self._buffer += data
            if len(self._buffer) < self._needed:
                return []
            data = bytes(self._buffer)
            self._buffer.clear()
        out: list[m.Message] = []
        at, size = 0, len(data)
        while at < size and not self._dead:
            taken = self._frame(data, at, size, out) if self.started else self._startup(data, at, size, out)
            if not taken:
                break
            at += taken
            if not self.authenticated:
                self._needed = 0
                break
        if at < size and not self._dead:
            self._buffer += data[at:] if at else data
        return out

    def _frame(self, data: bytes, at: int, size: int, out: list[m.Message]) -> int:
        """Reads one frame at `at` into `out`; its size, or 0 if it is not all there."""
        reader = READERS.get(data[at])
        if not self.authenticated and data[at] not in AUTHENTICATING:
            return self._fatal(out, "", f"expected password response, got message type {data[at]}")
        if reader is None:
            return self._fatal(out, "", f"invalid frontend message type {data[at]}")
        if size - at < 5:
            self._needed = 5
            return 0
        length: int = _length_at(data, at + 1)[0]
        read, limit = reader
        if not self.authenticated:
            limit = min(limit, AUTHENTICATION_BYTES_MAX)
        letter = chr(data[at])
        if length < 4 or length - 4 > limit:
            return self._fatal(out, letter, "invalid message length")
        if size - at < length + 1:
            self._needed = length + 1
            return 0
        try:
            out.append(read(data[at + 5 : at + 1 + length]))
        except Unreadable as error:
            out.append(m.Malformed(letter, error.sqlstate, error.reason, False))
        except (StructError, IndexError):
            out.append(m.Malformed(letter, PROTOCOL_VIOLATION, "insufficient data left in message", False))
        return length + 1

    def _startup(self, data: bytes, at: int, size: int, out: list[m.Message]) -> int:
        if size - at < 4:
            self._needed = 4
            return 0
        length: int = _length_at(data, at)[0]
        if not 8 <= length <= STARTUP_BYTES_MAX:
            return self._fatal(out, "", "invalid length of startup packet")
        if size - at < length:
            self._needed = length
            return 0
        try:
            message = read_startup(data[at + 4 : at + length])
        except Unreadable as error:
            return self._fatal(out, "", error.reason)
        self.started = isinstance(message, m.StartupMessage)
        self._dead = isinstance(message, m.CancelRequest)
        out.append(message)
        return length

    def _fatal(self, out: list[m.Message], letter: str, reason: str) -> int:
        self._dead = True
        out.append(m.Malformed(letter, PROTOCOL_VIOLATION, reason, True))
        return 1
