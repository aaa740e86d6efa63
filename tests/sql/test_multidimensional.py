"""Random expressions of multidimensional arrays: PostgreSQL's values and errors."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import psycopg

from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import TailgateError
from tailgate.lake.types import BOOL
from tailgate.sql.bind import bind_query
from tailgate.sql.numeric_types import WITH_GENERAL
from tailgate.sql.render.duckdb import render
from tailgate.sql.render.duckdb_functions import error_of
from tailgate.values import raw
from tailgate.values.registry import binary_column, read_binary, read_text, text_column

EXPRESSIONS = 400
ELEMENTS = {
    "int4": ("1", "2", "3", "-7", "NULL"),
    "text": ("a", '"b c"', '"NULL"', "NULL", '"{"'),
    "numeric": ("1.0", "1.00", "2.5", "NaN", "NULL"),
    "interval": ('"1 day"', '"24:00:00"', '"1 mon"', "NULL"),
    "timestamp": ('"2024-01-01 00:00:00"', '"1999-12-31 23:59:59.5"', "NULL"),
    "jsonb": ('"{\\"k\\": 1}"', "1.0", "1", "NULL"),
}
CALLS = (
    "{a} = {b}", "{a} < {b}", "{a} >= {b}", "{a} <> {b}", "{a} || {b}", "array_cat({a}, {b})", "{a} || {x}", "{x} || {a}",
    "{a} IS DISTINCT FROM {b}", "array_dims({a})", "array_ndims({a})", "array_length({a}, {i})", "array_lower({a}, {i})",
    "array_upper({a}, {i})", "cardinality({a})", "({a})[{i}]", "({a})[{i}][{j}]", "({a})[{i}][{j}][{i}]", "({a})[{i}:{j}]",
    "({a})[{i}:][:{j}]", "({a})[{i}:{j}][{i}]", "({a})[:]", "trim_array({a}, {i})", "array_append({a}, {x})",
    "array_prepend({x}, {a})", "ARRAY[{a}, {b}]", "coalesce({a}, {b})", "to_json({a})", "array_to_string({a}, '/', '*')",
    "{x} = ANY ({a})", "(SELECT array_agg(v) FROM (VALUES ({a}), ({a})) t (v))", "ARRAY(SELECT {a})",
    "CASE WHEN {a} < {b} THEN {a} ELSE {b} END",
    "(SELECT count(v) FROM unnest({a}) AS t (v))", "ARRAY(SELECT generate_subscripts({a}, {i}))", "array_fill({x}, ARRAY[{i}, {j}])",
    "array_fill({x}, ARRAY[{i}], ARRAY[{j}])", "greatest({a}, {b})", "({a})::text", "(({a})::text || '')::{type}[]", "{a}",
)  # fmt: skip
# of types whose equal values have one stored form
SEARCHES = (
    "{a} @> {b}", "{a} && {b}", "array_remove({a}, {x})", "array_replace({a}, {x}, {y})", "array_position({a}, {x})",
    "array_position({a}, {x}, {i})", "array_positions({a}, {x})",
)  # fmt: skip
TRIMMED = "2202E number of elements to trim must be between 0 and"  # PostgreSQL adds the number of elements


def text_of(source: random.Random, type: str) -> str:
    """Returns the text of an array, sometimes with unequal lengths."""
    lengths = [source.randint(1, 3) for _ in range(source.choice((0, 1, 1, 2, 2, 3)))]
    if not lengths:
        return "{}"
    bounds = [source.choice((1, 1, 1, 0, -2, 5)) for _ in lengths]

    def contents(depth: int) -> str:
        if depth == len(lengths):
            return source.choice(ELEMENTS[type])
        count = lengths[depth] + (source.random() < 0.02)
        return "{" + ",".join(contents(depth + 1) for _ in range(count)) + "}"

    declared = "".join(f"[{low}:{low + length - 1}]" for low, length in zip(bounds, lengths, strict=True))
    return (declared + "=" if any(low != 1 for low in bounds) else "") + contents(0)


def expression(source: random.Random) -> str:
    """Returns an expression of arrays of one type."""
    type = source.choice(list(ELEMENTS))

    def array() -> str:
        text = "NULL" if source.random() < 0.05 else "'" + text_of(source, type).replace("'", "''") + "'"
        return f"{text}::{type}[]"

    def element() -> str:
        text = source.choice(ELEMENTS[type]).strip('"').replace('\\"', '"')
        return f"{'NULL' if text == 'NULL' else repr(text)}::{type}"

    a, b = array(), array()
    b = a if source.random() < 0.2 else b
    i, j = source.randint(-1, 3), source.randint(0, 3)
    calls = CALLS if type in ("interval", "jsonb") else (*CALLS, *SEARCHES)
    return source.choice(calls).format(a=a, b=b, x=element(), y=element(), i=i, j=j, type=type)


def theirs(server: psycopg.Connection[Any], text: str) -> str | None:
    try:
        row = server.execute(f"SELECT ({text})::text".encode()).fetchone()
    except psycopg.Error as error:
        return f"{error.sqlstate} {error.diag.message_primary}"
    assert row is not None
    result: str | None = row[0]
    return result


def ours(engine: duckdb.DuckDBPyConnection, text: str) -> str | None:
    """Returns the text of the value. Its binary form must stand for the same value."""
    try:
        query = bind_query(f"SELECT ({text})", Catalog(), numeric_rules=WITH_GENERAL)
        column = engine.execute(render(query.plan)).arrow().read_all().column(0)
    except TailgateError as error:
        return f"{error.sqlstate} {error.message}"
    except duckdb.Error as error:
        return f"{error_of(error).sqlstate} {error_of(error).message}"
    type = query.columns[0].type
    values = raw.stored(column, type)
    (written,) = text_column(values, type).to_pylist()
    if written is None:
        return None
    (binary,) = binary_column(values, type).to_pylist()
    if type.is_array:
        assert repr(read_binary(binary, type)) == repr(read_text(written.decode(), type))
    result = written.decode()
    return {"t": "true", "f": "false"}[result] if type == BOOL else result


def test_results_are_postgres(server: psycopg.Connection[Any], engine: duckdb.DuckDBPyConnection, seed: int) -> None:
    source = random.Random(seed)
    wrong = []
    for _ in range(EXPRESSIONS):
        text = expression(source)
        expected, result = theirs(server, text), ours(engine, text)
        if result != expected and not (str(result).startswith(TRIMMED) and str(expected).startswith(TRIMMED)):
            wrong.append((text, result, expected))
    assert not wrong, (len(wrong), wrong[:3])
