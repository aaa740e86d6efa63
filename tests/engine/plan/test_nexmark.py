"""Nexmark's queries over its three streams, compared with DuckDB after every tick.

Some ticks delete rows.
"""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tailgate.lake import sortable
from tailgate.lake.types import arrow_schema
from testing.nexmark import FUNCTION, TABLES, Row, duckdb_query, events, names, query
from testing.random_queries import Table
from testing.views import Views
from testing.worlds import World

pytestmark = [pytest.mark.spark, pytest.mark.long]

TICKS, EVENTS = 6, 400  # and the number of events per tick
NOT_YET: set[str] = set()  # refused queries; this set may only shrink


def test_views_are_their_queries(session: Any, tmp_path: Path, seed: int) -> None:
    check_maintained(Views(session, tmp_path, streams(), 1), seed)


def streams() -> World:
    """Returns a world with the tables of the three streams."""
    world = World(0, tables=0)
    world.tables = tuple(Table(16384 + 4 * i, name, columns) for i, (name, columns) in enumerate(TABLES.items()))
    return world


def check_maintained(views: Views, seed: int) -> None:
    """Compares a view of each query with DuckDB after every tick. `views`: over `streams()`."""
    chance, tables = random.Random(seed), {table.name: table for table in views.world.tables}
    views.function(FUNCTION)
    refused = {name for name in names() if not views.add(name, query(name))}
    assert refused == NOT_YET
    views.build()
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    stream = events(seed)
    for _ in range(TICKS):
        changes = []
        for name, row in islice(stream, EVENTS):
            rows[name].append(row)
            changes.append((tables[name], row, 1))
        for name in ("bid", "auction"):
            indexes = chance.sample(range(len(rows[name])), min(10, len(rows[name]) // 4))
            for i in sorted(indexes, reverse=True):
                changes.append((tables[name], rows[name].pop(i), -1))
        views.tick(changes)
        with duckdb.connect() as engine:
            for name, columns in TABLES.items():
                records = [dict(zip((c.name for c in columns), row, strict=True)) for row in rows[name]]
                engine.register(name, pa.Table.from_pylist(records, schema=arrow_schema(columns)))
            for name in sorted(set(names()) - refused):
                item = views.catalog.relation(name)
                assert not views.rows[item.errors], (name, views.rows[item.errors])
                expected = Counter(tuple(map(plain, row)) for row in engine.execute(duckdb_query(name)).fetchall())
                actual = Counter({tuple(map(plain, row)): n for row, n in views.rows[item.id].items()})
                assert actual == expected, (name, expected - actual, actual - expected)


def plain(value: Any) -> Any:
    value = sortable.loaded(*value) if isinstance(value, tuple) else value
    return round(float(value), 6) if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else value
