"""Multidimensional arrays in tables: COPY, parameters, refusals of plain columns, and the format of the log."""

from __future__ import annotations

from io import BytesIO

import psycopg
import pytest
from psycopg import sql as composed

from tests.tables.world import World

VALUES = ("{{1,2},{3,4}}", "{1,2}", "[0:1]={5,6}", "{}", None, "[2:2][-1:0]={{7,NULL}}")


@pytest.mark.parametrize("format", ["text", "csv", "binary"])
def test_copy_reads_its_output(world: World, format: str) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as sql:
        sql.execute("CREATE TABLE source (id int PRIMARY KEY, a int[][]); CREATE TABLE target (id int PRIMARY KEY, a int[][])")
        for id, value in enumerate(VALUES):
            sql.execute("INSERT INTO source VALUES (%s, %s)", (id, value))
        data = BytesIO()
        with sql.cursor().copy(f"COPY source TO STDOUT (FORMAT {format})".encode()) as copy:
            for block in copy:
                data.write(block)
        with sql.cursor().copy(f"COPY target FROM STDIN (FORMAT {format})".encode()) as copy:
            copy.write(data.getvalue())
        assert sql.execute("SELECT id, a::text FROM target ORDER BY id").fetchall() == list(enumerate(VALUES))


@pytest.mark.parametrize("binary", [False, True])
def test_parameters_have_any_dimensions(world: World, binary: bool) -> None:
    statement = composed.SQL("SELECT {0}::int[], array_ndims({0}::int[]), 2 = ANY ({0}::int[])").format(
        composed.SQL("%(a)b" if binary else "%(a)t")
    )
    with psycopg.connect(world.dsn, autocommit=True, cursor_factory=psycopg.Cursor) as sql:
        for value, dimensions in (([1, 2], 1), ([[1, 2], [3, 4]], 2), ([], None), ([[[2]]], 3), ([1], 1)):
            row = sql.execute(statement, {"a": value}, prepare=True, binary=binary).fetchone()
            assert row == (value, dimensions, any("2" in text for text in str(value)) if value else False)


def test_a_column_of_lists_refuses_them_in_every_way(world: World) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as sql:
        sql.execute("CREATE TABLE lists (id int PRIMARY KEY, a int[])")
        for statement in (
            "INSERT INTO lists VALUES (1, '{{1}}')",
            "INSERT INTO lists VALUES (1, ARRAY[[1]])",
            "INSERT INTO lists SELECT 1, x::int[] FROM (VALUES ('[0:0]={1}')) v (x)",
        ):
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="more than one dimension"):
                sql.execute(statement.encode())
        with (
            pytest.raises(psycopg.errors.FeatureNotSupported, match="more than one dimension"),
            sql.cursor().copy("COPY lists FROM STDIN") as copy,
        ):
            copy.write("1\t{{1}}\n")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="more than one dimension"):
            sql.execute("INSERT INTO lists VALUES (1, %s)", ([[1]],))
        assert sql.execute("SELECT count(*) FROM lists").fetchone() == (0,)


def test_earlier_versions_refuse_the_log_from_the_first_column_on(world: World) -> None:
    writer = world.engine.writer
    with psycopg.connect(world.dsn, autocommit=True) as sql:
        sql.execute("CREATE TABLE plain (id int PRIMARY KEY, a int[])")
        assert writer.newest.format == 1
        sql.execute("CREATE TABLE grids (id int PRIMARY KEY, a int[][])")
        assert writer.newest.format == 3
        sql.execute("CREATE TABLE numbers (id int PRIMARY KEY, a numeric)")
        assert writer.newest.format == 3
        sql.execute("CREATE TABLE spans (id int PRIMARY KEY, a int4range[])")
        assert writer.newest.format == 5


@pytest.mark.parametrize("bounds", ["[99999999999:99999999999]", "[-9999999999:-9999999999]", f"[{'9' * 5000}]"])
def test_bounds_are_integers_of_32_bits(world: World, bounds: str) -> None:
    with psycopg.connect(world.dsn, autocommit=True) as sql:
        for statement in ("SELECT %s::int[]", "SELECT x::int[] FROM (SELECT %s::text AS x) t"):
            with pytest.raises(psycopg.errors.NumericValueOutOfRange, match="array bound is out of integer range"):
                sql.execute(statement.encode(), (bounds + "={1}",))
