"""The metrics of a process in OpenTelemetry's form: the same names and labels as for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.samples import Sample

SCOPE = InstrumentationScope("tailgate")
STARTED_NS = time.time_ns()  # when the counters of this process began at zero
UNKNOWN: Any = None  # the smallest and largest value of a histogram, which Prometheus does not have: the fields are not sent
UNITS = {"seconds": "s", "bytes": "By"}  # by the end of the name


def metrics_data(families: Iterable[Family], resource: Resource) -> MetricsData:
    """Returns the families of a scrape as one message."""
    now_ns = time.time_ns()
    metrics = [_metric(family, now_ns) for family in families if family.samples]
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(SCOPE, metrics, "")], "")])


def _metric(family: Family, now_ns: int) -> Metric:
    unit = UNITS.get(family.name.rpartition("_")[2], "")
    name = f"{family.name}_total" if family.type == "counter" else family.name
    if family.type == "histogram":
        distributions = _distributions(family.samples, now_ns)
        return Metric(name, family.documentation, unit, Histogram(distributions, AggregationTemporality.CUMULATIVE))
    points = [NumberDataPoint(sample.labels, STARTED_NS, now_ns, float(sample.value)) for sample in family.samples]
    data = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True) if family.type == "counter" else Gauge(points)
    return Metric(name, family.documentation, unit, data)


def _distributions(samples: Sequence[Sample], now_ns: int) -> list[HistogramDataPoint]:
    """Returns a point for each series of a histogram, whose samples are cumulative counts by upper limit."""
    series: dict[tuple[tuple[str, str], ...], list[Sample]] = {}
    for sample in samples:
        labels = tuple((name, value) for name, value in sample.labels.items() if name != "le")
        series.setdefault(labels, []).append(sample)
    return [_distribution(dict(labels), of_series, now_ns) for labels, of_series in series.items()]


def _distribution(labels: dict[str, str], samples: Sequence[Sample], now_ns: int) -> HistogramDataPoint:
    buckets = [(sample.labels["le"], int(sample.value)) for sample in samples if sample.name.endswith("_bucket")]
    total = next(sample.value for sample in samples if sample.name.endswith("_sum"))
    counts = [count - before for (_, count), (_, before) in zip(buckets, [("", 0), *buckets], strict=False)]
    limits = [float(limit) for limit, _ in buckets if limit != "+Inf"]
    return HistogramDataPoint(labels, STARTED_NS, now_ns, sum(counts), total, counts, limits, min=UNKNOWN, max=UNKNOWN)
