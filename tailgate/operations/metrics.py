"""The values of one process's metrics, and their form for Prometheus.

    engine, gateway, sinks ──observe, add──► Histogram, Counter ──series──► Metrics ──► text format, OpenMetrics
                           ◄────────────────── read at a scrape ───────────

A value takes no lock: each one is changed by one thread, and a scrape reads memory only. Readers
must not call another process, read the lake or take a lock that a tick holds.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice

import numpy as np
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from tailgate.operations.definitions import OMITTED, Metric

log = logging.getLogger("tailgate.operations")

SERIES_MAX = 1_000  # of a metric; a server of metrics pays for every series, and a lake may have any number of relations
# Upper limits of the buckets, in seconds: from an answer in memory to a long statement.
BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

Labels = tuple[str, ...]


class Counter:
    """Sums by labels. One thread changes them."""

    def __init__(self) -> None:
        self._values: dict[Labels, float] = {}

    def add(self, *labels: str, by: float = 1) -> None:
        self._values[labels] = self._values.get(labels, 0) + by

    def remove(self, *labels: str) -> None:
        """Removes the sum of these labels, if there is one."""
        self._values.pop(labels, None)

    def series(self) -> dict[Labels, float]:
        return dict(self._values)


class Distribution:
    """The observations of one series of a histogram: how many fall into each bucket, and their sum."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.sum = 0.0

    def buckets(self) -> list[tuple[str, float]]:
        """Returns the cumulative counts by upper limit, as Prometheus has them."""
        limits = [*(str(limit) for limit in BUCKETS_S), "+Inf"]
        return list(zip(limits, accumulate(list(self.counts)), strict=True))


class Histogram:
    """Distributions by labels. One thread changes them."""

    def __init__(self) -> None:
        self._values: dict[Labels, Distribution] = {}

    def observe(self, seconds: float, *labels: str) -> None:
        distribution = self._values.get(labels)
        if distribution is None:
            distribution = self._values[labels] = Distribution()
        distribution.counts[bisect_left(BUCKETS_S, seconds)] += 1
        distribution.sum += seconds

    def observe_all(self, seconds: np.ndarray, *labels: str) -> None:
        """Adds many observations."""
        distribution = self._values.setdefault(labels, Distribution())
        for bucket, count in enumerate(np.bincount(np.searchsorted(BUCKETS_S, seconds), minlength=len(BUCKETS_S) + 1)):
            distribution.counts[bucket] += int(count)
        distribution.sum += float(seconds.sum())

    def series(self) -> dict[Labels, Distribution]:
        return dict(self._values)


Series = Mapping[Labels, float] | Mapping[Labels, Distribution]  # of one metric


def labeled(values: Mapping[str, float]) -> Series:
    """Returns the series of a metric with one label, by its value."""
    series: dict[Labels, float] = {}
    for value, number in values.items():
        series[value,] = number
    return series


class Metrics(Collector):
    """The metrics of a process. Each definition gets its series from one function (`read`).

    `registry` contains them and the process's own CPU time, memory and file descriptors.
    """

    def __init__(self, definitions: Sequence[Metric]) -> None:
        self._definitions = {metric.name: metric for metric in definitions}
        self._readers: dict[str, Callable[[], Series]] = {}
        self.registry = CollectorRegistry()
        self.registry.register(self)
        ProcessCollector(registry=self.registry)

    def read(self, name: str, series: Callable[[], Series]) -> None:
        """Sets the function that returns the series of a metric at a scrape."""
        self._readers[self._definitions[name].name] = series

    def read_one(self, name: str, value: Callable[[], float | None]) -> None:
        """Does the same for a metric without labels. It has no series while the value is None."""

        def series() -> Series:
            current = value()
            no_labels: Labels = ()
            return {} if current is None else {no_labels: current}

        self.read(name, series)

    def process(self, prefix: str, pid: Callable[[], int | str]) -> None:
        """Adds CPU time, memory and file descriptors of another process of this machine."""
        ProcessCollector(namespace=prefix, pid=pid, registry=self.registry)

    def describe(self) -> Iterable[Family]:
        """Returns the families without values: registering must not read any."""
        return [_family(metric) for metric in self._definitions.values()]

    def collect(self) -> Iterator[Family]:
        """Yields the families of all metrics of this process."""
        omitted: dict[Labels, float] = {}
        for metric in self._definitions.values():
            if metric is OMITTED:
                continue
            family = _family(metric)
            series: Mapping[Labels, float | Distribution] = self._series(metric)
            for labels, value in islice(series.items(), SERIES_MAX):
                _add(family, labels, value)
            if len(series) > SERIES_MAX:
                omitted[metric.name,] = len(series) - SERIES_MAX
            yield family
        family = _family(OMITTED)
        for labels, number in omitted.items():
            _add(family, labels, number)
        yield family

    def _series(self, metric: Metric) -> Series:
        """Returns the series of a metric. A defect of one reader leaves only its metric out."""
        reader = self._readers.get(metric.name)
        if reader is None:
            return {}
        try:
            return reader()
        except Exception:
            log.exception("metric %s cannot be read", metric.name)
            return {}


def _family(metric: Metric) -> Family:
    match metric.kind:
        case "counter":
            return CounterMetricFamily(metric.name, metric.meaning, labels=metric.labels)
        case "gauge":
            return GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
        case "histogram":
            return HistogramMetricFamily(metric.name, metric.meaning, labels=metric.labels)


def _add(family: Family, labels: Labels, value: float | Distribution) -> None:
    if isinstance(value, Distribution):
        assert isinstance(family, HistogramMetricFamily)
        family.add_metric(labels, value.buckets(), value.sum)
    else:
        assert isinstance(family, CounterMetricFamily | GaugeMetricFamily)
        family.add_metric(labels, value)
