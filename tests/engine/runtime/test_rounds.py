"""The rounds of an engine that stops: its last one waits for the one that is running."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from tailgate.engine.runtime.maintenance.follow import Follow
from tailgate.lake.folder import Lake
from tailgate.lake.host import crash
from tailgate.lake.readers.reading import read_table
from tailgate.lake.tables import delta
from tailgate.lake.tables.stored_relations import relations, table_name
from tailgate.lake.types import INT8, Field
from tailgate.lake.writer.log_writer import open_epoch
from tests.lake.relations import History, add, changes, counted, item

BAG = item(16384, (Field("a", INT8),), None)


def test_the_last_round_waits_for_the_running_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise both apply the same changes: a row is counted twice, and a view with a key would be stopped."""
    lake = Lake.create(tmp_path / "lake")
    writer = open_epoch(lake)
    add(writer, BAG)
    newest = History().append(writer, {BAG.id: changes(BAG, [([7], 1)])})
    engine = SimpleNamespace(
        lake=lake, writer=writer, stopping=False, changed=newest.n, newest=newest, wait_newer=lambda *_: newest, end=pytest.fail
    )
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
