"""Tests the export by OTLP to a collector: metrics are those that Prometheus gets. `tests/embedded/test_up.py` tests real processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tailgate.lake.errors import InvalidParameterValue
from tailgate.operations.definitions import GATEWAY
from tailgate.operations.metrics import Counter, Histogram, Metrics
from tailgate.operations.otlp import active as otlp
from tailgate.operations.otlp.export import Exporter, checked
from testing.collector import Collector
from testing.engine_process import until


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.stop()


def test_metrics_have_the_names_and_values_of_prometheus(collector: Collector) -> None:
    counter, histogram = Counter(), Histogram()
    counter.add("query", "00000", by=3)
    for seconds in (0.0001, 0.2, 100.0):
        histogram.observe(seconds, "query")
    metrics = Metrics(GATEWAY)
    metrics.read("tailgate_gateway_statements_total", counter.series)
    metrics.read("tailgate_gateway_statement_seconds", histogram.series)
    metrics.read_one("tailgate_gateway_client_bytes", lambda: 7)
    exporter = Exporter(collector.url + "/", "gateway", interval_s=0.05)
    exporter.export(metrics)
    until(lambda: len(collector.metrics("tailgate-gateway")) >= 3)
    exporter.close()
    sent = collector.metrics("tailgate-gateway")
    (point,) = sent["tailgate_gateway_statements_total"].sum.data_points
    assert {a.key: a.value.string_value for a in point.attributes} == {"lane": "query", "sqlstate": "00000"}
    assert point.as_double == 3 and sent["tailgate_gateway_statements_total"].sum.is_monotonic
    (gauge,) = sent["tailgate_gateway_client_bytes"].gauge.data_points
    assert (gauge.as_double, sent["tailgate_gateway_client_bytes"].unit) == (7, "By")
    (distribution,) = sent["tailgate_gateway_statement_seconds"].histogram.data_points
    assert not distribution.HasField("min") and not distribution.HasField("max")  # Prometheus does not have them
    assert (distribution.count, distribution.sum) == (3, pytest.approx(100.2001))
    limits = [*distribution.explicit_bounds, float("inf")]
    assert [limit for limit, count in zip(limits, distribution.bucket_counts, strict=True) if count] == [0.0005, 0.25, float("inf")]


def test_a_url_that_is_none_is_refused() -> None:
    assert otlp.exporter() is None
    for url in ("127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://"):
        with pytest.raises(InvalidParameterValue):
            checked(url)
