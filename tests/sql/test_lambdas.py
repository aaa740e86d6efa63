"""The functions with lambdas, called by hand in PostgreSQL's dialect."""

from __future__ import annotations

import duckdb
import pytest

from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import TailgateError
from tailgate.sql.bind import bind_query
from tailgate.sql.render.duckdb import render

V = "ksqldb_variable(1)"


def test_values(engine: duckdb.DuckDBPyConnection) -> None:
    query = bind_query(
        f"SELECT ksqldb_transform('[1, [2]]', {V}, jsonb_build_array({V})), ksqldb_filter('[1, 2]', {V}, {V} > '1')", Catalog()
    )
    assert engine.execute(render(query.plan)).fetchone() == ("[[1], [[2]]]", "[2]")


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        (f"SELECT {V}", "42P02"),
        (f"SELECT ksqldb_transform({V}, {V}, {V})", "42P02"),
        ("SELECT ksqldb_transform('[1]', ksqldb_variable(1), ksqldb_variable(2))", "42P02"),
        (f"SELECT ksqldb_transform('[1]', {V}, (SELECT {V}))", "42P02"),
        ("SELECT ksqldb_transform('[1]', 1, '2')", "42883"),
        ("SELECT ksqldb_transform('[1]', ksqldb_variable(99999), '2')", "42883"),
        ("SELECT ksqldb_transform('[1]')", "42883"),
        (f"SELECT ksqldb_filter('[1]', {V}, 1)", "42883"),
        (f"SELECT ksqldb_transform('[1]', {V}, 'x')", "22P02"),
        (f"SELECT ksqldb_transform('[1]', {V}, jsonb_agg({V}))", "42803"),
        (f"SELECT ksqldb_transform('[1]', {V}, jsonb_array_elements({V}))", "0A000"),
        (f"SELECT ksqldb_reduce('[1]', '0', {V}, {V}, {V})", "42883"),
    ],
)
def test_refused(sql: str, sqlstate: str) -> None:
    with pytest.raises(TailgateError) as error:
        bind_query(sql, Catalog())
    assert error.value.sqlstate == sqlstate


def test_a_value_that_is_no_array_is_an_error(engine: duckdb.DuckDBPyConnection) -> None:
    query = bind_query(f"SELECT ksqldb_transform('1', {V}, {V})", Catalog())
    with pytest.raises(duckdb.Error, match="22P02"):
        engine.execute(render(query.plan))
