"""A defect in the operator that stores a source's rows stalls only this source.

No data is lost.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tailgate.embedded.kafka import Kafka
from testing.engine_process import until
from tests.engine.runtime.mutating import mutated
from tests.engine.runtime.test_topics import World

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

OLD = "    RowMap<List<Change>> events = new RowMap<>();"
NEW = f"""    for (Change c : input.get(0))
      if (new String(c.row().getBytes(), java.nio.charset.StandardCharsets.ISO_8859_1).contains("poison"))
        throw new IllegalStateException("a defect");
{OLD}"""


def test_a_defect_of_a_source_stalls_it(kafka: Kafka, tmp_path: Path) -> None:
    world = World(tmp_path, kafka)
    for name in ("names", "others"):
        kafka.create_topic(f"isolated-{name}")
        world.source(name, f"isolated-{name}", "KEY FORMAT TEXT VALUE FORMAT TEXT ENVELOPE UPSERT")
    world.engine.execute("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM names")
    world.send("isolated-names", "Ann", key="1")
    until(lambda: world.rows("counted") == [(1,)])
    with mutated(world.engine, tmp_path, "Upsert", OLD, NEW):
        world.send("isolated-names", "poison", key="2")
        until(lambda: world.status("names")["status"] == "failed")
        assert "a defect" in world.status("names")["error"]
        world.send("isolated-names", "Bea", key="3")
        world.send("isolated-others", "Cid", key="1")
        until(lambda: world.rows("others") == [("1", "Cid")])
        assert world.rows("names") == [("1", "Ann")]
        assert world.engine.get("/status")["views"]["counted"]["status"] == "running"
    world.engine.execute("RESUME SOURCE names")
    until(lambda: world.rows("names") == [("1", "Ann"), ("2", "poison"), ("3", "Bea")])
    until(lambda: world.rows("counted") == [(3,)])
    world.engine.stop()
