"""try(value) on DuckDB; TryTest of the Java library tests it on Spark."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import TailgateError
from tailgate.sql.bind import bind_query
from tailgate.sql.render.duckdb import render
from tailgate.sql.render.duckdb_functions import error_of

ROWS = "(VALUES (0, 'k'), (2, '7')) v(x, t)"


def answer(query: str, engine: duckdb.DuckDBPyConnection) -> list[Any]:
    """Returns the first column of the rows. Raises TailgateError."""
    try:
        return [row[0] for row in engine.execute(render(bind_query(query, Catalog()).plan)).fetchall()]
    except duckdb.Error as error:
        raise error_of(error) from None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("try(1 / 0)", [None, None]),
        ("try(10 / x)", [None, 5]),
        ("coalesce(try(1 / x), 5)", [5, 0]),
        ("try(coalesce(1 / x, 5))", [None, 0]),
        ("try(t::int) + x", [None, 9]),
        ("try(2147483646 + x)", [2147483646, None]),
        ("try(x::float8 / x)", [None, 1.0]),  # tg_divide, a macro
        ("try(exp(1000.0::float8 * x))", [1.0, None]),
        ("try(jsonb_build_object('a', t::int))", [None, '{"a": 7}']),
        ("try((x - 1)::bool::text || substr(t, 1, x - 1))", [None, "true7"]),
        ("pg_typeof(try(x))", ["integer", "integer"]),
        ("(SELECT try(1 / v.x))", [None, 0]),
    ],
)
def test_an_error_is_null(value: str, expected: list[Any], engine: duckdb.DuckDBPyConnection) -> None:
    assert answer(f"SELECT {value} FROM {ROWS}", engine) == expected


def test_aggregates(engine: duckdb.DuckDBPyConnection) -> None:
    assert answer(f"SELECT sum(try(10 / x)) FROM {ROWS}", engine) == [5]
    assert answer(f"SELECT try(1 / min(x)) FROM {ROWS}", engine) == [None]
    with pytest.raises(TailgateError, match="division by zero"):  # the error is in the aggregate, before its result
        answer(f"SELECT try(sum(1 / x)) FROM {ROWS}", engine)


@pytest.mark.parametrize(
    ("value", "sqlstate", "message"),
    [
        ("1 / x + try(x)", "22012", "division by zero"),
        ("try(x) / x", "22012", "division by zero"),
        ("try(pg_sleep(x))", "0A000", "volatile function pg_sleep in try is not supported"),
        ("try(x + (SELECT 1))", "0A000", "a subquery in try is not supported"),
        ("try(x, x)", "42883", "does not exist"),
        ("try('a'::int)", "22P02", "invalid input syntax for type integer"),  # literals are read before the evaluation
    ],
)
def test_other_errors(value: str, sqlstate: str, message: str, engine: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(TailgateError, match=message) as error:
        answer(f"SELECT {value} FROM {ROWS}", engine)
    assert error.value.sqlstate == sqlstate
