"""Fuzz tests of the decoder and the session with invalid and valid bytes.

The decoder must return the same messages however the input is split. A session must always answer
or disconnect. An input has up to ten frames: valid ones, valid ones with changed bytes, wrong
lengths, unknown message types, noise. Each input is split at random. `TAILGATE_FUZZ` sets the
number of inputs; the long test runs a million.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
from collections.abc import Iterator
from struct import pack

import pytest

from tailgate.gateway.handlers.messages import receive
from tailgate.gateway.protocol import messages as m
from tailgate.gateway.protocol.decode import READERS
from tailgate.gateway.protocol.frames import Decoder
from tailgate.gateway.protocol.limits import FRAME_BYTES_MAX, STARTUP_BYTES_MAX
from tailgate.gateway.protocol.states import Event, Machine, Phase, ProtocolError
from tailgate.gateway.server.connection import AUTHENTICATED
from tailgate.gateway.session.session import Session
from tests.wire.live import Live
from tests.wire.test_garbage import GOOD
from tests.wire.wire import Bind, Execute, Parse, Query, Sync, frame

FAST, LONG = int(os.environ.get("TAILGATE_FUZZ", 20_000)), 1_000_000
SESSIONS_FAST = FAST // 2


def startup(version: int, words: bytes) -> bytes:
    return pack("!II", len(words) + 9, version) + words + b"\0"


STARTUP = startup(196610, b"user\0ann\0")
STARTUPS = [
    pack("!II", 8, 80877103),
    pack("!II", 8, 80877104),
    pack("!III", 16, 80877102, 5) + b"abcd",
    STARTUP,
    startup(196608, b"user\0ann\0database\0\0"),
    startup(196608, b"user\0ann\0options\0-c x\0"),
    startup(196608, b"user\0ann\0options\0-c statement_timeout=1h\0"),
    startup(131072, b"user\0ann\0"),
]
MESSAGES = [
    *GOOD,
    Query(""),
    Query(";;"),
    Query("select 1; select 'two'; begin; select nothing"),
    Query("set datestyle = 'german'"),
    Query("set application_name = 'x'"),
    Query("\u0000\ufffd"),
    Query("select '" + "x" * 3000 + "'"),
    Parse("a", "select $1::int8 + 1", [20]),
    Parse("b", "select $1", [0]),
    Parse("c", "tail v", []),
    Bind("q", "a", [b"\0\0\0\0\0\0\0\1"], [1], [1]),
    Bind("", "a", ["x"]),
    Bind("", "b", ["1", "2"]),
    Execute("q", 1),
    Execute("", -1),
    frame(b"p", b"SCRAM-SHA-256\0\0\0\0\5n,,n="),
    frame(b"f", b"no\0"),
    frame(b"d", bytes(range(256))),
]


def inputs(chance: random.Random, *, begins: bool) -> bytes:
    parts = [chance.choice(STARTUPS)] * (begins and chance.random() < 0.7)
    broken = chance.choice([0.0, 0.1, 0.6])
    for _ in range(chance.randrange(1, 10)):
        part = chance.choice(MESSAGES)
        match chance.randrange(5) if chance.random() < broken else None:
            case 0:
                changed = bytearray(part)
                for _ in range(chance.randrange(1, 4)):
                    changed[chance.randrange(len(changed))] = chance.randrange(256)
                part = bytes(changed)
            case 1:  # a length that does not match the body
                part = part[:1] + pack("!i", chance.choice([-1, 0, 3, 4, len(part) - 2, len(part) + 3, 1 << 30, 1 << 31 - 1])) + part[5:]
            case 2:
                part = part[: chance.randrange(len(part))]
            case 3:
                part = frame(bytes([chance.choice(list(READERS))]), chance.randbytes(chance.randrange(30)))
            case 4:
                part = chance.randbytes(chance.randrange(1, 40))
        parts.append(part)
    return b"".join(parts)


def pieces(chance: random.Random, data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = chance.choice([1, 2, 3, 5, 40, 5000])
        yield data[at : at + size]
        at += size


def read(decoder: Decoder, piece: bytes) -> Iterator[m.Message]:
    """Yields all complete messages. Before authentication the decoder returns one at a time."""
    while messages := decoder.feed(piece):
        yield from messages
        piece = b""


def decode_all(seed: int, count: int) -> None:
    chance = random.Random(seed)
    for _ in range(count):
        begins = chance.random() < 0.2
        data = inputs(chance, begins=begins)
        one, cut = Decoder(started=not begins), Decoder(started=not begins)
        one.authenticated = cut.authenticated = chance.random() < 0.5
        whole = list(read(one, data))
        parts: list[m.Message] = []
        for piece in pieces(chance, data):
            parts += read(cut, piece)
            assert cut.buffered <= max(FRAME_BYTES_MAX + 5, STARTUP_BYTES_MAX)
        assert parts == whole
        assert sum(isinstance(x, m.Malformed) and x.fatal for x in whole) <= 1
        walk(whole, chance)


def walk(messages: list[m.Message], chance: random.Random) -> None:
    """Feeds the messages to the state machine, which accepts or refuses each until the end."""
    machine = Machine(chance.choice([Phase.STARTUP, Phase.READY]))
    for message in messages:
        if machine.phase is Phase.CLOSED:
            with pytest.raises(ProtocolError):
                machine.accept(m.Sync())
            return
        try:
            if isinstance(message, m.Malformed):
                machine.malformed(message)
            else:
                machine.accept(message)
            if machine.phase is Phase.AUTHENTICATION:
                machine.happened(Event.AUTHENTICATED)
            elif machine.phase in (Phase.READY, Phase.EXTENDED) and chance.random() < 0.2:
                machine.happened(Event.FAILED)
        except ProtocolError:
            machine.happened(Event.CLOSED)


class Sink:
    """A transport that collects the output. `check` asserts whole frames and no internal error."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.closed = False

    def write(self, data: bytes) -> None:
        self.data += data

    def flush(self) -> None:
        pass

    async def drain(self, timeout: float | None = None) -> bool:
        await asyncio.sleep(0)
        return True

    def close(self) -> None:
        self.closed = True

    def encrypt(self, identity: object) -> None:
        raise AssertionError

    def check(self) -> None:
        at = 0
        while at < len(self.data):
            if self.data[at : at + 1] == b"N" and len(self.data) - at < 5:
                return  # TLS is refused
            if self.data[at : at + 1] == b"N" and int.from_bytes(self.data[at + 1 : at + 5], "big") > len(self.data):
                at += 1
                continue
            size = int.from_bytes(self.data[at + 1 : at + 5], "big")
            letter, body = self.data[at : at + 1], bytes(self.data[at + 5 : at + 1 + size])
            assert size >= 4 and at + 1 + size <= len(self.data), bytes(self.data)
            assert letter != b"E" or b"CXX000" not in body, body
            at += 1 + size


async def converse(live: Live, seed: int, count: int) -> None:
    chance = random.Random(seed)
    for _ in range(count):
        begins = chance.random() < 0.2
        data = (b"" if begins else STARTUP) + inputs(chance, begins=begins) + Sync()
        decoder, sink = Decoder(), Sink()
        session = Session(live.gateway, sink)
        try:
            for piece in pieces(chance, data):
                for message in read(decoder, piece):
                    work = receive(session, message)
                    if work is not None:
                        await finished(work, session)
                    decoder.authenticated = session.machine.phase in AUTHENTICATED
                    if sink.closed:
                        break
        finally:
            session.end()
        sink.check()
    live.serving.progress.oldest()


async def finished(work, session: Session) -> None:
    """Waits for the session's work. Interrupts a TAIL, which would not end."""
    task = asyncio.ensure_future(work)
    for wait in (0.05, 1, 20):
        ended, _ = await asyncio.wait((task,), timeout=wait)
        if ended:
            return task.result()
        assert session.execution.following or wait < 20, session.execution.activity.query
        session.execution.interrupt("enough")
    raise AssertionError(session.execution.activity.query)


def conversations(live: Live, seed: int, count: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    live.call(converse(live, seed, 200), timeout=120)  # fills the caches
    gc.collect()
    before = len(gc.get_objects())
    live.call(converse(live, seed + 1, count), timeout=3600)
    assert caplog.records == []
    assert not live.gateway.sessions
    live.call(asyncio.sleep(0.2))
    gc.collect()
    assert len(gc.get_objects()) - before < 100_000 + 5 * min(count, 20_000)  # statement texts are cached, with limits


def test_decoding(seed: int) -> None:
    decode_all(seed, FAST)


def test_sessions(live: Live, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    conversations(live, seed, SESSIONS_FAST, caplog)


@pytest.mark.long
def test_decoding_a_million(seed: int) -> None:
    decode_all(seed, LONG)


@pytest.mark.long
def test_many_sessions(live: Live, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    conversations(live, seed, LONG, caplog)
