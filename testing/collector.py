"""A collector of OpenTelemetry for tests and benchmarks: it keeps the metrics and spans that processes send by OTLP over HTTP."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tailgate.lake.host.server_thread import ServerThread


class Collector:
    """The collector. It listens until `stop`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spans: list[tuple[str, Span]] = []
        self._metrics: dict[str, dict[str, Any]] = {}
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.receive(self.path, gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        self._thread = ServerThread(server, "collector")
        self._thread.start()

    def receive(self, path: str, body: bytes) -> None:
        """Keeps the content of a request."""
        with self._lock:
            if path == "/v1/traces":
                for of in ExportTraceServiceRequest.FromString(body).resource_spans:
                    self._spans += [(_service(of), span) for scope in of.scope_spans for span in scope.spans]
            elif path == "/v1/metrics":
                for metrics in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                    by_name = {metric.name: metric for scope in metrics.scope_metrics for metric in scope.metrics}
                    self._metrics.setdefault(_service(metrics), {}).update(by_name)

    def metrics(self, service: str) -> dict[str, Any]:
        """Returns the newest metrics of a service, by name."""
        with self._lock:
            return dict(self._metrics.get(service, {}))

    def traces(self) -> dict[bytes, list[tuple[str, Span]]]:
        """Returns the spans of each trace, with the service that sent them."""
        with self._lock:
            traces: dict[bytes, list[tuple[str, Span]]] = {}
            for service, span in self._spans:
                traces.setdefault(span.trace_id, []).append((service, span))
            return traces

    def stop(self) -> None:
        self._thread.stop()


def _service(of: Any) -> str:
    return next(str(a.value.string_value) for a in of.resource.attributes if a.key == "service.name")
