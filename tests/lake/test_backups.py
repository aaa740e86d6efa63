"""Backups of a lake that is in use, and their restoration."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailgate.cli import main
from tailgate.lake.errors import InvalidParameterValue, IoError, ObjectInUse, ObjectNotInPrerequisiteState, UndefinedObject
from tailgate.lake.folder import FILE, Lake
from tailgate.lake.host.scratch import ROOT
from tailgate.lake.log.uploaded_state import UPLOADED, name_of, read
from tailgate.lake.readers import backups as module
from tailgate.lake.readers import holds, subscriptions
from tailgate.lake.readers.backups import back_up, backups
from tailgate.lake.readers.verification import findings
from tailgate.lake.store import documents
from tailgate.lake.store.bucket import BucketStore
from tailgate.lake.writer import maintenance, retention
from tailgate.lake.writer.inbox import Inbox
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.lake.writer.restored_state import restore
from tailgate.lake.writer.rounds import Follower
from testing.s3 import S3
from tests.lake.life import BAG, FEED, KEYED, STEPS, Life, short_history
from tests.lake.relations import snapshot

BACKUPS, BACKUPS_OF_BUCKET = 4, 2  # the server of the bucket takes most of the time
KEPT_MS = 3_000  # in place of five minutes: much longer than the image of this small lake takes


@pytest.fixture(params=["folder", "bucket"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Returns the place of a new lake in each of the stores."""
    if request.param == "folder":
        return tmp_path / "lake"
    bucket: BucketStore = request.getfixturevalue("bucket")
    return bucket.location("")


def test_each_backup_is_the_lake_at_its_time(location: Path | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """A restored lake equals the model at the backup's time, is complete, and an engine continues it.

    Random steps change the lake before each of its folders is copied.
    """
    short_history(monkeypatch)
    monkeypatch.setattr(retention, "AGE_MIN_MS", KEPT_MS)
    monkeypatch.setattr(maintenance, "GRACE_S", KEPT_MS / 1000)
    life, chance = Life(location, seed, tmp_path), random.Random(seed)
    take_tree = module._take_tree

    def steps() -> None:
        for _ in range(chance.randrange(4)):
            life.step(chance.choice(STEPS))

    def take_after_steps(*arguments: Any) -> None:
        steps()
        take_tree(*arguments)

    monkeypatch.setattr(module, "_take_tree", take_after_steps)
    count = BACKUPS if isinstance(location, Path) else BACKUPS_OF_BUCKET
    for _ in range(count):
        for _ in range(5):
            steps()
        unread = {n for n in life.inbox_entries if n > life.consumed}
        backup = back_up(Lake(life.path), tmp_path / "backups").backup
        restored = restored_location(location, tmp_path, f"restored-{backup.time}")
        assert restore(tmp_path / "backups", restored, backup.time) == backup
        expected = [life.history.at(item.id, backup.time) for item in (KEYED, BAG)]
        check_restored(restored, expected, unread, tmp_path / f"work-{backup.time}")
    assert len(backups(tmp_path / "backups")) == count


def test_a_backup_of_an_earlier_entry(location: Path | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The backup equals the model at the time of the entry, and an engine continues it. It has no later writes and positions."""
    short_history(monkeypatch, retain_ms=3_600_000)
    life, chance = Life(location, seed, tmp_path), random.Random(seed)
    for name in [*(chance.choice(STEPS) for _ in range(40)), "round", "write", "acknowledge"]:
        life.step(name)
    lake, target = Lake(life.path), tmp_path / "backups"
    first, newest = lake.log.first(), life.writer.newest.n
    created = next(entry.header.n for entry in lake.log.after(0) if entry.header.catalog is not None and FEED in entry.header.catalog.put)
    assert first == 1
    for n in sorted(chance.sample(range(created, newest), 3)):
        header = lake.log.header(n)
        backup = back_up(Lake(life.path), target, at=n).backup
        restored = restored_location(location, tmp_path, f"restored-{n}")
        assert restore(target, restored, backup.time) == backup
        log = Lake(restored, tmp_path / f"work-{n}").log.newest()
        assert log is not None
        assert (backup.time, log.n) == (header.time, n)
        check_restored(restored, [life.history.at(item.id, header.time) for item in (KEYED, BAG)], set(), tmp_path / f"work-{n}")
    assert back_up(Lake(life.path), target, at=newest).backup.time == life.writer.newest.time
    earlier = back_up(Lake(life.path), target, keep=1, at=created).backup
    assert [backup.time for backup in backups(target)] == [earlier.time, life.writer.newest.time]
    with pytest.raises(InvalidParameterValue, match=f"there is no entry {newest + 1}"):
        back_up(Lake(life.path), target, at=newest + 1)
    assert [f.problem for f in findings(Lake(life.path)) if f.problem is not None] == []  # the original is unchanged


def test_an_entry_before_the_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short_history(monkeypatch)
    life = Life(tmp_path / "lake")
    holds.hold(life.lake, "sink-1", 5)
    for name in ("tick", "acknowledge", "round", "sweep") * 10:
        life.step(name)
    first = Lake(life.path).log.first()
    assert 1 < first <= 6
    with pytest.raises(InvalidParameterValue, match=f"entry {first} is older than the history"):  # the sink holds it
        back_up(Lake(life.path), tmp_path / "backups", at=first)
    with pytest.raises(InvalidParameterValue, match=f"there is no entry {first - 1}"):
        back_up(Lake(life.path), tmp_path / "backups", at=first - 1)
    assert backups(tmp_path / "backups") == []


def restored_location(location: Path | str, folder: Path, name: str) -> Path | str:
    """Returns a place in the same store as a lake, where there is nothing."""
    return folder / name if isinstance(location, Path) else f"{location}-{name}"


def test_a_bucket_is_emptied_and_restored(bucket: BucketStore, tmp_path: Path, s3: S3) -> None:
    """Only new objects are read for a further backup; a lake is not restored over others."""
    life = Life(bucket.location(""), 1, tmp_path)
    for step in ("tick", "large", "round", "tick", "write"):
        life.step(step)
    target = tmp_path / "backups"
    back_up(life.lake, target)
    life.tick()
    s3.requests()
    backup = back_up(life.lake, target).backup
    read = [request.name for request in s3.request_log() if request.method == "GET"]
    assert not any("/tables/" in name and name.endswith(".parquet") for name in read)
    assert [name.rpartition("/")[2] for name in read if "/log/" in name] == [str(life.writer.newest.n)]
    with pytest.raises(ObjectNotInPrerequisiteState, match="there are objects in"):
        restore(target, life.path)
    bucket.discard_folder("")
    restore(target, life.path)
    restore(target, tmp_path / "folder")
    for restored in (life.path, tmp_path / "folder"):
        check_restored(restored, [life.history.at(item.id, backup.time) for item in (KEYED, BAG)], set(life.inbox_entries))


def uploaded(life: Life, *names: str) -> None:
    """Uploads files of the state, as an engine does."""
    n = life.writer.newest.n
    documents.write(life.lake.store, name_of(n), {"folder": "state", "state": "", "files": names})
    for name in names:
        life.lake.store.put(name, name.encode())
    life.writer.append(extra={UPLOADED: n})


def test_the_uploaded_state_is_in_a_backup(bucket: BucketStore, tmp_path: Path) -> None:
    """Files that the newest entry does not need are left out."""
    life = Life(bucket.location(""), 1, tmp_path)
    uploaded(life, "state/0/0/1_a.changelog")
    uploaded(life, "state/0/0/2_b.zip", "state/0/0/SSTs/x.sst")
    back_up(life.lake, tmp_path / "backups")
    other = f"{bucket.location('')}-restored"
    for restored in (other, tmp_path / "folder"):
        restore(tmp_path / "backups", restored)
        lake = Lake(restored)
        header = lake.log.newest()
        assert header is not None
        listed = read(lake.store, header)
        assert listed is not None
        assert [bytes(lake.store.get(name)).decode() for name in listed["files"]] == listed["files"]
        assert not lake.store.exists("state/0/0/1_a.changelog")


def test_the_state_of_a_folder_is_restored_into_a_bucket(bucket: BucketStore, tmp_path: Path) -> None:
    """An entry names it as uploaded, also if the lake was restored from a bucket before. Files of other folders are left out."""
    life = Life(tmp_path / "lake", 1, tmp_path)
    needed = ["state/0/0/2_b.changelog", "state/0/0/1_a.zip", "state/0/0/SSTs/x.sst"]
    for name in (*needed, "state/old/0/0/1_c.changelog"):
        life.lake.store.put(name, name.encode())
    state = '{"partitions": 1, "stores": {"0": {"version": 2, "ids": ["b"]}}}'
    life.writer.append(state=state, extra={**life.writer.newest.extra, UPLOADED: 1})
    back_up(life.lake, tmp_path / "backups")
    restore(tmp_path / "backups", bucket.location(""))
    lake = Lake(bucket.location(""))
    header = lake.log.newest()
    assert header is not None
    assert header.state == state
    assert {**(read(lake.store, header) or {}), "files": None} == {"folder": "state", "state": state, "files": None}
    assert sorted((read(lake.store, header) or {})["files"]) == sorted(needed)
    assert [bytes(bucket.get(name)).decode() for name in needed] == needed
    assert not bucket.exists("state/old/0/0/1_c.changelog")
    assert [f.problem for f in findings(lake) if f.problem is not None] == []


def test_state_that_is_removed_meanwhile(bucket: BucketStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine has uploaded newer state: the image is made again."""
    life = Life(bucket.location(""), 1, tmp_path)
    uploaded(life, "state/0/0/1_a.changelog")
    take = module._take_uploaded
    removed: list[str] = []

    def take_after_removal(*arguments: Any, **options: Any) -> None:
        if not removed:
            removed.append("state/0/0/1_a.changelog")
            uploaded(life, "state/0/0/2_b.changelog")
            bucket.discard(removed)
        take(*arguments, **options)

    monkeypatch.setattr(module, "_take_uploaded", take_after_removal)
    backup = back_up(life.lake, tmp_path / "backups").backup
    assert (backup.path / "state/0/0/2_b.changelog").exists()


def test_a_list_of_the_state_that_is_missing(bucket: BucketStore, tmp_path: Path) -> None:
    """A backup of an earlier entry has no state then, from which views are filled again."""
    life = Life(bucket.location(""), 1, tmp_path)
    uploaded(life, "state/0/0/1_a.changelog")
    n = life.writer.newest.n
    life.tick()
    bucket.discard([name_of(n - 1)])
    with pytest.raises(IoError, match=f"state/uploaded/{n - 1} of the uploaded state is missing"):
        back_up(life.lake, tmp_path / "backups")
    backup = back_up(life.lake, tmp_path / "backups", at=n).backup
    assert not any(path.is_file() for path in (backup.path / "state").rglob("*"))


def test_large_objects_are_copied_in_parts(bucket: BucketStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3: S3) -> None:
    monkeypatch.setattr("tailgate.lake.store.bucket.PART_BYTES", 1000)
    content = bytes(range(256)) * 10
    bucket.put("tables/large", content)
    s3.requests()
    bucket.export_tree("tables", tmp_path / "exported", (), lambda name: True)
    assert (tmp_path / "exported/tables/large").read_bytes() == content
    assert s3.requests()["GET"] == 3
    bucket.export("tables/large", tmp_path / "one")
    assert (tmp_path / "one").read_bytes() == content


@pytest.mark.parametrize(("size", "copied"), [(500, 0), (2500, 0), (2500, 1)])
@pytest.mark.parametrize("is_freed", [False, True])
def test_an_object_that_is_removed_while_it_is_copied(
    bucket: BucketStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, copied: int, is_freed: bool
) -> None:
    """The copy is neither empty nor partial: the file does not exist."""
    monkeypatch.setattr("tailgate.lake.store.bucket.PART_BYTES", 1000)
    bucket.put("tables/large", bytes(size))
    parts = BucketStore._parts

    def removed(*arguments: Any) -> Iterator[memoryview]:
        content = parts(*arguments)
        yield from itertools.islice(content, copied)
        if is_freed:
            bucket.mark_freed("tables/large")
        else:
            bucket.discard(["tables/large"])
        yield from content

    monkeypatch.setattr(BucketStore, "_parts", removed)
    bucket.export_tree("tables", tmp_path / "exported", (), lambda name: True)
    assert not (tmp_path / "exported/tables/large").exists()


def test_objects_of_one_second_are_told_apart(bucket: BucketStore, tmp_path: Path) -> None:
    """S3 has whole seconds as times: a replaced object may have the size and time of the file in the backup before."""
    for content in ("a", "b"):
        bucket.put("readers/sink-1", content.encode())
        bucket.export_tree("readers", tmp_path / content, (tmp_path / "a",), lambda name: True)
        assert (tmp_path / content / "readers/sink-1").read_text() == content


def test_an_interrupted_restore_leaves_no_lake(bucket: BucketStore, life: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process takes the objects for those of a new lake."""
    back_up(life.lake, tmp_path / "backups")
    adopt = BucketStore.adopt

    def interrupted(store: BucketStore, path: Path, name: str) -> int:
        if name == FILE:
            raise OSError("interrupted")
        return adopt(store, path, name)

    with monkeypatch.context() as patch:
        patch.setattr(BucketStore, "adopt", interrupted)
        with pytest.raises(OSError, match="interrupted"):
            restore(tmp_path / "backups", bucket.location(""))
    with pytest.raises(ObjectNotInPrerequisiteState, match="incomplete lake"):
        Lake.create(bucket.location(""), tmp_path / "work")
    bucket.discard_folder("")
    restore(tmp_path / "backups", bucket.location(""))
    Lake.create(bucket.location(""), tmp_path / "work")


def test_settings_of_alter_system_and_the_newest_backups(tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    """With --keep, old backups are removed after the new one is complete; their files that others share stay."""
    life = Life(tmp_path / "lake", seed)
    settings = '[up]\nhistory = "2h"\n'
    (life.lake.path / "tailgate.auto.toml").write_text(settings)
    target, names = tmp_path / "backups", []
    for _ in range(4):
        newest = Lake(life.path).log.newest()
        while newest is None or newest == Lake(life.path).log.newest():
            life.step("tick")
            newest = newest or Lake(life.path).log.newest()
        assert main(["backup", "--data", str(life.path), "--to", str(target), "--keep", "2"]) == 0
        names.append(backups(target)[-1].path.name)
    assert [b.path.name for b in backups(target)] == names[-2:]
    assert capsys.readouterr().out.splitlines()[-1] == f"{target / names[1]}: removed"
    assert not list(target.glob(".*T*Z"))
    restore(target, tmp_path / "restored")
    assert (tmp_path / "restored" / "tailgate.auto.toml").read_text() == settings
    assert [f.problem for f in findings(Lake(tmp_path / "restored")) if f.problem is not None] == []
    assert main(["backup", "--data", str(life.path), "--to", str(target), "--keep", "1"]) == 0  # nothing has changed
    assert [b.path.name for b in backups(target)] == names[-1:]


def check_restored(path: Path | str, expected: list[Any], unread: set[int], work_dir: Path | None = None) -> None:
    """Checks the rows of both relations, before and after the start of an engine, and that the entries of the inbox have no gap."""
    lake = Lake(path, work_dir)
    newest = lake.log.newest()
    assert newest is not None
    assert [snapshot(lake, item, newest.time) for item in (KEYED, BAG)] == expected
    assert [f.problem for f in findings(lake) if f.problem is not None] == []
    place = subscriptions.place(lake, FEED.id)
    assert place is not None
    assert place.time <= newest.time
    writer = open_epoch(lake)
    Follower(lake, writer.epoch).round()
    writer.append()
    assert [snapshot(Lake(path), item, writer.newest.time) for item in (KEYED, BAG)] == expected
    inbox = Inbox(lake, writer.epoch, newest.inbox)
    assert {n for n in unread if n > newest.inbox} <= set(range(newest.inbox + 1, inbox.newest + 1))
    assert len(list(inbox.read(newest.inbox, inbox.newest))) == inbox.newest - newest.inbox
    writer.close()


@pytest.fixture
def life(tmp_path: Path) -> Life:
    life = Life(tmp_path / "lake", 1)
    for step in ("tick", "large", "round", "tick", "write"):
        life.step(step)
    return life


def test_files_are_shared_with_the_previous_backup(life: Life, tmp_path: Path) -> None:
    first = back_up(life.lake, tmp_path / "backups")
    life.tick()
    second = back_up(life.lake, tmp_path / "backups")
    third = back_up(life.lake, tmp_path / "backups")
    assert second.bytes_copied < first.bytes_copied / 4
    assert (third.created, third.backup) == (False, second.backup)
    name = f"log/{life.writer.newest.n - 1}"
    assert (first.backup.path / name).samefile(second.backup.path / name)
    assert not (second.backup.path / name).samefile(life.lake.path / name)


def test_the_newest_backup_before_a_time_is_restored(life: Life, tmp_path: Path) -> None:
    first = back_up(life.lake, tmp_path / "backups").backup
    life.tick()
    second = back_up(life.lake, tmp_path / "backups").backup
    assert restore(tmp_path / "backups", tmp_path / "a", second.time - 1) == first
    assert restore(tmp_path / "backups", tmp_path / "b") == second
    with pytest.raises(UndefinedObject):
        restore(tmp_path / "backups", tmp_path / "c", first.time - 1)
    assert not (tmp_path / "c").exists()


def test_nothing_is_overwritten(life: Life, tmp_path: Path) -> None:
    back_up(life.lake, tmp_path / "backups")
    with pytest.raises(ObjectNotInPrerequisiteState, match="is not an empty folder"):
        restore(tmp_path / "backups", life.path)
    other = Life(tmp_path / "other")
    with pytest.raises(ObjectNotInPrerequisiteState, match="has backups of another lake"):
        back_up(other.lake, tmp_path / "backups")


def test_one_backup_at_a_time(life: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(*_: object) -> None:
        with pytest.raises(ObjectInUse):
            back_up(life.lake, tmp_path / "backups")

    monkeypatch.setattr("tailgate.lake.readers.backups._without_gaps", again)
    back_up(life.lake, tmp_path / "backups")


def test_a_killed_backup_leaves_nothing(life: Life, tmp_path: Path, seed: int) -> None:
    """Folders that a killed backup has left are not listed, and are removed by the next backup."""
    for _ in range(30):
        life.tick()
    chance, target = random.Random(seed), tmp_path / "backups"
    command = [sys.executable, "-m", "tailgate", "backup", "--data", str(life.path), "--to", str(target)]
    began = time.monotonic()
    subprocess.run(command, check=True)
    took = time.monotonic() - began
    for _ in range(4):
        life.tick()
        process = subprocess.Popen(command)
        time.sleep(took * chance.uniform(0.5, 1.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        for backup in backups(target):
            assert [f for f in findings(Lake(backup.path)) if f.problem is not None] == []
    life.tick()
    newest = back_up(life.lake, target)
    assert newest.created
    assert {name for name in os.listdir(target) if name != ".lock"} == {b.path.name for b in backups(target)}
    assert not any((life.lake.path / ROOT).iterdir())


def test_commands(life: Life, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, target = str(life.path), str(tmp_path / "backups")
    assert main(["backup", "--data", data, "--to", target]) == 0
    assert main(["restore", "--from", target, "--list"]) == 0
    name = capsys.readouterr().out.splitlines()[-1]
    assert main(["restore", "--from", target, "--at", name, "--data", str(tmp_path / "restored")]) == 0
    assert main(["verify", "--data", str(tmp_path / "restored")]) == 0
    assert main(["restore", "--from", target, "--at", "2000-01-01", "--data", str(tmp_path / "older")]) == 1
    assert "has no backup at or before 20000101T000000.000Z" in capsys.readouterr().err
