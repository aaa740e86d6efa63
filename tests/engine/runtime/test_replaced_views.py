"""CREATE OR REPLACE of a view that other views read, over a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tailgate.embedded.kafka import Kafka
from testing.engine_process import until
from tests.engine.runtime.test_ksqldb_queries import World

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture
def world(tmp_path: Path, kafka: Kafka) -> Iterator[World]:
    world = World(tmp_path, kafka)
    yield world
    world.engine.stop()


def test_views_above_a_view_without_operators_get_its_history(world: World) -> None:
    """Regression: the view above was empty afterwards."""
    world.stream("replaced")
    for n in range(3):
        world.send("replaced", "a", n)
    world.engine.execute("CREATE MATERIALIZED VIEW low AS SELECT k, n FROM replaced")
    world.engine.execute("CREATE MATERIALIZED VIEW up AS SELECT k, count(*) AS n FROM low GROUP BY k")
    until(lambda: world.rows("up") == [("a", 3)])
    world.engine.execute("CREATE OR REPLACE MATERIALIZED VIEW low AS SELECT k, n FROM replaced WHERE n > 0")
    assert world.rows("low") == [("a", 1), ("a", 2)]
    assert world.rows("up") == [("a", 2)]
