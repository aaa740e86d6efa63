"""The users of requests, by the rules of a gateway's listening addresses.

Authorization: Basic …     any address; from other machines over TLS only
without                    from this machine, with a Host of this machine and no page of another site; or with --insecure
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from tailgate.gateway.asgi import refusals
from tailgate.gateway.asgi.refusals import Refused
from tailgate.gateway.asgi.sessions import Caller, caller

ENCRYPTED = ("https", "wss")
HOSTS_CACHED = 100
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Access:
    """The rules. `insecure`: other machines are treated as this one."""

    insecure: bool = False

    def caller(self, request: HTTPConnection) -> Caller:
        """Returns the user of a request. Raises 401 or 403."""
        header = request.headers.get("authorization")
        near = self.insecure or (request.client is not None and _is_local(request.client.host))
        if not near and request.url.scheme not in ENCRYPTED:
            raise Refused(refusals.FORBIDDEN, "Use HTTPS")
        if header is None:
            if not near:
                raise Refused(refusals.UNAUTHORIZED, "Unauthorized: use Basic authentication")
            self._check_site(request)
        return caller(header)

    def _check_site(self, request: HTTPConnection) -> None:
        """Raises 403 for a request that a page of another site may have caused: its owner has no password here."""
        host = _hostname(request.headers.get("host", LOCAL_HOSTS[0]))
        if not self.insecure and host not in LOCAL_HOSTS:
            raise Refused(refusals.FORBIDDEN, f"The host {host} is not one of this machine")
        self.check_origin(request)

    def check_origin(self, request: HTTPConnection) -> None:
        """Raises 403 for a request of a page of another site."""
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != request.url.netloc:
            raise Refused(refusals.FORBIDDEN, f"Requests of pages of {origin} are not accepted")


@lru_cache(HOSTS_CACHED)
def _hostname(host: str) -> str:
    """Returns the name in a header field Host, or an empty text if it is not valid.

    >>> _hostname("localhost:8088"), _hostname("[::1]")
    ('localhost', '::1')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_local(host: str) -> bool:
    return host.removeprefix("::ffff:").startswith("127.") or host == "::1"
