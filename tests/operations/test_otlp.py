"""Tests the export by OTLP to a collector: a tick of real processes is one trace, and metrics are those that Prometheus gets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tailgate.embedded.kafka import Kafka
from tailgate.lake.errors import InvalidParameterValue
from tailgate.operations.definitions import GATEWAY
from tailgate.operations.metrics import Counter, Histogram, Metrics
from tailgate.operations.otlp import active as otlp
from tailgate.operations.otlp.export import Exporter, checked
from testing.engine_process import until
from tests.operations.collector import Collector
from tests.operations.system import System
from tests.operations.watch.alerted import send

LONGEST_S = 60.0


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


@pytest.mark.spark
@pytest.mark.kafka
def test_a_tick_is_a_trace(tmp_path: Path, kafka: Kafka, collector: Collector) -> None:
    """The trace has spans of the engine and of the gateway."""
    system = System(tmp_path, kafka, "--otlp", collector.url)
    try:
        system.wait_ready()
        send(kafka, "traced", {"id": 1})
        source = f"CREATE MATERIALIZED SOURCE traced (id int) FROM KAFKA BROKER '{kafka.address}' TOPIC 'traced' FORMAT JSON"
        system.run(source, "CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM traced", "SELECT * FROM counted")
        send(kafka, "traced", {"id": 2})

        def whole() -> list[tuple[str, str]]:
            """Returns service and name of the spans of a tick that the gateway shows and that has changed a row, by their begin."""
            for spans in collector.traces().values():
                names = {span.name for _, span in spans}
                changed = any(a.key == "tailgate.changed_rows" and a.value.int_value > 0 for _, span in spans for a in span.attributes)
                if changed and {"mirror", "level 0"} <= names:
                    return [(service, span.name) for service, span in spans]
            return []

        until(whole, LONGEST_S)
        spans = whole()
        assert {name for service, name in spans if service == "tailgate-engine"} >= {"tick", "read", "decode", "level 0", "state", "entry"}
        assert [service for service, name in spans if name == "mirror"] == ["tailgate-gateway"]
        for trace in collector.traces().values():
            roots = [span for _, span in trace if span.name == "tick"]
            for root in roots:
                assert not root.parent_span_id
                for _, span in trace:
                    assert span is root or span.parent_span_id == root.span_id
                    assert span.start_time_unix_nano >= root.start_time_unix_nano
        for process in ("engine", "gateway", "sinks", "watch", "up"):
            until(lambda process=process: "process_cpu_seconds_total" in collector.metrics(f"tailgate-{process}"), LONGEST_S)
        assert "tailgate_engine_rocksdb_bytes" in collector.metrics("tailgate-engine")
    finally:
        system.stop()
