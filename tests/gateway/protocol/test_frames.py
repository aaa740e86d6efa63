"""Tests that the decoder accepts any bytes, split or merged in any way.

It returns messages or one fatal Malformed, and never raises.
"""

from __future__ import annotations

from itertools import pairwise
from struct import pack

from hypothesis import given, settings
from hypothesis import strategies as st

from tailgate.gateway.protocol import messages as m
from tailgate.gateway.protocol.backend import frame
from tailgate.gateway.protocol.decode import READERS
from tailgate.gateway.protocol.frames import Decoder
from tailgate.gateway.protocol.limits import AUTHENTICATION_BYTES_MAX, STATEMENT_BYTES_MAX
from tailgate.gateway.protocol.states import Machine, Phase, ProtocolError

STARTUP = pack("!II", 4 + 4 + len(b"user\0ann\0database\0shop\0\0"), 196608) + b"user\0ann\0database\0shop\0\0"


def parse(name: bytes, text: bytes, *oids: int) -> bytes:
    return frame(b"P", name + b"\0" + text + b"\0" + pack(f"!H{len(oids)}I", len(oids), *oids))


def bind(portal: bytes, statement: bytes, *values: bytes | None) -> bytes:
    body = portal + b"\0" + statement + b"\0" + pack("!HhH", 1, 1, len(values))
    for value in values:
        body += pack("!i", -1) if value is None else pack("!i", len(value)) + value
    return frame(b"B", body + pack("!Hh", 1, 0))


CONVERSATION = b"".join(
    (
        pack("!II", 8, 80877104),
        pack("!II", 8, 80877103),
        STARTUP,
        frame(b"Q", b"select 1\0"),
        parse(b"s", b"select $1", 23),
        bind(b"", b"s", b"\0\0\0\1", None),
        frame(b"D", b"Pp\0"),
        frame(b"E", b"p\0" + pack("!i", 100)),
        frame(b"C", b"Ss\0"),
        frame(b"H", b""),
        frame(b"S", b""),
        frame(b"d", b"1\t2\n"),
        frame(b"c", b""),
        frame(b"f", b"why\0"),
        frame(b"X", b""),
    )
)
MESSAGES = [
    m.GSSENCRequest(),
    m.SSLRequest(),
    m.StartupMessage((3, 0), (("user", "ann"), ("database", "shop"))),
    m.Query(b"select 1"),
    m.Parse("s", b"select $1", (23,)),
    m.Bind("", "s", (1,), (b"\0\0\0\1", None), (0,)),
    m.Describe("P", "p"),
    m.Execute("p", 100),
    m.Close("S", "s"),
    m.Flush(),
    m.Sync(),
    m.CopyData(b"1\t2\n"),
    m.CopyDone(),
    m.CopyFail("why"),
    m.Terminate(),
]


def _trusting() -> Decoder:
    """Returns a decoder for a client that needs no password."""
    decoder = Decoder()
    decoder.authenticated = True
    return decoder


def test_a_conversation_in_one_piece() -> None:
    assert _trusting().feed(CONVERSATION) == MESSAGES


@given(st.lists(st.integers(0, len(CONVERSATION)), max_size=40))
def test_cuts_do_not_matter(cuts: list[int]) -> None:
    decoder, out = _trusting(), []
    places = [0, *sorted(cuts), len(CONVERSATION)]
    for start, end in pairwise(places):
        out += decoder.feed(CONVERSATION[start:end])
    assert out == MESSAGES
    assert decoder.buffered == 0


@settings(max_examples=500)
@given(st.lists(st.binary(max_size=64), max_size=6), st.booleans())
def test_random_bytes_never_raise(pieces: list[bytes], started: bool) -> None:
    decoder = Decoder(started=started)
    for piece in pieces:
        for message in decoder.feed(piece):
            assert isinstance(message, m.Message.__args__)  # type: ignore[attr-defined]


frames = st.builds(frame, st.sampled_from([bytes([letter]) for letter in READERS]), st.binary(max_size=40))


@settings(max_examples=500)
@given(st.lists(frames, max_size=12), st.lists(st.integers(0, 400), max_size=10))
def test_random_frames_keep_their_borders(pieces: list[bytes], cuts: list[int]) -> None:
    """A complete frame with any body gives one message, which the state machine accepts or refuses."""
    data, decoder, out = b"".join(pieces), Decoder(started=True), []
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in pairwise(places):
        out += decoder.feed(data[start:end])
    assert len(out) == len(pieces)
    machine = Machine(Phase.READY)
    for message in out:
        if machine.phase is Phase.CLOSED:
            break
        try:
            machine.malformed(message) if isinstance(message, m.Malformed) else machine.accept(message)
        except ProtocolError:
            break


def test_unknown_letter_is_fatal() -> None:
    decoder = Decoder(started=True)
    assert decoder.feed(b"y\0\0\0\4") == [m.Malformed("", "08P01", "invalid frontend message type 121", True)]
    assert decoder.feed(frame(b"S", b"")) == []


def test_a_length_is_refused_before_the_body_is_sent() -> None:
    (bad,) = Decoder(started=True).feed(b"Q" + pack("!I", 0x7FFFFFFF))
    assert bad == m.Malformed("Q", "08P01", "invalid message length", True)
    (bad,) = Decoder(started=True).feed(b"S" + pack("!I", 1 << 20))
    assert isinstance(bad, m.Malformed)
    assert bad.fatal


def test_long_statement_is_refused_and_the_next_is_read() -> None:
    text = b"select 1 --" + b"x" * STATEMENT_BYTES_MAX
    bad, good = Decoder(started=True).feed(frame(b"Q", text + b"\0") + frame(b"Q", b"select 2\0"))
    assert isinstance(bad, m.Malformed)
    assert (bad.sqlstate, bad.fatal) == ("54000", False)
    assert good == m.Query(b"select 2")


def test_bind_with_a_lying_count_or_length() -> None:
    for body in (b"\0\0\0\0\x7f\xff", b"\0\0\0\0\0\1\0\0\0\x09abc\0\0", b"\0\0\0\0\0\1\xff\xff\xff\xfe\0\0"):
        (bad,) = Decoder(started=True).feed(frame(b"B", body))
        assert bad == m.Malformed("B", "08P01", "insufficient data left in message", False)


def test_a_large_frame_in_small_pieces_is_read_once() -> None:
    """The cost is linear.

    If each piece scanned all earlier ones, 8 MB in pieces of 1 KiB would take minutes.
    """
    data = frame(b"d", b"x" * 8_000_000)
    decoder, out = Decoder(started=True), []
    for at in range(0, len(data), 1024):
        out += decoder.feed(data[at : at + 1024])
    assert len(out) == 1


def test_before_authentication_only_its_messages_are_read() -> None:
    for letter in READERS:
        decoder = Decoder()
        assert decoder.feed(STARTUP) == [MESSAGES[2]]
        (message,) = decoder.feed(bytes([letter]) + pack("!I", 4 + 9_000) + b"x" * 9_000)[:1] or [None]
        if letter in b"pX":
            assert not isinstance(message, m.Malformed) or letter == ord("X")
            continue
        assert message == m.Malformed("", "08P01", f"expected password response, got message type {letter}", True)
        assert decoder.feed(b"x" * 100_000) == []
        assert decoder.buffered == 0


def test_a_message_of_the_authentication_has_a_limit() -> None:
    decoder = Decoder()
    decoder.feed(STARTUP)
    (bad,) = decoder.feed(b"p" + pack("!I", 4 + AUTHENTICATION_BYTES_MAX + 1))
    assert bad == m.Malformed("p", "08P01", "invalid message length", True)


def test_before_authentication_messages_are_read_one_at_a_time() -> None:
    decoder = Decoder()
    assert decoder.feed(STARTUP + frame(b"Q", b"select 1\0") * 2) == [MESSAGES[2]]
    decoder.authenticated = True
    assert decoder.feed(b"") == [m.Query(b"select 1")] * 2


def test_messages_after_a_startup_in_pieces_are_read() -> None:
    decoder = Decoder()
    assert decoder.feed(STARTUP[:10]) == []
    assert decoder.feed(STARTUP[10:] + frame(b"p", b"md5")) == [MESSAGES[2]]
    assert decoder.feed(b"") == [m.PasswordMessage(b"md5")]
