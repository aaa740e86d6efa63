"""Tests the HTTP server of metrics and health checks."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tailgate.lake.errors import TailgateError
from tailgate.operations import endpoint as endpoints
from tailgate.operations.definitions import SINKS
from tailgate.operations.endpoint import Address, Endpoint, address
from tailgate.operations.health import Health
from tailgate.operations.metrics import Metrics


class Server:
    """An endpoint, and a client of it."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.endpoint = Endpoint(Address("127.0.0.1", 0), Metrics(SINKS), Health(lambda: self.reason))
        self.port = int(self.endpoint.start().split(":")[2].split("/")[0])

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        body = response.read().decode()
        connection.close()
        return response.status, body, response.headers.get("Content-Type", "")


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.endpoint.stop()


def test_metrics_have_the_format_that_the_client_accepts(server: Server) -> None:
    status, body, kind = server.get("/metrics")
    assert (status, kind.split(";")[0]) == (200, "text/plain")
    assert "process_resident_memory_bytes" in body
    status, body, kind = server.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert list(text_string_to_metric_families(body))


def test_health(server: Server) -> None:
    assert server.get("/livez")[:2] == (200, "ok\n")
    assert server.get("/startupz")[:2] == (503, "the process is starting\n")
    assert server.get("/readyz")[:2] == (503, "the process is starting\n")
    server.endpoint.health.started()
    assert server.get("/startupz")[0] == server.get("/readyz")[0] == 200
    server.reason = "the mirrors have been behind the log for 7 s"
    assert server.get("/readyz")[:2] == (503, "the mirrors have been behind the log for 7 s\n")
    assert server.get("/livez")[0] == server.get("/startupz")[0] == 200


def test_other_requests(server: Server) -> None:
    assert server.get("/")[0] == 404
    assert server.get("/metrics", "POST")[0] == 501
    assert server.get("/livez", "HEAD")[:2] == (200, "")


def test_connections_that_send_nothing_do_not_block(server: Server) -> None:
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(endpoints.REQUESTS_MAX + 2)]
    assert server.get("/livez")[0] == 200
    for connection in idle:
        connection.close()


@pytest.mark.parametrize("text", ["", "host", "host:", "127.0.0.1:70000", "127.0.0.1:-1", "1.5"])
def test_invalid_addresses(text: str) -> None:
    with pytest.raises(TailgateError) as raised:
        address(text)
    assert (raised.value.sqlstate, raised.value.message) == ("22023", f"--metrics {text} is not HOST:PORT")


def test_a_port_in_use_is_an_error(server: Server) -> None:
    with pytest.raises(TailgateError) as raised:
        Endpoint(Address("127.0.0.1", server.port), Metrics(SINKS), Health()).start()
    assert raised.value.sqlstate == "55006"
    assert f"port {server.port} of 127.0.0.1 is in use" in raised.value.message
