"""A process that writes log and tables is killed at each crash point, and restarted.

Afterwards no row is missing or duplicated.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.folder import Lake
from tailgate.lake.store.bucket import BucketStore
from tailgate.lake.tables import large, merging
from tailgate.lake.types import INT8, TEXT, Field
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.lake.writer.rounds import Follower
from testing.s3 import S3
from tests.lake.relations import add, changes, counted, item, snapshot, sweep

COLUMNS = (Field("a", INT8), Field("b", TEXT))
KEYED, BAG, ANEW = item(16384, COLUMNS, (0,)), item(16385, COLUMNS, None), item(16386, COLUMNS, None)
ITEMS = (KEYED, BAG, ANEW)
TICKS = 8


def work(location: str) -> None:
    """Runs the ticks that are missing. The newest log entry has the number of the last tick.

    If the location has `large` in its name, the table with a key is a large one.
    """
    if "large" in location:
        merging.FEW_ROWS, large.ROWS_MIN, large.SMALL_FILES = 0, 1, 2
    lake = Lake.create(location)
    writer = open_epoch(lake)
    follower = Follower(lake, writer.epoch)
    while writer.newest.batch < TICKS - 1:
        if not lake.catalog().items:
            add(writer, *ITEMS)
        tick = writer.newest.batch + 1
        parts = [(i.id, changes(i, new_rows)) for i, new_rows in zip(ITEMS, rows(tick), strict=True)]
        if tick == 4:  # the relation is backfilled again: its old rows are discarded
            if "began" not in writer.newest.extra:
                add(writer, replace(ANEW, ready=False))
                writer.append(kind="tick", extra={"began": True})
            if not lake.catalog()[ANEW.id].ready:
                add(writer, ANEW)
        writer.append(parts, batch=tick)
        follower.round()
        sweep(writer)
    writer.close()


def rows(tick: int) -> tuple[list[tuple[list[object], int]], ...]:
    went = [([tick % 3, f"t{tick - 3}"], -1)] if tick >= 3 else []
    bag: list[tuple[list[object], int]] = [([1, "x"], 1), ([tick, "y"], 2)]
    return [*went, ([tick % 3, f"t{tick}"], 1)], bag, bag


def expected() -> dict[int, Counter[str]]:
    sums: dict[int, Counter[str]] = {i.id: Counter() for i in ITEMS}
    for tick in range(TICKS):
        if tick == 4:
            sums[ANEW.id] = Counter()
        for i, new_rows in zip(ITEMS, rows(tick), strict=True):
            sums[i.id].update(counted(changes(i, new_rows)))
    return {id: Counter({row: weight for row, weight in total.items() if weight}) for id, total in sums.items()}


POINTS = ("entry.half", "entry.link", "entry.linked", "catalog.entry", "round.table", "round.checkpoint", "round.cleared")
LARGE_POINTS = ("large.converted", "large.files", "large.folded", "round.table")


def run(location: str, crash: str | None, sleep_s: float = math.inf) -> int:
    """Runs the process and returns its status, which is 1 if it sleeps longer than `sleep_s` in total."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **({"TAILGATE_CRASH": crash} if crash else {})}
    program = [sys.executable, "-m", "tests.lake.test_kill", location, str(sleep_s)]
    return subprocess.run(program, env=environment, timeout=300, check=False).returncode


def limit_sleep(limit_s: float) -> None:
    """Makes this process fail once it sleeps longer in total. Its time by the clock depends on what else the machine does."""
    slept, original = 0.0, time.sleep

    def sleep(seconds: Any) -> None:
        nonlocal slept
        slept += seconds
        assert slept < limit_s, f"slept {slept} s"
        original(seconds)

    time.sleep = sleep


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_point_and_started_again(point: str, tmp_path: Path) -> None:
    path = tmp_path / "lake"
    killed_and_started_again(point, str(path), sleep_s=1)  # a restart after SIGKILL does not wait for a timeout
    assert not [p for p in (path / "log").iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize("point", LARGE_POINTS)
def test_killed_while_a_large_table_is_written(point: str, tmp_path: Path) -> None:
    killed_and_started_again(point, str(tmp_path / "large"))


@pytest.mark.long
@pytest.mark.parametrize("point", POINTS)
def test_killed_and_started_again_over_a_bucket(point: str, bucket: BucketStore, s3: S3) -> None:
    s3.set(failures=50)
    killed_and_started_again(point, bucket.location(""))


def killed_and_started_again(point: str, location: str, sleep_s: float = math.inf) -> None:
    """Checks the rows after two kills and another start, which may sleep for `sleep_s`."""
    counts = (1, 2) if point in ("catalog.entry", "round.cleared", "large.converted") else (2, 9)
    killed = [run(location, f"{point}:{count}") for count in counts]
    assert run(location, None, sleep_s) == 0
    assert -signal.SIGKILL in killed, f"{point} was never reached"
    lake = Lake(location)
    sums = expected()
    assert {i.id: snapshot(lake, i) for i in ITEMS} == sums
    assert [e.header.n for e in lake.log.after(0)] == list(range(1, lake.log.newest().n + 1))  # type: ignore[union-attr]
    writer = open_epoch(lake)
    Follower(lake, writer.epoch).round()
    writer.close()
    assert {i.id: snapshot(Lake(location), i) for i in ITEMS} == sums


if __name__ == "__main__":
    limit_sleep(float(sys.argv[2]))
    work(sys.argv[1])
