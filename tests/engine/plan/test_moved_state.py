"""State that is moved to another number of partitions between ticks: views are their queries, as without a move."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.types import INT4, Field
from testing.change_data import Source
from testing.random_queries import Table
from testing.views import Straight, Views
from testing.worlds import World
from tests.engine.ddl.debezium import BAG, TABLE, json_source, postgres, row
from tests.engine.plan.comparison import ID
from tests.engine.plan.law import Case, Given, Jobs, Law

pytestmark = pytest.mark.spark

FEW, MANY = 16, int(os.environ.get("TAILGATE_MOVED_CASES", "300"))
PARTITIONS = (1, 2, 3, 5)


class Moving(Jobs):
    """Views of which a restart moves their state to another number of partitions."""

    moves, total = 0, 0  # of these views, and of all

    def restart(self) -> None:
        if not self.ids:
            return
        self.moves += 1
        Moving.total += 1
        folder, partitions = self.folder.with_name(f"moved-{self.moves}"), self.world.random.choice(PARTITIONS)
        self.ids, _ = moved(self.session, self.circuit, (self.folder, self.ids, self.partitions), (folder, partitions))
        self.folder, self.partitions = folder, partitions


class MovedLaw(Law):
    """A runner of cases whose state is moved before each tick."""

    def run(self, views: Straight, case: Case) -> None:
        super().run(views, replace(case, steps=tuple(replace(step, restart=True) for step in case.steps)))

    def opened(self, world: Given, partitions: int) -> Moving:
        self.folder.mkdir(exist_ok=True)
        views = Moving(self.session, self.folder / "state", world, partitions)  # type: ignore[arg-type]
        views.refusals = self.refused
        return views


def moved(session: Any, circuit: Any, before: tuple[Path, str, int], after: tuple[Path, int]) -> tuple[str, dict[str, int]]:
    """Moves state, given its folder, ids and partitions. Returns the new ids, and the entries by operator."""
    (folder, ids, partitions), (new_folder, new_partitions) = before, after
    answer = json.loads(circuit.repartition(session._jsparkSession, str(folder), ids, partitions, str(new_folder), new_partitions, 1))
    return answer["state"], answer["entries"]


@pytest.mark.parametrize("cases", [pytest.param(FEW, id="few"), pytest.param(MANY, id="many", marks=pytest.mark.long)])
def test_every_view_is_its_query(session: Any, tmp_path: Path, seed: int, cases: int) -> None:
    law, total = MovedLaw(session, tmp_path / "law"), Moving.total
    number = 0
    while law.cases < cases:
        law.world(seed, number)
        number += 1
    assert law.exact > 2 * law.cases
    assert Moving.total - total > cases / 4


def test_more_aggregates_than_the_port_of_the_statistics(session: Any, tmp_path: Path) -> None:
    """The values of an aggregate have the port of its number, and the statistics of an operator have port 127."""
    table = Table(ID, "t", (Field("g", INT4), Field("n", INT4)))
    world = World(0, tables=0)
    world.tables = (table,)
    views = Views(session, tmp_path / "state", world, 1)
    assert views.add("v", f"SELECT {', '.join(f'max(n + {i})' for i in range(130))} FROM t GROUP BY g")
    views.tick([(table, (1, 5), 1), (table, (1, 7), 1)])
    views.ids, _ = moved(session, views.circuit, (views.folder, views.ids, 1), (tmp_path / "moved", 2))
    views.folder, views.partitions = tmp_path / "moved", 2
    views.tick([(table, (1, 7), -1)])
    assert views.rows[views.catalog.relation("v").id] == Counter([tuple(range(5, 135))])


class MovedSource:
    """A source whose state is moved before each tick."""

    def __init__(self, source: Source, folder: Path) -> None:
        self.source, self._folder, self.entries = source, folder, 0

    def send(self, *messages: Any) -> None:
        source = self.source
        for n, one in enumerate(messages):
            if source.ids:
                partitions = PARTITIONS[n % len(PARTITIONS)]
                folder = self._folder / f"{source.ticks}"
                before = Path(source.state), source.ids, source.partitions
                source.ids, entries = moved(source.session, source.circuit, before, (folder, partitions))
                source.state, source.partitions, self.entries = folder, partitions, sum(entries.values())
            source.send([one])


@pytest.mark.parametrize("columns", [TABLE, BAG])
def test_a_source_of_changes(session: Any, tmp_path: Path, columns: str) -> None:
    """Rows of a snapshot, changes of them, a repeated change, and a truncate."""
    source = MovedSource(json_source(session, tmp_path / "first", columns), tmp_path)
    source.send(
        postgres("r", 100, row(1, "a"), snapshot="first"),
        postgres("r", 100, row(2, "b")),
        postgres("r", 100, row(3, "c"), snapshot="last"),
        postgres("u", 110, row(2, "x"), row(2, "b")),
        postgres("c", 120, row(4, "d")),
        postgres("d", 130, None, row(1, "a")),
        postgres("c", 120, row(4, "d")),
    )
    assert source.source.counted("id", "name") == Counter([(2, "x"), (3, "c"), (4, "d")])
    source.send(postgres("t", 140), postgres("c", 150, row(5, "e")))
    assert source.source.counted("id", "name") == Counter([(5, "e")])
    assert source.entries
