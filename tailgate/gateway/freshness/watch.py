"""Follows the freshness lag of all relations: asks the engine, looks at the mirrors, and keeps the histories.

One thread asks the engine on a connection that stays open. The engine answers when something changes, at most five times a second
unless a tick is slow (`engine.runtime.ticks.ages`), and otherwise about once a second, which shows that it lives.
"""

from __future__ import annotations

import contextlib
import http.client
import logging
import socket
import threading
import time

from tailgate.gateway.freshness.lags import Lags
from tailgate.gateway.mirrors.mirrors import Mirrors
from tailgate.lake import control
from tailgate.lake.folder import Lake
from tailgate.lake.host import process_tls
from tailgate.lake.writer.engines import announced
from tailgate.operations.watch.history import recorded

log = logging.getLogger("tailgate.gateway")

SAMPLE_S = 1.0  # between two samples of the histories; one of 500 relations takes 4 ms
ANSWER_S = 2.0  # longest wait for an answer, which the engine promises after control.FRESHNESS_HOLD_S
RETRY_S = 1.0  # after a failed request


class Watch:
    """The freshness lags of a gateway's relations, followed by a thread from `start` to `stop`."""

    def __init__(self, lake: Lake, mirrors: Mirrors) -> None:
        self.lags = Lags(lambda: mirrors.figures.newest)
        self._lake, self._mirrors = lake, mirrors
        self._connection: http.client.HTTPConnection | None = None
        self._token = ""
        self._peaks: dict[int, int] = {}  # by input, since the histories were extended
        self._observed_at = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tailgate-freshness", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, also while it waits for an answer."""
        self._stopping.set()
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._ask()
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                self._disconnect()
                self.lags.lost()
                self._observe()
                self._stopping.wait(RETRY_S)
            except Exception:
                log.exception("freshness lag cannot be computed; trying again")
                self._stopping.wait(RETRY_S)
            else:
                self._observe()
        self._disconnect()

    def _ask(self) -> None:
        """Asks the engine for its inputs and newest ticks. Waits until they change, at most control.FRESHNESS_HOLD_S."""
        if self._connection is None:
            engine = announced(self._lake)
            if engine is None:
                raise ValueError("no engine runs")
            self._token = engine.token
            self._connection = process_tls.http_connection(engine.address, engine.certificate, ANSWER_S)
        after = max(self.lags.n, self._mirrors.figures.began)
        self._connection.request("GET", control.freshness_path(after, self.lags.version), headers=control.headers(self._token))
        response = self._connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise ValueError(f"the engine answered {response.status}")
        self.lags.answered(control.decode(body), time.time_ns() // 1_000_000)

    def _observe(self) -> None:
        """Takes the entries that the mirrors show, and adds the lags to the histories once in SAMPLE_S seconds."""
        for id, peak in self.lags.shown(list(self._mirrors.figures.entries)).items():
            self._peaks[id] = max(self._peaks.get(id, 0), peak)
        if time.monotonic() - self._observed_at >= SAMPLE_S:
            catalog, peaks = self._mirrors.state.catalog, self._peaks
            self._peaks, self._observed_at = {}, time.monotonic()
            self.lags.observe(catalog, recorded(catalog), peaks, time.time_ns() // 1_000_000)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
