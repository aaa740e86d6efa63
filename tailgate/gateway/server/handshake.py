"""Accepts connections over TLS. Those whose handshake has not ended count for the limit of connections.

accepted ──► handshake, at most HANDSHAKE_S ──► the protocol of the server
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable

HANDSHAKE_S = 10.0
RETRY_S = 1.0  # after a connection that cannot be accepted, for lack of file descriptors
log = logging.getLogger("tailgate.gateway")


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
                client, _ = await loop.sock_accept(self._listening)
            except OSError as error:
                log.warning("no connection is accepted: %s", error)
                await asyncio.sleep(RETRY_S)
                continue
            if self._full():
                client.close()
                continue
            handshake = loop.create_task(self._shake_hands(client))
            self._handshakes.add(handshake)
            handshake.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, client: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(self._protocol, client, ssl=self._context(), ssl_handshake_timeout=HANDSHAKE_S)
        except (OSError, asyncio.TimeoutError) as error:  # ssl.SSLError is an OSError
            log.info("a TLS handshake has failed: %s", error)
            with contextlib.suppress(OSError):
                client.close()
        except asyncio.CancelledError:
            client.close()
            raise
