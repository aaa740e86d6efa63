"""The rounds of an engine: their pauses, their limits, the sizes, and the last one, which waits for the one that is running."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from tailgate.engine.runtime.main import HeldHistory, Options
from tailgate.engine.runtime.maintenance import follow as rounds
from tailgate.engine.runtime.maintenance.follow import Follow
from tailgate.engine.runtime.ticks.tick_figures import TickFigures
from tailgate.lake.folder import Lake
from tailgate.lake.host import crash
from tailgate.lake.readers import holds, reading
from tailgate.lake.readers.reading import read_table
from tailgate.lake.tables import delta, large, merging, table_sizes
from tailgate.lake.tables.stored_relations import relations, table_name
from tailgate.lake.types import INT8, Field
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.lake.writer.rounds import Follower
from tests.lake.relations import History, add, changes, counted, item

BAG = item(16384, (Field("a", INT8),), None)
KEYED = item(16385, (Field("id", INT8), Field("a", INT8)), (0,))


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


def test_the_sizes_of_relations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later engine measures them: without a key from the counts of the rows, with a key without the deleted rows."""
    monkeypatch.setattr(merging, "FEW_ROWS", 0)
    monkeypatch.setattr(large, "ROWS_MIN", 3)
    lake = Lake.create(tmp_path / "lake")
    writer, history = open_epoch(lake), History()
    add(writer, BAG, KEYED)
    follower = Follower(lake, writer.epoch)
    sizes = []
    for bag, keyed in (
        ([], []),
        ([([7], 1), ([8], 1)], [([1, 1], 1), ([2, 1], 1), ([3, 1], 1)]),
        ([([7], 2), ([9], 1)], [([1, 1], -1), ([1, 2], 1), ([2, 1], -1)]),
        ([([8], -1)], []),
    ):
        history.append(writer, {BAG.id: changes(BAG, bag), KEYED.id: changes(KEYED, keyed)})
        follower.round()
        sizes.append((follower.sizes[BAG.id].rows, follower.sizes[KEYED.id].rows))
    assert sizes == [(0, 0), (2, 3), (5, 2), (4, 2)]
    assert delta.has_vectors(delta.table(lake.store, table_name(KEYED.id)))
    for id, size in follower.sizes.items():
        assert size.bytes == sum(file.bytes for file in delta.data_files(delta.table(lake.store, table_name(id))).values()) > 0
    writer.close()
    for limit, rows in ((table_sizes.READ_BYTES_MAX, 4), (0, None)):  # the counts of the file differ, so it is read
        monkeypatch.setattr(table_sizes, "READ_BYTES_MAX", limit)
        writer = open_epoch(lake)
        later = Follower(lake, writer.epoch)
        later.round()
        assert later.sizes == {**follower.sizes, BAG.id: follower.sizes[BAG.id]._replace(rows=rows)}
        writer.close()


@pytest.mark.parametrize(
    ("took_s", "ticking", "pause_s"),
    [(0.1, 1.0, 1.0), (0.4, 1.0, 1.6), (3.0, 0.5, 2.0), (3.0, 1.0, 12.0), (30.0, 1.0, 15.0)],
)
def test_rounds_give_way_to_ticks_that_run_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, took_s: float, ticking: float, pause_s: float
) -> None:
    """`ticking`: the part of the time in which ticks run."""

    class Figures:
        @property
        def busy_s(self) -> float:
            return clock_s * ticking

    clock_s = 0.0

    def sleep(seconds: float) -> None:
        nonlocal clock_s
        clock_s += seconds

    lake = Lake.create(tmp_path / "lake")
    engine = SimpleNamespace(lake=lake, writer=SimpleNamespace(epoch=1), stopping=False, runner=SimpleNamespace(figures=Figures()))
    follow = Follow(engine, SimpleNamespace())  # type: ignore[arg-type]
    monkeypatch.setattr(rounds, "time", SimpleNamespace(monotonic=lambda: clock_s, sleep=sleep))
    follow._pause(took_s)
    assert clock_s == pytest.approx(pause_s)
