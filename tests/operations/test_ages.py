"""Tests that requests for the ages of records wait for a change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tailgate.engine.runtime.ticks.ages import ANSWERS_S, LONG_S, SLOW_S, Ages
from tailgate.lake.writer.inbox import TABLE

CHANGES: tuple[Callable[[Ages], None], ...] = (
    lambda ages: ages.due(),
    lambda ages: ages.acknowledge(1, [1001]),
    lambda ages: ages.committed(7, (0, 0), 0, {}),
)


def test_a_request_waits_while_nothing_changes() -> None:
    ages = Ages()
    version = ages.changed(0, 10.0)
    start = time.monotonic()
    assert ages.changed(version, 0.2) == version
    assert time.monotonic() - start >= 0.2


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_ends_the_wait(change: Callable[[Ages], None]) -> None:
    ages = Ages()
    version = ages.changed(0, 10.0)
    versions: list[int] = []
    thread = threading.Thread(target=lambda: versions.append(ages.changed(version, 60.0)))
    thread.start()
    change(ages)
    thread.join(10)
    assert versions == [version + 1]


def test_versions_of_a_later_engine_are_different() -> None:
    first = Ages()
    version = first.changed(0, 0)
    time.sleep(0.002)
    assert Ages().changed(0, 0) > version


def answered_after(ages: Ages, version: int) -> float:
    start = time.monotonic()
    ages.changed(version, 60.0)
    return time.monotonic() - start


def test_answers_have_a_distance() -> None:
    ages = Ages()
    version = ages.changed(0, 0)
    assert answered_after(ages, 0) < ANSWERS_S, "the first one"
    ages.due()
    ages.committed(7, (0, 0), 0, {})
    assert answered_after(ages, version) >= ANSWERS_S


def test_a_slow_tick_is_answered_at_once() -> None:
    ages = Ages()
    version = ages.changed(0, 0)
    ages.due()
    assert answered_after(ages, version) < ANSWERS_S - SLOW_S


def test_there_are_answers_while_a_tick_is_long_or_failed() -> None:
    """Records that arrive meanwhile start no tick, so there is no other change."""
    ages = Ages()
    ages.due()
    version = ages.changed(0, 0)
    for _ in range(2):
        assert LONG_S <= answered_after(ages, version) < ANSWERS_S


def test_the_end_of_a_long_tick_is_answered_once_at_once() -> None:
    """The client knows that the tick is due, and not what arrived meanwhile."""
    ages = Ages()
    ages.due()
    version = ages.changed(0, 0)
    time.sleep(LONG_S)
    ages.committed(7, (0, 0), 0, {})
    assert answered_after(ages, version) < ANSWERS_S
    version = ages.changed(0, 0)
    ages.acknowledge(1, [1001])
    assert answered_after(ages, version) >= ANSWERS_S


def test_the_end_of_the_engine_is_answered_once_at_once() -> None:
    ages = Ages()
    version = ages.changed(0, 0)
    ages.end()
    assert answered_after(ages, version) < ANSWERS_S
    version = ages.changed(0, 0)
    start = time.monotonic()
    assert ages.changed(version, 0.05) == version and time.monotonic() - start >= 0.05


def test_writes_wait_up_to_an_entry_and_after_it() -> None:
    ages = Ages()
    for number, tables in ((1, [1001]), (2, [1001, 1002]), (3, [1001]), (4, [1001])):
        ages.acknowledge(number, tables)
    first, _, third, _ = (at for _, channel, at in ages._writes if channel == f"{TABLE}1001")
    waiting = ages.waiting(2)
    assert waiting[f"{TABLE}1001"] == [(first, 2), (third, 4)]
    assert [number for _, number in waiting[f"{TABLE}1002"]] == [2]
    ages.committed(7, (0, 0), 2, {})
    assert ages.waiting(2) == {f"{TABLE}1001": [(third, 4)]}
