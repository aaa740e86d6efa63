"""Fault injection: each file operation of a tick, statement, write, round or sweep fails.

Engine, readers and log agree afterwards.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailgate.lake.errors import IoError, Uncertain
from tailgate.lake.folder import Lake
from tests.lake.disk import Disk
from tests.lake.life import STEPS, Life, short_history

SCRIPT = (
    "tick",
    "round",
    "tick",
    "write",
    "statement",
    "large",
    "round",
    "consume",
    "tick",
    "round",
    "sweep",
    "tick",
    "round",
    "write",
    "tick",
    "tick",
)
APPENDS = ("tick", "large", "statement", "consume")
CASES = 10  # in the short form, chosen at random


@pytest.fixture(scope="module")
def prepared_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Life, Path]]:
    """Yields a lake in which every step has much to do, and its folder."""
    with pytest.MonkeyPatch.context() as patch:
        short_history(patch)
        life = Life(tmp_path_factory.mktemp("prepared_lake") / "lake")
        for step in SCRIPT:
            life.step(step)
        life.writer.close()
        yield life, life.path


def start_copy(prepared_lake: tuple[Life, Path], path: Path) -> Life:
    """Copies that lake and starts another engine on the copy."""
    before, folder = prepared_lake
    shutil.copytree(folder, path)
    life = object.__new__(Life)
    life.__dict__.update(before.__dict__)
    life.chance = random.Random(1)
    life.path, life.unknown = path, []
    life.history = type(before.history)()
    life.history.entries = list(before.history.entries)
    life.inbox_entries, life.keyed = dict(before.inbox_entries), dict(before.keyed)
    life.start()
    return life


def count(prepared_lake: tuple[Life, Path], step: str, folder: Path) -> int:
    """Returns the number of file operations of a step."""
    life = start_copy(prepared_lake, folder / "counted")
    disk = Disk(life.path, folder / "shadow")
    with disk.recording():
        life.step(step)
    return len(disk.operations)


def fail(prepared_lake: tuple[Life, Path], step: str, number: int, after: bool, code: int, folder: Path) -> None:
    """Runs a step whose operation `number` fails once with `code`, then checks the lake.

    With `after`, the operation runs before it fails.
    """
    life = start_copy(prepared_lake, folder / "lake")
    disk = Disk(life.path, folder / "shadow")
    newest = life.writer.newest
    context = f"operation {number} of {step}, {'after' if after else 'before'}"
    with disk.recording():
        disk.fail_at(number, after, lambda: OSError(code, os.strerror(code)))
        try:
            life.step(step)
            failed = False
        except (Uncertain, OSError, IoError) as error:
            failed = True
            if isinstance(error, Uncertain) and step not in ("round", "sweep"):
                with pytest.raises(Uncertain):  # no further append is accepted
                    life.writer.append() if step != "write" else life.write()
                life.start()  # a new process takes over
            elif step in APPENDS:
                assert life.writer.newest == newest, context
    context += f": {disk.faulted}"
    print(context)
    assert disk.faulted is not None or not failed, context
    reader = Lake(life.path)
    assert reader.log.newest() == life.lake.log.newest(), context
    assert reader.catalog() == life.writer.catalog == life.lake.catalog(), context
    life.check(reader)
    life.check_inbox(life.inbox)
    for again in (step, "write", "consume", "tick", "statement", "round", "sweep", "tick", "round", "sweep"):
        life.step(again)
    life.check()
    life.writer.close()


def every(prepared_lake: tuple[Life, Path], folder: Path) -> Iterator[tuple[str, int, bool, int]]:
    for step in STEPS:
        (folder / step).mkdir()
        operations = range(count(prepared_lake, step, folder / step))
        yield from itertools.product([step], operations, (False, True), (errno.ENOSPC, errno.EIO))


def test_any_file_operation_may_fail(prepared_lake: tuple[Life, Path], tmp_path: Path, seed: int) -> None:
    """A random sample of all cases."""
    cases = list(every(prepared_lake, tmp_path))
    chance = random.Random(seed)
    for n, case in enumerate(chance.sample(cases, CASES)):
        (tmp_path / str(n)).mkdir()
        fail(prepared_lake, *case, tmp_path / str(n))
        shutil.rmtree(tmp_path / str(n))


@pytest.mark.long
def test_every_file_operation_may_fail(prepared_lake: tuple[Life, Path], tmp_path: Path) -> None:
    cases = list(every(prepared_lake, tmp_path))
    print(f"{len(cases)} failures")
    for n, case in enumerate(cases):
        (tmp_path / str(n)).mkdir()
        fail(prepared_lake, *case, tmp_path / str(n))
        shutil.rmtree(tmp_path / str(n))
