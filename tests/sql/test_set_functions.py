"""Every set-returning function has PostgreSQL's rows, in its order, or its SQLSTATE."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import duckdb
import psycopg
import pytest

from tailgate.lake.catalog import Catalog, Change, Table
from tailgate.lake.errors import TailgateError
from tailgate.lake.types import Field, Type
from tailgate.sql.bind import bind_query
from tailgate.sql.functions.catalogue import ROWS
from tailgate.sql.functions.entry import Function
from tailgate.sql.functions.ksqldb import PREFIX
from tailgate.sql.render.duckdb import render
from tailgate.sql.render.duckdb_functions import error_of
from tailgate.sql.tables.definition import type_name
from tests.sql.arguments import of_enum
from tests.sql.oracle import NAMES, Case, case_of, normal, parsed, stored, unstored

SETS = [r for r in ROWS if r.kind == "set" and r.duckdb and not of_enum(r) and not r.name.startswith(PREFIX)]
ID = 20000
Rows = dict[int, list[Any]] | tuple[str, str]  # by the index of the argument list, or an error


class Comparison:
    """One function over a table of argument lists, on PostgreSQL and DuckDB."""

    def __init__(self, function: Function, case: Case, server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection) -> None:
        self.case, self.server, self.engine = case, server, engine
        columns = {"i": Type("int4"), **dict(zip(NAMES, case.types, strict=False))}
        rows = [(i, *row) for i, row in enumerate(case.rows)]
        server.execute("DROP TABLE IF EXISTS arguments")
        server.execute(f"CREATE TEMPORARY TABLE arguments ({', '.join(f'{n} {type_name(t)}' for n, t in columns.items())})")
        engine.execute(f"CREATE OR REPLACE TABLE r{ID} ({', '.join(f'c{i} {t.duckdb}' for i, t in enumerate(columns.values()))})")
        parameters = ", ".join(f"%s::{type_name(t)}" for t in columns.values())
        with server.cursor() as cursor:
            cursor.executemany(f"INSERT INTO arguments VALUES ({parameters})", rows)  # type: ignore[arg-type]
        marks = ", ".join(f"CAST(? AS {t.duckdb})" for t in columns.values())
        stored_rows = [(i, *(stored(v, t) for v, t in zip(row, case.types, strict=True))) for i, *row in rows]
        engine.executemany(f"INSERT INTO r{ID} VALUES ({marks})", stored_rows)
        fields = tuple(Field(n, t) for n, t in columns.items())
        self.catalog = Catalog().apply(Change((Table(ID, "arguments", fields, (0,), stored=True),)))
        self.names = [f"x{n}" for n in range(len(function.outputs) or 1)]

    def query(self, columns: list[str], where: str) -> str:
        call = f"{self.case.expression} WITH ORDINALITY AS s({', '.join(self.names)}, n)"
        return f"SELECT i, {', '.join(columns)} FROM (SELECT * FROM arguments {where}) t, LATERAL {call} ORDER BY i, n"

    def on_duckdb(self, where: str) -> tuple[Rows, list[Type]]:
        query = bind_query(self.query(self.names, where), self.catalog)
        types = [c.type for c in query.columns[1:]]
        try:
            rows = defaultdict(list)
            for i, *row in self.engine.execute(render(query.plan)).fetchall():
                rows[i].append([normal(unstored(v, t)) for v, t in zip(row, types, strict=True)])
            return dict(rows), types
        except duckdb.Error as error:
            return ("error", error_of(error).sqlstate), types

    def on_postgres(self, where: str, types: list[Type]) -> Rows:
        query = self.query([f"{n}::text" for n in self.names], where)
        types = [Type(t.name, is_array=t.is_array) for t in types]
        try:
            rows = defaultdict(list)
            for i, *row in self.server.execute(query).fetchall():  # type: ignore[arg-type]
                rows[i].append([None if v is None else normal(parsed(v, t)) for v, t in zip(row, types, strict=True)])
            return dict(rows)
        except psycopg.Error as error:
            return ("error", error.sqlstate or "")

    def differences(self) -> Iterator[str]:
        """Compares all argument lists in one query or, if it fails, in a query each."""
        rows, types = self.on_duckdb("")
        if isinstance(rows, dict) and rows == self.on_postgres("", types):
            return
        for i, row in enumerate(self.case.rows):
            where = f"WHERE i = {i}"
            rows, types = self.on_duckdb(where)
            expected = self.on_postgres(where, types)
            if rows != expected:
                yield f"{self.case.function}: {self.case.expression} of {row} is {expected}, not {rows}"


@pytest.mark.parametrize("share", [pytest.param(3, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_every_set_function(share: int, server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection, seed: int) -> None:
    """Evaluates one function in `share`, at random."""
    wrong: list[str] = []
    for function in random.sample(SETS, -(-len(SETS) // share)):
        try:
            comparison = Comparison(function, case_of(function, seed), server, engine)
        except TailgateError as error:
            raise AssertionError(f"{function} is not accepted") from error
        wrong += comparison.differences()
    assert not wrong, "\n".join(wrong)


def test_a_series_of_literals_is_no_array(server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection) -> None:
    """An array would be in memory that DuckDB does not count."""
    last = 2**63 - 1
    for arguments in ("1, 3", "3, 1", "3, 1, -1", "-7, 8, 5", "1, 0", "2147483647, 2147483647", "1, 10, 4", f"{last - 1}, {last}"):
        for extra in ("", " WITH ORDINALITY"):
            query = f"SELECT * FROM generate_series({arguments}){extra}"
            text = render(bind_query(query, Catalog()).plan)
            assert "unnest" not in text
            assert engine.execute(text).fetchall() == server.execute(query).fetchall(), query  # type: ignore[arg-type]
    with pytest.raises(duckdb.Error, match="22023"):
        engine.execute(render(bind_query("SELECT * FROM generate_series(1, 2, 0)", Catalog()).plan))
    with pytest.raises(duckdb.Error, match="54000"):
        engine.execute(render(bind_query("SELECT * FROM generate_series(1, 100000000)", Catalog()).plan))
