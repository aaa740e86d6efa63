"""The thread of an HTTP server. Every server that does not have a process or a main thread to itself runs in one.

`serve_forever` of the standard library notices `shutdown` only after its poll interval, and continues to poll the number of a
descriptor that was closed meanwhile. This thread also waits for a pair of sockets, so `stop` ends it at once.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from socketserver import TCPServer


class ServerThread:
    """Serves the requests of `server` from `start` until `stop`. `name`: of the thread."""

    def __init__(self, server: TCPServer, name: str) -> None:
        server.timeout = 0  # seconds; handle_request is called when a connection waits
        self._server = server
        self._sleeping, self._waking = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._stopping = threading.Lock()
        self._stopped = False

    def start(self) -> None:
        """Begins to accept connections. Raises RuntimeError if it was called before."""
        self._thread.start()

    def stop(self) -> None:
        """Waits until the thread has ended, then closes the server's socket. Can be called again, and without `start`.

        Threads of connections that are open continue until their clients disconnect, or until their timeout.
        """
        with self._stopping:
            if self._stopped:
                return
            with contextlib.suppress(OSError):
                self._waking.shutdown(socket.SHUT_WR)
            if self._thread.ident is not None:
                self._thread.join()
            self._server.server_close()
            self._sleeping.close()
            self._waking.close()
            self._stopped = True

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._sleeping, selectors.EVENT_READ)
            selector.register(self._server, selectors.EVENT_READ)
            while all(key.fileobj is not self._sleeping for key, _ in selector.select()):
                self._server.handle_request()
