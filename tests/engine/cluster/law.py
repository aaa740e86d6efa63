"""The law through a cluster: ticks are jobs whose tasks run in other processes, some of which are killed."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from testing.engine_process import until
from testing.spark_cluster import SparkCluster
from testing.views import Changes, Record, Views
from tests.engine.plan.law import Given, Law, Watched

KILL_S = 0.5  # longest delay of a kill after the start of a tick


class Distributed(Watched):
    """Views whose ticks are jobs. Before or during a fraction `kills` of them an executor is killed."""

    cluster: SparkCluster
    kills = 0.0
    killed = 0

    def _open(self) -> None:
        """Opens nothing: each task opens its store."""

    def restart(self) -> None:
        """Kills all executors, if any are to be killed."""
        if self.kills:
            for executor in self.cluster.executors():
                self._kill(executor)

    def maintain(self) -> None:
        """Does nothing: executors do the background work."""

    def left(self) -> list[str]:
        return []

    def lost(self, changes: Changes) -> None:
        """Runs a tick that never enters the log."""
        before = self.ids
        self._run(self._records(changes))
        self.ids = before

    def _run(self, records: list[Record]) -> list[tuple[int, bytes]]:
        records = records or [(b"", "no source")]  # a tick without records, which changes the time
        chooser = self.world.random
        if chooser.random() >= self.kills:
            return Views._run(self, records)
        until(self.cluster.executors)
        timer = threading.Timer(chooser.random() * KILL_S, self._kill, [chooser.choice(self.cluster.executors())])
        timer.start()
        try:
            return Views._run(self, records)
        finally:
            timer.join()

    def _kill(self, executor: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(executor, signal.SIGKILL)
            Distributed.killed += 1


class DistributedLaw(Law):
    """A runner of cases on a cluster."""

    def __init__(self, session: Any, folder: Path, cluster: SparkCluster, kills: float) -> None:
        super().__init__(session, folder)
        self._cluster, self._kills = cluster, kills

    def opened(self, world: Given, partitions: int) -> Distributed:
        self.folder.mkdir(exist_ok=True)
        views = Distributed(self.session, self.folder, world, partitions)  # type: ignore[arg-type]
        views.refusals, views.cluster, views.kills = self.refused, self._cluster, self._kills
        return views
