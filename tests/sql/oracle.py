"""Expressions over rows of arguments, evaluated by PostgreSQL and DuckDB, with comparable results.

A result is ('value', stored form) or ('error', SQLSTATE).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import psycopg

from tailgate.lake.catalog import Catalog, Change, Table
from tailgate.lake.errors import TailgateError
from tailgate.lake.sortable import EXACT
from tailgate.lake.tables.moments import numbers
from tailgate.lake.types import NUMERIC_PRECISION, NUMERIC_SCALE, Field, Type
from tailgate.sql import plan
from tailgate.sql.bind import bind_query
from tailgate.sql.functions import ksqldb
from tailgate.sql.functions.aggregates import REGRESSIONS, VARIANCES
from tailgate.sql.functions.entry import Function
from tailgate.sql.functions.mathematics import LAST_DIGIT
from tailgate.sql.render.duckdb import render
from tailgate.sql.render.duckdb_functions import error_of
from tailgate.sql.render.moments import duckdb_date, duckdb_timestamp
from tailgate.sql.tables.definition import type_name
from tailgate.values import raw
from tailgate.values.registry import read_text as parse
from tests.sql.arguments import declared, lists

Result = tuple[str, Any]


@dataclass(frozen=True)
class Case:
    """An entry of the catalogue as an expression over columns a, b and so on, and rows of arguments."""

    function: Function
    expression: str
    types: tuple[Type, ...]
    rows: tuple[tuple[str | None, ...], ...]


NAMES = "abcdefg"
# entries whose call has another syntax; an empty string: not evaluated
CALLS = {"[]": "a[b]", "[:]": "a[b:c]", "ARRAY": "ARRAY[a, 1]", "jsonb_build_array": "", "jsonb_build_object": "",
    "json_build_array": "", "json_build_object": "",
    "pg_typeof": "pg_typeof(a)::text", "like_escape": "",
    "mz_now": "", "mz_logical_timestamp": "", "try": ""}  # fmt: skip
# aggregates with an order or with unusual arguments
AGGREGATES = {
    "string_agg": "string_agg(a, ',' ORDER BY a)",
    "array_agg": "array_agg(a ORDER BY a)",
    "json_agg": "json_agg(a ORDER BY i)",
    "jsonb_agg": "jsonb_agg(a ORDER BY i)",
    "json_object_agg": "json_object_agg(coalesce(a, ''), b ORDER BY i)",
    "jsonb_object_agg": "jsonb_object_agg(coalesce(a, ''), b ORDER BY i)",
    "mode": "mode() WITHIN GROUP (ORDER BY a DESC)",
    "percentile_cont": "percentile_cont(0.3) WITHIN GROUP (ORDER BY b)",
    "percentile_disc": "percentile_disc(0.3) WITHIN GROUP (ORDER BY b DESC)",
}
# aggregates that PostgreSQL lacks, or has for another type
EXTENSIONS = frozenset("any_value max_by min_by latest_by_offset earliest_by_offset".split()) | {row.name for row in ksqldb.ROWS}


@contextmanager
def pgcrypto(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Adds the functions of pgcrypto and uuid-ossp to the server's database within a `with` block."""
    connection.execute('CREATE EXTENSION IF NOT EXISTS pgcrypto; CREATE EXTENSION IF NOT EXISTS "uuid-ossp"')
    try:
        yield
    finally:
        connection.execute('DROP EXTENSION IF EXISTS pgcrypto, "uuid-ossp"')


def case_of(function: Function, seed: int) -> Case:
    names = list(NAMES[: len(function.arguments)])
    types = tuple(map(declared, function.arguments))
    name, _, unit = function.name.partition(":")
    match function.kind:
        case "operator":
            text = f"a {name} b"
        case "prefix":
            text = f"{name} a"
        case "cast":
            result = function.result if isinstance(function.result, str) else "numeric(20,4)"
            text = f"a::{result}"
        case "aggregate":
            text = AGGREGATES.get(name, f"{name}({', '.join(names) or '*'})")
        case _:
            text = f"{name}({', '.join(names)})"
            if function.name in CALLS:
                text = CALLS[function.name]
            elif name == "extract":
                text = f"extract({unit} FROM a)"
                if unit == "julian" and types != (Type("date"),):  # a numeric with a scale in each row
                    text += "::text"
            elif name == "position":
                text = "position(b IN a)"
            elif unit:
                text = f"{name}('{unit}', a)"
            elif name in ("normalize", "is_normalized") and len(names) > 1:
                text = f"normalize(a, {random.Random(seed).choice(('NFC', 'NFD', 'NFKC', 'NFKD'))})" if name == "normalize" else ""
            elif name in ("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"):
                text = name
    keywords = {"~~": "LIKE", "~~*": "ILIKE", "!~~": "NOT LIKE", "!~~*": "NOT ILIKE"}
    if function.name in keywords:
        text = f"a {keywords[function.name]} b"
    rows = lists(function, random.Random(f"{seed}{function}"))
    return Case(function, text, types, tuple(rows))


# other expressions: nodes of the plan, and literals of every type
EXPRESSIONS: list[tuple[str, tuple[str, ...]]] = [
    ("a IS DISTINCT FROM b", ("int4", "int4")),
    ("a IS NOT DISTINCT FROM b", ("float8", "float8")),
    ("a IN (1, 2, -7)", ("int4",)),
    ("a NOT IN (1, NULL)", ("int4",)),
    ("a IN ('NaN', 0)", ("float8",)),
    ("a AND b OR NOT b", ("bool", "bool")),
    ("a IS NOT TRUE AND b IS UNKNOWN", ("bool", "bool")),
    ("a IS NULL OR b IS NOT NULL", ("text", "bool")),
    ("CASE WHEN a > 0 THEN 'plus' WHEN a < 0 THEN b END", ("int4", "text")),
    ("CASE a WHEN 1 THEN 2.5 WHEN 2 THEN b ELSE 0 END", ("int4", "numeric")),
    ("CASE WHEN b = 0 THEN 0 ELSE a / b END", ("int4", "int4")),
    ("coalesce(a, b, 7)", ("int4", "int8")),
    ("nullif(a, b)", ("text", "text")),
    ("greatest(a, b, 0)", ("float8", "float8")),
    ("least(a, b)", ("text", "text")),
    ("greatest(a, b)", ("timestamptz", "timestamptz")),
    *(
        (f"a::{type}({digits})", (type,))
        for type in ("time", "timetz", "timestamp", "timestamptz", "interval")
        for digits in (0, 1, 3, 5, 6, 9)
    ),
    ("a::timestamp(2)", ("text",)),
    ("a::interval(2)", ("text",)),
    ("a::time(4)", ("timestamp",)),
    ("a::timestamptz(4)", ("timestamp",)),
    ("a::timestamp(3)::text", ("timestamp",)),
    ("coalesce(a::timestamp(3), b)", ("timestamp", "timestamp")),
    ("a::timestamp(0) = b::timestamp(0)", ("timestamp", "timestamp")),
    ("a BETWEEN SYMMETRIC b AND 1", ("numeric", "numeric")),
    ("a > 1 OR a <= 0", ("numeric",)),
    ("a = 2.5 OR a <> -0.0100", ("numeric",)),
    ("a >= b", ("numeric", "int8")),
    ("a IS DISTINCT FROM 1", ("numeric",)),
    ("a IN (1, 2.50, b)", ("numeric", "int4")),
    ("a IN (1, 2.5000, -7)", ("numeric",)),
    ("coalesce(a, 1.123)", ("numeric",)),
    ("CASE WHEN a > 3 THEN a ELSE 0.12345 END", ("numeric",)),
    ("a NOT BETWEEN b AND 5", ("int8", "int8")),
    ("a = '2020-01-01' OR a > timestamp '2020-02-29 12:34:56.789'", ("timestamp",)),
    ("a = '2020-01-01 02:00+02'", ("timestamptz",)),
    ("a - date '1969-12-31'", ("date",)),
    ("a = '12:34:56.789'", ("time",)),
    ("a || E'\\\\ '' \\n äöü 😀 \" $1'", ("text",)),
    ("a = '\\xc3a4'", ("bytea",)),
    ("a = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", ("uuid",)),
    ('a @> \'{"b": {"c": [2]}}\'', ("jsonb",)),
    ("a #>> '{b,c,0}'", ("jsonb",)),
    ("a[0]", ("jsonb",)),
    ("a['b']['c'][1]", ("jsonb",)),
    ("a[b]", ("jsonb", "int4")),
    ("(a[b])[c]", ("jsonb", "text", "int2")),
    ("json_build_object(a, b, 'c', c, 'd', ARRAY[a, 'x'])", ("text", "json", "float8")),
    ("json_build_array(a, b, c, d, NULL)", ("numeric", "timestamptz", "jsonb", "bytea")),
    ("to_json(a)", ("text[]",)),
    ("array_to_json(a)", ("int4[]",)),
    ("array_to_json(a, true)", ("text[]",)),
    ("array_to_json(a, b > 0)", ("jsonb[]", "int4")),
    ("a + 9223372036854775807 - 9223372036854775807", ("numeric",)),
    ("a * 1e-3 + 0.00", ("numeric",)),
    ("a + '1e308'::float8 * 0 + 'NaN'", ("float8",)),
    ("a > '-Infinity' AND a < 1.5e300::float8", ("float8",)),
    ("a = -2147483648 OR a = -1", ("int4",)),
    ("a + interval '1 mon -2 days 03:00:00.5'", ("timestamp",)),
    ("a = interval '30 days' OR a < '1 day'", ("interval",)),
    ("a::varchar(2) || b::char(3) || 'x'", ("text", "text")),
    ("(a::bigint * 3)::int", ("int4",)),
    ("length(a) > 2 AND left(a, 1) = right(a, -1)", ("text",)),
    ("(a->>'a')::int + 1", ("jsonb",)),
    ("date_trunc('hour', a) = date_trunc('day', a)", ("timestamptz",)),
]


@cache
def expressions(seed: int) -> list[Case]:
    cases = []
    for text, arguments in EXPRESSIONS:
        case = case_of(Function("expression", arguments, "text"), seed)
        cases.append(replace(case, expression=text, function=Function(text, arguments, "text")))
    return cases


# --- PostgreSQL ---------------------------------------------------------------------------------


def on_postgres(connection: psycopg.Connection[Any], case: Case, result: Type) -> tuple[str, list[Result]]:
    """Returns the name of the result's type, and a result for each row."""
    columns = ["i int", *(f"{n} {type_name(t)}" for n, t in zip(NAMES, case.types, strict=False))]
    connection.execute("DROP TABLE IF EXISTS arguments")
    connection.execute(f"CREATE TEMPORARY TABLE arguments ({', '.join(columns)})")
    if case.rows:
        marks = ", ".join(["%s", *(f"%s::{type_name(t)}" for t in case.types)])
        with connection.cursor() as cursor:
            rows = [(i, *row) for i, row in enumerate(case.rows)]
            cursor.executemany(f"INSERT INTO arguments VALUES ({marks})", rows)  # type: ignore[arg-type]
    aggregate = case.function.kind == "aggregate"
    query = f"SELECT pg_typeof({case.expression})::text, ({case.expression})::text FROM arguments"
    try:
        answers = connection.execute(query + ("" if aggregate else " ORDER BY i")).fetchall()  # type: ignore[arg-type]
        return answers[0][0], [_postgres_value(text, result) for _, text in answers]
    except psycopg.Error as error:
        if aggregate:
            return "", [("error", error.sqlstate)]
    results: list[Result] = []
    type = ""
    for i in range(len(case.rows)):
        try:
            answer = connection.execute(query + f" WHERE i = {i}").fetchone()  # type: ignore[arg-type]
            assert answer is not None
            type = answer[0]
            results.append(_postgres_value(answer[1], result))
        except psycopg.Error as error:
            results.append(("error", error.sqlstate))
    return type, results


def _postgres_value(text: str | None, type: Type) -> Result:
    plain = Type(type.name, is_array=type.is_array)
    try:
        return ("value", None if text is None else normal(parsed(text, plain)))
    except TailgateError:
        return ("unstorable", text)  # a value without a stored form, such as infinity or the year 10000


# --- Tailgate -----------------------------------------------------------------------------------


def bound(case: Case) -> tuple[Catalog, plan.Query]:
    fields = tuple(Field(n, t) for n, t in zip(NAMES, case.types, strict=False))
    columns = (Field("i", Type("int4"), False), *fields)
    catalog = Catalog().apply(Change((Table(20000, "arguments", columns, (0,), stored=True),)))
    return catalog, bind_query(f"SELECT {case.expression} FROM arguments", catalog)


def on_duckdb(connection: duckdb.DuckDBPyConnection, case: Case, query: plan.Query, expected: list[Result]) -> list[Result]:
    types = ["INTEGER", *(t.duckdb for t in case.types)]
    connection.execute("DROP TABLE IF EXISTS r20000")
    connection.execute(f"CREATE TABLE r20000 ({', '.join(f'c{i} {t}' for i, t in enumerate(types))})")
    rows = [(i, *(_parameter(number(v, t), t) for v, t in zip(row, case.types, strict=True))) for i, row in enumerate(case.rows)]
    marks = ", ".join(f"CAST(? AS {t})" for t in types)
    if rows:
        connection.executemany(f"INSERT INTO r20000 VALUES ({marks})", rows)
    text = render(query.plan)
    type = query.columns[0].type
    if case.function.kind == "aggregate":
        return [_evaluate(connection, text, type)]
    one_row = text.replace("FROM r20000", "FROM (SELECT * FROM r20000 WHERE c0 = :i)")
    valid = [i for i, result in enumerate(expected) if result[0] == "value"]
    results: dict[int, Result] = {}
    try:
        all_valid = f"FROM (SELECT * FROM r20000 WHERE c0 IN ({', '.join(map(str, valid))}) ORDER BY c0)"
        if valid:
            for i, row in zip(valid, fetched(connection, text.replace("FROM r20000", all_valid), type), strict=True):
                results[i] = ("value", normal(unstored(row, type)))
    except duckdb.Error:
        pass  # each row is evaluated below
    for i in range(len(case.rows)):
        if i not in results:
            results[i] = _evaluate(connection, one_row.replace(":i", str(i)), type)
    return [results[i] for i in range(len(case.rows))]


def _evaluate(connection: duckdb.DuckDBPyConnection, text: str, type: Type) -> Result:
    try:
        return ("value", normal(unstored(fetched(connection, text, type)[0], type)))
    except duckdb.Error as error:
        return ("error", error_of(error).sqlstate)


def fetched(connection: duckdb.DuckDBPyConnection, text: str, type: Type) -> list[Any]:
    """Returns the values of a query of one column."""
    result = connection.execute(text)
    if type.name not in MOMENTS:
        return [row[0] for row in result.fetchall()]
    return [dated(v, type) for v in numbers(raw.stored(result.to_arrow_table().column(0), type)).to_pylist()]


MOMENTS: dict[str, Callable[[int], str]] = {"date": duckdb_date, "timestamp": duckdb_timestamp, "timestamptz": duckdb_timestamp}


def _parameter(value: Any, type: Type) -> Any:
    """Returns a value as a parameter of DuckDB."""
    write = MOMENTS.get(type.name)
    if write is None or value is None:
        return value
    return [_parameter(v, type.element) for v in value] if type.is_array else write(value)


def number(text: str | None, type: Type) -> Any:
    """Returns a value as Arrow takes it. Dates and timestamps are numbers."""
    return None if text is None else _stored(parse(text, type), type)


def stored(text: str | None, type: Type) -> Any:
    """Returns a value as Arrow and DuckDB take it. Dates and timestamps are Python's, if it has them."""
    return dated(number(text, type), type)


def parsed(text: str, type: Type) -> Any:
    """Returns the value of a text. Dates and timestamps are Python's, if it has them."""
    return dated(parse(text, type), type)


def dated(value: Any, type: Type) -> Any:
    """Returns the date or timestamp of a number, or the number if Python does not have it; other values as they are."""
    if value is None or type.name not in MOMENTS:
        return value
    if type.multidimensional:
        items, shape = value.values() if isinstance(value, dict) else value
        return {"elements": dated(items, type.array()), "dimensions": shape}
    if type.is_array:
        return [dated(v, type.element) for v in value]
    try:
        if type.name == "date":
            return date(1970, 1, 1) + timedelta(days=value)
        return datetime(1970, 1, 1, tzinfo=timezone.utc if type.name == "timestamptz" else None) + timedelta(microseconds=value)
    except OverflowError:
        return value


def _stored(value: Any, type: Type) -> Any:
    if value is not None and type.multidimensional:
        return {"elements": _stored(value[0], type.array()), "dimensions": list(value[1])}
    if value is not None and type.is_array:
        return [_stored(v, type.element) for v in value]
    if value is not None and type.name == "interval":
        return dict(zip(("months", "days", "micros"), value, strict=True))
    return value


def unstored(value: Any, type: Type) -> Any:
    if isinstance(value, dict) and type.multidimensional:
        return unstored(value["elements"], type.array()), tuple(value["dimensions"])
    if isinstance(value, list):
        return tuple(unstored(v, type.element) for v in value)
    if isinstance(value, dict) and type.name == "interval":
        return tuple(value.values())
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc)
    if isinstance(value, str) and type.name == "bpchar":
        return value.rstrip(" ")  # as in its cast to text, which is what PostgreSQL returns here
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value


INEXACT = ("/", "avg", "sqrt", "exp", "ln", "log", "log10", "power", "pow", "^")


def _exponent(value: Decimal) -> int:
    """Returns the exponent of the last digit; an integer may have lost zeros after the point."""
    return min(int(value.as_tuple().exponent), value.adjusted() - 15)


def agree(function: Function, expected: Result, result: Result) -> bool:
    """Returns whether a result equals PostgreSQL's, within the promised precision."""
    if expected[0] == "unstorable":
        return result[0] == "error" or isinstance(result[1], str)  # DuckDB returns such dates as text
    if isinstance(expected[1], Decimal) and expected[1].adjusted() >= NUMERIC_PRECISION - NUMERIC_SCALE:
        return result == ("error", "22003") or result == expected
    if function.name == "width_bucket" and expected == ("value", -(2**31)):
        return result[0] == "value"  # PostgreSQL's result of a quotient that overflows
    if expected[0] == result[0] == "value" and None not in (expected[1], result[1]):
        if function.name in INEXACT and isinstance(expected[1], Decimal):
            # PostgreSQL's scale depends on the value, Tailgate's on the column
            return abs(expected[1] - result[1]) <= Decimal(1).scaleb(max(_exponent(expected[1]), -16))
        if function.name in VARIANCES and isinstance(expected[1], Decimal):
            return abs(expected[1] - result[1]) <= Decimal(1).scaleb(max(int(expected[1].as_tuple().exponent), -16))
        if function.name in (*VARIANCES, *REGRESSIONS) and isinstance(expected[1], float):
            return math.isclose(expected[1], result[1], rel_tol=1e-12)  # the exact value, rounded once
        if function.name in ("sum", "avg") and isinstance(expected[1], float):
            return math.isclose(expected[1], result[1], rel_tol=1e-6 if function.arguments == ("float4",) else 1e-12)
        if (function.kind == "cast" or function.arguments in (("numrange",), ("nummultirange",))) and isinstance(expected[1], Decimal):
            return abs(expected[1] - result[1]) <= Decimal(1).scaleb(-NUMERIC_SCALE)
        if function.note == LAST_DIGIT and isinstance(expected[1], float):
            return math.isclose(expected[1], result[1], rel_tol=1e-15)
    return expected == result


def normal(value: Any) -> Any:
    """Returns a value for ==: NaN equals NaN, 1.0 equals 1.00, and -0.0 differs from 0.0."""
    if isinstance(value, (list, tuple)):
        return tuple(map(normal, value))
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else "-0.0" if value == 0 and math.copysign(1, value) < 0 else value
    if isinstance(value, Decimal):
        return Decimal(0) if not value else EXACT.create_decimal(value).normalize(EXACT)
    return value
