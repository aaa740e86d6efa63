"""The log between processes: opening, waiting, headers, sections in separate files, ownership."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tailgate.lake.catalog import Change
from tailgate.lake.catalog.roles import Access, Granted, Role
from tailgate.lake.catalog.schemas import DATABASE
from tailgate.lake.errors import FeatureNotSupported, Gone, ObjectNotInPrerequisiteState
from tailgate.lake.folder import Lake
from tailgate.lake.host import crash, disk
from tailgate.lake.host.processes import Process
from tailgate.lake.log.entry import Header, Section, decode_header, encode_header, stream
from tailgate.lake.log.log import name
from tailgate.lake.types import INT8, TEXT, Field
from tailgate.lake.writer import engines
from tailgate.lake.writer.log_writer import open_epoch
from tests.lake.relations import BOTH_STORES, add, changes, counted, item, snapshot, sweep

BAG = item(16384, (Field("a", INT8), Field("b", TEXT)), None)


def test_a_lake_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    ids: list[str] = []
    threads = [threading.Thread(target=lambda: ids.append(Lake.create(tmp_path / "lake").id)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 8
    assert len(set(ids)) == 1
    assert (tmp_path / "lake").stat().st_mode & 0o777 == 0o700
    assert Lake.open(tmp_path / "lake").id == ids[0]


def test_an_absent_lake_and_an_unknown_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ObjectNotInPrerequisiteState):
        Lake(tmp_path / "nothing")
    lake = Lake.create(tmp_path / "lake")
    (lake.path / "lake.json").write_text(json.dumps({"id": "x", "format": 2}))
    with pytest.raises(FeatureNotSupported):
        Lake(lake.location)
    with pytest.raises(FeatureNotSupported):
        decode_header(encode_header(Header(1, 1, 1, "tick")).replace(b'"format":1', b'"format":7'))


def test_a_header_keeps_its_fields() -> None:
    header = Header(
        7, 10, 2, "tick", 3, None, {"k": {"t": {"0": 5}}}, 4, 9, '{"ids":[]}', "2.1", 17, (Section(1, 2, 0, 64),), {"fills": [1]}
    )
    line = encode_header(header)
    assert len(line) % 64 == 0
    assert decode_header(line) == header
    later = line.replace(b'{"format"', b'{"made_up":5,"format"')
    assert decode_header(later).extra == {"fills": [1], "made_up": 5}


@pytest.mark.parametrize(
    ("change", "format"),
    [
        (Change(put_roles=(Role(16500, "ann", login=True, createrole=True, connection_limit=1),)), 1),
        (Change(put_roles=(Role(16500, "ann", login=True, valid_until=0),)), 6),
        (Change(put_access=(Access(DATABASE.id, (Granted(10, 10, frozenset(("CONNECT",))),)),)), 6),
    ],
)
def test_earlier_versions_refuse_a_lake_whose_sign_ins_they_would_not_refuse(tmp_path: Path, change: Change, format: int) -> None:
    writer = open_epoch(Lake.create(tmp_path / "lake"))
    assert writer.append(kind="catalog", catalog=change).format == format
    assert writer.append().format == format
    writer.close()


@BOTH_STORES
def test_omitted_fields_keep_their_values(lake: Lake) -> None:
    writer = open_epoch(lake)
    writer.append(offsets={"k": {"t": {"0": 5}}}, inbox=3, state="ids", checkpoint="1.1", batch=8, extra={"fills": {"1": 2}}, clock=77)
    add(writer, BAG)
    writer.close()
    newest = open_epoch(lake).newest
    assert (newest.offsets, newest.inbox, newest.state, newest.checkpoint) == ({"k": {"t": {"0": 5}}}, 3, "ids", "1.1")
    assert (newest.batch, newest.extra, newest.clock, newest.catalog_version) == (8, {"fills": {"1": 2}}, 77, 3)


@BOTH_STORES
def test_waiting_ends_with_the_entry_or_the_time(lake: Lake) -> None:
    writer = open_epoch(lake)
    reader = Lake(lake.location)
    began = time.monotonic()
    assert reader.log.wait(1, 0.05) is None
    assert 0.04 < time.monotonic() - began < 1
    timer = threading.Timer(0.05, writer.append)
    timer.start()
    header = reader.log.wait(1, 10)
    assert header is not None
    assert header.n == 2
    timer.join()


def test_a_wait_is_woken(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that is notified of an entry does not wait for its next poll."""
    monkeypatch.setattr("tailgate.lake.store.folder.FolderStore.look_s", 30.0)
    writer = open_epoch(lake)
    reader = Lake(lake.location)
    headers: list[Any] = []
    thread = threading.Thread(target=lambda: headers.append(reader.log.wait(1, 20)))
    thread.start()
    time.sleep(0.1)
    writer.append()
    reader.log.notify()
    thread.join(5)
    assert headers
    assert headers[0].n == 2


def test_a_reader_far_behind_finds_the_newest(lake: Lake) -> None:
    """The next entry that it would read is removed, so it lists the folder again."""
    writer = open_epoch(lake)
    reader = Lake(lake.location)
    assert reader.log.newest() is not None
    for _ in range(5):
        writer.append()
    for n in range(1, 5):
        (lake.path / "log" / str(n)).unlink()
    newest = reader.log.newest()
    assert newest is not None
    assert newest.n == 6
    with pytest.raises(Gone):
        list(reader.log.after(1))
    assert [e.header.n for e in reader.log.after(4)] == [5, 6]


@BOTH_STORES
def test_an_entry_by_time(lake: Lake) -> None:
    writer = open_epoch(lake)
    start = writer.newest.time
    times = [writer.append(time=start + 10 * i).time for i in range(1, 20)]
    for at, n in ((start - 1, None), (start, 1), (start + 9, 1), (times[0], 2), (times[7] + 5, 9), (times[-1] + 100, 20)):
        header = lake.log.find(at)
        assert (header and header.n) == n


def test_a_large_section_is_a_separate_file(lake: Lake, tmp_path: Path) -> None:
    writer = open_epoch(lake)
    add(writer, BAG)
    table = changes(BAG, [([i, "x"], 1) for i in range(1000)])
    spilled = tmp_path / "from-the-executor"
    spilled.write_bytes(stream(table))
    header = writer.append([(BAG.id, spilled)])
    spilled.unlink()
    assert header.relations[0].file == f"3.{writer.epoch}.{BAG.id}.arrow"
    assert counted(lake.log.read(3).changes(BAG.id)) == counted(table)
    assert snapshot(lake, BAG) == counted(table)
    orphan = lake.path / "log" / f"9.{writer.epoch}.{BAG.id}.arrow"
    orphan.write_bytes(b"")
    writer.close()
    writer = open_epoch(lake)
    sweep(writer)
    assert not orphan.exists()
    assert (lake.path / "log" / header.relations[0].file).exists()


def test_a_segment_is_read_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that read entries of the same segment at once do not each have a copy of it in memory."""
    writer = open_epoch(lake)
    for _ in range(3):
        writer.append()
    lake.log.segments.roll(1, [name(n) for n in range(1, 5)], writer.store)
    get = lake.store.get
    reads: list[str] = []

    def slow(name: str) -> pa.Buffer:
        reads.append(name)
        time.sleep(0.1)
        return get(name)

    monkeypatch.setattr(lake.store, "get", slow)
    with ThreadPoolExecutor(4) as threads:
        assert all(each is not None for each in threads.map(lake.log.segments.find, range(1, 5)))
    assert reads == ["segments/1-4"]


def test_the_sections_of_an_entry_share_its_bytes(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each relation's changes refer to the whole entry: a reader that keeps them would otherwise have as many copies of it."""
    writer = open_epoch(lake)
    header = writer.append([(BAG.id + n, changes(BAG, [((n, "x"), 1)])) for n in range(5)])
    entry = Lake(lake.path).log.read(header.n)
    get, reads = entry.store.get, list[str]()

    def counting(name: str) -> pa.Buffer:
        reads.append(name)
        return get(name)

    monkeypatch.setattr(entry.store, "get", counting)
    assert [entry.read(section).num_rows for section in header.relations] == [1] * 5
    assert reads == [name(header.n)]
    writer.close()


@BOTH_STORES
def test_rows_that_a_record_repeats_are_sections_apart_from_the_changes(lake: Lake) -> None:
    writer = open_epoch(lake)
    add(writer, BAG)
    one = changes(BAG, [((1, "x"), 1)])
    repeated = changes(BAG, [((2, "y"), 0)])
    written = writer.append(changes=[(BAG.id, one)], repeated=[(BAG.id, stream(repeated))], single=8)
    entry = next(iter(lake.log.after(written.n - 1)))
    assert entry.header == written
    assert (entry.header.single, entry.repeated(BAG.id), entry.repeated(7)) == (8, repeated, None)
    assert entry.changes(BAG.id) == one
    assert writer.append().repeated == ()
    assert snapshot(lake, BAG, written.time).total() == 1
    writer.close()


def test_changes_without_weights_or_rows_are_no_section(lake: Lake) -> None:
    writer = open_epoch(lake)
    with pytest.raises(ValueError, match="__weight"):
        writer.append([(BAG.id, pa.table({"a": [1]}))])
    assert writer.append([(BAG.id, changes(BAG, []))]).relations == ()


def test_the_next_engine_waits_for_the_jvm_of_the_last(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as jvm:
        writer = open_epoch(lake)
        writer.announce(address="127.0.0.1:1", token="secret", jvm=jvm.pid)
        assert (lake.path / "engine.json").stat().st_mode & 0o777 == 0o600
        announcement = engines.announced(Lake(lake.location))
        assert announcement is not None
        assert (announcement.epoch, announcement.address, announcement.token, announcement.jvm) == (
            1,
            "127.0.0.1:1",
            "secret",
            Process.of(jvm.pid),
        )
        writer._lock.release()  # as if the Python driver had been killed
        monkeypatch.setattr(engines, "GONE_TIMEOUT_S", 0.2)
        with pytest.raises(ObjectNotInPrerequisiteState, match="JVM"):
            open_epoch(lake)
        monkeypatch.setattr(engines, "GONE_TIMEOUT_S", 30.0)
        killer = threading.Timer(0.3, jvm.kill)
        killer.start()
        began = time.monotonic()
        open_epoch(lake).close()
        assert time.monotonic() - began > 0.2
        killer.join()


def test_a_process_is_distinguished_from_a_later_one_with_the_same_id() -> None:
    mine = Process.of(os.getpid())
    assert mine.lives()
    assert not Process(mine.pid, mine.started + 1, mine.boot).lives()
    assert not Process(mine.pid, mine.started, "another boot").lives()


def test_no_child_inherits_the_lock(lake: Lake) -> None:
    writer = open_epoch(lake)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False) as child:
        writer.close()
        open_epoch(Lake(lake.location)).close()
        child.kill()


def test_a_crash_point_ends_the_process_at_its_count() -> None:
    program = "from tailgate.lake.host import crash\nfor i in range(5): print(i, flush=True); crash.point('here')"
    environment = {**os.environ, "TAILGATE_CRASH": "here:3", "PYTHONPATH": str(Path(crash.__file__).parents[2])}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert ended.stdout.split() == ["0", "1", "2"]


def test_a_crash_point_that_counts_from_another_one() -> None:
    program = "from tailgate.lake.host import crash\nfor name in 'abbabb': print(name, flush=True, end=''); crash.point(name)"
    environment = {**os.environ, "TAILGATE_CRASH": "a:2,b:1", "PYTHONPATH": str(Path(crash.__file__).parents[2])}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, "abbab")


def test_no_entry_waits_for_the_copy_of_the_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake.create(tmp_path / "lake")
    writer = open_epoch(lake)
    header = add(writer, BAG)
    assert lake.catalog_copies.versions() == []
    entered, continues = threading.Event(), threading.Event()

    def slow(name: str, path: Path, action: Callable[[], Any]) -> Any:
        if "catalog" in (path.name, path.parent.name):
            entered.set()
            assert continues.wait(30)
        return action()

    monkeypatch.setattr(disk, "hook", slow)
    keeping = threading.Thread(target=writer.keep_catalog)
    keeping.start()
    assert entered.wait(30)
    assert writer.append().n == header.n + 1
    continues.set()
    keeping.join()
    assert lake.catalog_copies.versions() == [header.n]
    writer.append(kind="catalog", catalog=Change(drop=(BAG.id,)))
    writer.close()
    assert lake.catalog_copies.versions() == [header.n, header.n + 2]


def test_a_copy_of_the_catalog_that_an_engine_left_is_durable_before_entries_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine may have been killed between the link and the fsync of the folder."""
    lake = Lake.create(tmp_path / "lake")
    writer = open_epoch(lake)
    add(writer, BAG)
    assert writer.keep_catalog()
    synced: list[str] = []

    def note(name: str, path: Path, action: Callable[[], Any]) -> Any:
        if name == "fsync":
            synced.append(path.name)
        return action()

    monkeypatch.setattr(disk, "hook", note)
    assert writer.keep_catalog()
    assert synced == ["catalog"]
    writer.close()
