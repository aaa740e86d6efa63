"""TPC-H: its 22 queries as in the specification, ad hoc and as views that are kept up to date through rounds of its refresh functions.

Rows come from DuckDB's generator; what DuckDB answers to the query's own text is what ours must hold.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sql.bind import bind_query
from sql.duckdb import render
from sql.duckdb_functions import install
from tests.engine.plan.test_law import Views
from tests.tpch import make_catalog
from tests.worlds import Row, Table

QUERIES = sorted((Path(__file__).parents[2] / "fixtures" / "tpch").glob("q*.sql"))
SCALE = float(os.environ.get("TAILGATE_TPCH_SCALE", "0.01"))
ROUNDS = 3
SHARE = 0.01  # of the orders that a round brings, and as many that it takes away; the specification's is 0.001


@pytest.fixture(scope="module")
def server() -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables by their names, and as r<id> for plans."""
    extension = pytest.importorskip("duckdb_extension_tpch")
    connection = duckdb.connect(config={"allow_unsigned_extensions": True})
    install(connection)
    connection.execute(f"LOAD '{next(Path(extension.__file__).parent.rglob('*.duckdb_extension'))}'")
    connection.execute(f"CALL dbgen(sf={SCALE})")
    for item in make_catalog().items.values():
        columns = ", ".join(f"CAST({c.name} AS {c.type.duckdb}) AS {c.name}" for c in item.columns)
        connection.execute(f"CREATE OR REPLACE TABLE {item.name} AS SELECT {columns} FROM {item.name}")
        shown = ", ".join(f"{c.name} AS c{i}" for i, c in enumerate(item.columns))
        connection.execute(f"CREATE VIEW r{item.id} AS SELECT {shown} FROM {item.name}")
    yield connection
    connection.close()


def rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """DuckDB divides decimals as floats: numbers are compared to nine digits."""
    return tuple(float(f"{v:.9g}") if isinstance(v, Decimal | float) else v for v in row)


def alike(found: list[Any], expected: list[Any]) -> bool:
    def close(a: Any, b: Any) -> bool:
        return abs(a - b) <= 1e-8 * max(1, abs(a)) if isinstance(a, float) and isinstance(b, float | int) else a == b

    pairs = list(zip(sorted(map(rounded, found), key=repr), sorted(map(rounded, expected), key=repr), strict=False))
    return len(found) == len(expected) and all(len(a) == len(b) and all(map(close, a, b)) for a, b in pairs)


@pytest.mark.long
@pytest.mark.parametrize("path", QUERIES, ids=lambda p: p.stem)
def test_adhoc(server: duckdb.DuckDBPyConnection, path: Path) -> None:
    expected = server.execute(path.read_text()).fetchall()
    found = server.execute(render(bind_query(path.read_text(), make_catalog()).plan)).fetchall()
    assert alike(found, expected)


def test_there_are_all() -> None:
    for path in QUERIES:
        bind_query(path.read_text(), make_catalog(), view=True)
    assert len(QUERIES) == 22


class Shop:
    """What `Views` asks of a world: the tables and the rows that are in them."""

    def __init__(self, server: duckdb.DuckDBPyConnection, seed: int) -> None:
        self.server, self.random = server, random.Random(seed)
        self.tables = tuple(Table(i.id, i.name, i.columns, i.key) for i in make_catalog("source").items.values())
        self.rows: dict[int, Counter[Row]] = {}

    def table(self, name: str) -> Table:
        return next(t for t in self.tables if t.name == name)

    def all(self) -> list[tuple[Table, Row, int]]:
        return [(t, row, 1) for t in self.tables for row in self.server.execute(f"SELECT * FROM {t.name}").fetchall()]

    def refreshed(self) -> list[tuple[Table, Row, int]]:
        """RF1 and RF2: new orders with their lines, copies of others under new keys, and old ones gone with theirs."""
        out: list[tuple[Table, Row, int]] = []
        orders, lines = self.table("orders"), self.table("lineitem")
        keys = [k for (k,) in self.server.execute("SELECT o_orderkey FROM orders ORDER BY 1").fetchall()]
        chosen = self.random.sample(keys, max(2, int(2 * SHARE * len(keys))))
        copied, gone = chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :]
        first = max(keys) + 1
        for number, key in enumerate(copied):
            for table in (orders, lines):
                for row in self.server.execute(f"SELECT * FROM {table.name} WHERE {table.columns[0].name} = {key}").fetchall():
                    new = (first + number, *row[1:])
                    self.server.execute(f"INSERT INTO {table.name} VALUES ({', '.join('?' * len(new))})", new)
                    out.append((table, new, 1))
        for key in gone:
            for table in (orders, lines):
                found = self.server.execute(f"DELETE FROM {table.name} WHERE {table.columns[0].name} = {key} RETURNING *").fetchall()
                out += [(table, row, -1) for row in found]
        return out


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from engine.runtime import session

    running = session.start(tmp_path_factory.mktemp("spark"), 1)
    yield running
    running.stop()


@pytest.mark.spark
@pytest.mark.long
def test_maintained(server: duckdb.DuckDBPyConnection, session: Any, tmp_path: Path, seed: int) -> None:
    shop = Shop(server, seed)
    views = Views(session, tmp_path, shop, 2)
    for path in QUERIES:
        assert views.add(path.stem, path.read_text()), path.stem
    views.tick(shop.all())
    for number in range(ROUNDS + 1):
        for path in QUERIES:
            item = views.catalog.relation(path.stem)
            found = [row for row, n in views.rows[item.id].items() for _ in range(n)]
            assert not views.rows[item.errors], (path.stem, number)
            assert alike(found, server.execute(path.read_text()).fetchall()), (path.stem, number)
        views.tick(shop.refreshed())
