"""Checks of the rules for writers (docs/architecture.md, section 3). Each raises if its rule does not hold."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tailgate.lake.catalog import Change
from tailgate.lake.errors import ObjectNotInPrerequisiteState, Replaced
from tailgate.lake.folder import Lake  # fmt: skip
from tailgate.lake.host import crash, files
from tailgate.lake.log.log import name
from tailgate.lake.readers import holds, reading
from tailgate.lake.store.stand_by import Lease
from tailgate.lake.tables import checkpoints, delta, merging
from tailgate.lake.tables.stored_relations import table_name
from tailgate.lake.writer import engines, retention
from tailgate.lake.writer.log_writer import Writer, open_epoch
from tailgate.lake.writer.rounds import Follower
from tests.lake.relations import History, add, counted, sweep
from tests.lake.rule_relations import BAG, KEYED, short_history, write


def check_w1(lake: Lake) -> None:
    """Checks that an entry's number is used once: the second writer stops, and the entry stays."""
    first = open_epoch(lake)
    second = open_epoch(Lake(lake.location), take_over=True)
    entry = name(second.newest.n)
    content = bytes(lake.store.get(entry))
    with contextlib.suppress(Replaced):
        write(first)
        raise AssertionError("a replaced writer went on")
    assert bytes(lake.store.get(entry)) == content


def check_w2(lake: Lake) -> None:
    """Checks the order of a commit: sync the content, link the name, sync the folder, announce.

    No reader sees a partial entry at any moment.
    """
    steps: list[str] = []
    fsync, link = os.fsync, os.link

    def fsynced(descriptor: int) -> None:
        fsync(descriptor)
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        steps.append("folder" if os.path.isdir(path) else "content")

    def linked(source: Path, target: Path) -> None:
        link(source, target)
        steps.append("name")

    writer = open_epoch(lake)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsynced)
        patch.setattr(os, "link", linked)
        patch.setattr(lake.log, "announce", lambda header, content: steps.append("told") or header)
        write(writer)
    assert steps == ["content", "name", "folder", "told"]


def check_w2_reader(lake: Lake) -> None:
    """Checks that a reader that finds a name before its writer has synced the folder syncs it."""
    writer = open_epoch(lake)
    reader = Lake(lake.location)
    reader.log.newest()
    synced: list[int] = []
    fsync = os.fsync
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "sync_folder", lambda folder: None)  # as if the writer were between link and sync
        write(writer)
        patch.setattr(os, "fsync", lambda descriptor: (synced.append(descriptor), fsync(descriptor))[1])
        newest = reader.log.newest()
    assert newest is not None
    assert newest.n == writer.newest.n
    assert synced


def check_w3(lake: Lake) -> None:
    """Checks that a writer that is paused between its temporary file and the link does no harm."""
    old = open_epoch(lake)
    new: list[Writer] = []
    link = os.link

    def paused(source: Path, target: Path) -> None:
        patch.undo()
        new.append(open_epoch(Lake(lake.location), take_over=True))
        for _ in range(3):
            write(new[0])
        link(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "link", paused)
        with contextlib.suppress(Replaced):
            write(old)
            raise AssertionError("a replaced writer went on")
    assert [e.header.epoch for e in Lake(lake.location).log.after(0)] == [1, 2, 2, 2, 2]
    assert new[0].epoch == 2


def check_w3_temporary(lake: Lake) -> None:
    """Checks that each writer has a separate folder for temporary files."""
    old = open_epoch(lake)
    sources: list[Path] = []
    link = os.link

    def linked(source: Path, target: Path) -> None:
        sources.append(Path(source))
        link(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "link", linked)
        write(old)
        new = open_epoch(Lake(lake.location), take_over=True)
        write(new)
    assert len({p.parent for p in sources}) == 2
    assert not old.store.path.exists()


def check_w3_rolled(lake: Lake) -> None:
    """Checks that a replaced writer does no harm when it resumes after a sweep.

    The entry that has its number was rolled into a segment and removed.
    """
    old = open_epoch(lake)
    add(old, KEYED, BAG)
    new = open_epoch(Lake(lake.location), take_over=True)
    follower = Follower(new.lake, new.epoch)
    history = History()
    with short_history():
        for _ in range(20):
            history.entries += write(new).entries
            follower.round()
        sweep(new)
        assert not lake.store.exists(name(old.newest.n + 1))
        for _ in range(2):
            with contextlib.suppress(Replaced):
                write(old)
                raise AssertionError("a replaced writer went on")
        with contextlib.suppress(Replaced):
            sweep(old)
            raise AssertionError("a replaced writer swept")
    reader = Lake(lake.location).log
    assert {e.header.epoch for e in reader.after(reader.first() - 1)} == {2}
    history.check(Lake(lake.location), KEYED, BAG)


def check_w4(lake: Lake) -> None:
    """Checks that a second engine is refused while one runs, unless it takes over."""
    first = open_epoch(lake)
    _refused(lake)
    second = open_epoch(Lake(lake.location), take_over=True)
    first.close()
    _refused(lake)
    second.close()
    open_epoch(Lake(lake.location)).close()


def check_w4_age(lake: Lake) -> None:
    """Checks that without locks, a lease that is renewed shows that an engine runs, unless it closed."""

    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fcntl, "flock", no_locks)
        patch.setattr(engines, "LEASE_S", 0.2)
        first = open_epoch(lake)
        first.renew_lease()
        lease = Lease(engines.LEASE_S, first.renew_lease)
        try:
            _refused(lake)
        finally:
            lease.end()
        open_epoch(Lake(lake.location)).close()  # it renews nothing more, as if it had been killed
        last = open_epoch(lake, take_over=True)
        last.renew_lease()
        last.close()
        patch.setattr(engines, "LEASE_S", 60.0)
        began = time.monotonic()
        open_epoch(Lake(lake.location)).close()
        assert time.monotonic() - began < 30  # an engine that has ended is not waited for


def _refused(lake: Lake) -> None:
    with contextlib.suppress(ObjectNotInPrerequisiteState):
        open_epoch(Lake(lake.location)).close()
        raise AssertionError("a second engine was let in")


def check_w5(lake: Lake) -> None:
    """Checks that a round that ended before its checkpoint is repeated, without a second effect."""
    writer = open_epoch(lake)
    add(writer, KEYED, BAG)
    history = write(writer, 2)
    Follower(lake, writer.epoch).round()
    history.entries += write(writer, 3).entries
    _broken_round(lake, writer, "round.checkpoint")
    again = Follower(Lake(lake.location), writer.epoch)
    again.round()
    assert again.inconsistent == {}
    history.check(Lake(lake.location), KEYED, BAG)


def check_w5_one_time(lake: Lake) -> None:
    """Checks that all tables of a checkpoint have their relations at its time.

    This also holds if the previous round ended between two tables.
    """
    writer = open_epoch(lake)
    add(writer, KEYED, BAG)
    history = write(writer, 2)
    _broken_round(lake, writer, "round.table")
    history.entries += write(writer, 2).entries
    Follower(Lake(lake.location), writer.epoch).round()
    listed = checkpoints.listed(Lake(lake.location))
    assert listed
    for checkpoint in listed:
        for relation in (KEYED, BAG):
            stored = reading.relations(lake.catalog())[relation.id]
            held = counted(reading.read_table(lake, stored, checkpoint.versions[relation.id]))
            assert held == history.at(relation.id, checkpoint.time)


def check_w5_conflict(lake: Lake) -> None:
    """Checks that a paused engine does not commit to a table after its successor.

    It is paused between reading the table and the commit.
    """
    old = open_epoch(lake)
    add(old, KEYED, BAG)
    history = write(old, 2)
    follower = Follower(lake, old.epoch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "FEW_ROWS", 0)
        follower.round()
    history.entries += write(old, 1).entries
    apply = merging.apply

    def paused(*arguments: Any) -> pa.Table | None:
        with contextlib.suppress(RuntimeError):
            if arguments[1].id == BAG.id and not new_writers:
                new = open_epoch(Lake(lake.location), take_over=True)
                new_writers.append(new)
                with pytest.MonkeyPatch.context() as inner:
                    inner.setattr(merging, "apply", apply)
                    Follower(Lake(lake.location), new.epoch).round()
        return apply(*arguments)

    new_writers: list[Writer] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "apply", paused)
        patch.setattr(merging, "FEW_ROWS", 0)
        patch.setattr("tailgate.lake.writer.rounds.THREADS", 1)
        with contextlib.suppress(Exception):
            follower.round()
    history.check(Lake(lake.location), KEYED, BAG)
    for relation in (KEYED, BAG):
        stored = reading.relations(lake.catalog())[relation.id]
        head = delta.table(lake.store, table_name(relation.id)).version()
        assert counted(reading.read_table(lake, stored, head)) == history.at(relation.id, old.newest.time)


def _broken_round(lake: Lake, writer: Writer, at: str) -> None:
    def point(name: str) -> None:
        if name == at:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crash, "point", point)
        patch.setattr("tailgate.lake.writer.rounds.THREADS", 1)
        with contextlib.suppress(KeyboardInterrupt):
            Follower(lake, writer.epoch).round()


def check_w6(lake: Lake) -> None:
    """Checks that the catalog can be read as of any entry, also if its copy was not written."""
    writer = open_epoch(lake)
    first = add(writer, KEYED)
    between = write(writer).entries[-1][0]
    last = writer.append(kind="catalog", catalog=Change(put=(BAG,), drop=(KEYED.id,)))
    lake.catalog_copies.discard(lake.catalog_copies.versions())
    reader = Lake(lake.location)
    assert [set(reader.catalog_at(n).items) for n in (first.n - 1, first.n, between.n, last.n)] == [set(), {KEYED.id}, {KEYED.id}, {BAG.id}]
    assert reader.catalog_at(first.n) is reader.catalog_at(between.n)  # read once
    assert set(reader.catalog().items) == {BAG.id}


def check_w7_readers(lake: Lake) -> None:
    """Checks that an entry stays until every reader has passed it."""
    writer = open_epoch(lake)
    add(writer, KEYED, BAG)
    follower = Follower(lake, writer.epoch)
    holds.hold(lake, "sink-1", 7)
    with short_history():
        for _ in range(20):
            write(writer)
            follower.round()
        sweep(writer)
    assert [e.header.n for e in lake.log.after(7)] == list(range(8, writer.newest.n + 1))
    assert lake.log.first() > 1


def check_w7_tables(lake: Lake) -> None:
    """Checks that an entry stays until every table and every readable checkpoint has passed it."""
    writer = open_epoch(lake)
    add(writer, KEYED, BAG)
    follower = Follower(lake, writer.epoch)
    with short_history():
        history = write(writer, 3)
        follower.round()
        history.entries += write(writer, 20).entries  # the tables lag behind
        sweep(writer)
    history.check(Lake(lake.location), KEYED, BAG)


def check_w7_since(lake: Lake) -> None:
    """Checks that every time from `since` on is readable after any sweep."""
    writer = open_epoch(lake)
    add(writer, KEYED, BAG)
    follower = Follower(lake, writer.epoch)
    history = History()
    with short_history(since_ms=3_600_000):
        for _ in range(12):
            history.entries += write(writer, 2).entries
            follower.round()
            sweep(writer)
    assert reading.since(lake) <= history.entries[0][0].time
    history.check(Lake(lake.location), KEYED, BAG)


def check_w7_age(lake: Lake) -> None:
    """Checks that nothing younger than five minutes is removed."""
    writer = open_epoch(lake)
    add(writer, KEYED, BAG)
    follower = Follower(lake, writer.epoch)
    age_min_ms = retention.AGE_MIN_MS
    with short_history(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(retention, "AGE_MIN_MS", age_min_ms)
        for _ in range(10):
            write(writer)
            follower.round()
        sweep(writer)
    assert [e.header.n for e in Lake(lake.location).log.after(0)] == list(range(1, writer.newest.n + 1))
