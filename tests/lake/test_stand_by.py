"""An engine that stands by begins when the running one has ended or no longer renews its lease, and never before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tailgate.lake.errors import Replaced
from tailgate.lake.folder import Lake
from tailgate.lake.store.folder import FolderStore
from tailgate.lake.store.stand_by import Lease
from tailgate.lake.writer.log_writer import Writer, open_epoch
from tailgate.lake.writer.stand_by import stand_by, standing_by


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Returns a new lake, whose leases expire after 0.6 s."""
    monkeypatch.setattr(FolderStore, "lease_s", 0.2)
    return Lake.create(tmp_path / "lake")


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


def running(lake: Lake) -> Writer:
    writer = open_epoch(lake)
    writer.announce(address="127.0.0.1:1", token="", jvm=None)
    return writer


def test_an_engine_that_ends_is_followed_at_once(lake: Lake, threads: ThreadPoolExecutor) -> None:
    writer = running(lake)
    lease = Lease(lake.store, writer.renew_lease)
    place = stand_by(lake)
    waiting = threads.submit(place.wait)
    time.sleep(1.0)  # longer than a lease
    assert not waiting.done()
    lease.end()
    writer.close()
    assert waiting.result(5) is False
    open_epoch(lake).close()
    place.close()


def test_an_engine_that_hangs_is_replaced(lake: Lake) -> None:
    hanging = running(lake)  # holds its lock and renews nothing
    place = stand_by(lake)
    assert place.wait() is True
    writer = open_epoch(lake, take_over=True)
    with pytest.raises(Replaced):
        hanging.append()
    writer.append()
    place.close()
    writer.close()


def test_an_engine_that_starts_has_no_lease_yet(lake: Lake, threads: ThreadPoolExecutor) -> None:
    crashed = running(lake)
    crashed._lock.release()
    starting = open_epoch(lake)  # the announcement is that of the crashed engine
    place = stand_by(lake)
    waiting = threads.submit(place.wait)
    time.sleep(1.0)
    assert not waiting.done()
    starting.close()
    assert waiting.result(5) is False
    place.close()


def test_one_engine_at_a_time_stands_by(lake: Lake, threads: ThreadPoolExecutor) -> None:
    assert not standing_by(lake)
    first = stand_by(lake)
    assert standing_by(lake)
    second = threads.submit(stand_by, lake)
    time.sleep(0.2)
    assert not second.done()
    first.close()
    second.result(5).close()
    assert not standing_by(lake)
