"""The credentials of roles: passwords, stored as SCRAM-SHA-256 verifiers, and tokens, stored as hashes.

A verifier proves that a client knows the password but does not reveal it.

    SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>      base64, PostgreSQL's form in pg_authid.rolpassword

Source: RFC 5802, RFC 7677; RFC 4013 for the preparation of passwords; PostgreSQL 15, src/common/scram-common.c, saslprep.c.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
import stringprep
import unicodedata
from dataclasses import dataclass

ITERATIONS = 4096  # PostgreSQL's default; a client needs 3 ms of one core for each sign-in, the server nothing
SALT_BYTES = 16
MECHANISM = "SCRAM-SHA-256"
TOKEN_PREFIX = "tailgate_"  # programs that search texts for secrets recognize tokens by it
TOKEN_BYTES = 32

_FORM = re.compile(r"SCRAM-SHA-256\$(\d{1,9}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]{44}):([A-Za-z0-9+/=]{44})")


@dataclass(frozen=True, slots=True)
class Verifier:
    """A SCRAM-SHA-256 verifier. `str()` is PostgreSQL's text form."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __str__(self) -> str:
        salt, stored, server = (base64.b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key))
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"


def verifier(password: str, salt: bytes | None = None, iterations: int = ITERATIONS) -> Verifier:
    """Returns the verifier of a password, which does not reveal the password.

    >>> str(verifier("pencil", b"0123456789abcdef", 4096))[:46]
    'SCRAM-SHA-256$4096:MDEyMzQ1Njc4OWFiY2RlZg==$nQ'
    """
    salt = os.urandom(SALT_BYTES) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", prepared(password), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return Verifier(iterations, salt, hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256"))


def parse(text: str) -> Verifier | None:
    """Returns a text as a verifier, or None if it is not one but a password."""
    match = _FORM.fullmatch(text)
    if match is None or not int(match[1]):
        return None
    try:
        salt, stored, server = (base64.b64decode(part, validate=True) for part in match.groups()[1:])
    except ValueError:
        return None
    return Verifier(int(match[1]), salt, stored, server) if len(stored) == len(server) == 32 else None


def kept(password: str) -> str:
    """Returns the form in which a password is stored: its verifier. A text that is a verifier is returned unchanged."""
    return password if parse(password) is not None else str(verifier(password))


def prepared(password: str) -> bytes:
    """Returns a password after SASLprep; unchanged if it has characters that SASLprep forbids, as in PostgreSQL."""
    if password.isascii():
        return password.encode()
    mapped = "".join(" " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c))
    text = unicodedata.normalize("NFKC", mapped)
    if not text or any(_forbidden(c) for c in text):
        return password.encode("utf-8", "surrogateescape")
    right_to_left = [stringprep.in_table_d1(c) for c in text]
    if any(right_to_left) and (any(map(stringprep.in_table_d2, text)) or not (right_to_left[0] and right_to_left[-1])):
        return password.encode()
    return text.encode()


_FORBIDDEN = tuple(getattr(stringprep, f"in_table_{name}") for name in ("c12", "c21_c22", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "a1"))


def _forbidden(character: str) -> bool:
    return any(table(character) for table in _FORBIDDEN)


# --- tokens: 256 random bits, so one round of SHA-256 without a salt is enough; people choose passwords, which need many rounds ---------


def new_token() -> str:
    """Returns a new token."""
    return TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)


def token_hash(token: str) -> str:
    """Returns the hash that the catalog keeps.

    >>> token_hash("tailgate_x")[:16]
    'sha256$6ebb6596b'
    """
    return "sha256$" + hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
