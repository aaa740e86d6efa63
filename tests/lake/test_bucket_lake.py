"""A lake in a bucket whose requests fail now and then: random histories, and two engines at once."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Timer

import pytest
from deltalake.exceptions import DeltaError

from tailgate.engine.runtime.control.control import Answers, Control
from tailgate.engine.runtime.control.entry_stream import EntryStream
from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.lake.folder import Lake
from tailgate.lake.readers import holds
from tailgate.lake.store.bucket import BucketStore
from tailgate.lake.tables import checkpoints
from tailgate.lake.wake import Wake
from tailgate.lake.writer import maintenance, retention, rounds
from tailgate.lake.writer.inbox import Inbox, Record, records
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.lake.writer.rounds import Follower
from testing.s3 import S3
from tests.lake.life import BAG, COLUMNS, STEPS, Life, short_history
from tests.lake.relations import add, changes, counted, item, snapshot, sweep

WAIT_S = 1.2
TICKS = 6  # of each engine
TIMES = int(os.environ.get("TAILGATE_TIMES", "100"))
HISTORY = ("tick", "large", "statement", "write", "round", "sweep", "tick", "acknowledge", "round", "sweep")
LENGTH = 12  # steps of a random history
PER_COMMIT = 6  # requests: two PUT, two LIST, two GET
LOOKS = 2  # requests of a look whether another engine writes the log


@pytest.mark.parametrize("lake", ["bucket"], indirect=True)
def test_a_reader_that_waits_makes_few_requests(lake: Lake, s3: S3) -> None:
    """Each look is a request for the next name, and one for the newest, every `look_s`. A commit is one request."""
    writer = open_epoch(lake)
    s3.requests()
    writer.append()
    assert s3.requests() == {"PUT": 1}
    assert lake.log.wait(writer.newest.n, WAIT_S) is None
    assert sum(s3.requests().values()) <= 2 * (WAIT_S / lake.store.look_s + 2)


@pytest.mark.parametrize("lake", ["bucket"], indirect=True)
def test_a_reader_that_the_engine_wakes_makes_no_requests(lake: Lake, s3: S3) -> None:
    """The reader does not look at the log before the engine has announced an entry."""
    writer = open_epoch(lake)
    control = Control(Answers(lambda *_: {}, EntryStream(lake.log).serve, lambda lags: {}, lambda *_: {}))
    control.start()
    writer.announce(address=control.address, token=control.token)
    reader = Lake(lake.location)
    newest = reader.log.newest()
    assert newest is not None
    waiting = Wake(reader)
    waiting.start(newest.n - 1)  # so that `wait` returns when the engine answers
    while not waiting.answering:
        waiting.wait()
    waiting.seen(newest.n)
    s3.requests()
    appending = Timer(WAIT_S, writer.append)
    appending.start()
    waiting.wait()
    assert s3.requests() == {"PUT": 1}
    assert reader.log.newest() == writer.newest
    appending.join()
    waiting.close()
    control.stop()


@pytest.mark.parametrize("lake", ["bucket"], indirect=True)
def test_a_renewal_of_a_lease_is_one_request_after_the_first(lake: Lake, s3: S3) -> None:
    writer = open_epoch(lake)
    writer.renew_lease()
    for expected in ({"GET": 1, "PUT": 1}, {"PUT": 1}, {"PUT": 1}):
        s3.requests()
        writer.renew_lease()
        assert s3.requests() == expected


@pytest.mark.parametrize("lake", ["bucket"], indirect=True)
def test_a_reader_that_begins_lists_the_log(lake: Lake, s3: S3) -> None:
    """The requests do not depend on the number of entries."""
    writer = open_epoch(lake)
    for _ in range(20):
        newest = writer.append()
    reader = Lake(lake.location)
    s3.requests()
    assert reader.log.newest() == newest
    assert s3.requests() == {"LIST": 1, "HEAD": 1, "GET": 1}


@pytest.mark.parametrize("lake", ["bucket"], indirect=True)
def test_a_round_makes_few_requests(lake: Lake, s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests depend on the number of tables that change, and not on the number of tables or of commits.

    A commit takes two PUT, and delta-rs makes four requests more. A round commits to the changed tables and to the list. Maintenance lists
    the log of a table or two, and reads their commits.
    """
    monkeypatch.setattr(checkpoints, "RECENT_MS", 0)
    monkeypatch.setattr(rounds, "SINCE_PART", 1)
    items = [item(id, COLUMNS, None) for id in range(16384, 16392)]
    changed = items[:2]
    writer = open_epoch(lake)
    lake.log.looks = False  # as in an engine
    add(writer, *items)
    follower = Follower(lake, writer.epoch)

    def tick(n: int) -> tuple[int, int]:
        """Returns the requests of a round, and of the maintenance after it."""
        writer.append([(relation.id, changes(relation, [([n, "x"], 1)])) for relation in changed])
        s3.requests()
        follower.round()
        of_round = s3.requests()
        maintenance.tend(lake, writer.epoch)
        return sum(of_round.values()), sum(s3.requests().values())

    turn = len(items) + 1  # the tables, and the list of checkpoints
    for n in range(turn):  # in its first turn, maintenance lists the files of each table
        tick(n)
    of_rounds, of_maintenance = zip(*(tick(n) for n in range(turn, 2 * turn)), strict=True)
    assert max(of_rounds) <= LOOKS + PER_COMMIT * (len(changed) + 1)
    assert sum(of_maintenance) <= turn + turn * (len(changed) + 1), "the log of each table is listed once, and each commit is read once"
    writer.append()
    s3.requests()
    follower.round()
    assert sum(s3.requests().values()) == LOOKS, "nothing has changed"


@pytest.mark.parametrize("lake", ["bucket"], indirect=True)
def test_a_sweep_lists_each_folder_once(lake: Lake, s3: S3) -> None:
    """The number of readers adds two requests for each: its position, and the entry that it needs next."""
    writer = open_epoch(lake)
    lake.log.looks = False  # as in an engine
    add(writer, item(16384, COLUMNS, None))
    follower = Follower(lake, writer.epoch)
    totals = []
    for readers in (0, 4, 8):
        for reader in range(readers):
            holds.hold(lake, f"sink-{reader}", writer.newest.n)
        writer.append()
        follower.round()
        retention.sweep(writer)  # reads headers that later sweeps remember
        s3.requests()
        retention.sweep(writer)
        requests = s3.request_log()
        lists = Counter(request.name for request in requests if request.method == "LIST")
        assert max(lists.values()) <= (2 if readers else 1), lists  # the log and its segments once more, for their sizes
        totals.append(len(requests))
    assert totals[0] <= 12
    assert totals[2] - totals[1] <= 2 * 4


@pytest.mark.parametrize("lake", ["bucket"], indirect=True)
def test_a_write_is_one_request(lake: Lake, s3: S3) -> None:
    """The tick that reads it shows that no other engine has begun, so nothing else has to be looked at."""
    inbox = Inbox(lake, open_epoch(lake).epoch, 0)
    s3.requests()
    inbox.write([Record("channel", None, b"a")])
    assert s3.requests() == {"PUT": 1}
    inbox.check()
    assert s3.requests() == {"HEAD": LOOKS}


@pytest.mark.parametrize("lake", ["bucket"], indirect=True)
def test_the_inbox_has_copies_in_the_working_folder(lake: Lake) -> None:
    """The JVM reads them. An engine on another machine copies the unread entries there."""
    writer = open_epoch(lake)
    inbox = Inbox(lake, writer.epoch, 0)
    for content in (b"a", b"b", b"c"):
        number = inbox.write([Record("channel", None, content)])
    inbox.remove(0, 1)
    assert copies(inbox) == {"2": b"b", "3": b"c"}
    other = Lake(lake.location, Path(lake.local.location("other")))
    writer = open_epoch(other, take_over=True)
    inbox = Inbox(other, writer.epoch, 1)
    assert copies(inbox) == {"2": b"b", "3": b"c"}
    inbox.remove(1, number)
    assert copies(inbox) == {}
    assert lake.store.numbers(f"inbox/{writer.epoch}") == []


def copies(inbox: Inbox) -> dict[str, bytes | None]:
    """Returns the values in the entries in the folder that the JVM reads."""
    entries = {path.name: next(records(path.read_bytes())) for path in Path(inbox.location).glob("[0-9]*")}
    return {name: None if record.value is None else bytes(record.value) for name, record in entries.items()}


@pytest.mark.parametrize("lake", ["bucket"], indirect=True)
def test_a_working_folder_belongs_to_one_lake(lake: Lake) -> None:
    assert lake.local.location("") == Lake(lake.location).local.location("")
    other = Lake.create(f"{lake.location}/other", Path(lake.local.location("")))
    with pytest.raises(ObjectNotInPrerequisiteState, match="belongs to another lake") as error:
        _ = other.local
    assert error.value.hint == "Use another folder: --work-dir FOLDER."


def test_each_step_with_failed_requests(s3: S3, bucket: BucketStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One in 20 requests fails."""
    short_history(monkeypatch)
    life = Life(bucket.location(""), 1, tmp_path)
    s3.set(failures=20)
    for step in ("tick", "write", "large", "consume", "acknowledge", "round"):
        life.step(step)
    assert s3.requests()["FAILED"] > 0
    s3.set()
    life.start()
    life.check()
    life.check_inbox(life.inbox)


@pytest.mark.long
@pytest.mark.parametrize("number", range(10))
def test_a_random_history(seed: int, number: int, s3: S3, bucket: BucketStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One in 50 requests fails. Each acknowledged write is there, once, also for an engine that continues after a crash."""
    short_history(monkeypatch)
    life = Life(bucket.location(""), seed * 1000 + number, tmp_path)
    s3.set(failures=50, seed=seed * 1000 + number)
    for _ in range(LENGTH):
        life.step(life.chance.choice(STEPS))
    assert s3.requests()["FAILED"] > 0
    s3.set()
    life.check()
    life.resume()


@pytest.mark.long
@pytest.mark.parametrize("times", [2, TIMES])
@pytest.mark.parametrize("lake", ["bucket"], indirect=True)
def test_two_engines_and_two_sweeps_at_once(times: int, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each acknowledged row is there, once, and each number of an entry is used once."""
    short_history(monkeypatch)
    writer = open_epoch(lake)
    add(writer, BAG)
    writer.close()
    attempted, acknowledged = Counter[str](), Counter[str]()
    numbers: list[int] = []

    def engine(name: str, barrier: Barrier) -> None:
        barrier.wait()
        own = Lake(lake.location)
        with contextlib.suppress(Exception):  # any error is accepted from an engine that is replaced
            writer = open_epoch(own, take_over=True)
            follower = Follower(own, writer.epoch)
            for tick in range(TICKS):
                row = changes(BAG, [([tick, name], 1)])
                attempted.update(counted(row))
                numbers.append(writer.append([(BAG.id, row)]).n)
                acknowledged.update(counted(row))
                if tick % 2:
                    with contextlib.suppress(DeltaError):  # the other engine's commit was faster; an engine repeats the round
                        follower.round()
                    sweep(writer)

    for time in range(times):
        barrier = Barrier(2)
        with ThreadPoolExecutor(2) as engines:
            list(engines.map(engine, (f"{time} a", f"{time} b"), (barrier, barrier)))
        last = Lake(lake.location)
        writer = open_epoch(last, take_over=True)
        Follower(last, writer.epoch).round()
        rows = snapshot(last, BAG)
        assert acknowledged <= rows <= attempted
        assert len(numbers) == len(set(numbers))
    assert len(numbers) >= times * TICKS


@pytest.mark.long
def test_a_lake_is_copied_into_a_bucket_and_back(bucket: BucketStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The objects of both are the same, except the marks of freed names in log/, which are empty."""
    short_history(monkeypatch)
    life = Life(tmp_path / "lake", 1, tmp_path)
    for step in HISTORY:
        life.step(step)
    life.writer.close()
    for path in filter(Path.is_file, (tmp_path / "lake").rglob("*")):
        bucket.put(str(path.relative_to(tmp_path / "lake")), path.read_bytes())
    life.resume(bucket.location(""))
    freed = [name for name in bucket.names_below("log") if not bucket.exists(name)]
    assert freed
    life.writer.close()
    for name in set(bucket.names_below("")) - set(freed):
        path = tmp_path / "copy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(bucket.get(name)))
    life.resume(tmp_path / "copy")
