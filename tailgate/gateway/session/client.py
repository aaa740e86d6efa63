"""The client of a session: who signed in, from where, and the key that cancels its statements."""

from __future__ import annotations

from dataclasses import dataclass, field

from tailgate.gateway.protocol.startup import SECRET_BYTES
from tailgate.gateway.security.authentication import Challenged, Peer
from tailgate.lake.catalog.roles import OPERATOR


@dataclass(slots=True)
class Client:
    """The client of a session.

    `role`: the id of the role that signed in. `startup_settings`: those of the startup message. `challenged`: the password exchange, while
    it runs. `process` and `secret`: the key of cancel requests, set when the session is admitted;
    `secret_bytes`: the length of the secret, which depends on the protocol version.
    """

    user: str = ""
    database: str = ""
    role: int = OPERATOR.id
    peer: Peer = field(default_factory=Peer)
    startup_settings: list[tuple[str, str]] = field(default_factory=list)
    challenged: Challenged | None = None
    process: int = 0
    secret: bytes = b""
    secret_bytes: int = SECRET_BYTES

    @property
    def database_oid(self) -> int:
        """Returns the oid of the database in pg_database."""
        return 5 if self.database == "postgres" else 16384
