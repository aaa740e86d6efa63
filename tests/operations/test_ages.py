"""Tests that requests for the ages of records wait for a change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tailgate.engine.runtime.ticks.ages import Ages

CHANGES: tuple[Callable[[Ages], None], ...] = (
    lambda ages: ages.began(),
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


def test_the_end_of_a_tick_is_awaited() -> None:
    ages = Ages()
    assert ages.between(0) == 0
    ages.began()
    assert ages.between(0.05) is None
    counts: list[int | None] = []
    thread = threading.Thread(target=lambda: counts.append(ages.between(60.0)))
    thread.start()
    ages.committed(7, (0, 0), 0, {})
    thread.join(10)
    assert counts == [1]


def test_a_tick_that_failed_runs_until_it_is_committed() -> None:
    ages = Ages()
    ages.began()
    ages.began()
    ages.committed(7, (0, 0), 0, {})
    assert ages.between(0) == 2
