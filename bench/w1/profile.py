"""The profile of an engine's ticks: the time of each step, from the spans that the engine sends with --otlp."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np
from opentelemetry.proto.trace.v1.trace_pb2 import Span

NS = 1e-6  # ms
LEVEL = "level "  # a span of operators
TOTAL = "tick"
STEPS = {  # of a tick, in order, with their descriptions
    "decode": "reading and decoding",
    "operators": "operators",
    "state": "commit of the state",
    "hand-over": "the rest: result, messages between JVM and driver",
    "entry": "log entry",
    TOTAL: "the whole tick",
}


def profile(traces: Iterable[Iterable[tuple[str, Span]]], seconds: float) -> dict[str, dict[str, float]]:
    """Returns mean, median and 95th percentile of each step in ms, of the ticks with changes in the last seconds."""
    ticks = [steps for steps in map(_steps, traces) if steps]
    last = max((end for end, _ in ticks), default=0.0)
    steps = [steps for end, steps in ticks if end >= last - 1000 * seconds]
    return {name: _figures([tick.get(name, 0.0) for tick in steps]) for name in STEPS} if steps else {}


def _steps(spans: Iterable[tuple[str, Span]]) -> tuple[float, Mapping[str, float]] | None:
    """Returns when a tick ended and the duration of each step, in ms; None without changes, or if spans are missing."""
    by_name = {span.name: span for _, span in spans}
    if not {"tick", "read", "decode", "state", "entry"} <= by_name.keys() or not _changed(by_name["tick"]):
        return None
    took: dict[str, float] = defaultdict(float)
    for name, span in by_name.items():
        took["operators" if name.startswith(LEVEL) else name] += (span.end_time_unix_nano - span.start_time_unix_nano) * NS
    began, computed = by_name["read"].end_time_unix_nano, by_name["entry"].start_time_unix_nano
    took["hand-over"] = (computed - began) * NS - took["decode"] - took["operators"] - took["state"]
    end = by_name["entry"].end_time_unix_nano
    took[TOTAL] = (end - began) * NS
    return end * NS, took


def _changed(tick: Span) -> bool:
    return any(a.key == "tailgate.changed_rows" and a.value.int_value > 0 for a in tick.attributes)


def _figures(ms: list[float]) -> dict[str, float]:
    values = np.array(ms)
    return {"mean": float(values.mean()), "p50": float(np.quantile(values, 0.5)), "p95": float(np.quantile(values, 0.95))}
