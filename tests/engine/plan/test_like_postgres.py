"""Values that are equal in many forms, and what is computed from all rows: a maintained view after every tick, an ad-hoc SELECT and
PostgreSQL 15 over the same rows, which come and go."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from lake.types import FLOAT8, INT4, WEIGHT, Field, Type
from sql.bind import bind_query
from sql.compute.jsonborder import jsonb_order
from sql.duckdb import render
from sql.duckdb_functions import install
from sql.input.literals import parse
from tests.engine.plan.views import Views
from tests.sql.oracle import normal, stored, unstored
from tests.sql.samples import SAMPLES
from tests.worlds import Table, World

pytestmark = pytest.mark.spark

TICKS, CHANGES = 4, 15
ID = 16384
COLUMNS = {
    "k": INT4,
    "i": Type("interval"),
    "c": Type("bpchar", (4,)),
    "a": Type("int4", is_array=True),
    "j": Type("jsonb"),
    "js": Type("jsonb", is_array=True),
    "x": FLOAT8,
}
JSON = [
    *[
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "1.0",
        "1.00",
        "-1",
        "-1.5",
        "-10",
        "10",
        "1e2",
        "100",
        "0.1",
        "0.10",
        "12345678901234567890.5",
    ],
    *[
        "12345678901234567890.5",
        '""',
        '"a"',
        '"ab"',
        '"b"',
        '"é"',
        '"😀"',
        "[]",
        "[[]]",
        "[1]",
        "[1.0]",
        "[2]",
        "[1, 2]",
        "[null]",
        "[[1]]",
        '["a"]',
        "{}",
        "[{}]",
    ],
    *['{"a": 1}', '{"a": 1.0}', '{"b": 1}', '{"aa": 1}', '{"a": 1, "b": 2}', '{"a": 1, "c": 0}', '{"a": [1.0]}', '{"a": [1]}'],
]
POOLS: dict[str, list[str | None]] = {
    "k": ["1", "2", "3"],
    "i": [*SAMPLES["interval"], "1 mon -1 day", "29 days 24:00:00", "-1 mon 31 days", "00:00:00.000001"],
    "c": [None, "", "a", "a ", "ab", "ab  ", "b"],
    "a": SAMPLES["int4[]"],
    "j": [None, *JSON],
    "js": [None, "{}", "{1,1.0}", "{1.0,1}", "{1}", "{1.00}", "{NULL}", '{"[1]"}', '{"[1.0]"}'],
    "x": [None, "0", "-0", "1.5", "NaN"],
}
# `~`: of equal values any may be shown
QUERIES = """
SELECT k, sum(i), avg(i), count(i) FROM t GROUP BY k
SELECT sum(i), avg(i) FILTER (WHERE k > 1) FROM t
~ SELECT k, min(i), max(i), min(c), max(c) FROM t GROUP BY k
~ SELECT j, count(*) FROM t GROUP BY j
~ SELECT js, i, count(*) FROM t GROUP BY js, i
~ SELECT DISTINCT i, j FROM t
SELECT k, count(DISTINCT j), count(DISTINCT i), count(DISTINCT js) FROM t GROUP BY k
SELECT k, array_agg(j ORDER BY j, j::text), array_agg(i ORDER BY i DESC, i::text) FROM t GROUP BY k
SELECT j, rank() OVER (PARTITION BY k ORDER BY j), lag(j) OVER (PARTITION BY k ORDER BY j DESC, j::text) FROM t
SELECT k, dense_rank() OVER (PARTITION BY j ORDER BY i) FROM t
~ SELECT * FROM (SELECT j FROM t ORDER BY j LIMIT 5) q
~ SELECT DISTINCT ON (j) j FROM t ORDER BY j
~ SELECT j FROM t WHERE k = 1 UNION SELECT j FROM t WHERE k = 2
~ SELECT i, j FROM t WHERE k = 1 EXCEPT SELECT i, j FROM t WHERE k = 2
~ SELECT js FROM t WHERE k = 1 INTERSECT SELECT js FROM t WHERE k = 2
SELECT count(*) FROM t a JOIN t b ON a.j = b.j AND a.k < b.k
SELECT count(*) FROM t a LEFT JOIN t b ON a.i = b.i AND a.js = b.js
SELECT count(*) FROM t a WHERE j IN (SELECT b.j FROM t b WHERE b.k = 2)
SELECT k, j < '[1]', j >= '{"a": 1}', j <> '1', greatest(j, '10', '"a"'), least(i, '1 day'), greatest(a, '{2}') FROM t
SELECT k, js < '{1,2}', js = '{1.0}', js IS DISTINCT FROM '{1}', i IS DISTINCT FROM '1 day' FROM t
SELECT k, unnest(a), generate_series(1, k) * 2, jsonb_object_keys(CASE WHEN j @> '{}' THEN j ELSE '{"z": 1}' END) FROM t
SELECT unnest(a) AS u, count(*), sum(k) FROM t GROUP BY u
SELECT k, unnest(array_agg(k)) AS u, generate_series(1, 2) AS g FROM t GROUP BY k
SELECT k, regexp_split_to_table(c, 'a'), regexp_matches(c, '([ab])', 'g'), generate_subscripts(a, 1) FROM t
SELECT k, string_to_table(c, 'a') FROM t
SELECT k, min(a), max(a) FROM t GROUP BY k
SELECT k, sum(i) OVER (PARTITION BY k), avg(i) OVER (PARTITION BY k) FROM t
~ SELECT k, max(i) OVER (PARTITION BY k) FROM t
""".strip().splitlines()


@pytest.fixture
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    install(connection)
    columns = [f"c{i} {t.duckdb}" for i, t in enumerate(COLUMNS.values())]
    connection.execute(f"CREATE TABLE r{ID} ({', '.join(columns)}, {WEIGHT} BIGINT)")
    yield connection
    connection.close()


Texts = tuple[str | None, ...]


class Relation:
    """One table everywhere."""

    def __init__(self, server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection) -> None:
        self.server, self.engine = server, engine
        self.table = Table(ID, "t", tuple(Field(n, t) for n, t in COLUMNS.items()))
        self.rows: Counter[Texts] = Counter()

    def change(self, chance: random.Random) -> list[tuple[Table, Any, int]]:
        changes = []
        for _ in range(CHANGES):
            gone = bool(self.rows) and chance.random() < 0.4
            row = chance.choice(sorted(self.rows, key=repr)) if gone else tuple(chance.choice(POOLS[n]) for n in COLUMNS)
            self.rows[row] += -1 if gone else 1
            self.rows = +self.rows
            values = tuple(unstored(v, t) for v, t in zip(self.values(row), COLUMNS.values(), strict=True))
            changes.append((self.table, values, -1 if gone else 1))
        self.tell()
        return changes

    def values(self, row: Texts) -> tuple[Any, ...]:
        return tuple(stored(v, t) for v, t in zip(row, COLUMNS.values(), strict=True))

    def tell(self) -> None:
        self.server.execute("TRUNCATE t")
        self.engine.execute(f"DELETE FROM r{ID}")
        marks = ", ".join(f"%s::{t}" for t in COLUMNS.values())
        with self.server.cursor() as cursor:
            cursor.executemany(f"INSERT INTO t VALUES ({marks})", list(self.rows.elements()))  # type: ignore[arg-type]
        marks = ", ".join(f"CAST(? AS {t.duckdb})" for t in COLUMNS.values())
        for row, weight in self.rows.items():
            self.engine.execute(f"INSERT INTO r{ID} VALUES ({marks}, ?)", [*self.values(row), weight])


def shown(value: Any, type: Type, loose: bool) -> Any:
    """`loose`: the same for equal values."""
    if value is not None and type.is_array:
        return tuple(shown(v, type.element, loose) for v in value)
    value = normal(unstored(value, type))
    if loose and isinstance(value, tuple) and type.name == "interval":
        return value[0] * 2592000000000 + value[1] * 86400000000 + value[2]
    if loose and value is not None and type.name == "jsonb":
        return jsonb_order(value)
    return value.rstrip(" ") if type.name == "bpchar" and value is not None else value


@pytest.mark.parametrize("share", [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_views_and_queries(share: int, session: Any, tmp_path: Path, seed: int, server: Any, engine: duckdb.DuckDBPyConnection) -> None:
    """`share`: of how many queries one is tried, chosen by the seed."""
    chance = random.Random(seed)
    relation = Relation(server, engine)
    world = World(0, tables=0)
    world.tables = (relation.table,)
    views = Views(session, tmp_path, world, 1)
    queries = {f"v{n}": (q.removeprefix("~ "), q.startswith("~")) for n, q in enumerate(chance.sample(QUERIES, len(QUERIES) // share))}
    for name, (text, _) in queries.items():
        query = bind_query(text, views.catalog)
        names = [f"x{i}" for i in range(len(query.columns))]
        assert views.add(name, f"SELECT * FROM ({text}) AS q({', '.join(names)})"), text
    views.build()
    for _ in range(TICKS):
        views.tick(relation.change(chance))
        for name, (text, loose) in queries.items():
            item = views.catalog.relation(name)
            types = [c.type for c in item.columns]

            def counted(rows: Any, types: list[Type] = types, loose: bool = loose) -> Counter[Any]:
                return Counter(tuple(shown(v, t, loose) for v, t in zip(row, types, strict=True)) for row in rows)

            names = [c.name for c in item.columns]
            asked = f"SELECT {', '.join(f'{n}::text' for n in names)} FROM ({text}) AS q({', '.join(names)})"
            found = server.execute(asked).fetchall()
            bare = [Type(t.name, is_array=t.is_array) for t in types]
            expected = counted([None if v is None else parse(v, t) for v, t in zip(row, bare, strict=True)] for row in found)
            adhoc = counted(engine.execute(render(bind_query(text, views.catalog).plan)).fetchall())
            assert adhoc == expected, (text, adhoc - expected, expected - adhoc)
            assert not views.rows[item.errors], (text, views.rows[item.errors])
            view = counted(views.rows[item.id].elements())
            assert view == expected, (text, view - expected, expected - view)
