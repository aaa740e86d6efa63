"""The server side of SCRAM-SHA-256: the client proves that it knows the password, the server that it knows the verifier.

    AuthenticationSASL(mechanisms) ◄── first: mechanism, nonce ──► server-first: nonce, salt, iterations ◄── final: proof ──► signature

With TLS the proof may cover the hash of the server's certificate (`-PLUS`, tls-server-end-point). A
man in the middle has another certificate, so the proof fails.

Source: RFC 5802, RFC 7677, RFC 5929; PostgreSQL 15, src/backend/libpq/auth-scram.c, for checks and error messages.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from struct import Struct

from tailgate.lake.passwords import MECHANISM, Verifier

PLUS = MECHANISM + "-PLUS"
BINDING = "tls-server-end-point"

_length = Struct("!i").unpack_from


class Refused(Exception):
    """The exchange fails; the client receives `sqlstate` and the message."""

    def __init__(self, message: str, sqlstate: str = "08P01") -> None:
        super().__init__(message)
        self.sqlstate, self.message = sqlstate, message


class WrongPassword(Exception):
    """The client's proof does not match the password."""


class Exchange:
    """One SCRAM exchange: call `first`, then `final`.

    `binding` is the hash of the server's certificate, None without TLS or if the certificate has no
    suitable hash. `nonce` is printable and unique.
    """

    def __init__(self, verifier: Verifier, binding: bytes | None, nonce: str) -> None:
        self._verifier = verifier
        self._binding = binding
        self._nonce = nonce
        self._header = b""
        self._bare = self._server_first = ""
        self.began = False

    @property
    def mechanisms(self) -> bytes:
        """Returns the body of AuthenticationSASL."""
        names = [PLUS, MECHANISM] if self._binding is not None else [MECHANISM]
        return b"".join(name.encode() + b"\0" for name in names) + b"\0"

    def first(self, body: bytes) -> bytes:
        """Answers a SASLInitialResponse with the body of AuthenticationSASLContinue. Raises Refused."""
        self.began = True
        name, _, rest = body.partition(b"\0")
        mechanism = name.decode("ascii", "replace")
        if mechanism != MECHANISM and not (mechanism == PLUS and self._binding is not None):
            raise Refused("client selected an invalid SASL authentication mechanism")
        if len(rest) < 4:
            raise Refused("malformed SCRAM message")
        length: int = _length(rest)[0]
        if length != len(rest) - 4:
            raise Refused("malformed SCRAM message")
        message = _text(rest[4:])
        flag, identity, bare = _cut(message, 3)
        self._check_flag(flag, mechanism)
        if identity:
            raise Refused("client uses authorization identity, but it is not supported", "0A000")
        self._header, self._bare = f"{flag},{identity},".encode(), bare
        if bare.startswith("m="):
            raise Refused("client requires an unsupported SCRAM extension", "0A000")
        attributes = _attributes(bare)
        nonce = attributes.get("r", "")
        if "n" not in attributes or not nonce or not all("!" <= c <= "~" for c in nonce):
            raise Refused("malformed SCRAM message")
        self._nonce = nonce + self._nonce
        salt = base64.b64encode(self._verifier.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        return self._server_first.encode()

    def _check_flag(self, flag: str, mechanism: str) -> None:
        """Checks the channel-binding flag against the mechanism. Raises Refused."""
        match flag[:1]:
            case "n" | "y" if mechanism == PLUS:
                raise Refused("client selected SCRAM-SHA-256-PLUS without channel binding data")
            case "y" if self._binding is not None:
                raise Refused("client supports SCRAM channel binding but thinks the server does not", "28000")
            case "p" if mechanism != PLUS:
                raise Refused("client selected SCRAM-SHA-256 without channel binding, but the message includes channel binding data")
            case "p" if flag != f"p={BINDING}":
                raise Refused("unsupported SCRAM channel-binding type")
            case "n" | "y" | "p":
                return
        raise Refused("unexpected channel-binding flag in SCRAM message")

    def final(self, body: bytes) -> bytes:
        """Answers a SASLResponse with the body of AuthenticationSASLFinal.

        Raises WrongPassword if the proof is wrong, and Refused for other errors.
        """
        message = _text(body)
        without, _, last = message.rpartition(",p=")
        attributes = _attributes(without)
        bound = self._binding if self._header.startswith(b"p") and self._binding is not None else b""
        try:
            channel = base64.b64decode(attributes.get("c", ""), validate=True)
            proof = base64.b64decode(last, validate=True)
        except (binascii.Error, ValueError):
            raise Refused("malformed SCRAM message") from None
        if not hmac.compare_digest(channel, self._header + bound):
            raise Refused("SCRAM channel binding check failed", "28000")
        if attributes.get("r") != self._nonce or len(proof) != 32:
            raise Refused("invalid SCRAM response")
        signed = f"{self._bare},{self._server_first},{without}".encode()
        signature = hmac.digest(self._verifier.stored_key, signed, "sha256")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.sha256(client_key).digest(), self._verifier.stored_key):
            raise WrongPassword
        return b"v=" + base64.b64encode(hmac.digest(self._verifier.server_key, signed, "sha256"))


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refused("malformed SCRAM message") from None


def _cut(message: str, count: int) -> list[str]:
    parts = message.split(",", count - 1)
    if len(parts) != count:
        raise Refused("malformed SCRAM message")
    return parts


def _attributes(message: str) -> dict[str, str]:
    """Parses the attributes of a SCRAM message.

    >>> _attributes("n=,r=abc")
    {'n': '', 'r': 'abc'}
    """
    attributes: dict[str, str] = {}
    for part in message.split(","):
        if len(part) < 2 or part[1] != "=":
            raise Refused("malformed SCRAM message")
        attributes.setdefault(part[0], part[2:])
    return attributes
