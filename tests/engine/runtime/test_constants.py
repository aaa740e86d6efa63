"""Views of constants, without any source: each row appears once, also after kills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tailgate.lake.errors import TailgateError
from tailgate.lake.folder import Lake
from testing.engine_process import EngineProcess, rows, until

pytestmark = [pytest.mark.spark, pytest.mark.long]

VIEWS = {
    "listed": ("VALUES (1, 'a'), (1, 'a'), (2, NULL)", {(1, "a"): 2, (2, None): 1}),
    "one": ("SELECT 1 AS one, 'x'::text || 'y' AS y", {(1, "xy"): 1}),
    "counted": ("SELECT column2, count(*) AS n FROM listed GROUP BY column2", {("a", 2): 1, (None, 1): 1}),
    "paired": (
        "SELECT a.x, b.x AS y FROM (VALUES (1), (2), (4)) a(x) LEFT JOIN (VALUES (2), (3)) b(x) ON a.x < b.x",
        {(1, 2): 1, (1, 3): 1, (2, 3): 1, (4, None): 1},
    ),
    "merged": ("SELECT column1 FROM listed UNION ALL SELECT one FROM one UNION ALL VALUES (7)", {(1,): 3, (2,): 1, (7,): 1}),
    "left_over": ("SELECT column1 FROM listed EXCEPT ALL SELECT one FROM one", {(1,): 1, (2,): 1}),
}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineProcess]:
    process = EngineProcess(tmp_path / "lake")
    yield process
    process.stop()


def hold(lake: Lake, expected: dict[str, Any]) -> bool:
    return all(rows(lake, name) == Counter(of) for name, of in expected.items())


def test_rows_of_constants_appear_once(engine: EngineProcess) -> None:
    engine.start()
    lake = Lake(engine.data)
    notices = {name: engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")["notices"] for name, (query, _) in VIEWS.items()}
    assert [name for name, messages in notices.items() if messages] == ["paired"]
    assert "one partition" in notices["paired"][0]["message"]
    expected = {name: of for name, (_, of) in VIEWS.items()}
    assert hold(lake, expected)
    engine.kill(jvm=True)
    engine.start(crash="fill.piece:1")
    until(lambda: "ticks" in engine.get("/status"), 120)
    with pytest.raises((TailgateError, OSError)):
        engine.execute("CREATE MATERIALIZED VIEW late AS VALUES (5), (5)")
    engine.died()
    engine.start()
    until(lambda: hold(lake, {**expected, "late": {(5,): 2}}) and lake.catalog().relation("late").ready)
    engine.execute("CREATE MATERIALIZED VIEW again AS VALUES (5), (5)")
    assert hold(lake, {**expected, "late": {(5,): 2}, "again": {(5,): 2}})
