"""Tests the log as JSON."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tailgate.lake.errors import DiskFull
from tailgate.operations import logs

SECRET = "a value of a row"


class Log:
    """A logger that writes JSON, and its events."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        self.handler = logs.Counted(self._stream)
        self.handler.setFormatter(logs.JsonFormatter("engine"))
        self.logger = logging.getLogger("tailgate.test_logs")
        self.logger.propagate = False
        self.logger.addHandler(self.handler)

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture
def log() -> Iterator[Log]:
    log = Log()
    yield log
    log.logger.removeHandler(log.handler)


def test_an_event_is_one_line(log: Log) -> None:
    log.logger.warning("a tick failed:\n%s", 'quotes " and \\', extra={"entry": 7, "relation": "public.v", "unrelated": 1})
    (event,) = log.events()
    assert {name: event[name] for name in ("level", "process", "logger", "message", "entry", "relation")} == {
        "level": "warning",
        "process": "engine",
        "logger": "tailgate.test_logs",
        "message": 'a tick failed:\nquotes " and \\',
        "entry": 7,
        "relation": "public.v",
    }
    assert event["time"].endswith("Z") and isinstance(event["pid"], int)
    assert not {"unrelated", "error", "repeated"} & event.keys()


def test_an_exception_is_its_type_and_place_without_its_text(log: Log) -> None:
    try:
        raise DiskFull(SECRET)
    except DiskFull:
        log.logger.exception("a round failed")
    (event,) = log.events()
    assert SECRET not in log.text
    assert event["sqlstate"] == "53100"
    assert event["error"][0] == "DiskFull"
    assert event["error"][1].startswith("tests/operations/test_logs.py:")


def test_repeated_events_are_counted(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(5):
        log.logger.warning("source %s is stalled", "orders")
    log.logger.warning("source %s is stalled", "visits")
    assert [event["message"] for event in log.events()] == ["source orders is stalled", "source visits is stalled"]
    monkeypatch.setattr(logs, "REPEAT_S", 0.0)
    log.logger.warning("other")
    assert [(event["message"], event.get("repeated")) for event in log.events()[2:]] == [("source orders is stalled", 4), ("other", None)]


def test_repetitions_are_written_at_the_end(log: Log) -> None:
    for _ in range(3):
        log.logger.warning("again")
    log.handler.close()
    assert [event.get("repeated") for event in log.events()] == [None, 2]


def test_the_number_of_counted_events_is_limited(log: Log) -> None:
    for i in range(logs.EVENTS_MAX + 10):
        log.logger.warning("event %d", i)
    log.logger.warning("event %d", logs.EVENTS_MAX + 5)
    assert len(log.events()) == logs.EVENTS_MAX + 11
    assert len(log.handler._events) == logs.EVENTS_MAX
