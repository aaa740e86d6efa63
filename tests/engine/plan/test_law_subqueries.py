"""The law for subqueries: what is decorrelated is kept up to date, and equals the query at every time."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lake.types import Field, Type
from tests.engine.plan.test_law import Views
from tests.sql.random_subqueries import TABLES, Writer
from tests.worlds import Row, Table, Value, World

pytestmark = [pytest.mark.spark, pytest.mark.long]

WORLDS = int(os.environ.get("TAILGATE_WORLDS", "4"))
VIEWS, TICKS = 6, 5
SIZE_MAX = 1500  # characters of a query: what is larger tells no more


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from engine.runtime import session

    running = session.start(tmp_path_factory.mktemp("spark"), 1)
    yield running
    running.stop()


class Small(World):
    """The tables that random subqueries are of: few different values, NULLs, rows more than once."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.keyed = False
        self.tables = tuple(
            Table(16384 + 4 * i, name, tuple(Field(c, Type(t)) for c, t in columns)) for i, (name, columns) in enumerate(TABLES.items())
        )
        self.rows: dict[int, Counter[Row]] = {t.id: Counter() for t in self.tables}

    def random_value(self, type: Type) -> Value:
        if self.random.random() < 0.2:
            return None
        return self.random.choice(["x", "y", ""]) if type.name == "text" else self.random.randint(0, 3)

    def random_row(self, table: Table) -> Row:
        return tuple(self.random_value(c.type) for c in table.columns)

    def subquery(self) -> str:
        while True:
            text = Writer(self.random, depth=1).query()
            if len(text) <= SIZE_MAX and "SELECT" in text[6:]:
                return text


@pytest.mark.parametrize("number", range(WORLDS))
def test_every_view_is_its_query(session: Any, tmp_path: Path, seed: int, number: int) -> None:
    world = Small(seed * 1000 + number)
    views = Views(session, tmp_path, world, 1 + number % 3)
    tried = 0
    while len(views.queries) < VIEWS:
        tried += 1
        assert tried < 5 * VIEWS, "too much is refused"
        views.add(f"v{len(views.queries)}", world.subquery())
    exact = 0
    for _ in range(TICKS):
        views.tick(world.change(8))
        exact += views.check()
    assert exact > 0
