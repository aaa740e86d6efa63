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
from testing.views import Record
from tests.engine.plan.law import Given, Jobs, Law

KILL_S = 0.5  # longest delay of a kill after the start of a tick


class Distributed(Jobs):
    """Views whose ticks are jobs. Before or during a fraction `kills` of them an executor is killed."""

    cluster: SparkCluster
    kills = 0.0
    killed = 0

    def restart(self) -> None:
        """Kills all executors if the run has kills."""
        if self.kills:
            for executor in self.cluster.executors():
                self._kill(executor)

    def _run(self, records: list[Record]) -> list[tuple[int, bytes]]:
        chooser = self.world.random
        if chooser.random() >= self.kills:
            return super()._run(records)
        until(self.cluster.executors)
        timer = threading.Timer(chooser.random() * KILL_S, self._kill, [chooser.choice(self.cluster.executors())])
        timer.start()
        try:
            return super()._run(records)
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
