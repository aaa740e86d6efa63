"""Any file operation of a running engine fails: acknowledged rows are there once.

Engine, log and readers agree. A step is a statement, a write with its tick, a round or a sweep. One
of its file operations fails, in any thread, before or after it runs. Then the engine continues, or
it ends and another one starts.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tailgate.engine.runtime.ticks import inputs, tick_runner
from tailgate.lake.errors import CrashShutdown, TailgateError, Uncertain
from tailgate.lake.folder import Lake
from tailgate.lake.host import disk
from tests.engine.runtime.inside import Inside
from tests.lake.life import short_history

STEPS = ("create table", "create view", "insert", "replace view", "drop view", "round", "sweep")
CASES = 10  # in the short form
OPERATIONS_MAX = 300  # in one step; a sweep has the most: a few for each entry that it removes
SETTLED_S = 60.0
CREATE_VIEW = "CREATE MATERIALIZED VIEW w AS SELECT v, count(*) AS n, {} AS a FROM t GROUP BY v"


class Fault:
    """A context manager that makes one operation of the lake's files fail, before it runs or after it has succeeded.

    `failed` names the operation, or is None if there were fewer operations.
    """

    def __init__(self, number: int, after: bool, code: int) -> None:
        self._number, self._after, self._code = number, after, code
        self._count = itertools.count()
        self._lock = threading.Lock()
        self.failed: tuple[str, Path] | None = None

    def __enter__(self) -> Fault:
        disk.hook = self._operation
        return self

    def __exit__(self, *_: object) -> None:
        disk.hook = None

    def _operation(self, name: str, path: Path, action: Callable[[], Any]) -> Any:
        if not self._after:
            self._maybe_fail(name, path)
        result = action()
        if self._after:
            self._maybe_fail(name, path)
        return result

    def _maybe_fail(self, name: str, path: Path) -> None:
        with self._lock:
            failing = next(self._count) == self._number
        if failing:
            self.failed = name, path
            raise OSError(self._code, os.strerror(self._code), str(path))


class World:
    """A lake with its current engine, and a model of its rows."""

    def __init__(self, session: Any, path: Path) -> None:
        self._session, self._path = session, path
        self.table: set[tuple[int, int]] = set()
        self.unknown: set[tuple[int, int]] = set()  # written, neither acknowledged nor refused
        self.lives = 0
        self._keys = itertools.count(1)
        self._tables = itertools.count()
        self._start()
        self.inside.execute("CREATE TABLE t (k int8 PRIMARY KEY, v int8)")
        self.inside.execute(CREATE_VIEW.format(0))

    def _start(self) -> None:
        self.lives += 1
        self.inside = Inside(self._session, self._path)

    def close(self) -> None:
        self.inside.end()

    def step(self, name: str) -> None:
        match name:
            case "create table":
                self.inside.execute(f"CREATE TABLE t{next(self._tables)} (k int8)")
            case "create view":
                self.inside.execute(CREATE_VIEW.format(0))
            case "replace view":
                self.inside.execute(CREATE_VIEW.format(next(self._keys)).replace("CREATE", "CREATE OR REPLACE", 1))
            case "drop view":
                self.inside.execute("DROP MATERIALIZED VIEW w")
            case "insert":
                self.insert()
            case "round":
                self.inside.round()
            case "sweep":
                self.inside.sweep()

    def prepare(self, name: str) -> None:
        """Brings the lake into a state in which the step can run."""
        view = "w" in {i.name for i in self.inside.engine.catalog.visible}
        if name == "create view" and view:
            self.inside.execute("DROP MATERIALIZED VIEW w")
        elif name in ("replace view", "drop view") and not view:
            self.inside.execute(CREATE_VIEW.format(0))
        elif name in ("round", "sweep"):
            self.inside.round()  # the step has the operations of one round or sweep
            if name == "sweep":
                self.inside.sweep()
            for _ in range(3):
                self.insert()
                if name == "sweep":
                    self.inside.round()

    def insert(self) -> None:
        key = next(self._keys)
        row = (key, key % 3)
        self.unknown.add(row)
        try:
            number = self.inside.insert("t", row, wait=False)
        except (Uncertain, CrashShutdown):
            raise
        except (TailgateError, OSError):
            self.unknown.remove(row)
            raise
        self.unknown.remove(row)
        self.table.add(row)
        self.inside.wait(number)

    def fail(self, name: str, fault: Fault) -> str:
        """Runs a step with a failure, and checks the lake. Returns a description of the outcome."""
        self.prepare(name)
        before = names(self.inside.engine.catalog)
        error: Exception | None = None
        with fault:
            try:
                self.step(name)
            except (TailgateError, OSError) as raised:
                error = raised
            self._settle()
        outcome = f"{name}: {fault.failed}, {error!r}, {self.inside.ended!r}"
        if self.inside.ended is not None:
            assert isinstance(self.inside.ended, TailgateError | OSError), outcome
            self.inside.end()
            self._start()
        elif error is not None and name != "insert":
            assert names(self.inside.engine.catalog) == before, outcome
        if error is None and name in ("create view", "replace view"):
            assert "w" in names(Lake(self._path).catalog()), outcome
        if error is None and name == "drop view":
            assert "w" not in names(Lake(self._path).catalog()), outcome
        self.check(outcome)
        return outcome

    def _settle(self) -> None:
        """Returns when the engine has ended, or has committed all writes."""
        inside, deadline = self.inside, time.monotonic() + SETTLED_S
        while inside.alive and (inside.engine._fatal is not None or inside.engine.newest.inbox < inside.engine.inbox.newest):
            assert time.monotonic() < deadline, "the engine neither continues nor ends"
            time.sleep(0.02)

    def check(self, outcome: str) -> None:
        self.insert()
        self._settle()
        engine = self.inside.engine
        with engine.boundary:
            reader = Lake(self._path)
            assert reader.log.newest() is not None, outcome
            assert reader.log.newest().n == engine.newest.n, outcome  # type: ignore[union-attr]
            assert reader.catalog() == engine.catalog == engine.writer.catalog, outcome
        rows = self.inside.rows("t")
        assert set(rows.values()) == {1}, outcome
        assert self.table <= set(rows) <= self.table | self.unknown, outcome
        self.table, self.unknown = set(rows), set()  # type: ignore[arg-type]
        if "w" in names(reader.catalog()):
            counts = Counter(v for _, v in self.table)
            assert {(v, n) for v, n, _ in self.inside.rows("w")} == set(counts.items()), outcome


def names(catalog: Any) -> set[str]:
    return {i.name for i in catalog.visible if i.ready}


@pytest.fixture
def world(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    short_history(monkeypatch)
    for module in (inputs, tick_runner):
        monkeypatch.setattr(module, "RETRY_S", 0.1)
    monkeypatch.setattr(tick_runner, "PAUSE_S", 0.1)
    world = World(session, tmp_path / "lake")
    yield world
    world.close()


def test_any_file_operation_may_fail(world: World, seed: int) -> None:
    """Each step once, and some at random."""
    chance = random.Random(seed)
    steps = [*STEPS, *(chance.choice(STEPS) for _ in range(CASES - len(STEPS)))]
    for step in steps:
        print(world.fail(step, Fault(chance.randrange(8), chance.random() < 0.5, chance.choice([errno.ENOSPC, errno.EIO]))))


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS)
def test_every_file_operation_may_fail(world: World, step: str) -> None:
    count = 0
    for after, code in itertools.product((False, True), (errno.ENOSPC, errno.EIO)):
        for number in range(OPERATIONS_MAX):
            fault = Fault(number, after, code)
            print(number, "after" if after else "before", world.fail(step, fault), flush=True)
            if fault.failed is None:
                break
            count += 1
        else:
            raise AssertionError(f"{step} has more than {OPERATIONS_MAX} operations")
    print(f"{count} failures, {world.lives} lives of the engine")
