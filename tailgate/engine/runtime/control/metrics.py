"""The metrics and health of an engine.

A scrape reads the memory of the engine. `Samples` reads the rest in the background: the statistics of the
JVM's operators, and the files of the log and its readers.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from tailgate.engine.plan.circuit.operators import Closing, WithinJoin
from tailgate.engine.plan.explain import OperatorStatistics
from tailgate.engine.plan.views import nodes
from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.maintenance.follow import Follow
from tailgate.engine.runtime.ticks.engine import Engine
from tailgate.lake.catalog import Item, MaterializedView, Source
from tailgate.lake.readers.holds import Limits, holds
from tailgate.lake.store import Store
from tailgate.operations.labels import by_name, each
from tailgate.operations.metrics import Labels, Metrics, Series, labeled

log = logging.getLogger("tailgate.engine")

P = "tailgate_engine_"
SAMPLE_S = 10.0  # Prometheus scrapes every 15 s by default
TICK_OVERDUE_S = 60.0  # an idle engine has a tick every 10 s; one of a large backlog takes a few seconds
COUNTS = {"records": "source_records_total", "bytes": "source_bytes_total", "dead_letters": "source_dead_letters_total"}
OPERATOR_VALUES: dict[str, Callable[[OperatorStatistics], float]] = {
    "operator_rows_in": lambda s: s.rows_in,
    "operator_rows_out": lambda s: s.rows_out,
    "operator_seconds": lambda s: s.nanoseconds / 1e9,
    "operator_state_rows": lambda s: s.state_rows,
    "operator_state_bytes": lambda s: s.state_bytes,
}
VIEW_VALUES = {f"view_{what}": OPERATOR_VALUES[f"operator_{what}"] for what in ("seconds", "state_rows", "state_bytes")}


@dataclass
class Samples:
    """The newest values that a background thread has read.

    `operators`: by node. `held`, `held_bytes`: entries and bytes of the log by reader. `behind`: records that no tick has read, by channel.
    """

    operators: dict[int, OperatorStatistics] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    held_bytes: dict[str, int] = field(default_factory=dict)
    log_bytes: int | None = None
    state_bytes: int | None = None
    behind: dict[str, int] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)  # of the JVM (`tailgate.circuit.TickLoop.held`)

    def take(self, engine: Engine) -> None:
        """Reads the values again."""
        self.operators = dict(engine.figures().nodes)
        newest, limits = engine.newest.n, Limits(engine.lake)
        held = [hold for hold in holds(engine.lake) if hold.stopped is None]
        self.held = {hold.reader: max(0, newest - hold.n) for hold in held}
        self.held_bytes = {hold.reader: limits.size_after(hold.n) for hold in held}
        self.log_bytes = engine.lake.log.size()
        self.state_bytes = size_below(engine.lake.local, engine.state_folder)
        loop = engine.runner.loop
        if loop is not None:
            self.memory, self.behind = loop.held(), loop.behind()


def size_below(store: Store, folder: str) -> int:
    """Returns the bytes of the objects in a folder and below it."""
    names, sizes = store.names(folder), store.sizes(folder)  # a name without a size is a folder, or was removed meanwhile
    return sum(sizes.values()) + sum(size_below(store, f"{folder}/{name}") for name in names if name not in sizes)


class Sampler(threading.Thread):
    """A thread that takes the samples until the engine stops."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(name="samples", daemon=True)
        self.samples = Samples()
        self._engine = engine

    def run(self) -> None:
        while not self._engine.stopping:
            try:
                self.samples.take(self._engine)
            except Exception as error:  # noqa: BLE001  # a file that was removed meanwhile, or a JVM that is ending
                log.debug("a sample cannot be taken: %s", error)
            self._engine.ended.wait(SAMPLE_S)


def connect(metrics: Metrics, installation: Installation, follow: Follow, jvm_pid: int) -> None:
    """Sets the readers of all metrics of an engine, and starts to take samples."""
    engine = installation.engine
    figures, runner = engine.runner.figures, engine.runner
    sampler = Sampler(engine)
    sampler.start()
    metrics.process("tailgate_jvm", lambda: jvm_pid)

    metrics.read_one(P + "ticks_total", lambda: runner.ticks)
    metrics.read_one(P + "tick_failures_total", lambda: figures.failures)
    metrics.read(P + "tick_seconds", figures.phases.series)
    metrics.read_one(P + "entry", lambda: engine.newest.n)
    metrics.read_one(P + "entry_time_seconds", lambda: engine.newest.time / 1000)
    metrics.read(P + "relation_changes_total", lambda: by_name(engine.catalog, figures.rows.series()))
    metrics.read(P + "relation_change_bytes_total", lambda: by_name(engine.catalog, figures.bytes.series()))
    metrics.read_one(P + "state_versions", lambda: runner.pacing.lineage)
    metrics.read_one(P + "round_entries_behind", lambda: max(0, engine.newest.n - follow.written))
    metrics.read_one(P + "inbox_waiting", lambda: max(0, engine.inbox.newest - engine.newest.inbox))
    metrics.read(P + "reader_entries_held", lambda: labeled(sampler.samples.held))
    metrics.read(P + "reader_held_bytes", lambda: labeled(sampler.samples.held_bytes))
    for name in ("read_ahead_records", "read_ahead_bytes", "rocksdb_bytes"):
        metrics.read_one(P + name, partial(_memory, sampler, name))
    metrics.read_one(P + "log_bytes", lambda: sampler.samples.log_bytes)
    metrics.read_one(P + "state_disk_bytes", lambda: sampler.samples.state_bytes)
    for name, value in OPERATOR_VALUES.items():
        metrics.read(P + name, _operators(engine, sampler, value))
    metrics.read(P + "operator_late_rows_total", lambda: _late_rows(engine))
    _connect_items(metrics, installation, sampler.samples)


def _connect_items(metrics: Metrics, installation: Installation, samples: Samples) -> None:
    """Sets the readers of metrics of sources and views."""
    engine = installation.engine

    def sources(value: Callable[[Source], float | None]) -> Callable[[], Series]:
        return lambda: each(engine.catalog, engine.catalog.visible, lambda item: value(item) if isinstance(item, Source) else None)

    def views(value: Callable[[MaterializedView], float | None]) -> Callable[[], Series]:
        return lambda: each(
            engine.catalog, engine.catalog.visible, lambda item: value(item) if isinstance(item, MaterializedView) else None
        )

    def count(what: str) -> Callable[[Source], float | None]:
        return lambda source: engine.runner.counters.get(nodes.source_node(source), {}).get(what, 0)

    def last_record_s(source: Source) -> float | None:
        newest_ms = engine.runner.counters.get(nodes.source_node(source), {}).get("last_message")
        return newest_ms / 1000 if newest_ms else None

    def backfill(value: str) -> Callable[[MaterializedView], float | None]:
        return lambda view: getattr(installation.fills.get(_filled(engine, view)), value, None)

    metrics.read(P + "source_up", sources(lambda source: int(engine.health.of(source) is None and not source.paused)))
    for what, name in COUNTS.items():
        metrics.read(P + name, sources(count(what)))
    metrics.read(P + "source_last_record_seconds", sources(last_record_s))
    metrics.read(P + "source_records_behind", sources(lambda source: samples.behind.get(source.channel)))
    metrics.read(P + "view_failing", views(lambda view: int(engine.failing.has_error(view))))
    for name, value in VIEW_VALUES.items():
        metrics.read(P + name, views(partial(of_operators, samples, value)))
    metrics.read(P + "backfill_percent", views(backfill("percent")))
    metrics.read(P + "backfill_rows", views(backfill("rows")))
    metrics.read(P + "backfill_left_seconds", views(backfill("left_s")))


def _filled(engine: Engine, view: Item) -> int:
    """Returns the id of the item whose backfill fills a view: its replacement, or the view itself."""
    replacement = engine.catalog.replacements().get(view.id)
    return view.id if replacement is None else replacement.id


def _operators(engine: Engine, sampler: Sampler, value: Callable[[OperatorStatistics], float]) -> Callable[[], Series]:
    def series() -> Series:
        kinds = {operator.node: type(operator).__name__ for operator in engine.graph.operators}
        values: dict[Labels, float] = {}
        for node, statistics in sampler.samples.operators.items():
            if node in kinds:
                values[str(node), kinds[node]] = value(statistics)
        return values

    return series


def of_operators(samples: Samples, value: Callable[[OperatorStatistics], float], view: MaterializedView) -> float | None:
    """Returns the sum of a value over the operators of a view, also those that it shares; None before the first sample."""
    operators = samples.operators
    values = [value(operators[node]) for _, node in view.nodes if node in operators]
    return sum(values) if values else None


def _late_rows(engine: Engine) -> Series:
    """Returns the number of late rows that operators with windows have dropped."""
    ordered = (operator for operator in engine.graph.operators if isinstance(operator, WithinJoin | Closing))
    counts = engine.runner.counters
    values: dict[Labels, float] = {(str(o.node), type(o).__name__): counts.get(o.node, {}).get("late_rows", 0) for o in ordered}
    return values


def _memory(sampler: Sampler, name: str) -> int | None:
    return sampler.samples.memory.get(name)


def unready(engine: Engine) -> str | None:
    """Returns why an engine is not ready, or None."""
    figures = engine.runner.figures
    age_s = time.monotonic() - figures.committed_at
    if engine.stopping:
        return "the engine is stopping"
    if figures.failing:
        return "the newest tick failed and is tried again"
    if age_s > TICK_OVERDUE_S:
        return f"no tick was committed for {age_s:.0f} s"
    return None
