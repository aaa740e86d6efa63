"""An engine is paused at a file operation, replaced, and resumed: then it changes nothing.

The successor has removed log entries in the meantime.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.errors import Replaced, Uncertain
from tailgate.lake.folder import Lake
from tailgate.lake.host import disk, processes
from tailgate.lake.writer import sweep_state
from tailgate.lake.writer.inbox import Inbox, Record
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.lake.writer.rounds import BOOT, Follower
from tests.lake.life import BAG, Life, short_history
from tests.lake.relations import add, changes
from tests.lake.test_failures import SCRIPT, count, prepared_lake, start_copy

STEPS = ("tick", "large", "statement", "write", "round", "sweep")
SUCCESSOR = (*("tick", "round", "write", "statement", "sweep") * 2, "consume", "large", "round", "sweep", "write", "tick")
CASES = 5  # in the short form, chosen at random

__all__ = ["prepared_lake"]


class Pause:
    """A context manager that runs `action` before or after file operation `number`."""

    def __init__(self, number: int, after: bool, action: Callable[[], None]) -> None:
        self.number, self._after, self._action = number, after, action
        self.done: tuple[str, Path] | None = None

    def __enter__(self) -> Pause:
        disk.hook = self._operation
        return self

    def __exit__(self, *_: object) -> None:
        disk.hook = None

    def _operation(self, name: str, path: Path, action: Callable[[], Any]) -> Any:
        self.number -= 1
        if self.number != -1:
            return action()
        result = None
        if self._after:
            result = action()
        self.done = (name, path)
        disk.hook = None
        self._action()
        disk.hook = self._operation
        return result if self._after else action()


@pytest.fixture
def memory() -> Iterator[Path]:
    """Yields a folder in memory, if there is such a file system: thousands of fsyncs take minutes on a busy disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        yield Path(folder)


def contents(path: Path) -> dict[Path, bytes]:
    """Returns the content of the lake's files, without temporary files of writers, and without sweep.json.

    A replaced engine may write an old sweep.json, which is as safe as none (`sweep_state`).
    """
    every = (p for p in path.rglob("*") if p.is_file() and p.name != sweep_state.NAME)
    return {p: p.read_bytes() for p in every if p.parent.parent.name != "writers" and not p.name.startswith(".")}


def replaced(prepared_lake: tuple[Life, Path], step: str, number: int, after: bool, folder: Path) -> bool:
    """Runs a step while another engine takes over at operation `number`, and checks the lake.

    Returns False if the step has fewer operations.
    """
    old = start_copy(prepared_lake, folder / "lake")
    new = object.__new__(Life)
    written: dict[Path, bytes] = {}

    def successor() -> None:
        before = contents(old.path)
        new.__dict__.update(old.__dict__)
        new.chance = random.Random(2)
        new.resume()
        for name in SUCCESSOR:
            new.step(name)
        written.update({p: c for p, c in contents(old.path).items() if before.get(p) != c})

    acknowledged = len(old.history.entries)
    with Pause(number, after, successor) as pause:
        try:
            old.step(step)
            raised = False
        except Exception:  # noqa: BLE001  # any error is accepted: the lake has changed under the engine
            raised = True
    if pause.done is None:
        old.writer.close()
        return False
    context = f"operation {number} of {step}, {'after' if after else 'before'}: {pause.done}"
    now = contents(old.path)
    for path, content in written.items():
        assert now.get(path) == content, (context, path)
    if step == "write" and not raised:
        # The write was taken over, or it was durable before the pause: the successor's
        # `check_inbox` verifies it.
        return True
    if step in ("tick", "large", "statement") and not raised:
        assert len(old.history.entries) == acknowledged + 1
        assert old.history.entries[-1][0].n < new.writer.newest.n
        assert Lake(old.path).log.first() > old.history.entries[-1][0].n
    for forbidden in ("tick", "statement", "write", "round", "sweep"):
        with pytest.raises((Replaced, Uncertain, FileNotFoundError)):
            old.step(forbidden)
    for path, content in written.items():
        assert contents(old.path).get(path) == content, (context, path)
    new.unknown.clear()
    new.check()
    new.check_inbox(new.inbox)
    for name in ("tick", "statement", "write", "consume", "round", "sweep", "tick", "round"):
        new.step(name)
    new.check()
    new.writer.close()
    return True


def operations(prepared_lake: tuple[Life, Path], step: str, folder: Path) -> range:
    """Returns the numbers of the file operations of a step."""
    folder.mkdir()
    return range(count(prepared_lake, step, folder))


def test_paused_and_replaced(prepared_lake: tuple[Life, Path], memory: Path, seed: int) -> None:
    """A random sample of the operations of each step, before or after them."""
    cases = [(s, n, after) for s in STEPS for n in operations(prepared_lake, s, memory / s) for after in (False, True)]
    for n, case in enumerate(random.Random(seed).sample(cases, CASES)):
        (memory / str(n)).mkdir()
        replaced(prepared_lake, *case, memory / str(n))
        shutil.rmtree(memory / str(n))


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS)
def test_paused_and_replaced_at_every_operation(prepared_lake: tuple[Life, Path], memory: Path, step: str) -> None:
    """The files after an operation are those before the next one, so each pause is before an operation."""
    for n in operations(prepared_lake, step, memory / step):
        (memory / str(n)).mkdir()
        assert replaced(prepared_lake, step, n, False, memory / str(n))
        shutil.rmtree(memory / str(n))


@pytest.mark.parametrize("number", [0, 3, 6, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2, 4, 5, 7))])
def test_a_starting_engine_is_paused(number: int, memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A starting engine has read the newest entry, which is removed before the engine resumes."""
    short_history(monkeypatch)
    for after in (False, True):
        life = Life(memory / str(after) / "lake")
        for step in SCRIPT:
            life.step(step)

        def lives_on(life: Life = life) -> None:
            with contextlib.suppress(Replaced):
                for name in SUCCESSOR:
                    life.step(name)

        later = object.__new__(Life)
        later.__dict__.update(life.__dict__)
        with Pause(number, after, lives_on):
            later.start()
        epochs = [e.header.epoch for e in Lake(life.path).log.after(Lake(life.path).log.first() - 1)]
        assert epochs == sorted(epochs)
        assert epochs[-1] == later.writer.epoch
        with pytest.raises(Replaced):
            life.tick()
        life.unknown.clear()
        life.check()
        life.writer.close()
        later.writer.close()


def test_a_write_is_acknowledged_for_its_own_entry_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link succeeds, but the fsync of its folder fails once.

    The first client gets the error, and the second client gets an entry for its write.
    """
    life = Life(tmp_path / "lake")
    inbox: Inbox = life.inbox
    failed: list[Path] = []

    def once(name: str, path: Path, action: Callable[[], Any]) -> Any:
        if name == "fsync" and path == Path(inbox.location) and not failed:
            failed.append(path)
            raise OSError(5, "Input/output error")
        return action()

    with monkeypatch.context() as patch:
        patch.setattr(disk, "hook", once)
        with pytest.raises(Exception, match="could not fsync"):
            inbox.write([Record("$table/1", None, b"one")])
    assert failed
    number = inbox.write([Record("$table/1", None, b"two")])
    assert [bytes(record.value or b"") for record in inbox.read(0, number)] == [b"two"]


def test_a_lake_without_folders_of_writers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lake of a version before writers/ existed opens, and its writers are fenced."""
    short_history(monkeypatch)
    life = Life(tmp_path / "lake")
    for step in SCRIPT:
        life.step(step)
    life.writer.close()
    shutil.rmtree(life.path / "writers")
    life.start()
    for step in SUCCESSOR:
        life.step(step)
    life.check()
    assert [folder.name for folder in (life.path / "writers").iterdir()] == [life.writer.store.path.name]
    life.writer.close()


def test_an_engine_that_is_replaced_by_one_on_another_machine(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine pauses before a commit, and leaves the tables as they are when it resumes."""
    writer = open_epoch(lake)
    add(writer, BAG)
    follower = Follower(lake, writer.epoch)
    follower.round()
    writer.append([(BAG.id, changes(BAG, [([1, "x"], 1)]))])

    def pause(name: str, path: Path, action: Callable[[], Any]) -> Any:
        if (name, path.name) == ("commit", str(BAG.id)):
            monkeypatch.setattr(disk, "hook", None)
            with monkeypatch.context() as patch:
                patch.setattr(processes, "boot", lambda: "of the other machine")
                other = Lake(lake.location)
                successor = open_epoch(other, take_over=True)
                Follower(other, successor.epoch).round()
                successor.close()
        return action()

    monkeypatch.setattr(disk, "hook", pause)
    with pytest.raises(Replaced):
        follower.round()
    assert bytes(lake.store.get(BOOT)) == b"of the other machine"
    writer.close()
