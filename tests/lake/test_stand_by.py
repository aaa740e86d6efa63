"""An engine that stands by begins when the running one has ended or no longer renews its lease, and never before."""

from __future__ import annotations

import errno
import itertools
import threading
import time
from collections.abc import Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tailgate.lake.errors import ObjectNotInPrerequisiteState, Replaced
from tailgate.lake.folder import Lake
from tailgate.lake.store.stand_by import EXPIRED_LOOKS, Lease, StandBy
from tailgate.lake.writer import engines
from tailgate.lake.writer import stand_by as engines_that_stand_by
from tailgate.lake.writer.engines import ANNOUNCEMENT, announced, lease
from tailgate.lake.writer.log_writer import Writer, open_epoch
from tailgate.lake.writer.stand_by import stand_by, standing_by
from tests.lake.relations import BOTH_STORES

LEASE_S = 0.2
LONGER_S = 1.0  # than it takes for a lease to expire


@pytest.fixture(autouse=True)
def _short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets leases expire after 0.6 s."""
    for module in (engines, engines_that_stand_by):
        monkeypatch.setattr(module, "LEASE_S", LEASE_S)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


def running(lake: Lake) -> Writer:
    """Returns the writer of an engine whose lease was renewed once."""
    writer = open_epoch(lake)
    writer.renew_lease()
    writer.announce(address="127.0.0.1:1", token="", jvm=None)
    return writer


@BOTH_STORES
def test_an_engine_that_ends_is_followed_at_once(lake: Lake, threads: ThreadPoolExecutor) -> None:
    writer = running(lake)
    renewals = Lease(LEASE_S, writer.renew_lease)
    place = stand_by(lake)
    waiting = threads.submit(place.wait)
    time.sleep(LONGER_S)
    assert not waiting.done()
    renewals.end()
    writer.close()
    assert waiting.result(5) is None
    open_epoch(lake).close()
    place.close()


@BOTH_STORES
def test_an_engine_that_hangs_is_replaced(lake: Lake) -> None:
    hanging = running(lake)  # holds its lock and renews nothing
    place = stand_by(lake)
    expired = place.wait()
    assert expired is not None
    writer = open_epoch(lake, take_over=True, after=expired[0])
    with pytest.raises(Replaced):
        hanging.append()
    writer.append()
    place.close()
    writer.close()


@BOTH_STORES
def test_looks_that_fail(lake: Lake, threads: ThreadPoolExecutor) -> None:
    """Such looks neither end the process that stands by nor count."""
    running(lake)
    failed, failing = threading.Event(), True

    def look() -> tuple[int, Hashable] | None:
        if failing and (calls := next(looks)) > EXPIRED_LOOKS - 2:
            if calls > 3 * EXPIRED_LOOKS:
                failed.set()
            raise OSError(errno.EIO, "the store does not answer")
        return lease(lake)

    looks = itertools.count()
    place = StandBy(lake.store, engines_that_stand_by.PLACE, engines.LOCK, look, LEASE_S)
    waiting = threads.submit(place.wait)
    assert failed.wait(10)
    assert not waiting.done()
    failing = False
    assert waiting.result(10) == lease(lake)
    place.close()


@BOTH_STORES
def test_an_engine_that_starts_has_a_lease(lake: Lake, threads: ThreadPoolExecutor) -> None:
    crashed = running(lake)
    crashed._lock.release()
    starting = open_epoch(lake, take_over=True)  # the announcement is that of the crashed engine
    renewals = Lease(LEASE_S, starting.renew_lease)
    place = stand_by(lake)
    waiting = threads.submit(place.wait)
    time.sleep(LONGER_S)
    assert not waiting.done()
    renewals.end()
    starting.close()
    assert waiting.result(5) is None
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


@pytest.mark.parametrize("lake", ["bucket"], indirect=True)
def test_an_engine_that_stands_by_is_known_in_a_bucket(lake: Lake) -> None:
    assert not standing_by(lake)
    place = stand_by(lake)
    assert standing_by(Lake(lake.location))
    place.close()
    assert not standing_by(lake)


@pytest.mark.parametrize("lake", ["bucket"], indirect=True)
def test_one_of_two_engines_that_stand_by_begins(lake: Lake, threads: ThreadPoolExecutor) -> None:
    """Both see the lease expire. The one that is later must not replace the other, which has just begun."""
    running(lake)
    places = [stand_by(lake), stand_by(lake)]
    expired = [waiting.result(10) for waiting in [threads.submit(place.wait) for place in places]]
    assert expired[0] == expired[1] == lease(lake)
    writer = open_epoch(lake, take_over=True, after=1)
    with pytest.raises(ObjectNotInPrerequisiteState, match="another engine has begun"):
        open_epoch(Lake(lake.location), take_over=True, after=1)
    writer.append()
    writer.close()


def test_a_refused_engine_leaves_the_lock(lake: Lake) -> None:
    """Two engines replace one that hangs. The second is refused, and a third one too."""
    hanging = running(lake)
    writer = open_epoch(lake, take_over=True)
    with pytest.raises(ObjectNotInPrerequisiteState, match="another engine has begun"):
        open_epoch(Lake(lake.location), take_over=True, after=hanging.epoch)
    with pytest.raises(ObjectNotInPrerequisiteState, match="another engine runs"):
        open_epoch(Lake(lake.location))
    writer.append()
    writer.close()


@pytest.mark.parametrize("lake", ["bucket"], indirect=True)
def test_a_second_engine_in_a_bucket_is_refused_while_the_first_renews_its_lease(lake: Lake) -> None:
    writer = running(lake)
    renewals = Lease(LEASE_S, writer.renew_lease)
    with pytest.raises(ObjectNotInPrerequisiteState, match="another engine runs"):
        open_epoch(Lake(lake.location))
    writer.append()
    renewals.end()
    open_epoch(Lake(lake.location)).close()


@pytest.mark.parametrize("error", [OSError("the disk is full"), RuntimeError("the credentials cannot be read")])
def test_a_renewal_that_fails_is_repeated(error: Exception) -> None:
    calls = itertools.count()
    repeated = threading.Event()

    def renew() -> None:
        if next(calls) == 0:
            raise error
        repeated.set()

    renewals = Lease(0.01, renew)
    assert repeated.wait(5)
    renewals.end()


@BOTH_STORES
def test_a_replaced_engine_leaves_the_lease_and_the_announcement_of_the_next(lake: Lake) -> None:
    replaced = running(lake)
    writer = open_epoch(lake, take_over=True)
    writer.renew_lease()
    writer.announce(address="127.0.0.1:2", token="")
    held = lease(lake)
    replaced.renew_lease()
    replaced.close()
    assert lease(lake) == held
    announcement = announced(lake)
    assert announcement is not None
    assert announcement.epoch == writer.epoch
    writer.close()
    assert lease(lake) is None
    assert not lake.store.exists(ANNOUNCEMENT)


def test_an_announcement_that_a_replaced_engine_has_removed_is_repeated(lake: Lake) -> None:
    writer = running(lake)
    lake.store.discard([ANNOUNCEMENT, engines.LEASE])  # by one that ended just before this one had a lease
    writer.renew_lease()
    assert lease(lake) is not None
    assert lake.store.exists(ANNOUNCEMENT)
    writer.close()


def test_a_place_in_a_folder_has_a_lock_only(lake: Lake, tmp_path: Path) -> None:
    place = stand_by(lake)
    assert not (tmp_path / "lake" / "stand-by.json").exists()
    place.close()
