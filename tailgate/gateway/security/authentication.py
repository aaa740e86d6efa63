"""Authentication: decides how a client signs in, from its address, its certificate and the role that it names.

    no roles in the catalog          loopback ──► superuser                     other machines ──► refused
    a role with a password           SCRAM-SHA-256, until VALID UNTIL; from other machines over TLS only
    a role without one               a client certificate with its name, or loopback ──► trusted; otherwise refused
    `tailgate` without one           loopback ──► trusted; other machines ──► refused, even with a certificate

The server requests a password for an unknown role, too, so clients cannot find out which roles exist. Its salt is derived from a
secret of the lake. Passwords are never sent in plain text, not even over TLS.
"""

from __future__ import annotations

import base64
import hmac
import secrets
import time
from dataclasses import dataclass

from tailgate.gateway.protocol.scram import Exchange
from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.roles import OPERATOR_ID, Role
from tailgate.lake.catalog.schemas import DATABASE
from tailgate.lake.errors import InsufficientPrivilege, InvalidAuthorizationSpecification, TailgateError
from tailgate.lake.passwords import ITERATIONS, SALT_BYTES, Verifier, parse

NONCE_BYTES = 18  # as in PostgreSQL


@dataclass(frozen=True, slots=True)
class Peer:
    """The client of a connection.

    `certificate`: the common name of its verified certificate. `end_point`: the hash of the server's certificate, for SCRAM's
    channel binding. `insecure`: clients on other machines are trusted like local ones.
    """

    host: str = ""
    port: int | None = None
    loopback: bool = True
    tls: bool = False
    certificate: str | None = None
    end_point: bytes | None = None
    insecure: bool = False

    @property
    def near(self) -> bool:
        return self.loopback or self.insecure


@dataclass(frozen=True, slots=True)
class Trusted:
    """The decision to admit the client without a password. `role`: the id of its role."""

    role: int


@dataclass(frozen=True, slots=True)
class Challenged:
    """The decision to ask for a password. `role`: the id of the role, or None if the sign-in fails with any password."""

    role: int | None
    exchange: Exchange


def decide(catalog: Catalog, user: str, peer: Peer, secret: bytes) -> Trusted | Challenged:
    """Decides how a client signs in. Raises 28000 if it cannot. `secret`: the lake's, for the salts of roles that do not exist."""
    if not catalog.has_roles:
        if peer.near:
            return Trusted(OPERATOR_ID)
        raise _refused(user, peer, "There are no roles yet: CREATE ROLE from the machine that Tailgate runs on.")
    if not peer.near and not peer.tls:
        raise _refused(user, peer, "Use TLS: sslmode=require or stronger.")
    role = catalog.find_role(user)
    if role is not None and role.verifier is None and _trusted(role, peer):
        return Trusted(role.id)
    valid = role is not None and role.verifier is not None and not _expired(role)
    return Challenged(role.id if role is not None and valid else None, _exchange(role, user, peer, secret))


def _expired(role: Role) -> bool:
    """Returns whether the password of a role has ended."""
    return role.valid_until is not None and role.valid_until <= time.time() * 1e6


def _trusted(role: Role, peer: Peer) -> bool:
    """Returns whether a role without a password may sign in from this client.

    A certificate proves a role only if an administrator has created that role. The name of the built-in superuser may be in a
    certificate of a server or service by chance, so no certificate admits it from another machine.
    """
    if peer.certificate not in (None, role.name):
        return False
    return peer.near or (peer.certificate is not None and role.id != OPERATOR_ID)


def check_admitted(role: Role, catalog: Catalog, database: str) -> None:
    """Raises 28000 without LOGIN, and 42501 without CONNECT on the database."""
    if not role.login:
        raise InvalidAuthorizationSpecification(f'role "{role.name}" is not permitted to log in')
    if not catalog.may(role, "CONNECT", DATABASE.id):
        raise InsufficientPrivilege(f'permission denied for database "{database}"', detail="User does not have CONNECT privilege.")


def _refused(user: str, peer: Peer, hint: str) -> TailgateError:
    encryption = "SSL encryption" if peer.tls else "no encryption"
    return InvalidAuthorizationSpecification(f'no entry for host "{peer.host}", user "{user}", {encryption}', hint=hint)


def _exchange(role: Role | None, user: str, peer: Peer, secret: bytes) -> Exchange:
    verifier = parse(role.verifier) if role is not None and role.verifier is not None else None
    nonce = base64.b64encode(secrets.token_bytes(NONCE_BYTES)).decode()
    return Exchange(verifier or _mock(user, secret), peer.end_point, nonce)


def _mock(user: str, secret: bytes) -> Verifier:
    """Returns a verifier that no password satisfies. Its salt is the same each time, like that of a real role."""
    salt = hmac.digest(secret, user.encode("utf-8", "surrogateescape"), "sha256")[:SALT_BYTES]
    return Verifier(ITERATIONS, salt, secrets.token_bytes(32), secrets.token_bytes(32))
