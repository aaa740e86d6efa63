"""A property test of the lake: a relation at a time is the sum of its changes.

This holds for all appends, and wherever rounds and sweeps run or end.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tailgate.lake.catalog import Change, Item
from tailgate.lake.folder import Lake
from tailgate.lake.host import crash
from tailgate.lake.log import segments
from tailgate.lake.readers import reading
from tailgate.lake.tables import checkpoints, large, merging
from tailgate.lake.tables.weights import net
from tailgate.lake.types import Field
from tailgate.lake.writer import maintenance, retention
from tailgate.lake.writer.log_writer import Writer, open_epoch
from tailgate.lake.writer.rounds import Follower
from tests.lake.relations import ALL_TYPES, History, add, changes, counted, item, sweep, text, values

KEYED, BAG = 16384, 16386


class Crash(BaseException):
    """The end of the process at a crash point."""


@st.composite
def shapes(draw: st.DrawFn, id: int, keyed: bool) -> Item:
    types = draw(st.lists(st.sampled_from(ALL_TYPES), min_size=1, max_size=4))
    columns = [Field(f"c {i}'\"".replace(" ", "_") if i == 1 else f"c{i}", t) for i, t in enumerate(types)]
    key = tuple(draw(st.sets(st.integers(0, len(types) - 1), max_size=2))) if keyed else None
    return item(id, columns, key)


class Rows:
    """The rows of one relation while its random history is generated.

    They come from a small pool, so that keys collide.
    """

    def __init__(self, item: Item) -> None:
        self.item = item
        self.rows: dict[str, tuple[list[Any], int]] = {}

    def _name(self, row: list[Any]) -> str:
        return text(row if self.item.key is None else [row[i] for i in self.item.key])

    def change(self, data: st.DataObject, pool: list[list[Any]]) -> list[tuple[list[Any], int]]:
        """Returns random changes that are valid now.

        They are inserts, updates of a key, and more or fewer copies of a row.
        """
        pairs: list[tuple[list[Any], int]] = []
        for row in data.draw(st.lists(st.sampled_from(pool), max_size=4)):
            name = self._name(row)
            present, count = self.rows.get(name, (row, 0))
            if self.item.key is None:
                change = data.draw(st.integers(-count, 2))
                pairs.append((row, change))
                self.rows[name] = (row, count + change)
                continue
            if count:
                pairs.append((present, -1))
            if not count or data.draw(st.booleans()):
                pairs.append((row, 1))
                self.rows[name] = (row, 1)
            else:
                del self.rows[name]
        return pairs

    def table(self) -> pa.Table:
        return changes(self.item, [(row, count) for row, count in self.rows.values() if count])


STEPS = ("tick", "tick", "tick", "tick", "round", "round", "broken round", "sweep", "restart", "replaced", "refill")


class Run:
    """A lake under test, with its writer and follower."""

    def __init__(self, folder: str, items: tuple[Item, ...]) -> None:
        self.lake = Lake.create(folder)
        self.items = items
        self.history = History()
        self.writer: Writer = open_epoch(self.lake)
        self.follower = Follower(self.lake, self.writer.epoch)
        self.history.entries.append((add(self.writer, *items), {}))

    def restart(self, take_over: bool) -> None:
        if not take_over:
            self.writer.close()
        before = self.writer
        self.lake = Lake(self.lake.path)
        self.writer = open_epoch(self.lake, take_over=take_over)
        self.follower = Follower(self.lake, self.writer.epoch)
        before.close()

    def broken_round(self, patch: pytest.MonkeyPatch, steps: int) -> None:
        left = [steps]

        def point(name: str) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Crash

        with patch.context() as inner:
            inner.setattr(crash, "point", point)
            try:
                self.follower.round()
            except Crash:
                self.restart(take_over=False)

    def refill(self, rows: Rows, all_rows: list[Rows]) -> None:
        """Backfills a relation again: its rows are discarded and then appended again.

        Times before the backfill are no longer compared.
        """
        table = rows.table()
        half = table.num_rows // 2  # the first half is in the catalog entry, the rest in the next entry
        change = Change(put=(replace(rows.item, ready=False),))
        self.writer.append([(rows.item.id, table.slice(0, half))] if half else [], kind="catalog", catalog=change)
        self.writer.append([(rows.item.id, table.slice(half))])
        header = add(self.writer, rows.item)
        self.history.entries = [(header, {r.item.id: r.table() for r in all_rows})]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), phases=(Phase.reuse, Phase.generate))
@given(st.data(), shapes(KEYED, True), shapes(BAG, False))
def test_a_relation_at_a_time_is_the_sum_of_its_changes(data: st.DataObject, keyed: Item, bag: Item) -> None:
    pools = [data.draw(st.lists(st.tuples(*(values(c.type) for c in i.columns)).map(list), min_size=1, max_size=5)) for i in (keyed, bag)]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (segments, "ENTRIES", 3),
            (retention, "ENTRIES", 3),
            (retention, "AGE_MIN_MS", -1_000),
            (reading, "RETAIN_HISTORY_MS", data.draw(st.sampled_from([0, 20, 3_600_000]))),
            (checkpoints, "RECENT_MS", data.draw(st.sampled_from([0, 60_000]))),
            (checkpoints, "SPACING_MS", 10),
            (maintenance, "COMMITS_MAX", 2),
            (maintenance, "COMMITS_DUE", data.draw(st.sampled_from([1, 16]))),
            (maintenance, "SMALL_FILES", 2),
            (maintenance, "GRACE_S", -1.0),
            (merging, "FEW_ROWS", data.draw(st.sampled_from([0, 2, 20_000]))),
            (large, "ROWS_MIN", data.draw(st.sampled_from([0, 3, 500_000]))),
            (large, "SMALL_FILES", 2),
        ):
            patch.setattr(module, name, value)
        run = Run(folder + "/lake", (keyed, bag))
        relations = [Rows(keyed), Rows(bag)]
        for step in data.draw(st.lists(st.sampled_from(STEPS), min_size=3, max_size=14)):
            if step == "tick":
                tables = {r.item.id: changes(r.item, r.change(data, pool)) for r, pool in zip(relations, pools, strict=True)}
                run.history.append(run.writer, {id: net(t) for id, t in tables.items()})
            elif step == "round":
                run.follower.round()
            elif step == "broken round":
                run.broken_round(patch, data.draw(st.integers(1, 4)))
            elif step == "sweep":
                sweep(run.writer)
            elif step == "refill":
                run.refill(data.draw(st.sampled_from(relations)), relations)
            elif step in ("restart", "replaced"):
                run.restart(take_over=step == "replaced")
        run.history.check(run.lake, keyed, bag)
        run.follower.round()
        run.history.check(Lake(run.lake.path), keyed, bag)
        for rows in relations:
            assert run.history.at(rows.item.id, run.writer.newest.time) == counted(rows.table())
        run.writer.close()
