"""Temporal filters: bounds solved for the clock, and rows that appear and expire with time."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tailgate.engine.plan.rewrites.temporal import bounds, reads_clock
from tailgate.engine.plan.views.streams import Streams
from tailgate.lake.catalog import Catalog, Change, MaterializedView, Source
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.types import INT4, INT8, TIMESTAMP, TIMESTAMPTZ, Field
from tailgate.sql.bind import bind_query
from tailgate.sql.plan import Filter, Project, Relation, Scan
from tailgate.sql.plan.rewriting import conjuncts
from tailgate.sql.plan.traversal import walk
from tailgate.sql.render import duckdb as spelled
from tailgate.sql.render.duckdb_functions import install
from testing.random_queries import Table
from testing.views import Views
from testing.worlds import World

EVENTS = (Field("k", INT4), Field("ts", TIMESTAMPTZ), Field("local", TIMESTAMP), Field("ms", INT8))
CATALOG = Catalog().apply(Change(put=(Source(1, "e", EVENTS, (0,), stored=True),)))
START = datetime(2026, 1, 31, tzinfo=timezone.utc)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

CONDITIONS = (
    "now() < ts",
    "now() <= ts + interval '1 second'",
    "ts > now() - interval '1 second'",
    "ts - interval '500 milliseconds' <= current_timestamp",
    "now() - ts < interval '1 second'",
    "ts - now() >= interval '-700 milliseconds'",
    "now() BETWEEN ts AND ts + interval '1 second'",
    "localtimestamp > local",
    "now() > local",
    "mz_now() >= ms",
    "mz_now() < ms + 1000",
    "mz_now() - 300 <= ms",
    "5000 - mz_now() < 5500 - ms",
    "mz_logical_timestamp() < extract(epoch FROM ts) * 1000",
    "mz_now() < ts",
    "extract(epoch FROM now()) >= extract(epoch FROM ts)",
    "mz_now() = ms",
)
REFUSED = (
    "now() < ts OR k = 1",
    "now()::date = ts::date",
    "NOT now() < ts",
    "now() < now()",
    "ts > now() - interval '1 month'",
    "mz_now() * 2 < ms",
    "now() - ts < make_interval(secs => 1)",
)


def condition_of(text: str) -> Any:
    plan = bind_query(f"SELECT k FROM e WHERE {text}", CATALOG, view=True).plan
    return next(node.condition for node in walk(plan) if isinstance(node, Filter))


@pytest.mark.parametrize("text", CONDITIONS)
def test_bounds_hold_when_the_condition_does(text: str, seed: int) -> None:
    numbers = random.Random(seed)
    condition = condition_of(text)
    solved = [b for c in conjuncts(condition) for b in bounds(c)]
    with duckdb.connect() as engine:
        install(engine)
        engine.execute("CREATE TABLE r1 (c0 INTEGER, c1 TIMESTAMPTZ, c2 TIMESTAMP, c3 BIGINT)")
        for k in range(40):
            ts = START + timedelta(microseconds=numbers.randrange(-3_000_000, 3_000_000))
            ms = (START - EPOCH) // timedelta(milliseconds=1) + numbers.randrange(-2000, 2000)
            row = [k, ts, ts.replace(tzinfo=None), ms] if k % 8 else [k, None, None, None]
            engine.execute("INSERT INTO r1 VALUES (?, ?, ?, ?)", row)
        rows: Relation = Scan(1, EVENTS, (0,))
        projection = Project(rows, (condition, *(b.time for b in solved)), tuple(Field("", INT8) for _ in range(len(solved) + 1)))
        for _ in range(40):
            now = START + timedelta(milliseconds=numbers.randrange(-2000, 2000))
            shown = f"TIMESTAMPTZ '{now.isoformat()}'"
            millis = (now - EPOCH) // timedelta(milliseconds=1)
            for holds, *times in engine.execute(spelled.render(projection, now=shown)).fetchall():
                pairs = zip(solved, times, strict=True)
                within = all(t is not None and (t <= millis if b.kind == "from" else millis < t) for b, t in pairs)
                assert within == bool(holds), (text, now, times)


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    try:
        condition = condition_of(text)
    except FeatureNotSupported:
        return  # the binder refuses it
    assert any(map(reads_clock, conjuncts(condition)))
    with pytest.raises(FeatureNotSupported) as refused:
        [bounds(part) for part in conjuncts(condition)]
    assert refused.value.hint


def test_the_clock_outside_where() -> None:
    for query in ("SELECT now() FROM e", "SELECT max(now()) FROM e", "SELECT k FROM e GROUP BY k, now()"):
        bound = bind_query(query, CATALOG, view=True)
        item = MaterializedView(10, "v", bound.columns, None, True, 11, bound.depends, query=query)
        catalog = CATALOG.apply(Change(put=(item,)))
        with pytest.raises(FeatureNotSupported, match="outside WHERE"):
            Streams(catalog)(item)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("partitions", [1, 3])
def test_rows_appear_and_disappear(session: Any, tmp_path: Path, partitions: int, seed: int) -> None:
    numbers = random.Random(seed)
    table = Table(16384, "e", (Field("k", INT4), Field("ms", INT8)), None)
    world = World(seed, tables=0)
    world.tables = (table,)
    views = Views(session, tmp_path, world, partitions)
    queries = {
        "now": ("SELECT k FROM e WHERE mz_now() >= ms AND mz_now() < ms + 30", lambda k, ms, t: ms <= t < ms + 30),
        "later": ("SELECT k FROM e WHERE mz_now() < ms", lambda k, ms, t: t < ms),
    }
    for name, (query, _) in queries.items():
        assert views.add(name, query)
    assert views.add("n", "SELECT count(*) AS n FROM e a JOIN e b ON a.k = b.k AND mz_now() > b.ms")
    views.build()
    rows: Counter[tuple[int, int]] = Counter()
    for tick in range(12):
        views.time = tick * 20
        changes = []
        for _ in range(6):
            row = (numbers.randrange(4), numbers.randrange(0, 250))
            rows[row] += 1
            changes.append((table, row, 1))
        for row in numbers.sample(sorted(rows.elements()), 2):
            rows[row] -= 1
            changes.append((table, row, -1))
        views.tick(changes)
        for name, (_, holds) in queries.items():
            expected: Counter[tuple[int]] = Counter()
            for (k, ms), n in rows.items():
                if n and holds(k, ms, views.time):
                    expected[(k,)] += n
            assert views.rows[views.catalog.relation(name).id] == expected, (name, views.time)
        pairs = sum(n * m for (k, _), n in rows.items() for (j, ms), m in rows.items() if k == j and views.time > ms)
        assert views.rows[views.catalog.relation("n").id] == Counter({(pairs,): 1})
