"""Checks of the rules for readers (docs/architecture.md, section 3). Each raises if its rule does not hold."""

from __future__ import annotations

import contextlib
import time

import pytest

from tailgate.lake.errors import Gone
from tailgate.lake.folder import Lake  # fmt: skip
from tailgate.lake.readers import reading
from tailgate.lake.writer import log_writer
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.lake.writer.rounds import Follower
from tests.lake.relations import History, add, counted, snapshot, sweep
from tests.lake.rule_relations import BAG, KEYED, rows, short_history, write


def check_r1(lake: Lake) -> None:
    """Checks that a read starts from a checkpoint at or before its time, at that version."""
    writer = open_epoch(lake)
    add(writer, KEYED, BAG)
    follower = Follower(lake, writer.epoch)
    history = History()
    for _ in range(3):
        history.entries += write(writer, 2).entries
        follower.round()
    history.entries += write(writer, 1).entries
    history.check(Lake(lake.location), KEYED, BAG)


def check_r2(lake: Lake) -> None:
    """Checks that relations read at one time are consistent: a row that moves is in exactly one."""
    writer = open_epoch(lake)
    add(writer, KEYED, BAG)
    writer.append([(KEYED.id, rows(((0, "x"), 1)))])
    follower = Follower(lake, writer.epoch)
    for i in range(6):
        here, second = (KEYED.id, BAG.id) if i % 2 == 0 else (BAG.id, KEYED.id)
        time_ = writer.newest.time
        before = snapshot(lake, KEYED, time_)
        writer.append([(here, rows(((0, "x"), -1))), (second, rows(((0, "x"), 1)))])
        if i == 3:
            follower.round()
        assert sum(before.values()) + sum(snapshot(lake, BAG, time_).values()) == 1


def check_r3(lake: Lake) -> None:
    """Checks that a read of removed history raises an error."""
    writer = open_epoch(lake)
    add(writer, KEYED, BAG)
    follower = Follower(lake, writer.epoch)
    old = write(writer, 1).entries[0][0]
    with short_history():
        for _ in range(20):
            write(writer)
            follower.round()
            time.sleep(0.002)
        sweep(writer)
    reader = Lake(lake.location)
    assert old.time < reading.since(reader)
    for read in (
        lambda: reading.snapshot(reader, BAG.id, old.time),
        lambda: list(reader.log.after(1)),
        lambda: list(reading.changes(reader, BAG.id, old.time)),
    ):
        with contextlib.suppress(Gone):
            read()
            raise AssertionError("a time that is gone was read")


def check_r4(lake: Lake) -> None:
    """Checks that changes between two times are the same from files and from segments."""
    writer = open_epoch(lake)
    add(writer, KEYED, BAG)
    history = write(writer, 20)
    begin, end = history.entries[2][0].time, history.entries[12][0].time
    before = [(h.n, counted(t)) for h, t in reading.changes(lake, BAG.id, begin, end)]
    with short_history():
        sweep(writer)
    assert lake.log.segments.ranges()
    assert [(h.n, counted(t)) for h, t in reading.changes(Lake(lake.location), BAG.id, begin, end)] == before
    assert [n for n, _ in before] == [h.n for h, _ in history.entries[3:13]]


def check_r5(lake: Lake) -> None:
    """Checks that times only increase, whatever the clock does, so a past time is complete."""
    writer = open_epoch(lake)
    times = []
    for clock in (10**13, 10**13, 10**12, 5):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(log_writer, "now", lambda clock=clock: clock)
            times.append(write(writer).entries[0][0].time)
            with contextlib.suppress(ValueError):
                writer.append(time=times[-1])
                raise AssertionError("a time came twice")
    assert times == sorted(set(times))
