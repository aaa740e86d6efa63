"""Starts the servers for random statements: an engine, a gateway process, and PostgreSQL."""

from __future__ import annotations

import random
import sys
from datetime import timedelta
from pathlib import Path

from tailgate.embedded.children import Child, free_port
from testing.engine_process import EngineProcess
from testing.postgres import Postgres
from tests.generator import world
from tests.generator.servers import Server

READY = timedelta(seconds=60)
LIMITS = ("SET statement_timeout = '5s'",)  # PostgreSQL's setup: answers that take longer are not compared


class GatewayProcess:
    """A `tailgate gateway` process over a lake. `revive` restarts it."""

    def __init__(self, data: Path) -> None:
        self.data, self.port, self.lives = data, free_port(), 0
        self._child: Child | None = None

    def start(self) -> None:
        self.lives += 1
        command = [sys.executable, "-m", "tailgate", "gateway", "--data", str(self.data), "--listen", f"127.0.0.1:{self.port}"]
        self._child = Child("gateway", command, log=self.data.parent / "gateway.log")
        self._child.wait_ready(self._answers, READY)

    def _answers(self) -> bool:
        server = Server("tailgate", self.port, "tailgate", "shop")
        try:
            return not server.query("SELECT 1").failed
        except (OSError, AssertionError):
            return False
        finally:
            server.close()

    def revive(self) -> None:
        """Restarts the gateway after a crash or a hang."""
        self.stop()
        self.start()

    def stop(self) -> None:
        if self._child is not None:
            self._child.kill()
        self._child = None


class Both:
    """Tailgate and PostgreSQL with the tables of `world`, filled with the same rows."""

    def __init__(self, folder: Path, seed: str) -> None:
        self.engine = EngineProcess(folder / "lake")
        self.gateway = GatewayProcess(folder / "lake")
        self.postgres = Postgres()
        self.seed = seed

    def start(self) -> None:
        self.postgres.start()
        self.engine.start()
        self.gateway.start()
        self.theirs = Server("PostgreSQL", self.postgres.port, setup=LIMITS)
        self.ours = Server("Tailgate", self.gateway.port, "tailgate", "shop")
        rows = world.rows(random.Random(self.seed))
        world.create(self.ours.execute, rows, maintained=True)
        world.create(self.theirs.execute, rows, maintained=False)

    def stop(self) -> None:
        for server in ("theirs", "ours"):
            if hasattr(self, server):
                getattr(self, server).close()
        self.gateway.stop()
        self.engine.stop()
        self.postgres.stop()
