"""Statistics and the log of requests: endpoint, role, status and duration, never a value of a parameter.

HttpService.answer ──Handled──► metrics, tailgate.statements, log
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

from tailgate.gateway.http.messages import Request, Response
from tailgate.gateway.security.authentication import Peer
from tailgate.gateway.session.gateway import Gateway
from tailgate.gateway.session.statements.templates import SUCCESS, Call
from tailgate.lake.catalog import Endpoint
from tailgate.lake.catalog.roles import Role
from tailgate.operations.labels import label

FORBIDDEN = 403  # the status of requests that their role may not send: they do not count for objectives

log = logging.getLogger("tailgate.gateway.http")


@dataclass(slots=True)
class Handled:
    """A request while it is answered. `role`, `endpoint`: None until they are known. `rows`: of the response."""

    request: Request
    peer: Peer
    role: Role | None = None
    endpoint: Endpoint | None = None
    rows: int = 0
    sqlstate: str = SUCCESS
    began: float = field(default_factory=time.monotonic)


class RequestStatistics:
    """Counts the requests of a gateway, and logs them if `logs`."""

    def __init__(self, gateway: Gateway, *, logs: bool = False) -> None:
        self._gateway, self.logs = gateway, logs

    def ended(self, handled: Handled, response: Response) -> None:
        """Counts a request whose response is known. That of a stream begins now."""
        seconds = time.monotonic() - handled.began
        statistics, role, endpoint = self._gateway.statistics, handled.role, handled.endpoint
        catalog = self._gateway.serving.progress.catalog
        name = "" if endpoint is None or endpoint.schema not in catalog.all_schemas() else label(catalog, endpoint)
        statistics.requests.add(name, str(response.status))
        statistics.request_durations.observe(seconds, name)
        if endpoint is not None and response.stream is None and response.status != FORBIDDEN:
            self._gateway.latencies.add(endpoint.id, seconds * 1000)
        if role is not None and endpoint is not None:
            statistics.ended(Call(role.id, "endpoint", f"ENDPOINT {name}".encode(), seconds, handled.sqlstate, handled.rows))
        if self.logs:
            user, path = "-" if role is None else role.name, "-" if endpoint is None else endpoint.path
            size = "stream" if response.stream is not None else f"{len(response.body)} bytes"
            client = handled.peer.host or "-"
            line = f"client={client} role={user} {handled.request.method} {path} {response.status} {size} {seconds * 1000:.3f} ms"
            log.info("%s", line, extra={"role": user})
