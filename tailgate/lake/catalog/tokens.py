"""Bearer tokens of roles: random texts, of which the catalog keeps a hash.

A token has 256 random bits, so one round of SHA-256 without a salt is enough: nobody can try that many. A password needs the many
rounds of `lake.catalog.passwords` because people choose it.
"""

from __future__ import annotations

import hashlib
import secrets

PREFIX = "tailgate_"  # programs that search texts for secrets recognize tokens by it
TOKEN_BYTES = 32


def new_token() -> str:
    """Returns a new token."""
    return PREFIX + secrets.token_urlsafe(TOKEN_BYTES)


def hash_of(token: str) -> str:
    """Returns the hash that the catalog keeps.

    >>> hash_of("tailgate_x")[:16]
    'sha256$6ebb6596b'
    """
    return "sha256$" + hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
