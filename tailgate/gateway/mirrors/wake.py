"""Wakes a thread when the log has a new entry.

A running engine answers `GET /newest?after=n` on its control interface as soon as there is one.
Without an engine, the log is polled every 20 to 50 ms. The woken thread always reads the log
itself, so a lost wake-up delays an entry by a second but never loses it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from pathlib import Path

from tailgate.lake import control

POLL = 0.02  # seconds between polls of the log without an engine; the average delay is half of it
POLL_IDLE = 0.05  # the same after IDLE_AFTER without a new entry: 0.3 % of a core
IDLE_AFTER = 2.0  # seconds
POLL_WOKEN = 1.0  # seconds between polls while an engine answers, in case a wake-up is lost
LONG_POLL = 12.0  # seconds until an engine that does not answer counts as gone; it promises an answer in 10
RETRY = 0.5  # seconds between attempts to reach an engine


class Wake:
    """A wake-up signal for new log entries. `close` ends it from any thread.

    `wait` returns when there may be a new entry.
    """

    def __init__(self, lake_path: Path) -> None:
        self._engine_json = lake_path / "engine.json"
        self._event = threading.Event()
        self._closed = threading.Event()
        self._answering = False
        self._n = 0
        self._seen = 0.0
        self._connection: http.client.HTTPConnection | None = None
        self._thread = threading.Thread(target=self._ask, name="tailgate-wake", daemon=True)

    def start(self, n: int) -> None:
        self._n = n
        self._thread.start()

    def wait(self) -> None:
        idle = time.monotonic() - self._seen > IDLE_AFTER
        self._event.wait(POLL_WOKEN if self._answering else POLL_IDLE if idle else POLL)
        self._event.clear()

    def seen(self, n: int) -> None:
        """Says that entries up to `n` need no wake-up."""
        self._n = max(self._n, n)
        self._seen = time.monotonic()

    def close(self) -> None:
        self._closed.set()
        self._event.set()
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _ask(self) -> None:
        """Asks the engine for new entries until `close`; the body of the thread."""
        while not self._closed.is_set():
            try:
                newest = self._newest(self._n)
                self._answering = True
                if newest > self._n:
                    self._n = newest
                    self._event.set()
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                self._answering = False
                self._forget()
                self._event.set()
                self._closed.wait(RETRY)
        self._forget()

    def _newest(self, after: int) -> int:
        """Waits for an entry after `after`, at most 10 s; returns the newest entry of the engine."""
        if self._connection is None:
            self._engine = json.loads(self._engine_json.read_text())
            host, _, port = self._engine["address"].rpartition(":")
            self._connection = http.client.HTTPConnection(host, int(port), timeout=LONG_POLL)
        self._connection.request("GET", control.newest_path(after), headers=control.headers(self._engine["token"]))
        response = self._connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise ValueError(f"the engine answered {response.status}")
        return int(control.decode(body)["n"])

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
