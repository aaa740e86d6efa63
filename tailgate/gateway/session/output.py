"""The connection as a session uses it: the output to the client, and the messages that it has already sent."""

from __future__ import annotations

from typing import Protocol

from tailgate.gateway.protocol import messages as m
from tailgate.gateway.security.tls import Identity


class Out(Protocol):
    """The output to a client, and the messages that it has already sent.

    `write` appends to a buffer and `flush` sends the buffer. `drain` waits until the client has read most of the output. It returns
    False after `timeout` seconds and raises CancelledError if the client has disconnected. `at_sync` returns whether the next
    message is Sync, and `pipelined` whether it is another message. `message` waits for the next message and returns it, for a
    statement that reads from the client (COPY … FROM STDIN).
    """

    def write(self, data: bytes) -> None: ...

    def flush(self) -> None: ...

    def at_sync(self) -> bool: ...

    def pipelined(self) -> bool: ...

    async def message(self) -> m.Message: ...

    async def drain(self, timeout: float | None = None) -> bool: ...

    def encrypt(self, identity: Identity) -> None:
        """Starts TLS on the connection."""

    def is_congested(self) -> bool:
        """Returns whether the client has not read most of the output."""

    def close(self) -> None: ...
