"""Tests that the cost of statements is linear; each of these once took exponential time or memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import duckdb
import pytest

from tailgate.lake.catalog import Catalog, Change, Table, View
from tailgate.lake.errors import FeatureNotSupported, TailgateError
from tailgate.lake.types import FLOAT8, INT8, Field, Type
from tailgate.sql.bind import bind_query
from tailgate.sql.definitions import bind_definition
from tailgate.sql.functions.catalogue import ROWS
from tailgate.sql.functions.entry import Function
from tailgate.sql.plan import Call, Column, Query, Scalar, Value
from tailgate.sql.plan.traversal import tree_size
from tailgate.sql.render.dialects import DUCKDB, SPARK, Dialect
from tailgate.sql.render.duckdb import arguments, render
from tailgate.sql.render.duckdb_functions import error_of, install
from tailgate.sql.render.scalars import render_scalar
from tailgate.sql.statements import parse

pytestmark = pytest.mark.timeout(60)  # twenty times as long as the slowest takes on an idle machine
TABLE = Table(16384, "t", (Field("x", INT8, False), Field("f", FLOAT8)), (0,), stored=True)
CATALOG = Catalog().apply(Change(put=(TABLE,)))


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1, "memory_limit": "1GB"})
    install(connection)
    connection.execute("CREATE TABLE r16384 (c0 BIGINT, c1 DOUBLE)")
    connection.execute("INSERT INTO r16384 VALUES (1, 0.5), (2, 1.5)")
    return connection


def bound(text: str, catalog: Catalog = CATALOG) -> Query:
    return bind_query(text, catalog)


def answered(database: duckdb.DuckDBPyConnection, text: str, catalog: Catalog = CATALOG) -> object:
    """Returns the only value of a query."""
    try:
        (row,) = database.execute(render(bound(text, catalog).plan)).fetchall()
    except duckdb.Error as error:
        raise error_of(error) from error
    return row[0]


# --- parsing ------------------------------------------------------------------------------------

NESTED = {
    "sum": ("SELECT ", "((SELECT ", "1", ") + 1)"),
    "union": ("SELECT ", "((", "SELECT 1", ") UNION SELECT 1)"),
    "union and sum": ("SELECT ", "((SELECT ", "1", ") UNION SELECT 1) + 0"),
    "row": ("SELECT 1 WHERE ", "((SELECT ", "1", ") = 1)"),
    "join": ("SELECT * FROM ", "(", "(SELECT 1) a CROSS JOIN (SELECT 2) b", " CROSS JOIN (SELECT 3) c)"),
    "not closed": ("SELECT ", "((SELECT ", "1", ") + )"),
}


@pytest.mark.parametrize("name", NESTED)
def test_parentheses_are_parsed_once(name: str) -> None:
    begin, left, middle, right = NESTED[name]
    with contextlib.suppress(TailgateError if name == "not closed" else ()):
        parse(begin + left * 40 + middle + right * 40)


def test_parentheses_mean_what_they_did(database: duckdb.DuckDBPyConnection) -> None:
    assert answered(database, "SELECT ((SELECT ((SELECT 1) + 1)) + 1)") == 3
    assert answered(database, "SELECT (((SELECT 1) UNION (SELECT 1)))") == 1
    assert answered(database, "SELECT sum(a + b) FROM ((SELECT 1 AS a) q CROSS JOIN ((SELECT 2 AS b)) r)") == 3
    assert answered(database, "SELECT count(*) FROM ((SELECT 1 UNION SELECT 2) ORDER BY 1 LIMIT 1) q") == 1


# --- queries that are referenced twice ----------------------------------------------------------

TWICE = {
    "union": "SELECT x FROM {0} UNION ALL SELECT x FROM {0} LIMIT 1",
    "join": "SELECT a.x FROM {0} a JOIN {0} b ON a.x = b.x",
    "cross join": "SELECT a.x FROM {0} a, {0} b",
    "value": "SELECT (SELECT max(b.x) FROM {0} b WHERE b.x <= a.x) AS x FROM {0} a",
    "exists": "SELECT a.x FROM {0} a WHERE EXISTS (SELECT 1 FROM {0} b WHERE b.x = a.x)",
    "in": "SELECT a.x FROM {0} a WHERE a.x IN (SELECT b.x FROM {0} b)",
    "not in": "SELECT a.x FROM {0} a WHERE a.x + 1 NOT IN (SELECT b.x FROM {0} b)",
    "lateral": "SELECT q.x FROM {0} a, LATERAL (SELECT b.x FROM {0} b WHERE b.x = a.x) q",
    "except": "SELECT x FROM {0} EXCEPT SELECT x + 1 FROM {0}",
    "aggregate": "SELECT max(a.x) AS x FROM {0} a JOIN {0} b USING (x)",
}
FIRST = "SELECT x FROM t WHERE x = 1"


@pytest.mark.parametrize("name", TWICE)
def test_thirty_queries_that_each_reference_the_previous_one_twice(name: str, database: duckdb.DuckDBPyConnection) -> None:
    parts = ", ".join(f"c{i} AS ({TWICE[name].format(f'c{i - 1}')})" for i in range(1, 31))
    assert answered(database, f"WITH c0 AS ({FIRST}), {parts} SELECT x FROM c30") == 1


@pytest.mark.parametrize("name", TWICE)
def test_thirty_views_that_each_reference_the_previous_one_twice(name: str, database: duckdb.DuckDBPyConnection) -> None:
    catalog = CATALOG
    for i in range(31):
        text = TWICE[name].format(f"v{i - 1}") if i else FIRST
        item = View(catalog.next_id, f"v{i}", (), sql=f"CREATE VIEW v{i} AS {text}", query=text)
        query = bind_definition(item, catalog)
        catalog = catalog.apply(Change(put=(replace(item, columns=query.columns, depends=query.depends),)))
    assert answered(database, "SELECT x FROM v30", catalog) == 1
    assert tree_size(bound("SELECT x FROM v30", catalog).plan) > 2**30


# --- templates that use an argument more than once ----------------------------------------------


def typed(name: str) -> Type:
    return Type(name.removesuffix("[]"), is_array=name.endswith("[]"))


def nested(row: Function, place: int, depth: int) -> Scalar:
    """Nests calls of a function in one of its arguments."""
    types = list(map(typed, row.arguments))
    scalar: Scalar = Column(0, types[place])
    for _ in range(depth):
        scalar = Call(row, tuple(scalar if i == place else Column(1, t) for i, t in enumerate(types)), types[place])
    return scalar


def nestable() -> Iterator[tuple[Function, int]]:
    """Yields the functions that accept their result as an argument, with the argument's index."""
    for row in ROWS:
        if row.kind in ("function", "operator", "prefix", "cast") and not any("any" in a for a in row.arguments):
            for place, argument in enumerate(row.arguments):
                if argument == ("numeric" if callable(row.result) else row.result):
                    yield row, place


@pytest.mark.parametrize("dialect", [DUCKDB, SPARK], ids=["duckdb", "spark"])
def test_sql_grows_with_the_calls_that_it_nests(dialect: Dialect) -> None:
    checked = 0
    for row, place in nestable():
        try:
            lengths = [len(render_scalar(nested(row, place, depth), dialect)) for depth in (8, 16)]
        except FeatureNotSupported:
            continue
        assert lengths[1] <= 3 * lengths[0] + 400, (str(row), place, lengths)
        checked += 1
    assert checked > 200


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("SELECT " + "exp(" * 12 + "-1e300::float8" + ")" * 12, "22003"),
        ("SELECT round((" + "ln(exp(" * 12 + "f" + "))" * 12 + ")::numeric, 3)::float8 FROM t WHERE x = 1", 0.5),
        ("SELECT " + " + ".join(["f"] * 20) + " FROM t WHERE x = 2", 30.0),
        ("SELECT " + " * ".join(["f"] * 20) + " FROM t WHERE x = 2", 1.5**20),
        ("SELECT 1e300::float8 " + "* 1.0::float8 " * 12 + "* 1e300::float8 * 0", "22003"),
        ("SELECT extract(hour FROM " + " + ".join(["interval '1 hour'"] * 20) + ")::float8", 20.0),
        ("SELECT " + " % ".join(["(x + 100)"] * 20) + " FROM t WHERE x = 2", 0),
    ],
)
def test_nested_calls_are_evaluated_once(text: str, value: object, database: duckdb.DuckDBPyConnection) -> None:
    if isinstance(value, str):
        with pytest.raises(TailgateError) as raised:
            answered(database, text)
        assert raised.value.sqlstate == value
    else:
        assert answered(database, text) == pytest.approx(value)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "nullif(" * 40 + "x" + ", 0)" * 40 + " FROM t",
        "SELECT " + "(" * 40 + "(x = 1)" + " BETWEEN false AND true)" * 40 + " FROM t",
        "SELECT " + "CASE " * 40 + "x" + " WHEN 1 THEN 2 WHEN 2 THEN 3 END" * 40 + " FROM t",
        "SELECT x FROM t WHERE x::text IN (" + ", ".join(f"'{i:0900}'" for i in range(700)) + ")",
        "SELECT " + ", ".join(["x / 1.5 / x / x / x::numeric(20, 4)"] * 2_000) + " FROM t",
    ],
    ids=["nullif", "between", "case", "list", "columns"],
)
def test_sql_that_is_too_long_is_refused(text: str) -> None:
    with pytest.raises(TailgateError) as raised:
        render(bound(text).plan)
    assert raised.value.sqlstate == "54001"


def test_long_literals_are_no_sql(database: duckdb.DuckDBPyConnection) -> None:
    """DuckDB parses SQL while it holds the GIL, and a literal may have four million characters."""
    plan = bound(
        f"SELECT length('{'x' * 2_000_000}' || '{'y' * 2_000_000}'::text), length('\\x{'00' * 5000}'::bytea), length('short')"
    ).plan
    constants: list[Value] = []
    sql = render(plan, constants=constants)
    assert len(sql) < 1000
    assert sorted(map(len, constants)) == [5000, 2_000_000, 2_000_000]  # type: ignore[arg-type]
    assert database.execute(sql, arguments((), (), constants)).fetchall() == [(4_000_000, 5000, 5)]


def test_a_list_of_many_integers(database: duckdb.DuckDBPyConnection) -> None:
    for cast in ("int2", "int4", "int8"):
        text = f"SELECT count(*) FROM t WHERE x::{cast} IN ({', '.join(map(str, range(2, 30_000)))}, -1)"
        assert answered(database, text) == 1
