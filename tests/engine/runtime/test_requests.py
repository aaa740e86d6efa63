"""Requests about topics, with a broker that is a dictionary."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tailgate.engine.runtime.kafka import requests as kafka
from tailgate.lake.errors import UndefinedObject


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the topics that the broker was asked about. It has all topics but t0."""
    asked: list[str] = []

    def look(brokers: str, topics: list[str], options: Mapping[str, str]) -> dict[str, kafka.Topic]:
        asked.extend(topics)
        return {t: kafka.Topic(str(len(asked)), {"0": (0, len(asked))}) for t in topics if t != "t0"}

    monkeypatch.setattr(kafka, "look", look)
    return asked


def test_a_statement_asks_about_each_topic_once(asked: list[str]) -> None:
    with kafka.each_topic_once():
        first = kafka.topic("k", "t1", {})
        assert kafka.topic("k", "t1", {}) is first
        kafka.topic("k", "t2", {})
        kafka.topic("k", "t1", {"user": "u"})  # another user may see another topic
        kafka.topic("other", "t1", {})
    assert asked == ["t1", "t2", "t1", "t1"]


def test_a_missing_topic_is_asked_about_again(asked: list[str]) -> None:
    with kafka.each_topic_once():
        for _ in range(2):
            with pytest.raises(UndefinedObject):
                kafka.topic("k", "t0", {})
    assert asked == ["t0", "t0"]


def test_the_next_statement_asks_again(asked: list[str]) -> None:
    for _ in range(2):
        with kafka.each_topic_once():
            kafka.topic("k", "t1", {})
    kafka.topic("k", "t1", {})
    kafka.topic("k", "t1", {})
    assert asked == ["t1"] * 4
