"""Helpers for tests of the running engine: its process, its control, and relations' rows."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from tailgate.embedded.children import Child
from tailgate.lake.errors import TailgateError, of
from tailgate.lake.folder import Lake
from tailgate.lake.readers import reading
from tailgate.lake.store import locations
from tailgate.lake.types import WEIGHT
from tailgate.sql.name_resolution import resolve

READY = timedelta(seconds=120)
ANSWER_S = 120.0


class EngineProcess:
    """A `tailgate engine` process over a lake, which can be killed and restarted. `work_dir`: the working folder of a lake in a bucket."""

    def __init__(self, data: Path | str, *arguments: str, work_dir: Path | None = None) -> None:
        self.data = data
        self._arguments = arguments if work_dir is None else (*arguments, "--work-dir", str(work_dir))
        self._log = (Path(data) if work_dir is None else work_dir).parent / "engine.log"
        self.child: Child | None = None
        self.lives = 0

    def start(self, crash: str = "") -> None:
        """Starts the engine and returns when its control answers.

        With `crash`, the process ends at this crash point, and the call returns at once.
        """
        self.lives += 1
        command = [sys.executable, "-m", "tailgate", "engine", "--data", str(self.data), *self._arguments]
        self.child = Child("engine", command, log=self._log, environment={"TAILGATE_CRASH": crash})
        if not crash:
            self.child.wait_ready(self._answers, READY)

    def _answers(self) -> bool:
        try:
            announcement = self._announcement()
            return bool(announcement["process"]["pid"] == self.pid) and "ticks" in self.get("/status")
        except (OSError, ValueError):
            return False

    @property
    def pid(self) -> int:
        assert self.child is not None
        return self.child.pid

    @property
    def jvm(self) -> int:
        return int(self._announcement()["jvm"]["pid"])

    def _announcement(self) -> dict[str, Any]:
        return dict(json.loads(bytes(locations.opened(self.data).get("engine.json"))))

    def kill(self, *, python: bool = True, jvm: bool = False) -> None:
        """Sends SIGKILL to the driver or the JVM, and returns when the driver has ended."""
        assert self.child is not None
        victims = [self.jvm] if jvm else []
        for pid in [*victims, *([self.pid] if python else [])]:
            os.kill(pid, signal.SIGKILL)
        self.died()

    def died(self, timeout: float = 90.0) -> None:
        """Waits until the engine ends without being stopped."""
        assert self.child is not None
        code = self.child.wait(timedelta(seconds=timeout))
        assert code is not None, f"the engine still runs after {timeout} s"

    def stop(self) -> int:
        assert self.child is not None
        return self.child.stop()

    # ---- control ---------------------------------------------------------------------------------------------------------

    def execute(self, sql: str, settings: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Runs a statement as superuser, with names resolved in the newest catalog. `settings`: those of the session."""
        return self._request("/statement", self._statement(sql, settings))

    @contextmanager
    def followed(self, sql: str, settings: Mapping[str, str] | None = None) -> Iterator[int]:
        """Returns the id of the view of a push query, which exists up to the end of the block."""
        with self._answer("/push", self._statement(sql, settings)) as answer:
            yield answer["view"]

    def _statement(self, sql: str, settings: Mapping[str, str] | None) -> bytes:
        catalog = Lake.open(self.data).catalog()
        return json.dumps({"sql": sql, "resolution": resolve(sql, catalog, catalog).to_json(), "settings": dict(settings or {})}).encode()

    def get(self, path: str) -> dict[str, Any]:
        return self._request(path, None)

    def _request(self, path: str, body: bytes | None) -> dict[str, Any]:
        """Sends a request and returns the JSON answer."""
        with self._answer(path, body) as answer:
            return answer

    @contextmanager
    def _answer(self, path: str, body: bytes | None) -> Iterator[dict[str, Any]]:
        """Sends a request and returns the JSON answer. The connection is open up to the end of the block.

        Skips answers 102 Processing, which Python's HTTP client cannot.
        """
        announcement = self._announcement()
        host, port = announcement["address"].split(":")
        words = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {announcement['token']}"]
        words += ["Connection: close", f"Content-Length: {len(body or b'')}", "", ""]
        with socket.create_connection((host, int(port)), timeout=ANSWER_S) as connection, connection.makefile("rb") as answer:
            connection.sendall("\r\n".join(words).encode() + (body or b""))
            status = 102
            while status == 102:
                first = answer.readline().split()
                if not first:
                    raise ConnectionResetError("the engine ended before it answered")
                status, length = int(first[1]), 0
                while header := answer.readline().strip():
                    name, _, value = header.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
            answer_body = dict(json.loads(answer.read(length) or b"{}"))
            if status != 200:
                raise of(
                    answer_body.get("sqlstate", "XX000"),
                    answer_body["message"],
                    hint=answer_body.get("hint"),
                    position=answer_body.get("position"),
                )
            yield answer_body


def rows(lake: Lake, name: str) -> Counter[tuple[Any, ...]]:
    """Returns a relation's current rows, with their number of copies."""
    item = lake.catalog().relation(name)
    out: Counter[tuple[Any, ...]] = Counter()
    for row in reading.snapshot(lake, item.id).to_pylist():
        weight = row.pop(WEIGHT)
        out[tuple(row.values())] += weight
    return out


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Stops processes, which continue after the block."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def until(condition, timeout: float = 60.0) -> None:  # type: ignore[no-untyped-def]
    """Polls until the condition is true. Errors of Tailgate or the system count as false."""
    deadline = time.monotonic() + timeout
    last: object = None
    while time.monotonic() < deadline:
        try:
            last = condition()
            if last:
                return
        except (TailgateError, OSError) as e:
            last = e
        time.sleep(0.05)
    raise AssertionError(f"not within {timeout} s: {last}")
