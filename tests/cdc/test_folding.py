"""Tests how `make test-cdc` reads a sink's topic: missing and surplus events are detected."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, cast

import pytest

from tailgate.examples.shop.recompute import Topics
from tests.cdc.cases import difference
from tests.cdc.folding import Misfit, counted, fold


class Message:
    def __init__(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        self.offset, self.key, self.value = lambda: offset, lambda: key, lambda: value


class Topic:
    """Messages with the interface of `Topics`."""

    def __init__(self, *messages: tuple[bytes | None, Any]) -> None:
        self._messages = [Message(i, key, None if value is None else json.dumps(value).encode()) for i, (key, value) in enumerate(messages)]

    def messages(self, topic: str) -> list[Message]:
        return self._messages

    def decode(self, value: bytes) -> Any:
        return json.loads(value)


def topics(*messages: tuple[bytes | None, Any]) -> Topics:
    return cast("Topics", Topic(*messages))


FIRST = (None, {"before": None, "after": {"n": 1}})
SECOND = (None, {"before": {"n": 1}, "after": {"n": 2}})
THIRD = (None, {"before": {"n": 2}, "after": {"n": "3.50"}})


def test_changes() -> None:
    assert fold(topics(FIRST, SECOND, THIRD), "t", "debezium") == (Counter({("3.5",): 1}), 3)
    assert fold(topics(FIRST, SECOND, FIRST), "t", "debezium")[0] == Counter({("2",): 1, ("1",): 1})


@pytest.mark.parametrize("events", [(FIRST, SECOND, SECOND), (FIRST, THIRD), (SECOND,)])
def test_a_deletion_of_a_missing_row_is_refused(events: tuple[Any, ...]) -> None:
    with pytest.raises(Misfit, match="takes away a row that is not there"):
        fold(topics(*events), "t", "debezium")


def test_rows_by_key() -> None:
    assert fold(topics((b"a", {"n": 1}), (b"b", {"n": 1}), (b"a", None)), "t", "upsert") == (Counter({("1",): 1}), 3)
    for twice in ({"n": 1}, None):
        with pytest.raises(Misfit, match="says again"):
            fold(topics((b"a", {"n": 0}), (b"a", twice), (b"a", twice)), "t", "upsert")


def mark(time: int, status: str, count: int | None = None) -> tuple[bytes, Any]:
    return str(time).encode(), {"id": str(time), "status": status, "event_count": count}


def test_times() -> None:
    whole = (mark(1, "BEGIN"), mark(1, "END", 2), mark(3, "BEGIN"), mark(3, "END", 5))
    assert counted(topics(*whole), "t") == 7
    for wrong in (whole + whole[2:], whole[:1] + whole[2:], whole[1:], (*whole, mark(4, "END", 1))):
        with pytest.raises(Misfit):
            counted(topics(*wrong), "t")


def test_rows_too_many_and_too_few() -> None:
    ours, theirs = Counter({("1",): 2, ("2",): 1}), Counter({("1",): 1, ("3",): 1})
    assert difference(ours, ours) is None
    assert difference(ours, theirs) == "2 too much, 1 missing: + ('1',); + ('2',); - ('3',)"
