"""Tests the metrics of a gateway while clients use it."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tailgate.gateway.server import metrics
from tailgate.lake.catalog import Catalog, Change, Objective, Table
from tailgate.lake.catalog import Endpoint as CatalogEndpoint
from tailgate.operations.definitions import GATEWAY
from tailgate.operations.endpoint import Address, Endpoint
from tailgate.operations.health import BEHIND_MAX_S, Health
from tailgate.operations.metrics import Metrics
from tests.wire.live import Live

SECRET = "a value of a row"
Served = dict[str, dict[tuple[str, ...], float]]  # by name of the sample, and values of its labels


class Watched:
    """A gateway with an endpoint for metrics."""

    def __init__(self, path: Path) -> None:
        self.live = Live(path)
        self.endpoint = Endpoint(Address("127.0.0.1", 0), Metrics(GATEWAY), Health())
        metrics.connect(self.endpoint.metrics, self.live.gateway, self.live.server.connections)
        self.endpoint.health.started(partial(metrics.unready, self.live.gateway))
        self.port = int(self.endpoint.start().split(":")[2].split("/")[0])

    def get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", path, headers={"Accept": "application/openmetrics-text; version=1.0.0"})
        response = connection.getresponse()
        body = response.read().decode()
        connection.close()
        return response.status, body

    def served(self) -> Served:
        """Returns the samples of a scrape, as Prometheus' own parser reads them."""
        status, text = self.get("/metrics")
        assert status == 200 and SECRET not in text
        samples: Served = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                samples.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
        return samples

    def statements(self, lane: str, sqlstate: str = "00000") -> float:
        return self.served().get("tailgate_gateway_statements_total", {}).get((lane, sqlstate), 0)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(tmp_path / "lake")
    yield watched
    watched.endpoint.stop()
    watched.live.close()


def test_statements_are_counted_by_lane_and_sqlstate(watched: Watched) -> None:
    with psycopg.connect(watched.live.dsn, autocommit=True) as connection:
        connection.execute("SET application_name = 'test'")
        connection.execute("SELECT count(*) FROM v WHERE id > %s", [0])
        connection.execute("SELECT relname FROM pg_class LIMIT 1").fetchall()
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1 / 0 FROM v")
        with pytest.raises(psycopg.errors.SyntaxError):
            connection.execute("SELEC 1")
    assert watched.statements("session") >= 1
    assert watched.statements("query") == 1
    assert watched.statements("catalog") == 1
    assert watched.statements("query", "22012") == 1
    assert watched.statements("unknown", "42601") == 1
    served = watched.served()
    assert served["tailgate_gateway_statement_seconds_count"][("query",)] == 2


def test_answers_from_memory_are_counted(watched: Watched) -> None:
    query = "SELECT count(*) FROM v"
    with psycopg.connect(watched.live.dsn, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
        for _ in range(20):
            connection.execute(query)
    assert watched.statements("memory") >= 15
    assert watched.statements("memory") + watched.statements("query") == 20


def test_mirrors_and_followers(watched: Watched) -> None:
    with psycopg.connect(watched.live.dsn, autocommit=True) as connection:
        connection.execute("SELECT count(*) FROM v").fetchall()
        before = watched.served()
        watched.live.tick([((9, SECRET, 1.0), 1), ((10, SECRET, 1.0), 1)])
        after = watched.served()
    changes = "tailgate_gateway_mirror_changes_total"
    assert after[changes][("public.v",)] - before.get(changes, {}).get(("public.v",), 0) == 2
    assert after["tailgate_gateway_mirror_entry"][()] == before["tailgate_gateway_mirror_entry"][()] + 1
    for histogram in ("tailgate_gateway_mirror_delay_seconds_count", "tailgate_gateway_mirror_update_seconds_count"):
        assert after[histogram][()] == before.get(histogram, {}).get((), 0) + 1
    assert after["tailgate_gateway_mirror_relations"][()] == 1
    assert after["tailgate_gateway_connections"][()] == 1


def test_a_gateway_is_ready_while_its_mirrors_follow(watched: Watched) -> None:
    assert watched.get("/readyz") == (200, "ok\n")
    figures = watched.live.serving.mirrors.figures
    figures.reached_end = lambda: None  # type: ignore[method-assign]  # as if the log could not be read
    figures.at_end -= BEHIND_MAX_S + 1
    status, reason = watched.get("/readyz")
    assert status == 503 and reason.startswith("the mirrors have been behind the log for ")


@pytest.mark.parametrize(
    ("limits_ms", "expected"), [((), 5), ((500,), 5), ((8_000,), 8), ((8_000, 60_000), 8), ((2_000, 60_000), 5)]
)  # fmt: skip
def test_mirrors_may_be_behind_as_long_as_the_objectives_of_all_relations_allow(limits_ms: tuple[int, ...], expected: int) -> None:
    table, endpoint = Table(id=1000, name="t", columns=()), CatalogEndpoint(id=1001, name="e", method="GET", path="/e")
    latency = Objective(id=1002, name="l", depends=(1001,), limits_ms={"max": 1}, window_ms=1, availability_ppm=1)
    objectives = [
        Objective(id=1100 + i, name=f"o{i}", depends=(1000,), limits_ms={"p95": ms, "max": ms + 1}, window_ms=1, availability_ppm=1)
        for i, ms in enumerate(limits_ms)
    ]
    catalog = Catalog().apply(Change(put=(table, endpoint, latency, *objectives)))
    assert metrics.behind_max_s(catalog) == expected
    assert metrics.behind_max_s(catalog.apply(Change(put=(Table(id=1003, name="u", columns=()),)))) == 5  # without an objective


def test_every_metric_is_served_under_load(watched: Watched) -> None:
    """Scrapes while clients run statements; each scrape must parse."""
    stop = threading.Event()

    def poll() -> None:
        with psycopg.connect(watched.live.dsn, autocommit=True) as connection:
            number = 0
            while not stop.is_set():
                number += 1
                connection.execute(f"SELECT name FROM v WHERE id = {number % 7}").fetchall()
                connection.execute("SELECT count(*) FROM v WHERE amount > %s", [number])

    pollers = [threading.Thread(target=poll) for _ in range(4)]
    for poller in pollers:
        poller.start()
    try:
        for _ in range(30):
            served = watched.served()
            watched.live.tick([((100, SECRET, 1.0), 1)])
    finally:
        stop.set()
        for poller in pollers:
            poller.join()
    without_samples = {m.name for m in GATEWAY if not {m.name, f"{m.name}_count"} & served.keys()}
    unknown = {"tailgate_gateway_freshness_lag_seconds"}  # without an engine
    assert (
        without_samples
        == {"tailgate_metrics_omitted_series", "tailgate_gateway_requests_total", "tailgate_gateway_request_seconds"} | unknown
    )
