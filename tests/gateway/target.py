"""A gateway in a separate process as the target of attacks, and a client process that polls it."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from tailgate.embedded.children import Child, free_port
from tailgate.lake.catalog import Change
from tailgate.lake.catalog.roles import Role
from tailgate.lake.passwords import kept
from tests.gateway.serving.model_lake import ModelLake

ROOT = Path(__file__).parents[2]
PASSWORD = "correct horse"
WHO = "tailgate"  # a superuser who signs in from this machine, without a password
LOW = "low"  # a role that may read `v`, and attacks
MEMORY = "1GB"  # the gateway's --memory
READY_S = 60.0
PATIENCE_S = 120.0  # for one statement

Figures = dict[str, float]


@dataclass
class Target:
    """A gateway over a lake with a view `v` of a hundred rows.

    `ann` is a superuser. `low` and `bob` may read the view; `low` has no password.
    """

    folder: Path
    child: Child = field(init=False)
    port: int = field(init=False)

    def start(self) -> None:
        model = ModelLake(self.folder / "lake")
        v = model.create("v")
        for name in ("ann", LOW, "bob"):
            verifier = None if name == LOW else kept(PASSWORD)
            role = Role(model.writer.catalog.next_id, name, True, name == "ann", verifier, {v.id: frozenset({"SELECT"})})
            model.writer.append(kind="catalog", catalog=Change(put_roles=(role,)))
        model.tick({v.id: [((key, f"name {key}", float(key)), 1) for key in range(100)]})
        model.writer.close()
        self.port = free_port()
        listening = ["--data", str(self.folder / "lake"), "--listen", f"127.0.0.1:{self.port}", "--memory", MEMORY]
        self.child = Child("gateway", [sys.executable, "-m", "tailgate", "gateway", *listening], log=self.folder / "gateway.log")
        self.child.wait_ready(self.answers, timedelta(seconds=READY_S))

    def stop(self) -> None:
        self.child.kill()

    def dsn(self, user: str = "ann") -> str:
        return f"host=127.0.0.1 port={self.port} dbname=shop user={user} password='{PASSWORD}'"

    def client(self, user: str = LOW) -> psycopg.Connection[Any]:
        return psycopg.connect(self.dsn(user), autocommit=True, connect_timeout=60)

    def answers(self) -> bool:
        """Returns whether the gateway answers queries, also those of the catalog and of long statements."""
        with contextlib.suppress(psycopg.OperationalError), self.client("ann") as connection:
            connection.execute("SELECT pg_cancel_backend(0)")
            connection.execute(f"SELECT 1 {' ' * 10_000}")
            return connection.execute("SELECT count(*) FROM v").fetchone() == (100,)
        return False

    @property
    def memory(self) -> int:
        """Returns the resident memory of the gateway in bytes."""
        return int(Path(f"/proc/{self.child.pid}/statm").read_text().split()[1]) * resource.getpagesize()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)


class Watched:
    """Polls a target and measures its memory during an attack.

    `most` is the highest memory in bytes, `grown` its growth since the start, `polls` has the
    duration of each poll in seconds. `late`: for how long the machine kept the polling process waiting, at most.
    """

    def __init__(self, target: Target) -> None:
        self._target, self._ended = target, threading.Event()
        self.polls: list[float] = []
        self.late = 0.0
        self.most = 0

    def __enter__(self) -> Watched:
        self._begun = self.most = self._target.memory
        command = [sys.executable, "-m", "tests.gateway.poller", self._target.dsn("bob")]
        self._poller = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        self.once_more()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        output, _ = self._poller.communicate()
        self._ended.set()
        self._thread.join()
        self.polls, self.late = json.loads(output) if self._poller.returncode == 0 else ([], 0.0)

    def once_more(self) -> None:
        """Returns after polls that begin from now on."""
        assert self._poller.stdin is not None
        assert self._poller.stdout is not None
        self._poller.stdin.write("\n")
        self._poller.stdin.flush()
        assert self._poller.stdout.readline() == "polled\n"

    def _look(self) -> None:
        while not self._ended.wait(0.02):
            with contextlib.suppress(OSError):
                self.most = max(self.most, self._target.memory)

    def figures(self) -> Figures:
        polls = sorted(self.polls) or [float("nan")]
        return {
            "polls": len(self.polls),
            "poll_median_ms": polls[len(polls) // 2] * 1000,
            "poll_max_ms": polls[-1] * 1000,
            "late_max_ms": self.late * 1000,
            "grown_mb": (self.most - self._begun) / 2**20,
            "most_mb": self.most / 2**20,
        }


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Target]:
    target = Target(folder)
    target.start()
    try:
        yield target
    finally:
        target.stop()
