"""Statistics of operators with several partitions: each counts its part of the state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tailgate.engine.plan.views import nodes
from tailgate.lake.types import INT4
from tailgate.lake.types import Field as Column
from testing.random_queries import Table
from testing.views import Views
from testing.worlds import World

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cores() -> int:
    return 2


@pytest.mark.parametrize("partitions", [1, 3])
def test_figures_are_sums_over_partitions(session: Any, tmp_path: Path, partitions: int) -> None:
    table = Table(16384, "t", (Column("id", INT4), Column("k", INT4)))
    world = World(0, tables=0)
    world.tables = (table,)
    views = Views(session, tmp_path, world, partitions)
    assert views.add("v", "SELECT b.k, sum(b.id) AS n FROM t a JOIN t b ON a.id = b.k GROUP BY b.k")
    views.build()
    join, reduce = sorted(nodes.nodes_by_digest(views.catalog.relation("v")).values())
    views.tick([(table, (i, i % 4), 1) for i in range(1, 41)])
    figures = views.circuits.figures(str(tmp_path), [], partitions)
    assert figures.ticks == 1
    assert (figures.nodes[join].state_rows, figures.nodes[reduce].state_rows) == (80, 3)
    assert (figures.nodes[join].rows_in, figures.nodes[join].rows_out, figures.nodes[reduce].rows_in) == (80, 30, 30)
    assert figures.nodes[join].nanoseconds > 0
    views.tick([(table, (i, i % 4), -1) for i in range(1, 40)])
    figures = views.circuits.figures(str(tmp_path), [], partitions)
    assert (figures.ticks, figures.nodes[join].state_rows, figures.nodes[reduce].state_rows) == (2, 2, 0)
    views.build()  # a new circuit over the same state reports its size without further input
    views.tick([(table, (50, 60), 1)])
    assert views.circuits.figures(str(tmp_path), [], partitions).nodes[reduce].state_rows == 0
    assert views.circuits.figures(str(tmp_path), [], partitions).nodes[join].state_rows == 4
