"""Tests authentication: each kind of peer with each kind of role, and SCRAM with valid and invalid messages."""

from __future__ import annotations

import base64
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from struct import pack
from threading import Barrier

import pytest

from tailgate.gateway.protocol.scram import Exchange, Refused, WrongPassword
from tailgate.gateway.security.authentication import Challenged, Peer, Trusted, decide
from tailgate.lake.catalog import Catalog, Change
from tailgate.lake.catalog.roles import OPERATOR_ID, Role
from tailgate.lake.errors import TailgateError
from tailgate.lake.folder import Lake
from tailgate.lake.passwords import parse, prepared, verifier
from tailgate.lake.peers import secret

HERE, NEAR_TLS = Peer("127.0.0.1"), Peer("127.0.0.1", tls=True, end_point=b"x")
FAR, FAR_TLS = Peer("10.0.0.7", loopback=False), Peer("10.0.0.7", loopback=False, tls=True, end_point=b"x")
SHOWN = Peer("10.0.0.7", loopback=False, tls=True, certificate="bare", end_point=b"x")
OPERATOR = Peer("10.0.0.7", loopback=False, tls=True, certificate="tailgate", end_point=b"x")
NEAR_OPERATOR = Peer("127.0.0.1", tls=True, certificate="tailgate", end_point=b"x")
NEAR_SHOWN = Peer("127.0.0.1", tls=True, certificate="bare", end_point=b"x")
SECRET = b"s" * 32
OPEN = Peer("10.0.0.7", loopback=False, insecure=True)
ROLES = Catalog().apply(Change(put_roles=(Role(20000, "ann", True, verifier=str(verifier("x"))), Role(20001, "bare", True))))


@pytest.mark.parametrize(
    ("catalog", "user", "peer", "expected"),
    [
        (Catalog(), "anybody", HERE, OPERATOR_ID),
        (Catalog(), "anybody", OPEN, OPERATOR_ID),
        (Catalog(), "anybody", FAR, "28000"),
        (Catalog(), "anybody", FAR_TLS, "28000"),
        (ROLES, "ann", HERE, ("asked", 20000)),
        (ROLES, "ann", FAR, "28000"),
        (ROLES, "ann", FAR_TLS, ("asked", 20000)),
        (ROLES, "ann", OPEN, ("asked", 20000)),
        (ROLES, "bare", HERE, 20001),
        (ROLES, "bare", NEAR_TLS, 20001),
        (ROLES, "bare", FAR_TLS, ("asked", None)),
        (ROLES, "bare", SHOWN, 20001),
        (ROLES, "ann", SHOWN, ("asked", 20000)),
        (ROLES, "nobody", HERE, ("asked", None)),
        (ROLES, "nobody", FAR_TLS, ("asked", None)),
        (ROLES, "public", HERE, ("asked", None)),
        (ROLES, "tailgate", HERE, OPERATOR_ID),
        (ROLES, "tailgate", FAR_TLS, ("asked", None)),
        (ROLES, "tailgate", SHOWN, ("asked", None)),
        (ROLES, "tailgate", OPERATOR, ("asked", None)),
        (ROLES, "tailgate", NEAR_OPERATOR, OPERATOR_ID),
        (ROLES, "tailgate", NEAR_SHOWN, ("asked", None)),
        (ROLES, "bare", NEAR_SHOWN, 20001),
        (ROLES, "bare", NEAR_OPERATOR, ("asked", None)),
        (Catalog(), "tailgate", OPERATOR, "28000"),
    ],
)
def test_decide(catalog: Catalog, user: str, peer: Peer, expected: object) -> None:
    if isinstance(expected, str):
        with pytest.raises(TailgateError) as raised:
            decide(catalog, user, peer, SECRET)
        assert raised.value.sqlstate == expected
        return
    match decide(catalog, user, peer, SECRET):
        case Trusted(role=role):
            assert role == expected
        case Challenged(role=role):
            assert ("asked", role) == expected


def test_unknown_roles_look_like_others() -> None:
    """The salt depends on the name only."""
    salts = set()
    for user in ("nobody", "nobody", "somebody"):
        decision = decide(ROLES, user, HERE, SECRET)
        assert isinstance(decision, Challenged)
        salts.add(decision.exchange.first(initial("SCRAM-SHA-256", "n,,n=,r=abc")).split(b",")[1])
    assert len(salts) == 2


def test_salts_of_unknown_roles_need_the_secret() -> None:
    """A client that knows the lake's public id cannot compute the salts."""

    def salt(secret: bytes) -> bytes:
        decision = decide(ROLES, "nobody", HERE, secret)
        assert isinstance(decision, Challenged)
        return decision.exchange.first(initial("SCRAM-SHA-256", "n,,n=,r=abc")).split(b",")[1]

    assert salt(SECRET) == salt(SECRET) != salt(b"t" * 32)


def test_gateways_of_a_lake_share_the_secret(tmp_path: Path) -> None:
    one, other = Lake.create(tmp_path / "one"), Lake.create(tmp_path / "other")
    at_once = Barrier(8)

    def asked(_: int) -> bytes:
        at_once.wait()
        return secret(one)

    with ThreadPoolExecutor(8) as pool:
        (first,) = set(pool.map(asked, range(8)))
    assert len(first) == 32
    assert secret(Lake(one.path)) == first != secret(other)
    assert (one.path / "gateways" / "secret").stat().st_mode & 0o777 == 0o600
    assert first.hex() not in (one.path / "lake.json").read_text()


def initial(mechanism: str, message: str) -> bytes:
    return mechanism.encode() + b"\0" + pack("!i", len(message)) + message.encode()


SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def example() -> Exchange:
    """Returns an exchange with the values of the example in RFC 7677, section 3."""
    return Exchange(verifier("pencil", SALT, 4096), None, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")


FIRST = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
FINAL = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="


def test_the_example_of_the_rfc() -> None:
    exchange = example()
    challenge = exchange.first(initial("SCRAM-SHA-256", FIRST))
    assert challenge == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert exchange.final(FINAL.encode()) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("p=dHz", "p=eHz"), WrongPassword),
        (("c=biws", "c=eSws"), Refused),  # the client said y where it had said n
        (("r=rOp", "r=sOp"), Refused),
        ((",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", ""), Refused),
        (("VQ=", "!"), Refused),
        (("c=biws", "x"), Refused),
    ],
)
def test_wrong_answers(change: tuple[str, str], error: type[Exception]) -> None:
    exchange = example()
    exchange.first(initial("SCRAM-SHA-256", FIRST))
    with pytest.raises(error):
        exchange.final(FINAL.replace(*change).encode())


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        ("MD5", FIRST),
        ("SCRAM-SHA-256-PLUS", FIRST),
        ("SCRAM-SHA-256", "p=tls-unique,,n=,r=a"),
        ("SCRAM-SHA-256", "n,a=eve,n=,r=a"),
        ("SCRAM-SHA-256", "n,,m=x,n=,r=a"),
        ("SCRAM-SHA-256", "n,,n="),
        ("SCRAM-SHA-256", "n,,n=,r=\u0001"),
        ("SCRAM-SHA-256", ""),
    ],
)
def test_invalid_first_messages(mechanism: str, message: str) -> None:
    with pytest.raises(Refused):
        example().first(initial(mechanism, message))


def test_a_downgrade_is_noticed() -> None:
    """The client sends y if it supports channel binding but believes that the server does not.

    Here the server does, so an attacker in between has changed the list of mechanisms.
    """
    exchange = Exchange(verifier("x"), b"hash", "nonce")
    with pytest.raises(Refused, match="thinks the server does not"):
        exchange.first(initial("SCRAM-SHA-256", "y,,n=,r=abc"))


def test_random_bytes(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(5000):
        exchange = Exchange(verifier("x", b"0" * 16, 1), chance.choice([None, b"hash"]), "nonce")
        message = bytearray(initial("SCRAM-SHA-256", FIRST))
        for _ in range(chance.randrange(4)):
            message[chance.randrange(len(message))] = chance.randrange(256)
        try:
            exchange.first(bytes(message[: chance.randrange(len(message) + 1)]) if chance.random() < 0.3 else bytes(message))
            exchange.final(chance.randbytes(chance.randrange(200)) if chance.random() < 0.5 else FINAL.encode())
        except (Refused, WrongPassword):
            pass


def test_saslprep() -> None:
    """The examples of RFC 4013, section 3."""
    assert prepared("I\u00adX") == b"IX"
    assert prepared("\u00aa") == b"a"
    assert prepared("\u2168") == b"IX"
    assert prepared("a\u00a0b\u00e9") == "a bé".encode()
    assert prepared("\u0627\u0031") == "\u06271".encode()  # prohibited, so unchanged
    assert parse(str(verifier("\u2168"))) is not None
    assert parse("SCRAM-SHA-256$0:aa$bb:cc") is None
