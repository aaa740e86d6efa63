"""Accepts connections over TLS. Those whose handshake has not ended count for the limit of connections.

accepted ──► handshake, at most HANDSHAKE_S ──► the protocol of the server
          └─ full ──┴─ failed ──► closed, and logged
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from collections.abc import Callable

HANDSHAKE_S = 10.0
RETRY_S = 1.0  # after a connection that cannot be accepted, for lack of file descriptors
LOG_S = 10.0  # between two lines of the log about refused connections
log = logging.getLogger("tailgate.gateway")


class Refusals:
    """Refused connections. A line of the log in LOG_S seconds has the newest, and the number of those before it that have none."""

    def __init__(self) -> None:
        self._logged_at = -LOG_S
        self._unlogged = 0

    def add(self, client: str, reason: object) -> None:
        """Adds a connection of a client, which is closed for a reason."""
        now = time.monotonic()
        if now - self._logged_at < LOG_S:
            self._unlogged += 1
            return
        more = f" ({self._unlogged} more since the last message)" if self._unlogged else ""
        log.info("a TLS connection from %s is refused: %s%s", client, reason, more)
        self._logged_at, self._unlogged = now, 0

    def add_failed(self, client: str, error: Exception) -> None:
        """Adds a connection whose handshake has failed. The error of a client that has closed the connection has no text."""
        self.add(client, f"the handshake has failed: {str(error) or 'the client has closed the connection'}")


class TlsListener:
    """A listening socket.

    `context`: returns the context of a new connection, with the newest certificate. `protocol`: returns the protocol of one. `full`:
    returns whether further connections are closed at once.
    """

    def __init__(
        self,
        listening: socket.socket,
        context: Callable[[], ssl.SSLContext],
        protocol: Callable[[], asyncio.Protocol],
        full: Callable[[], bool],
    ) -> None:
        self._listening, self._context, self._protocol, self._full = listening, context, protocol, full
        self._handshakes: set[asyncio.Task[None]] = set()
        self._refusals = Refusals()
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    @property
    def count(self) -> int:
        """Returns the number of connections in their handshake."""
        return len(self._handshakes)

    def close(self) -> None:
        """Ends listening, and the connections in their handshake."""
        for task in (self._accepting, *self._handshakes):
            task.cancel()
        self._listening.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        self._listening.setblocking(False)
        while True:
            try:
                client, address = await loop.sock_accept(self._listening)
            except OSError as error:
                log.warning("no connection is accepted: %s", error)
                await asyncio.sleep(RETRY_S)
                continue
            if self._full():
                client.close()
                self._refusals.add(address[0], "there are too many connections")
                continue
            handshake = loop.create_task(self._shake_hands(client, address[0]))
            self._handshakes.add(handshake)
            handshake.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, client: socket.socket, host: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(self._protocol, client, ssl=self._context(), ssl_handshake_timeout=HANDSHAKE_S)
        except OSError as error:  # ssl.SSLError is one
            self._refusals.add_failed(host, error)
            with contextlib.suppress(OSError):
                client.close()
        except asyncio.CancelledError:
            client.close()
            raise
