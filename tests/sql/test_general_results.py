"""Expressions whose results are general numerics: PostgreSQL's values, display scales and errors."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest

from tailgate.lake.types import Type
from tailgate.sql.bind import bind_query
from tailgate.sql.functions.general.templates import from_fixed
from tailgate.sql.numeric_types import WITH_GENERAL
from tailgate.sql.render.duckdb import render
from tailgate.sql.render.duckdb_functions import error_of, install
from tailgate.values import raw
from tailgate.values.registry import text_column
from tests.sql import numerics

LEAVES = (*[c.name for c in numerics.COLUMNS] * 3, *numerics.LITERALS, "'NaN'::numeric", "'Infinity'::numeric", "1e30", "1e-20")
FUNCTIONS = ("round", "trunc", "ceil", "floor", "abs", "sign", "trim_scale", "-")
AGGREGATES = ("sum", "avg", "min", "max", "var_pop", "stddev_samp")
# equal elements with other display scales
ELEMENTS = ("1", "1.0", "1.00", "b", "b + 0.000", "2.5", "2.50", "1e30", "NULL", "'NaN'::numeric", "'-Infinity'::numeric")
OF_ARRAYS = (
    "{a} = {b}", "{a} <> {b}", "{a} < {b}", "{a} >= {b}", "{a} @> {b}", "{a} <@ {b}", "{a} && {b}", "{x} = ANY ({a})",
    "{a} IS DISTINCT FROM {b}", "array_remove({a}, {x})", "array_replace({a}, {x}, {y})", "array_position({a}, {x})",
    "array_position({a}, {x}, 2)", "array_positions({a}, {x})",
    "width_bucket({x}, ARRAY['-Infinity', -1.0, 0.10, 1.00, 2.5, 1e20, 'NaN']::numeric[])",
)  # fmt: skip
ERRORS = ("22003", "22012", "2201F", "2201E")


def expression(source: random.Random, depth: int) -> str:
    """Returns an expression. Casts to declared numerics are not among them, because NaN has no such value."""
    if depth == 0:
        return source.choice(LEAVES)
    left, right = expression(source, depth - 1), expression(source, source.randint(0, depth - 1))
    match source.randint(0, 11):
        case 0 | 1 | 2:
            return f"({left} {source.choice('+-*%')} {right})"
        case 3 | 4:
            return f"({left} / {right})"
        case 5:
            return f"round({left}::numeric, {source.randint(-3, 8)})"
        case 6:
            return f"{source.choice(FUNCTIONS)}({left}::numeric)"
        case 7:
            return f"(CASE WHEN {left} > {right} THEN {left} ELSE {right} END)"
        case 8:
            return f"coalesce({left}, 1.5)"
        case 9:
            return f"greatest({left}, {right}, 1.5)"
        case 10:
            return f"{source.choice(('sqrt', 'ln'))}(abs({left}::numeric) + 0.5)"
    return f"power(abs({left}::numeric) % 7, {source.choice(('2', '0.5', '-1.5', '3.0'))})"


def on_duckdb(connection: duckdb.DuckDBPyConnection, text: str) -> list[str | None] | str:
    query = bind_query(f"SELECT {text} FROM {numerics.RELATION}", numerics.catalog(), numeric_rules=WITH_GENERAL)
    try:
        values = connection.execute(render(query.plan)).arrow().read_all().column(0)
    except duckdb.Error as error:
        return error_of(error).sqlstate
    type = query.columns[0].type
    return [None if v is None else v.decode() for v in text_column(raw.stored(values, type), type).to_pylist()]


def of_arrays(source: random.Random) -> str:
    """Returns a call of a function of arrays."""
    a, b = (f"ARRAY[{', '.join(source.choices(ELEMENTS, k=source.randint(0, 3)))}]::numeric[]" for _ in range(2))
    x, y = (f"({source.choice(ELEMENTS)})::numeric" for _ in range(2))
    return f"({source.choice(OF_ARRAYS).format(a=a, b=b, x=x, y=y)})::text"


def test_results_are_postgres(postgres: str, seed: int) -> None:
    source = random.Random(seed)
    rows = numerics.random_rows(source, 12)
    texts = [expression(source, source.randint(1, 3)) for _ in range(80)]
    texts += [f"{source.choice(AGGREGATES)}({expression(source, source.randint(0, 2))}::numeric)" for _ in range(20)]
    texts += [of_arrays(source) for _ in range(40)]
    with psycopg.connect(postgres, autocommit=True) as server:
        expected = results_of(server, rows, texts)
    connection = duckdb.connect()
    install(connection)
    connection.register(f"r{next(iter(numerics.catalog().items))}", numerics.table(rows).drop(["n"]))
    wrong = []
    for text, right in zip(texts, expected, strict=True):
        result = on_duckdb(connection, text)
        if result != right and not (result in ERRORS and right in ERRORS):  # which row fails first is not defined
            wrong.append((text, result, right))
    assert not wrong, (len(wrong), wrong[:3])


def test_coalesce_keeps_long_numbers() -> None:
    with duckdb.connect() as connection:
        install(connection)
        numbers = "FROM generate_series(1, 3000) AS t (i)"
        results = []
        for expression in ("coalesce((i / 7.0) ^ 50, 1.5)", "(i / 7.0) ^ 50"):
            plan = bind_query(f"SELECT {expression} {numbers}", numerics.catalog(), numeric_rules=WITH_GENERAL).plan
            results.append(connection.execute(render(plan)).arrow().read_all().column(0).to_pylist())
        assert len(results[0]) == 3000
        assert results[0] == results[1]


def test_aggregates_of_arrays_find_equal_ones() -> None:
    arrays = "(VALUES ('{1.0}'::numeric[]), ('{1.00}'), ('{2}'), ('{10.5}')) AS v (a)"
    shown = {"min(a)": "{1.0}", "max(a)": "{10.5}", "count(DISTINCT a)": "3", "mode() WITHIN GROUP (ORDER BY a)": "{1.0000000000000000}"}
    shown["cardinality(array_agg(DISTINCT a))"] = "3"
    shown["max(ARRAY[i])"] = "{24:00:00}"
    shown |= {"min(a) OVER ()": "{1.0}", "max(a) OVER ()": "{10.5}", "max(ARRAY[i]) OVER ()": "{24:00:00}"}
    with duckdb.connect() as connection:
        install(connection)
        for call, right in shown.items():
            source = "(VALUES ('24:00'::interval), ('1 mon -40 days')) AS v (i)" if "[i]" in call else arrays
            plan = bind_query(f"SELECT ({call})::text FROM {source}", numerics.catalog(), numeric_rules=WITH_GENERAL).plan
            assert set(connection.execute(render(plan)).fetchall()) == {(right,)}, call


def test_operands_whose_digits_have_no_room_in_one_decimal(postgres: str) -> None:
    rows = [(Decimal("-11111111111.11"), None, Decimal(10**18 - 1), None, None, None, None, 2**62), (Decimal("0.02"),) + (None,) * 7]
    texts = ["(c * c) % a", "(round(a, 3) > (c * k))::text"]
    with psycopg.connect(postgres, autocommit=True) as server, duckdb.connect() as connection:
        install(connection)
        connection.register(f"r{next(iter(numerics.catalog().items))}", numerics.table(rows).drop(["n"]))
        for text, right in zip(texts, results_of(server, rows, texts), strict=True):
            assert on_duckdb(connection, text) == right, text


def test_operands_are_columns() -> None:
    """A lambda takes ten times as long."""
    texts = ["sum(a * (1 - b) * (1 + b))", "b * (k - b) * (k + b) * 1.5", "a / (b + 1)", "sum(k / (a + 1))", "a * b / c + k"]
    assert not [text for text in texts if "lambda" in sql_of(f"SELECT {text} FROM {numerics.RELATION}")]


def test_operands_that_are_computed_for_some_rows_only() -> None:
    results = {
        "sum(1 / x) FILTER (WHERE x <> 0)": "0.50000000000000000000",
        "sum(CASE WHEN x <> 0 THEN 1 / x * 2.0 END)": "1.000000000000000000000",
        "count(*) FILTER (WHERE x = 0 OR 1 / x * 2.0 > 0)": "2",
        f"sum({' + '.join(['x'] * 40)})": "80",
        "count(DISTINCT random()::numeric / (x + 1))": "2",
        "max(round(random()::numeric * 0 + x / 2, 1))": "1.0",
    }
    with duckdb.connect() as connection:
        install(connection)
        for text, right in results.items():
            query = f"SELECT ({text})::text FROM (VALUES (0::numeric), (2::numeric)) AS v (x)"
            assert connection.execute(sql_of(query)).fetchall() == [(right,)], text


@pytest.mark.parametrize("scale", [1, 4, 13, 14])
def test_units_of_fixed_numerics(scale: int, seed: int) -> None:
    """Those with few digits are computed by way of a DOUBLE."""
    source = random.Random(seed)
    limits = (9, 10**8, 10**14 - 1, 10**14 + 1, 10**15, 10**20, 10**24 - 1)
    units = [10**14 + n for n in range(-2, 3)] + [source.choice((-1, 1)) * source.randint(0, source.choice(limits)) for _ in range(3000)]
    values = pa.table({"v": pa.array([Decimal(u).scaleb(-scale) for u in units], pa.decimal128(24, scale))})
    with duckdb.connect() as connection:
        install(connection)
        connection.register("fixed", values)
        result = connection.execute(f"SELECT ({from_fixed(Type('numeric', (24, scale))).format('v')}).u FROM fixed").fetchall()
    assert [int(u) for (u,) in result] == units


def sql_of(query: str) -> str:
    return render(bind_query(query, numerics.catalog(), numeric_rules=WITH_GENERAL).plan)


def results_of(server: psycopg.Connection[Any], rows: list[tuple[Any, ...]], texts: list[str]) -> list[list[str | None] | str]:
    """Returns PostgreSQL's results. An aggregate has one row, so it has no column to sort by."""
    plain = [text for text in texts if not text.startswith(tuple(f"{name}(" for name in AGGREGATES))]
    results = dict(zip(plain, numerics.on_postgres(server, rows, plain), strict=True))
    for text in texts:
        if text not in results:
            try:
                fetched = server.execute(f"SELECT ({text})::text FROM {numerics.RELATION}".replace("%", "%%"), ()).fetchall()
                results[text] = [value for (value,) in fetched]
            except psycopg.Error as error:
                results[text] = error.sqlstate or ""
    return [results[text] for text in texts]
