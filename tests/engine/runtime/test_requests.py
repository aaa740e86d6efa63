"""Requests about topics, with a broker that is a dictionary."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from tailgate.engine.runtime.control.source_statements import positions
from tailgate.engine.runtime.control.status import _read_sinks
from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.lake.catalog import Source
from tailgate.lake.errors import ConnectionFailure, UndefinedObject
from tests.engine.ddl.ksqldb_items import HIGH, READINGS, declared, derived


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the topics of the requests to the broker. It has all topics but t0."""
    requests: list[str] = []

    def look(brokers: str, topics: list[str], options: Mapping[str, str]) -> dict[str, kafka.Topic]:
        requests.extend(topics)
        return {t: kafka.Topic(str(len(requests)), {"0": (0, len(requests))}) for t in topics if t != "t0"}

    monkeypatch.setattr(kafka, "look", look)
    return requests


def test_a_statement_asks_about_each_topic_once(requests: list[str]) -> None:
    with kafka.each_topic_once():
        first = kafka.topic("k", "t1", {})
        assert kafka.topic("k", "t1", {}) is first
        kafka.topic("k", "t2", {})
        kafka.topic("k", "t1", {"user": "u"})  # another user may see another topic
        kafka.topic("other", "t1", {})
    assert requests == ["t1", "t2", "t1", "t1"]


def test_a_query_is_at_the_end_of_the_topic_of_a_derived_stream(requests: list[str]) -> None:
    """It has read the rows in the ticks that have added them."""
    _, sink, catalog = derived(HIGH, declared(READINGS))
    assert _read_sinks([sink], catalog) == []
    _, other, catalog = derived("CREATE TABLE n AS SELECT sensor, COUNT(*) AS n FROM high GROUP BY sensor EMIT CHANGES", catalog)
    assert _read_sinks([sink, other], catalog) == [sink]
    source = catalog.expect(Source, catalog.relation("readings").id)
    places = positions([source, sink], {}, lambda item: (item.brokers, item.topic, {}))
    assert places == {source.id: {"0": (0, 2, 0)}, sink.id: {"0": (0, 2, 2)}}
    assert requests == ["HIGH", "r"]


def test_a_missing_topic_is_requested_again(requests: list[str]) -> None:
    with kafka.each_topic_once():
        for _ in range(2):
            with pytest.raises(UndefinedObject):
                kafka.topic("k", "t0", {})
    assert requests == ["t0", "t0"]


def test_the_next_statement_asks_again(requests: list[str]) -> None:
    for _ in range(2):
        with kafka.each_topic_once():
            kafka.topic("k", "t1", {})
    kafka.topic("k", "t1", {})
    kafka.topic("k", "t1", {})
    assert requests == ["t1"] * 4


def test_a_broker_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is one of the connection, with which a source waits, and not one that ends the engine."""
    monkeypatch.setattr(kafka, "ANSWER_S", 0.5)
    monkeypatch.setattr(kafka, "RESULT_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        broker = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ConnectionFailure, match="does not answer"):
            kafka.look(broker, ["t"], {})
        with pytest.raises(ConnectionFailure, match="does not answer"):
            kafka.Identities(broker, {}).of(["t"])


def test_an_answer_that_does_not_arrive_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: an internal error, when the machine was so busy that the client's own error came too late, too."""
    client = SimpleNamespace(describe_topics=lambda *asked, **options: {"t": Future()}, poll=lambda wait: 0)
    monkeypatch.setattr(kafka, "admin", lambda *asked, **options: client)
    monkeypatch.setattr(kafka, "RESULT_S", 0.01)
    with pytest.raises(ConnectionFailure, match="Kafka at k does not answer: no answer in time"):
        kafka.look("k", ["t"], {})


def test_a_name_that_no_topic_has() -> None:
    with pytest.raises(UndefinedObject):
        kafka.topic("127.0.0.1:1", "", {})
