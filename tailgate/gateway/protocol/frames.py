"""Splits received bytes into frames and decodes them to messages, at any fragmentation.

A frame is one type byte, a four-byte big-endian length that counts itself, and the body. The first frames of a connection
(SSLRequest, GSSENCRequest, StartupMessage) have no type byte.

    feed(bytes) ──► buffer ──► [complete frame?] ──► Message
                                   └─ no ──► wait for more

The buffer never holds more than one incomplete frame, whose length is checked as soon as its first
five bytes arrive. After a fatal `Malformed` nothing more is read. Until the client is
authenticated, messages are read one at a time; only messages of the authentication are allowed,
with at most AUTHENTICATION_BYTES_MAX bytes each.

Source: PostgreSQL 15, chapter "Frontend/Backend Protocol", "Message Formats"; the structure follows h11.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError

from tailgate.gateway.protocol import messages as m
from tailgate.gateway.protocol.decode import PROTOCOL_VIOLATION, READERS, Unreadable, read_startup
from tailgate.gateway.protocol.limits import AUTHENTICATION_BYTES_MAX, STARTUP_BYTES_MAX

AUTHENTICATING = frozenset(b"pX")  # letters of the messages that a client may send before it is authenticated

_length_at = Struct("!I").unpack_from


class Decoder:
    """A decoder of one connection's bytes.

    `started` is set by the decoder after the StartupMessage: from then on frames have a type byte.
    `authenticated` is set by the owner to allow all messages; the owner then calls `feed(b"")` to
    decode buffered bytes.
    """

    __slots__ = ("_buffer", "_dead", "_needed", "authenticated", "started")

    def __init__(self, *, started: bool = False) -> None:
        self.started = self.authenticated = started
        self._buffer = bytearray()
        self._needed = 0  # bytes that the buffer must hold before it is worth decoding again
        self._dead = False

    @property
    def buffered(self) -> int:
        return len(self._buffer)

    def feed(self, data: bytes) -> list[m.Message]:
        """Returns the messages that `data` completes, in order. Never raises.

        An unreadable frame becomes a `Malformed` message. Before authentication, returns at most
        one message, because the reply to it decides which messages are allowed next.
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
            length = self._frame(data, at, size, out) if self.started else self._startup(data, at, size, out)
            if not length:
                break
            at += length
            if not self.authenticated:
                self._needed = 0
                break
        if at < size and not self._dead:
            self._buffer += data[at:] if at else data
        return out

    def _frame(self, data: bytes, at: int, size: int, out: list[m.Message]) -> int:
        """Reads the frame at `at` into `out`; returns its size, or 0 if it is incomplete."""
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
        """Reads a frame without type byte; returns its size, or 0 if it is incomplete."""
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
