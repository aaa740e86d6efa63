"""The exporters of a process, with the option --otlp.

    Metrics ──every INTERVAL_S──► URL/v1/metrics
    traces of ticks ──queue──► URL/v1/traces

A collector that does not answer loses data, and delays nothing: the queue of spans is bounded, and metrics are read when they are sent.
OpenTelemetry's variables for headers, timeouts and certificates (OTEL_EXPORTER_OTLP_…) apply.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from importlib.metadata import version
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from tailgate.lake.errors import InvalidParameterValue
from tailgate.operations.metrics import Metrics
from tailgate.operations.otlp.metrics_data import metrics_data

log = logging.getLogger("tailgate.operations")

INTERVAL_S = 15.0  # between two exports of metrics, as Prometheus scrapes by default
SPANS_MAX = 4_096  # that wait for the collector: ten seconds of ticks at full speed; further ones are dropped
SPANS_DELAY_MS = 2_000  # until waiting spans are sent


class Exporter:
    """Sends the metrics and spans of a process to one collector. `resource` says which process it is."""

    def __init__(self, url: str, process: str, interval_s: float = INTERVAL_S) -> None:
        base = checked(url)
        self.resource = Resource.create(
            {"service.namespace": "tailgate", "service.name": f"tailgate-{process}", "service.version": version("tailgate")}
            | {"service.instance.id": f"{socket.gethostname()}:{os.getpid()}"}
        )
        self.spans = BatchSpanProcessor(OTLPSpanExporter(f"{base}/v1/traces"), SPANS_MAX, SPANS_DELAY_MS)
        self._metrics = OTLPMetricExporter(f"{base}/v1/metrics")
        self._interval_s = interval_s
        self._ended = threading.Event()

    def close(self) -> None:
        """Ends the exports."""
        self._ended.set()
        self._metrics.shutdown()
        self.spans.shutdown()  # type: ignore[no-untyped-call]  # opentelemetry does not annotate it

    def export(self, metrics: Metrics) -> None:
        """Sends metrics in the background until the exporter is closed or the process ends."""
        threading.Thread(target=self._run, args=(metrics,), name="otlp-metrics", daemon=True).start()

    def _run(self, metrics: Metrics) -> None:
        while not self._ended.wait(self._interval_s):
            try:
                self._metrics.export(metrics_data(metrics.registry.collect(), self.resource))
            except Exception:
                log.exception("metrics cannot be exported; trying again")


def checked(url: str) -> str:
    """Returns the URL of a collector without the slash at its end. Raises 22023 if it is not a URL of HTTP.

    >>> checked("http://127.0.0.1:4318/")
    'http://127.0.0.1:4318'
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidParameterValue(f"--otlp {url} is not a URL of HTTP", hint="For example http://127.0.0.1:4318.")
    return url.rstrip("/")
