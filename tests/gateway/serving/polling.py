"""A gateway over a lake that a test writes tick by tick, and a client that polls it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.gateway.answers import polls
from tailgate.gateway.serving import queries as serving_queries
from tailgate.gateway.serving.queries import Queries
from tailgate.lake.types import FLOAT8, INT8, TEXT, Type
from tests.gateway.serving.model_lake import ModelLake, Row
from tests.tables.world import Served

COLUMNS = {"id": INT8, "name": TEXT, "amount": FLOAT8, "price": Type("numeric", (12, 2))}


class World:
    """A gateway over a lake, and a client that polls. `runs`: how often the gateway has run a poll in DuckDB."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(serving_queries, "NOW_S_MAX", 60.0)
        self.model = ModelLake(path)
        self.served = Served(self.model.lake)
        self.client = psycopg.connect(self.served.dsn, autocommit=True, prepare_threshold=None)
        self.runs = 0
        run = Queries.read_at_entry

        async def counted(queries: Queries, *arguments: Any) -> Any:
            self.runs += 1
            return await run(queries, *arguments)

        monkeypatch.setattr(Queries, "read_at_entry", counted)
        monkeypatch.setattr(polls, "REFRESH_BUDGET_S", 60.0)

    def tick(self, changes: dict[int, Sequence[tuple[Row, int]]]) -> None:
        self.served.reach(self.model.tick(changes))

    def rows(self, query: str, *, binary: bool = False) -> list[Any]:
        return sorted(self.client.execute(query, binary=binary).fetchall(), key=repr)

    def raw(self, query: str, binary: bool, values: Sequence[object] = (), *, is_block: bool = False) -> list[tuple[bytes | None, ...]]:
        """Returns the rows as they were sent. `is_block`: those that a block reads, which are not cached."""
        with self.client.transaction() if is_block else nullcontext():
            result = self.client.execute(query, values, binary=binary).pgresult
        assert result is not None
        return [tuple(result.get_value(i, c) for c in range(result.nfields)) for i in range(result.ntuples)]

    def cached(self) -> list[polls.Poll]:
        cache: polls.Polls = self.served.serving.progress._callbacks[-1].__self__  # type: ignore[attr-defined]
        return list(cache._polls.values())

    def close(self) -> None:
        self.client.close()
        self.served.close()
        self.model.writer.close()


def row_of(chance: random.Random, id: int | None) -> Row:
    price = chance.choice([None, Decimal(chance.randrange(1000)) / 100])
    return id, chance.choice([None, "a", "ä", ""]), chance.choice([None, -0.0, 0.1, 1e300, float("inf")]), price
