"""The state of an engine in a bucket continues on another machine (ADR 0025): the working folder is removed between two engines."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from tailgate.embedded.children import Child, free_port
from tailgate.engine.runtime.state import files, restoration
from tailgate.engine.runtime.state.advance import StateInAdvance
from tailgate.engine.runtime.state.lineages import Lineage
from tailgate.engine.runtime.state.restoration import complete
from tailgate.engine.runtime.ticks.pacing import Pacing
from tailgate.lake.catalog import Item
from tailgate.lake.folder import Lake
from tailgate.lake.log.entry import Entry
from tailgate.lake.log.uploaded_state import LISTS, UPLOADED
from tailgate.lake.readers.backups import back_up
from tailgate.lake.store import documents
from tailgate.lake.store.bucket import BucketStore
from tailgate.lake.writer.log_writer import Writer, open_epoch
from tailgate.lake.writer.restored_state import restore
from testing.engine_process import EngineProcess, until
from testing.s3 import S3
from tests.tables.world import Served

READY = timedelta(seconds=120)
LIVES = 3
VIEWS = {
    "sums": "SELECT k % 3 AS g, sum(n) AS total FROM t GROUP BY k % 3",
    "pairs": "SELECT a.k, b.n FROM t a JOIN t b ON a.n = b.k",
    "top": "SELECT k, n FROM t ORDER BY n DESC, k LIMIT 3",
}


@pytest.mark.spark
@pytest.mark.long
def test_an_engine_on_another_machine_continues(bucket: BucketStore, tmp_path: Path) -> None:
    """No view is filled again. The second engine is killed before it has uploaded anything itself, or soon after."""
    work = tmp_path / "work"
    engine = EngineProcess(bucket.location(""), work_dir=work)
    engine.start()
    lake, port = Lake(bucket.location("")), free_port()
    command = [sys.executable, "-m", "tailgate", "gateway", "--data", lake.location, "--work-dir", str(tmp_path / "gateway")]
    gateway = Child("gateway", [*command, "--listen", f"127.0.0.1:{port}"], log=tmp_path / "gateway.log", announces="ready ")
    gateway.wait_ready(gateway.announced, READY)
    with psycopg.connect(f"host=127.0.0.1 port={port} user=a dbname=b", autocommit=True) as c:
        c.execute("CREATE TABLE t (k int PRIMARY KEY, n int)")
        for name, query in VIEWS.items():
            c.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")  # type: ignore[arg-type]
        c.execute("INSERT INTO t SELECT g, g * 7 % 50 FROM generate_series(1, 50) g")
        until(lambda: _newest(lake).extra.get(UPLOADED) is not None)
        views = lake.catalog()
        for life in range(LIVES):
            for n in range(5):
                c.execute("UPDATE t SET n = n + 1 WHERE k %% 5 = %s", (n,))
                c.execute("INSERT INTO t VALUES (%s, %s)", (100 + 10 * life + n, n))
            engine.kill(jvm=True)
            shutil.rmtree(work)
            engine.start()
            c.execute("DELETE FROM t WHERE k = %s", (life + 1,))
            for name, query in VIEWS.items():
                rows = c.execute(f"TABLE {name}").fetchall()  # type: ignore[arg-type]
                assert sorted(rows) == sorted(c.execute(query).fetchall()), name  # type: ignore[arg-type]
    now = lake.catalog()
    assert {name: now.relation(name) for name in VIEWS} == {name: views.relation(name) for name in VIEWS}
    assert "made again" not in (tmp_path / "engine.log").read_text()
    gateway.stop()
    engine.stop()


class World:
    """An engine of a lake in a bucket, a gateway, and a view. Snapshots are made after ten versions."""

    query = "SELECT k % 3 AS g, sum(n) AS total FROM t GROUP BY k % 3"

    def __init__(self, bucket: BucketStore, folder: Path) -> None:
        self.work, self.log = folder / "engine", folder / "engine.log"
        self.engine = EngineProcess(bucket.location(""), work_dir=self.work)
        self.engine.start()
        self.lake = Lake(bucket.location(""))
        self.served = Served(self.lake)
        self.execute("CREATE TABLE t (k int PRIMARY KEY, n int)")
        self.execute(f"CREATE MATERIALIZED VIEW sums AS {self.query}")
        self.execute("INSERT INTO t SELECT g, g FROM generate_series(1, 50) g")
        until(lambda: _newest(self.lake).extra.get(UPLOADED) is not None)
        self.view = self.lake.catalog().relation("sums")
        self.rows = 100

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.served.dsn, autocommit=True) as c:
            c.execute(statement)  # type: ignore[arg-type]

    def insert(self) -> None:
        self.rows += 1
        self.execute(f"INSERT INTO t VALUES ({self.rows}, 1)")

    def end(self) -> None:
        self.served.close()
        self.engine.stop()


@pytest.fixture
def world(bucket: BucketStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("TAILGATE_JAVA_OPTIONS", f"{os.environ.get('TAILGATE_JAVA_OPTIONS', '')} -Dtailgate.lineage.max=140")
    world = World(bucket, tmp_path)
    yield world
    world.end()


def check(lake: Lake, view: Item) -> None:
    """Checks that a view continues after a change, and is not filled again."""
    served = Served(lake)
    with psycopg.connect(served.dsn, autocommit=True) as c:
        c.execute("DELETE FROM t WHERE k = 1")
        assert sorted(c.execute("TABLE sums").fetchall()) == sorted(c.execute(World.query).fetchall())  # type: ignore[arg-type]
    served.close()
    assert lake.catalog().relation("sums") == view


@pytest.mark.spark
def test_a_snapshot_that_was_not_uploaded(world: World, s3: S3) -> None:
    """The engine is killed after Spark has made a snapshot, which later changelogs begin with. No view is filled again."""
    s3.set(denied="/state/")
    before = set(world.work.rglob("*.zip"))
    while set(world.work.rglob("*.zip")) == before:
        world.insert()
    world.insert()  # its changelog begins with the snapshot
    s3.set()
    world.engine.kill(jvm=True)
    shutil.rmtree(world.work)
    world.engine.start()
    check(world.lake, world.view)
    assert "the state cannot be downloaded" not in world.log.read_text()


@pytest.mark.spark
@pytest.mark.parametrize("target", ["folder", pytest.param("bucket", marks=pytest.mark.long)])
def test_a_backup_has_the_state(world: World, bucket: BucketStore, tmp_path: Path, target: str) -> None:
    world.insert()
    back_up(world.lake, tmp_path / "backups")
    restored = tmp_path / "restored" / "lake" if target == "folder" else f"{bucket.location('')}-restored"
    restore(tmp_path / "backups", restored)
    (tmp_path / "restored").mkdir(exist_ok=True)
    work = None if target == "folder" else tmp_path / "restored" / "work"
    engine = EngineProcess(restored, work_dir=work)
    engine.start()
    check(Lake(restored, tmp_path / "restored" / "gateway"), world.view)
    assert "the state cannot be downloaded" not in (tmp_path / "restored" / "engine.log").read_text()
    engine.stop()


def _newest(lake: Lake):  # type: ignore[no-untyped-def]
    header = lake.log.newest()
    assert header is not None
    return header


# ---- restoration without Spark -----------------------------------------------------------------------------------------------


def state(**versions: tuple[int, str]) -> str:
    """Returns ids of versions, by store."""
    stores = {store[1:]: {"version": version, "ids": [id]} for store, (version, id) in versions.items()}
    return json.dumps({"partitions": 1, "stores": stores})


def changelog(store: int, version: int, id: str) -> str:
    return f"state/{store}/0/{version}_{id}.changelog"


class Uploaded:
    """A lake in a bucket whose entry 2 has uploaded state, and a second machine."""

    def __init__(self, bucket: BucketStore, folder: Path) -> None:
        self.lake = Lake.create(bucket.location(""), folder / "first")
        self.writer: Writer = open_epoch(self.lake)
        self.append(state(s0=(1, "a")), {changelog(0, 1, "a"): b"one"})
        self.upload(state(s0=(1, "a")), [changelog(0, 1, "a"), "state/0/0/SSTs/x.sst"])
        self.second, self.scratch = Lake(self.lake.location, folder / "second"), folder / "scratch"
        self.lineages: Mapping[str, Lineage] = {}  # of the newest changelogs

    def upload(self, ids: str, names: list[str]) -> None:
        """Uploads the state of the newest entry."""
        n = self.writer.newest.n
        for name in names:
            self.lake.store.put(name, name.encode())
        self.list = {"folder": "state", "state": ids, "files": names}
        documents.write(self.lake.store, f"{LISTS}/{n}", self.list)
        self.writer.append(extra={UPLOADED: n})

    def copy(self, source: str, target: str, lineages: Mapping[str, Lineage]) -> None:
        """Copies the changelogs as they are, because their contents are not those of Spark."""
        self.lineages = lineages
        shutil.copytree(source, target, dirs_exist_ok=True)

    def append(self, ids: str, contents: dict[str, bytes]) -> None:
        self.writer.append(state=ids, files=contents)

    def complete(self) -> dict[str, bytes]:
        """Completes the state on the second machine. Returns its files."""
        complete(self.second, self.writer.newest, self.scratch, self.copy)
        folder = Path(self.second.local.location("state"))
        return {f"state/{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def uploaded(bucket: BucketStore, tmp_path: Path) -> Uploaded:
    return Uploaded(bucket, tmp_path)


def test_the_files_of_the_list_and_of_later_entries(uploaded: Uploaded) -> None:
    uploaded.append(state(s0=(2, "b"), s1=(1, "c")), {changelog(0, 2, "b"): b"two", changelog(1, 1, "c"): b"three"})
    uploaded.writer.append(kind="catalog")
    uploaded.append(state(s0=(3, "d"), s1=(1, "c")), {changelog(0, 3, "d"): b"four"})
    of_entries = {changelog(0, 2, "b"): b"two", changelog(1, 1, "c"): b"three", changelog(0, 3, "d"): b"four"}
    assert uploaded.complete() == {**{name: name.encode() for name in uploaded.list["files"]}, **of_entries}


def test_the_newest_changelogs_name_all_versions_since_the_list(uploaded: Uploaded) -> None:
    """The changelogs of the first machine name only the versions since its newest snapshot, which was not uploaded."""
    uploaded.append(state(s0=(2, "b"), s1=(1, "c")), {changelog(0, 2, "b"): b"two", changelog(1, 1, "c"): b"three"})
    uploaded.append(state(s0=(3, "d"), s1=(1, "c")), {changelog(0, 3, "d"): b"four"})
    uploaded.complete()
    assert uploaded.lineages == {"0/0": [(1, "a"), (2, "b"), (3, "d")], "1/0": [(1, "c")]}


def test_changelogs_without_later_versions_stay_as_they_are(uploaded: Uploaded) -> None:
    """Such a changelog names all versions since the snapshot in the list."""
    uploaded.append(state(s0=(1, "a"), s1=(1, "c")), {changelog(1, 1, "c"): b"three"})
    assert changelog(0, 1, "a") in uploaded.complete()
    assert uploaded.lineages == {"1/0": [(1, "c")]}


def test_a_folder_has_several_files_of_a_version(uploaded: Uploaded, caplog: pytest.LogCaptureFixture) -> None:
    """One is that of a failed attempt. The list of a restored folder has both, and does not say which one the next version follows."""
    ids, attempt = state(s0=(2, "b")), changelog(0, 1, "failed")
    uploaded.append(ids, {changelog(0, 2, "b"): b"two"})
    uploaded.upload(ids, [changelog(0, 1, "a"), attempt, changelog(0, 2, "b")])
    assert set(uploaded.complete()) == {changelog(0, 1, "a"), attempt, changelog(0, 2, "b")}
    uploaded.append(state(s0=(3, "c")), {changelog(0, 3, "c"): b"three"})
    assert changelog(0, 3, "c") not in uploaded.complete()
    assert "has not been uploaded by an engine since then" in caplog.text


def test_more_versions_than_a_changelog_names(
    uploaded: Uploaded, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(restoration, "LINEAGE_MAX", 2)
    for n, id in ((2, "b"), (3, "c")):
        uploaded.append(state(s0=(n, id)), {changelog(0, n, id): b"changes"})
    assert changelog(0, 3, "c") not in uploaded.complete()
    assert "there are 3 versions since the snapshot" in caplog.text


def test_entries_are_read_at_once(uploaded: Uploaded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes two requests, so to read the entries of a minute one after the other would take half a minute."""
    for n in range(2, 6):
        uploaded.append(state(s0=(n, "b")), {changelog(0, n, "b"): b"%d" % n})
    log, together = uploaded.second.log, threading.Barrier(2)
    read = log.read

    def waits(n: int) -> Entry:
        entry = read(n)
        if entry.header.state_files:
            together.wait(10)
        return entry

    monkeypatch.setattr(log, "read", waits)
    assert {changelog(0, n, "b"): b"%d" % n for n in range(2, 6)}.items() <= uploaded.complete().items()


def test_state_that_the_machine_has_is_not_downloaded(uploaded: Uploaded) -> None:
    uploaded.second.local.put(changelog(0, 1, "a"), b"here")
    assert uploaded.complete() == {changelog(0, 1, "a"): b"here"}


def test_an_engine_that_stands_by_downloads_the_state_in_advance(uploaded: Uploaded, s3: S3) -> None:
    """When it begins, it reads the later entries only."""
    advance = StateInAdvance(uploaded.second, uploaded.scratch, uploaded.copy)
    advance.update()  # this process has not looked at the log
    uploaded.second.log.look()
    advance.update()
    uploaded.append(state(s0=(2, "b")), {changelog(0, 2, "b"): b"two"})
    s3.requests()
    assert uploaded.complete()[changelog(0, 2, "b")] == b"two"
    names = [name.partition("/state/")[2] for _, method, name in s3.request_log() if method == "GET" and "/state/" in name]
    assert names == [f"uploaded/{uploaded.writer.newest.extra[UPLOADED]}"]
    assert uploaded.lineages == {"0/0": [(1, "a"), (2, "b")]}
    advance.update()
    assert not s3.requests()


def test_state_in_advance_replaces_the_state_before(uploaded: Uploaded) -> None:
    """An engine may stand by for weeks, and each upload has new files."""
    advance = StateInAdvance(uploaded.second, uploaded.scratch, uploaded.copy)
    uploaded.second.log.look()
    advance.update()
    uploaded.append(state(s0=(2, "b")), {changelog(0, 2, "b"): b"two"})
    uploaded.upload(state(s0=(2, "b")), [changelog(0, 2, "b"), "state/0/0/SSTs/y.sst"])
    uploaded.second.log.look()
    advance.update()
    assert set(uploaded.complete()) == {changelog(0, 2, "b"), "state/0/0/SSTs/y.sst"}
    assert [path for path in uploaded.scratch.rglob("*") if path.is_file()] == []


def test_entries_without_their_changes(uploaded: Uploaded, caplog: pytest.LogCaptureFixture) -> None:
    uploaded.append(state(s0=(2, "b")), {})
    uploaded.append(state(s0=(3, "c")), {changelog(0, 3, "c"): b"three"})
    assert changelog(0, 3, "c") not in uploaded.complete()
    assert "does not have its changes" in caplog.text


@pytest.mark.parametrize("missing", ["list", "file", "folder"])
def test_an_upload_that_is_not_complete(uploaded: Uploaded, caplog: pytest.LogCaptureFixture, missing: str) -> None:
    n = uploaded.writer.newest.extra[UPLOADED]
    match missing:
        case "list":
            uploaded.lake.store.discard([f"{LISTS}/{n}"])
        case "file":
            uploaded.lake.store.discard([uploaded.list["files"][-1]])
        case "folder":
            uploaded.writer.append(extra={**uploaded.writer.newest.extra, "state": "after-2"})
    uploaded.complete()
    assert "the state cannot be downloaded" in caplog.text


def test_the_entries_that_an_engine_sends_do_not_have_the_files(bucket: BucketStore, tmp_path: Path) -> None:
    lake = Lake.create(bucket.location(""), tmp_path / "work")
    writer = open_epoch(lake)
    sent: list[bytes | None] = []
    lake.log.on_announce(lambda n, content: sent.append(content))
    writer.append(state=state(s0=(1, "a")), files={changelog(0, 1, "a"): b"the changes"})
    (content,) = sent
    assert content is not None
    assert b"the changes" not in content
    entry = lake.log.read(writer.newest.n)
    assert [(file.name, entry.file(file)) for file in entry.header.state_files] == [(changelog(0, 1, "a"), b"the changes")]


def test_large_changes_are_left_out(bucket: BucketStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake.create(bucket.location(""), tmp_path / "work")
    newest = open_epoch(lake).newest
    lake.local.put(changelog(0, 1, "a"), b"12345")
    assert files.changelogs(lake, newest, state(s0=(1, "a"))) == {changelog(0, 1, "a"): b"12345"}
    monkeypatch.setattr(files, "BYTES_MAX", 4)
    assert files.changelogs(lake, newest, state(s0=(1, "a"))) == {}


class Snapshots:
    """The snapshots of the JVM, while a tick waits: one was uploaded after 5 of 10 permitted versions."""

    def limit(self) -> int:
        return 10

    def lineage(self) -> int:
        return 1


def test_a_snapshot_while_a_tick_waits() -> None:
    pacing = Pacing(Snapshots())
    assert [pacing.committed(n) for n in (3, 4, 5)] == [False, False, False]
    pacing.wait(lambda: False)
    assert pacing.lineage == 1
    assert pacing.committed(2)
    assert not pacing.committed(3)
