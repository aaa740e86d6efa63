"""The rounds of an engine: their pauses, their limits, and the last one, which waits for the one that is running."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from tailgate.engine.runtime.main import HeldHistory, Options
from tailgate.engine.runtime.maintenance import pauses
from tailgate.engine.runtime.maintenance.follow import Follow
from tailgate.engine.runtime.ticks.tick_figures import TickFigures
from tailgate.lake.folder import Lake
from tailgate.lake.host import crash
from tailgate.lake.readers import holds, reading
from tailgate.lake.readers.reading import read_table
from tailgate.lake.tables import delta, large
from tailgate.lake.tables.stored_relations import relations, table_name
from tailgate.lake.types import INT8, Field
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.lake.writer.rounds import Follower
from tests.lake.relations import History, add, changes, counted, item

BAG = item(16384, (Field("a", INT8),), None)


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((large, "INDEX_BYTES"), (reading, "RETAIN_HISTORY_MS")):
        monkeypatch.setattr(module, name, 0)
    lake = Lake.create(tmp_path / "lake")
    Options("", held=HeldHistory(60, 1024), index_mb=3).apply_limits(lake)
    assert (large.INDEX_BYTES, reading.RETAIN_HISTORY_MS, holds.bytes_max(lake)) == (3 << 20, 60_000, 1 << 30)


def test_the_last_round_waits_for_the_running_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise both apply the same changes: a row is counted twice, and a view with a key would be stopped."""
    lake = Lake.create(tmp_path / "lake")
    writer = open_epoch(lake)
    add(writer, BAG)
    newest = History().append(writer, {BAG.id: changes(BAG, [([7], 1)])})
    engine = SimpleNamespace(
        lake=lake, writer=writer, stopping=False, changed=newest.n, newest=newest, wait_newer=lambda *_: newest, end=pytest.fail
    )
    engine.runner = SimpleNamespace(figures=TickFigures())
    follow = Follow(engine, SimpleNamespace(relation=pytest.fail))  # type: ignore[arg-type]
    entered, continues = threading.Event(), threading.Event()

    def stop_first_round(point: str) -> None:
        if point == "round.table" and not entered.is_set():  # the table has the changes, and the round has not noted it
            entered.set()
            assert continues.wait(30)

    monkeypatch.setattr(crash, "point", stop_first_round)
    follow.start()
    assert entered.wait(30)
    engine.stopping = True
    last = threading.Thread(target=follow.last_round)
    last.start()
    last.join(0.5)
    continues.set()
    last.join(30)
    follow.join(30)
    stored = relations(lake.catalog())[BAG.id]
    assert counted(read_table(lake, stored, delta.table(lake.store, table_name(BAG.id)).version())) == {"[7]": 1}
    writer.close()


class Clock:
    """A clock that only `sleep` and `run` advance, and the figures of ticks that run for a part of the time."""

    def __init__(self, ticking: float) -> None:
        self._ticking = ticking
        self._now_s = 0.0

    @property
    def busy_s(self) -> float:
        return self._now_s * self._ticking

    def monotonic(self) -> float:
        return self._now_s

    def sleep(self, seconds: float) -> None:
        self._now_s += seconds

    def pauses(self, monkeypatch: pytest.MonkeyPatch, *, stopping: bool = False) -> pauses.Pauses:
        """Returns pauses by this clock, in a round that has begun after one second."""
        monkeypatch.setattr(pauses, "time", self)
        result = pauses.Pauses(self, lambda: stopping)  # type: ignore[arg-type]
        self.sleep(1.0)
        result.begin()
        return result


@pytest.mark.parametrize(
    ("took_s", "ticking", "pause_s"),
    [(0.1, 1.0, 1.0), (0.4, 1.0, 1.6), (2.0, 0.5, 2.0), (2.0, 1.0, 8.0), (30.0, 1.0, 12.0)],
)
@pytest.mark.parametrize("tables", [1, 20, 200])
def test_rounds_give_way_to_ticks_that_run_all_the_time(
    monkeypatch: pytest.MonkeyPatch, took_s: float, ticking: float, pause_s: float, tables: int
) -> None:
    """`ticking`: the part of the time in which ticks run. A round works as long as its tables, which two threads bring up to date."""
    clock = Clock(ticking)
    under_test = clock.pauses(monkeypatch)
    between_s = 0.0
    for _ in range(tables if tables > 1 else 0):
        before = clock.monotonic()
        under_test.after_table(2 * took_s / tables)
        between_s += (clock.monotonic() - before) / 2
    clock = Clock(ticking)  # of the thread of rounds: both threads of tables have paused at once
    monkeypatch.setattr(pauses, "time", clock)
    monkeypatch.setattr(under_test, "_figures", clock)
    clock.sleep(1.0 + took_s + between_s)
    under_test.after_round()
    assert clock.monotonic() - 1.0 - took_s == pytest.approx(pause_s, abs=0.01)
    assert between_s < (3.01 if ticking == 1.0 else 0.51)
    assert between_s == 0 if tables == 1 else between_s >= min(0.4, 4 * took_s)


def test_an_engine_that_stops_does_not_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(1.0)
    clock.pauses(monkeypatch, stopping=True).after_table(10.0)
    assert clock.monotonic() == 1.0


def test_a_round_pauses_after_each_of_several_tables(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    writer = open_epoch(lake)
    other = item(16388, BAG.columns, None)
    add(writer, BAG, other)
    took: list[float] = []
    follower = Follower(lake, writer.epoch, took.append)
    for relations_changed in ([BAG], [BAG, other]):
        writer.append([(relation.id, changes(relation, [([7], 1)])) for relation in relations_changed])
        follower.round()
    assert len(took) == 2
    assert min(took) > 0
    writer.close()
