"""Tests the values of metrics, and that docs/operations/metrics.md lists the metrics that are served."""

from __future__ import annotations

import re

import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics_text
from prometheus_client.parser import text_string_to_metric_families

from tailgate.operations.definitions import ENGINE, GATEWAY, OMITTED, SINKS, UP, WATCH, Metric
from tailgate.operations.metrics import SERIES_MAX, Counter, Histogram, Metrics
from tests.docs.pages import DOCS

ALL = {metric.name: metric for metrics in (ENGINE, GATEWAY, SINKS, UP, WATCH) for metric in metrics}
ROW = re.compile(r"^\| `(tailgate_\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)


def test_the_page_lists_the_metrics() -> None:
    listed = {
        Metric(name, kind, unit, meaning, tuple(labels.split(", ")) if labels else ())
        for name, kind, labels, unit, meaning in (
            tuple(part.strip() for part in row) for row in ROW.findall((DOCS / "operations" / "metrics.md").read_text())
        )
    }  # type: ignore[arg-type]
    assert listed == set(ALL.values())


@pytest.mark.parametrize("metric", ALL.values(), ids=lambda metric: metric.name)
def test_names_say_the_unit(metric: Metric) -> None:
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    if metric.unit.startswith("seconds"):
        assert metric.name.endswith("_seconds")
    if metric.unit == "bytes":
        assert metric.name.removesuffix("_total").endswith("_bytes")


def test_a_histogram_counts_each_observation_once() -> None:
    histogram = Histogram()
    for seconds in (0.0001, 0.0005, 0.2, 100.0):
        histogram.observe(seconds, "query")
    metrics = Metrics(GATEWAY)
    metrics.read("tailgate_gateway_statement_seconds", histogram.series)
    served = {
        (s.name, s.labels.get("le")): s.value
        for f in text_string_to_metric_families(generate_latest(metrics.registry).decode())
        for s in f.samples
        if f.name == "tailgate_gateway_statement_seconds"
    }
    assert served["tailgate_gateway_statement_seconds_bucket", "0.0005"] == 2
    assert served["tailgate_gateway_statement_seconds_bucket", "0.25"] == 3
    assert served["tailgate_gateway_statement_seconds_bucket", "+Inf"] == 4
    assert served["tailgate_gateway_statement_seconds_count", None] == 4
    assert served["tailgate_gateway_statement_seconds_sum", None] == pytest.approx(100.2006)


def test_a_metric_has_a_limited_number_of_series() -> None:
    counter = Counter()
    for i in range(SERIES_MAX + 7):
        counter.add(f"public.v{i}")
    metrics = Metrics(ENGINE)
    metrics.read("tailgate_engine_relation_changes_total", counter.series)
    families = {f.name: f for f in text_string_to_metric_families(generate_latest(metrics.registry).decode())}
    assert len(families["tailgate_engine_relation_changes"].samples) == SERIES_MAX
    (omitted,) = families[OMITTED.name].samples
    assert (omitted.labels, omitted.value) == ({"metric": "tailgate_engine_relation_changes_total"}, 7)


def test_a_defect_leaves_one_metric_out(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics(SINKS)
    metrics.read("tailgate_sinks_up", lambda: {}[0])
    metrics.read_one("tailgate_metrics_omitted_series", lambda: None)
    assert b"tailgate_sinks_events_total" in generate_latest(metrics.registry)
    assert "tailgate_sinks_up cannot be read" in caplog.text


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "ü", "{}", "a,b=c"])
def test_any_name_can_be_a_label(name: str) -> None:
    counter = Counter()
    counter.add(name)
    metrics = Metrics(SINKS)
    metrics.read("tailgate_sinks_events_total", counter.series)
    text = list(text_string_to_metric_families(generate_latest(metrics.registry).decode()))
    other = list(openmetrics.text_string_to_metric_families(openmetrics_text(metrics.registry).decode()))
    for families in (text, other):
        (sample,) = [s for f in families for s in f.samples if s.name == "tailgate_sinks_events_total"]
        assert sample.labels == {"sink": name}
