"""The metrics and health of the sinks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from tailgate.lake.catalog import Catalog
from tailgate.operations.health import BEHIND_MAX_S
from tailgate.operations.labels import label
from tailgate.operations.metrics import Metrics, Series, labeled
from tailgate.sinks.worker import Worker

P = "tailgate_sinks_"
LOG_WAIT_S = 10.0  # of an idle process for the log, in which the end of the log is not looked for again


class Sinks(Protocol):
    """The part of the sinks that metrics show. `at_end`: when the end of the log was last seen, by the monotonic clock."""

    started: bool
    at_end: float

    @property
    def workers(self) -> list[Worker]: ...

    @property
    def catalog(self) -> Catalog: ...

    @property
    def n(self) -> int: ...


def connect(metrics: Metrics, sinks: Sinks) -> None:
    """Sets the readers of all metrics of the sinks."""

    def workers(value: Callable[[Worker], float]) -> Callable[[], Series]:
        def series() -> Series:
            catalog = sinks.catalog
            return labeled({label(catalog, worker.item): value(worker) for worker in sinks.workers if worker.item.id in catalog.items})

        return series

    def lag_s(worker: Worker) -> float:
        return max(0.0, time.time() - worker.position.time / 1000) if worker.held < sinks.n else 0.0

    metrics.read(P + "up", workers(lambda worker: int(worker.up)))
    metrics.read(P + "events_total", workers(lambda worker: worker.events))
    metrics.read(P + "retries_total", workers(lambda worker: worker.retries))
    metrics.read(P + "entries_behind", workers(lambda worker: max(0, sinks.n - worker.held)))
    metrics.read(P + "lag_seconds", workers(lag_s))


def unready(sinks: Sinks) -> str | None:
    """Returns why the sinks are not ready, or None."""
    if not sinks.started:
        return "the sinks are starting"
    behind_s = time.monotonic() - sinks.at_end
    if behind_s > LOG_WAIT_S + BEHIND_MAX_S:
        return f"the log has not been read for {behind_s:.0f} s"
    return None
