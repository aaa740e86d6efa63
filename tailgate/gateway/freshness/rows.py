"""The rows of the relation tailgate.freshness, and the steps of its history for `tailgate watch`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any

import pyarrow as pa

from tailgate.gateway.freshness.lags import History, Lags, Phases
from tailgate.lake.catalog import Catalog, Item
from tailgate.operations.sketch import Sketch
from tailgate.operations.watch.history import relations

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
WINDOWS = tuple(field.name for field in fields(History))
PHASES = tuple(field.name for field in fields(Phases))
Reads = Callable[..., bool]  # whether a query reads one of some columns


def rows(lags: Lags, catalog: Catalog, items: Iterable[Item], reads: Reads = lambda *columns: True) -> list[dict[str, Any]]:
    """Returns the rows of relations, with the figures of windows that are read: computing those of 500 relations takes 50 ms."""
    now = time.time_ns() // 1_000_000
    windows = [window for window in WINDOWS if reads(*(f"{figure}_{window}_ms" for figure in (*QUANTILES, "max")))]
    return [_row(lags, catalog, item, now, windows) for item in items]


def present(lags: Lags, catalog: Catalog) -> dict[str, float | None]:
    """Returns the present lag of each relation in milliseconds, by name; None if it is unknown."""
    now = time.time_ns() // 1_000_000
    return {str(catalog.stored.name_of(item)): lags.lag(catalog, item, now).ms for item in relations(catalog)}


def history(recorded: pa.Table, catalog: Catalog, items: Sequence[Item]) -> pa.Table:
    """Returns the rows of tailgate.freshness_history and size_history: those of relations."""
    names = pa.table(
        {
            "relation": pa.array([item.id for item in items], pa.int64()),
            "schema": pa.array([catalog.schema_of(item).name for item in items], pa.string()),
            "name": pa.array([item.name for item in items], pa.string()),
            "kind": pa.array([item.kind for item in items], pa.string()),
        }
    )
    return recorded.join(names, "relation", join_type="inner").drop_columns(["relation"])


def steps(lags: Lags, after: int) -> list[tuple[int, int, int, float | None, dict[int, int]]]:
    """Returns the steps of STEP_S seconds that have ended, later than `after`.

    Each is a relation's id, the number of the step, and of its lags: how many are unknown, the maximum, and the number by bucket.
    """
    return [
        (id, step, sketch.missing, sketch.max, sketch.counts)
        for id, history in list(lags.histories.items())
        for step, sketch in history.minute.complete(after, time.time())
    ]


def _row(lags: Lags, catalog: Catalog, item: Item, now: int, windows: Iterable[str]) -> dict[str, Any]:
    lag = lags.lag(catalog, item, now)
    row: dict[str, Any] = {"schema": catalog.schema_of(item).name, "name": item.name, "kind": item.kind}
    row |= {"lag_ms": None if lag.ms is None else round(lag.ms), "unknown": lag.reason}
    slowest = None if lag.slowest is None else catalog.items.get(lag.slowest)
    row["slowest_source"] = None if slowest is None else str(catalog.stored.name_of(slowest))
    phases = [lags.phases[id] for id in lags.inputs(catalog, item) if id in lags.phases]
    if phases:
        worst = max(phases, key=lambda phase: sum(getattr(phase, name) for name in PHASES))
        row |= {f"{name}_ms": getattr(worst, name) for name in PHASES}
    history = lags.histories.get(item.id)
    if history is not None:
        for window in windows:
            row |= _figures(window, getattr(history, window).total(now / 1000))
    return row


def _figures(window: str, sketch: Sketch) -> dict[str, float | None]:
    quantiles = sketch.quantiles(list(QUANTILES.values()))
    values = dict(zip((*QUANTILES, "max"), (*quantiles, sketch.max), strict=True))
    return {f"{name}_{window}_ms": None if value is None else round(value) for name, value in values.items()}
