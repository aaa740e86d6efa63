"""The role of a request.

    Authorization: Bearer token      ──► the role of the token
    no Authorization                 ──► the role in Tailgate-Role (default: tailgate), if the gateway admits it without a password

Without a token the request must name this machine as its host, so that a web page of another site cannot read as a local user by
giving its own name this machine's address (DNS rebinding).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from tailgate.gateway.http.messages import HttpError, Request
from tailgate.gateway.security.authentication import Peer, Trusted, check_admitted, decide
from tailgate.gateway.server.addresses import is_loopback
from tailgate.gateway.server.rates import Rate
from tailgate.lake.catalog import Catalog
from tailgate.lake.catalog.roles import OPERATOR, Role
from tailgate.lake.errors import (
    ConfigurationLimitExceeded,
    InsufficientPrivilege,
    InvalidAuthorizationSpecification,
    InvalidPassword,
    TailgateError,
)
from tailgate.lake.passwords import token_hash

CHALLENGE = (b"WWW-Authenticate", b'Bearer realm="tailgate"')
DATABASE_NAME = "tailgate"  # in errors; a request names no database
REQUESTS_PER_S = 5_000  # of one role that is not a superuser


@dataclass(slots=True)
class Tokens:
    """The roles by the hashes of their tokens, of the newest catalog, with the end of each token in ms since the epoch."""

    _catalog: Catalog | None = None
    _roles: dict[str, tuple[Role, float]] = field(default_factory=dict)

    def role_of(self, token: str, catalog: Catalog) -> tuple[Role, float]:
        """Returns the role of a token, and when the token ends. Raises 28P01 if it is not valid."""
        if catalog is not self._catalog:
            roles = catalog.all_roles().values()
            self._roles = {hash: (role, role.token_ends_ms.get(name, math.inf)) for role in roles for name, hash in role.tokens.items()}
            self._catalog = catalog
        role, end_ms = self._roles.get(token_hash(token), (None, math.inf))
        if role is None:
            raise InvalidPassword("invalid token")
        if end_ms <= now_ms():
            raise InvalidPassword("the token has expired")
        return role, end_ms


def now_ms() -> float:
    """Returns the time with which the ends of tokens are compared."""
    return time.time() * 1000


def role_of(request: Request, peer: Peer, catalog: Catalog, secret: bytes, tokens: Tokens) -> tuple[Role, float]:
    """Returns the role of a request, and when its token ends, in ms since the epoch.

    Raises an HttpError with 401 if there is none, and with 403 if it lacks CONNECT on the database.
    """
    end_ms = math.inf
    authorization = request.headers.get(b"authorization")
    try:
        if authorization is None:
            role = _trusted(request, peer, catalog, secret)
        else:
            scheme, _, token = authorization.decode("latin-1").partition(" ")
            if scheme.lower() != "bearer":
                raise InvalidAuthorizationSpecification("Authorization must have the scheme Bearer")
            role, end_ms = tokens.role_of(token.strip(), catalog)
        check_admitted(role, catalog, DATABASE_NAME)
        return role, end_ms
    except InsufficientPrivilege as error:
        raise HttpError(403, error) from error
    except TailgateError as error:
        raise HttpError(401, error, CHALLENGE) from error


def check_site(request: Request, origins: frozenset[str]) -> None:
    """Raises an HttpError with 403 if the page of another site sends a request without a token (cross-site request forgery).

    Browsers tell the site in Origin. A page cannot send a token that it does not have, but a gateway may admit the user without one.
    """
    origin = request.headers.get(b"origin")
    if origin is None or b"authorization" in request.headers or origin.decode("latin-1") in origins:
        return
    if origin.partition(b"://")[2] != request.headers.get(b"host", b""):
        hint = "Send a token, or start the gateway with --http-origin for this site."
        raise HttpError(403, InsufficientPrivilege("pages of this site may not write", hint=hint))


def _trusted(request: Request, peer: Peer, catalog: Catalog, secret: bytes) -> Role:
    """Returns the role of a request without a token. Raises 28000 if the gateway asks this role for a password."""
    name = request.headers.get(b"tailgate-role", OPERATOR.name.encode()).decode("utf-8", "replace")
    if not _names_this_machine(request) and not peer.insecure and peer.certificate is None:
        raise InvalidAuthorizationSpecification("a token is required", hint="Send Authorization: Bearer with a token of CREATE TOKEN.")
    decision = decide(catalog, name, peer, secret)
    if not isinstance(decision, Trusted):
        raise InvalidAuthorizationSpecification(
            f'role "{name}" needs a token', hint="Send Authorization: Bearer with a token of CREATE TOKEN."
        )
    return catalog.all_roles()[decision.role]


def _names_this_machine(request: Request) -> bool:
    host = request.headers.get(b"host", b"").decode("latin-1")
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return is_loopback(name)


@dataclass(slots=True)
class Rates:
    """The requests per second of each role. `limit`: of one that is not a superuser."""

    limit: float = REQUESTS_PER_S
    _rates: dict[int, Rate] = field(default_factory=dict)

    def take(self, role: Role, now: float) -> None:
        """Counts a request at a time in seconds. Raises an HttpError with 429 if the role has sent too many."""
        if role.superuser:
            return
        if not self._rates.setdefault(role.id, Rate()).admits(now, self.limit):
            error = ConfigurationLimitExceeded("too many requests", detail=f"A role may send {self.limit:g} requests per second.")
            raise HttpError(429, error, (b"Retry-After", b"1"))
