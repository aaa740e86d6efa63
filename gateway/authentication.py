"""Who a client is, decided from where it comes, what it shows, and the role it names.

    no roles in the catalog          loopback ──► trusted with everything       elsewhere ──► refused
    a role with a password           SCRAM-SHA-256, from everywhere; from elsewhere than loopback over TLS only
    a role without one               a client certificate of its name, or loopback ──► trusted; elsewhere ──► refused
    `tailgate` without one           loopback ──► trusted; elsewhere ──► refused, whatever certificate is shown

A role that is not there is asked for a password like any other, so nobody learns which roles there are: its salt comes from a secret of
the lake's. A password never comes in clear text, not even over TLS.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from dataclasses import dataclass

from gateway.protocol.scram import Exchange
from lake.catalog import Catalog
from lake.errors import InvalidAuthorizationSpecification, TailgateError
from lake.passwords import ITERATIONS, SALT_BYTES, Verifier, parse
from lake.roles import OPERATOR_ID, Role

NONCE_BYTES = 18  # PostgreSQL's


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a connection. `certificate`: the common name of the one it has shown, which was verified. `end_point`: of TLS,
    what SCRAM binds to. `insecure`: other machines are treated as this one."""

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
    """May go on as this role, by its id."""

    role: int


@dataclass(frozen=True, slots=True)
class Challenged:
    """Is to prove a password first. `role`: as whom it goes on then; None if it fails in any case."""

    role: int | None
    exchange: Exchange


def decide(catalog: Catalog, user: str, peer: Peer, secret: bytes) -> Trusted | Challenged:
    """Raises 28000 if nothing could let this client in. `secret`: of the lake, for the salts of roles that do not exist."""
    if not catalog.has_roles:
        if peer.near:
            return Trusted(OPERATOR_ID)
        raise _refused(user, peer, "There are no roles yet: CREATE ROLE from the machine that Tailgate runs on.")
    if not peer.near and not peer.tls:
        raise _refused(user, peer, "Use TLS: sslmode=require or stronger.")
    role = catalog.find_role(user)
    if role is not None and role.verifier is None and _trusted(role, peer):
        return Trusted(role.id)
    return Challenged(None if role is None or role.verifier is None else role.id, _exchange(role, user, peer, secret))


def _trusted(role: Role, peer: Peer) -> bool:
    """Whether a role without a password may sign in from here.

    A certificate stands for a role that somebody has created. The built-in superuser is nobody's creation: any authority may have
    signed its name for a server or a service, so a certificate does not let it in from another machine.
    """
    if peer.certificate not in (None, role.name):
        return False
    return peer.near or (peer.certificate is not None and role.id != OPERATOR_ID)


def check_login(role: Role) -> None:
    if not role.login:
        raise InvalidAuthorizationSpecification(f'role "{role.name}" is not permitted to log in')


def _refused(user: str, peer: Peer, hint: str) -> TailgateError:
    encryption = "SSL encryption" if peer.tls else "no encryption"
    return InvalidAuthorizationSpecification(f'no entry for host "{peer.host}", user "{user}", {encryption}', hint=hint)


def _exchange(role: Role | None, user: str, peer: Peer, secret: bytes) -> Exchange:
    verifier = parse(role.verifier) if role is not None and role.verifier is not None else None
    nonce = base64.b64encode(secrets.token_bytes(NONCE_BYTES)).decode()
    return Exchange(verifier or _mock(user, secret), peer.end_point, nonce)


def _mock(user: str, secret: bytes) -> Verifier:
    """Returns a verifier that no password satisfies; its salt is the same each time, as a real one's."""
    salt = hmac.digest(secret, user.encode("utf-8", "surrogateescape"), "sha256")[:SALT_BYTES]
    return Verifier(ITERATIONS, salt, secrets.token_bytes(32), secrets.token_bytes(32))
