"""The 22 queries of TPC-H, ad hoc and as views that are maintained through its refresh functions.

Rows come from DuckDB's generator. The results are compared with DuckDB's answers to the same text, those of views with the
texts of PostgreSQL's.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from tailgate.lake import sortable
from tailgate.lake.types import GENERAL, Type
from tailgate.sql.bind import bind_query
from tailgate.sql.render.duckdb import render
from testing.tpch import MONEY, QUERIES, Shop, copy_tables, generated, make_catalog, texts
from testing.views import Views

SCALE = float(os.environ.get("TAILGATE_TPCH_SCALE", "0.01"))
ROUNDS = 3


@pytest.fixture(scope="module")
def server() -> Iterator[duckdb.DuckDBPyConnection]:
    pytest.importorskip("duckdb_extension_tpch")
    connection = generated(SCALE)
    yield connection
    connection.close()


def rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Rounds numbers to nine digits, because DuckDB divides decimals as floats."""
    return tuple(float(f"{v:.9g}") if isinstance(v, Decimal | float) else v for v in row)


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns a row of a view with its general numerics, which are tuples of fields, as decimals."""
    return tuple(sortable.loaded(*v) if isinstance(v, tuple) else v for v in row)


def shown(row: tuple[Any, ...]) -> tuple[str | None, ...]:
    """Returns the texts of a row, without the blanks at the end of char(n)."""
    return tuple(None if v is None else f"{v:f}" if isinstance(v, Decimal) else str(v).rstrip(" ") for v in row)


def alike(actual: list[Any], expected: list[Any]) -> bool:
    def close(a: Any, b: Any) -> bool:
        return abs(a - b) <= 1e-8 * max(1, abs(a)) if isinstance(a, float) and isinstance(b, float | int) else a == b

    pairs = list(zip(sorted(map(rounded, actual), key=repr), sorted(map(rounded, expected), key=repr), strict=False))
    return len(actual) == len(expected) and all(len(a) == len(b) and all(map(close, a, b)) for a, b in pairs)


@pytest.mark.long
@pytest.mark.parametrize("path", QUERIES, ids=lambda p: p.stem)
def test_adhoc(server: duckdb.DuckDBPyConnection, path: Path) -> None:
    expected = server.execute(path.read_text()).fetchall()
    actual = server.execute(render(bind_query(path.read_text(), make_catalog()).plan)).fetchall()
    assert alike(actual, expected)


def test_all_queries_exist() -> None:
    for path in QUERIES:
        bind_query(path.read_text(), make_catalog(), view=True)
    assert len(QUERIES) == 22


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("money", [pytest.param(MONEY, id="declared"), pytest.param(GENERAL, id="general")])
def test_maintained(money: Type, server: duckdb.DuckDBPyConnection, session: Any, tmp_path: Path, seed: int, postgres: str) -> None:
    """The texts are PostgreSQL's, with its digits."""
    with psycopg.connect(postgres, autocommit=True) as theirs:
        check_maintained(Views(session, tmp_path, Shop(server, seed, money), 2), server, theirs, money)


def check_maintained(
    views: Views, server: duckdb.DuckDBPyConnection, postgres: psycopg.Connection[Any] | None = None, money: Type = MONEY
) -> None:
    """Compares a view of each query with DuckDB, after the first rows and after each refresh.

    `views`: over a `Shop` of the server. With `postgres`, a database for the test, the texts are compared with PostgreSQL's.
    """
    shop = views.world
    assert isinstance(shop, Shop)
    for path in QUERIES:
        assert views.add(path.stem, path.read_text()), path.stem
    views.tick(shop.all())
    for number in range(ROUNDS + 1):
        if postgres is not None:
            postgres.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            copy_tables(server, postgres, money)
        for path in QUERIES:
            item = views.catalog.relation(path.stem)
            actual = [plain(row) for row, n in views.rows[item.id].items() for _ in range(n)]
            assert not views.rows[item.errors], (path.stem, number)
            if postgres is None:
                assert alike(actual, server.execute(path.read_text()).fetchall()), (path.stem, number)
            else:
                expected = texts(postgres, path.read_text().rstrip().removesuffix(";"))
                assert Counter(map(shown, actual)) == Counter(map(shown, expected)), (path.stem, number)
        views.tick(shop.refreshed())
