"""The status of the engine: the answers of `GET /status`, and of `GET /health`, which asks no broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JError

from tailgate.engine.plan.views import nodes
from tailgate.engine.runtime.backfill.installation import Installation
from tailgate.engine.runtime.control.source_statements import positions
from tailgate.lake.catalog import Catalog, MaterializedView, Sink, Source
from tailgate.lake.errors import SystemError_
from tailgate.lake.readers import holds
from tailgate.lake.readers.failed import failure
from tailgate.lake.tables.table_sizes import TableSize

Answer = dict[str, Any]
RATE_S = 10.0  # message rates are averaged over this time, or up to twice as long
PERCENTILES = (("p50", 0.5), ("p95", 0.95))


class Status:
    """Collects the status of sources, views, sinks and ticks. `sizes` returns those of the stored relations, by id."""

    def __init__(self, installation: Installation, sizes: Callable[[], Mapping[int, TableSize]]) -> None:
        self._installation, self._engine, self._sizes = installation, installation.engine, sizes
        self._asking = threading.Lock()  # held by the request that waits for the JVM
        self._errors: dict[int, str] = {}  # the last error of each source
        # when the records of a source or sink were counted, and how many there were
        self._counted: dict[int, tuple[float, int]] = {}

    def __call__(self, lags: bool = True) -> Answer:
        """Returns the status of all items. `lags`: with the numbers of unread records of sources, for which it asks their brokers."""
        engine = self._engine
        catalog = engine.catalog
        items = catalog.visible
        durations = sorted(engine.runner.durations)
        for id in {*self._errors, *self._counted} - catalog.items.keys():  # of items that were dropped
            self._errors.pop(id, None)
            self._counted.pop(id, None)
        sources = [i for i in items if isinstance(i, Source)]
        sinks = [i for i in items if isinstance(i, Sink)]
        measured: list[Source | Sink] = [*(i for i in sources if engine.health.of(i) is None), *_read_sinks(sinks, catalog)]
        places = positions(measured, engine.newest.offsets, engine.place) if lags else {}
        return {
            "sources": {catalog.name_of(i).sql: self._source(i, places.get(i.id)) for i in sources},
            "views": {catalog.name_of(i).sql: self._view(i) for i in items if isinstance(i, MaterializedView)},
            "sinks": {catalog.name_of(i).sql: {**self._sink(i), "offsets": places.get(i.id)} for i in sinks},
            "ticks": engine.runner.ticks,
            "tick_ms": {name: round(durations[int(len(durations) * q)], 1) for name, q in PERCENTILES} if durations else {},
            "state_versions": engine.runner.pacing.lineage,
            "n": engine.newest.n,
            "time": engine.newest.time,
        }

    def health(self) -> Answer:
        """Returns what `tailgate watch` checks or records every second. Contains no error texts, and asks no broker.

        Waits for the JVM. Raises 58000 if it has ended, or if an earlier request still waits for it.
        """
        engine, catalog = self._engine, self._engine.catalog
        self._ask_jvm()
        figures, items = engine.runner.figures, catalog.visible
        sources = {catalog.name_of(i).sql: self._source(i, None) for i in items if isinstance(i, Source)}
        views = {catalog.name_of(i).sql: (self._view(i)["status"], i.ready) for i in items if isinstance(i, MaterializedView)}
        sizes = self._sizes()
        return {
            "sources": {name: {"status": of["status"], "dead_letters": of["dead_letters"]} for name, of in sources.items()},
            "views": {name: {"status": status, "ready": ready} for name, (status, ready) in views.items()},
            "ticks": {"failing": figures.failing, "running_s": round(figures.running_s, 3)},
            "sizes": {item.id: sizes[item.id] for item in items if item.id in sizes},
        }

    def _ask_jvm(self) -> None:
        loop = self._engine.runner.loop
        if not self._asking.acquire(blocking=False):
            raise SystemError_("the JVM does not answer")
        try:
            if loop is not None:
                loop.unread()
        except Py4JError:
            raise SystemError_("the JVM has ended") from None
        finally:
            self._asking.release()

    def _source(self, item: Source, places: Mapping[str, tuple[int, int, int]] | None) -> Answer:
        """Returns the status of a source. `places`: the first offset, the end and the next offset to read of each partition."""
        engine, stall = self._engine, self._engine.health.of(item)
        counts = engine.runner.counters.get(nodes.source_node(item), {})
        state = "paused" if item.paused else "failed" if stall and stall.lasting else "stalled" if stall else "running"
        if stall is not None:
            self._errors[item.id] = stall.error
        rate = self._rate(item.id, counts.get("records", 0))
        lag = None if places is None else sum(max(0, end - at) for _, end, at in places.values())
        more = {"lag": lag, "offsets": places, "per_second": rate, "last_error": self._errors.get(item.id)}
        return {"status": state, "error": stall.error if stall else None, "records": 0, "dead_letters": 0, "bytes": 0, **counts, **more}

    def _rate(self, id: int, records: int) -> float:
        """Returns the records per second of an item."""
        now = time.monotonic()
        before = self._counted.setdefault(id, (now, records))
        if now - before[0] > RATE_S:
            self._counted[id] = (now, records)
        return round((records - before[1]) / (now - before[0]), 2) if now > before[0] else 0.0

    def _view(self, item: MaterializedView) -> Answer:
        """Returns the status of a view; `rows` and `percent` are the progress of its fill."""
        engine = self._engine
        error = engine.failing.error(item)
        coming = engine.catalog.replacements().get(item.id)
        fill = self._installation.fills.get(coming.id if coming is not None else item.id)
        if not item.ready or nodes.is_stale(item):
            state = "filling"
        else:
            state = "replacing" if coming is not None else "failing" if error else "running"
        error_text = None if error is None else f"{error[1]} ({error[0]})"
        if item.paused:
            state = "replacing" if coming is not None else "paused"
        if (why := failure(item)) is not None:
            state, error_text = "replacing" if coming is not None else "failed", why.message
        progress = {"rows": None, "percent": None} if fill is None else {"rows": fill.rows, "percent": round(fill.percent, 1)}
        return {"status": state, "error": error_text, **progress}

    def _sink(self, item: Sink) -> Answer:
        """Returns the status of a sink that the sinks process has recorded."""
        try:
            data = holds.read(self._engine.lake, holds.sink(item.id)) or {}
        except (OSError, ValueError):
            data = {}
        figures = {
            "records": data.get("events", 0),
            "last_message": data.get("last"),
            "per_second": self._rate(item.id, data.get("events", 0)),
        }
        return {"status": data.get("status", "waiting for tailgate sinks"), "error": data.get("error") or None, **figures}


def _read_sinks(sinks: Iterable[Sink], catalog: Catalog) -> list[Sink]:
    """Returns the sinks of derived items of ksqlDB that queries read."""
    queries = ((view, view.ksqldb) for view in catalog.each(MaterializedView) if view.ksqldb is not None)
    read = {id for view, ksqldb in queries for id in view.depends if id != ksqldb.into}
    return [sink for sink in sinks if sink.of_view and sink.depends[0] in read]
