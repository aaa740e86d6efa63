"""Every set-returning function of the catalogue over lists of arguments: PostgreSQL's rows, in its order, and SQLSTATEs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import duckdb
import psycopg

from lake.catalog import Catalog, Change, Item
from lake.errors import TailgateError
from lake.types import Field, Type
from sql.bind import bind_query
from sql.duckdb import render
from sql.duckdb_functions import error_of
from sql.functions.catalogue import ROWS
from sql.functions.entry import Function
from sql.input.literals import parse
from tests.sql.oracle import NAMES, Case, case_of, normal, stored, unstored

SETS = [r for r in ROWS if r.kind == "set" and r.duckdb]
ID = 20000
Found = dict[int, list[Any]] | tuple[str, str]  # by argument list, or an error


class Walk:
    """One function over a table of argument lists, in both engines."""

    def __init__(self, function: Function, case: Case, server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection) -> None:
        self.case, self.server, self.engine = case, server, engine
        columns = {"i": Type("int4"), **dict(zip(NAMES, case.types, strict=False))}
        rows = [(i, *row) for i, row in enumerate(case.rows)]
        server.execute("DROP TABLE IF EXISTS arguments")
        server.execute(f"CREATE TEMPORARY TABLE arguments ({', '.join(f'{n} {t}' for n, t in columns.items())})")
        engine.execute(f"CREATE OR REPLACE TABLE r{ID} ({', '.join(f'c{i} {t.duckdb}' for i, t in enumerate(columns.values()))})")
        with server.cursor() as cursor:
            cursor.executemany(f"INSERT INTO arguments VALUES ({', '.join(f'%s::{t}' for t in columns.values())})", rows)  # type: ignore[arg-type]
        marks = ", ".join(f"CAST(? AS {t.duckdb})" for t in columns.values())
        engine.executemany(
            f"INSERT INTO r{ID} VALUES ({marks})", [(i, *(stored(v, t) for v, t in zip(r, case.types, strict=True))) for i, *r in rows]
        )
        fields = tuple(Field(n, t) for n, t in columns.items())
        self.catalog = Catalog().apply(Change((Item(ID, "table", "arguments", fields, (0,), stored=True),)))
        self.names = [f"x{n}" for n in range(len(function.outputs) or 1)]

    def text(self, shown: list[str], where: str) -> str:
        call = f"{self.case.expression} WITH ORDINALITY AS s({', '.join(self.names)}, n)"
        return f"SELECT i, {', '.join(shown)} FROM (SELECT * FROM arguments {where}) t, LATERAL {call} ORDER BY i, n"

    def ours(self, where: str) -> tuple[Found, list[Type]]:
        query = bind_query(self.text(self.names, where), self.catalog)
        types = [c.type for c in query.columns[1:]]
        try:
            found = defaultdict(list)
            for i, *row in self.engine.execute(render(query.plan)).fetchall():
                found[i].append([normal(unstored(v, t)) for v, t in zip(row, types, strict=True)])
            return dict(found), types
        except duckdb.Error as error:
            return ("error", error_of(error).sqlstate), types

    def theirs(self, where: str, types: list[Type]) -> Found:
        try:
            found = defaultdict(list)
            for i, *row in self.server.execute(self.text([f"{n}::text" for n in self.names], where)).fetchall():  # type: ignore[arg-type]
                bare = [Type(t.name, is_array=t.is_array) for t in types]
                found[i].append([None if v is None else normal(parse(v, t)) for v, t in zip(row, bare, strict=True)])
            return dict(found)
        except psycopg.Error as error:
            return ("error", error.sqlstate or "")

    def differences(self) -> Iterator[str]:
        """All lists at once; if one fails, each by itself."""
        ours, types = self.ours("")
        theirs = self.theirs("", types)
        if isinstance(ours, dict) and ours == theirs:
            return
        for i, row in enumerate(self.case.rows):
            where = f"WHERE i = {i}"
            one, types = self.ours(where)
            other = self.theirs(where, types)
            if one != other:
                yield f"{self.case.function}: {self.case.expression} of {row} is {other}, not {one}"


def test_every_set_function(server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection, seed: int) -> None:
    wrong: list[str] = []
    for function in SETS:
        try:
            walk = Walk(function, case_of(function, seed), server, engine)
        except TailgateError as error:
            raise AssertionError(f"{function} is not accepted") from error
        wrong += walk.differences()
    assert not wrong, "\n".join(wrong)
