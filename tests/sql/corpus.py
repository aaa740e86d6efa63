"""The expressions of tests/fixtures/functions.jsonl: PostgreSQL's results, compared with DuckDB's.

A verdict is 'same'; 'refused' for an unsupported expression (0A000); 'relation' for an expression with
a subquery, on Spark; or a description of the difference. `tests/sql/corpus.txt` lists the unsupported
expressions, and the differences with their row of docs/sql/differences.md.

python -m tests.sql.corpus      prints all expressions with another verdict than 'same'
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from tailgate.lake import sortable
from tailgate.lake.catalog import Catalog
from tailgate.lake.errors import TailgateError
from tailgate.lake.types import NUMERIC_SCALE, Type
from tailgate.sql import plan
from tailgate.sql.bind import bind_query
from tailgate.sql.numeric_types import EXACT, WITH_GENERAL
from tailgate.sql.render.duckdb import render
from tailgate.sql.render.duckdb_functions import error_of, install
from tests.sql.oracle import fetched, normal, parsed, unstored

FOLDER = Path(__file__).parent
FIXTURE = FOLDER.parent / "fixtures" / "functions.jsonl"
EXPECTED = FOLDER / "corpus.txt"
HEADER = """# Expressions of tests/fixtures/functions.jsonl that are refused (0A000), or that differ from
# PostgreSQL, with their row of docs/sql/differences.md. Entries are only ever removed.
"""


@dataclass(frozen=True)
class Expression:
    id: str
    sql: str
    value: str | None
    type: str
    sqlstate: str


@cache
def corpus() -> tuple[Expression, ...]:
    lines = map(json.loads, FIXTURE.read_text().splitlines())
    return tuple(Expression(d["id"], d["sql"], d.get("value"), d.get("type", ""), d.get("sqlstate", "")) for d in lines)


def expected() -> dict[str, str]:
    """Returns 'refused' or the reason for the difference, by the id of the expression."""
    lines = (line for line in EXPECTED.read_text().splitlines() if line and not line.startswith("#"))
    return dict(line.split(maxsplit=1) for line in lines)


def bound(expression: Expression, numeric_rules: int = EXACT) -> plan.Query:
    return bind_query(f"SELECT {expression.sql}", Catalog(), numeric_rules=numeric_rules)


def on_duckdb(connection: duckdb.DuckDBPyConnection, expression: Expression) -> str:
    try:
        query = bind_query(f"SELECT {expression.sql}", Catalog(), numeric_rules=WITH_GENERAL)
        text = render(query.plan)
    except TailgateError as error:
        return of_error(expression, error.sqlstate, error.message)
    try:
        (value,) = fetched(connection, text, query.columns[0].type)
    except duckdb.Error as error:
        sql_error = error_of(error)
        return of_error(expression, sql_error.sqlstate, sql_error.message)
    return of_value(expression, value, query.columns[0].type)


def of_error(expression: Expression, sqlstate: str, message: str) -> str:
    if sqlstate == expression.sqlstate:
        return "same"
    return "refused" if sqlstate == "0A000" else f"error {sqlstate} {message}"


def of_value(expression: Expression, value: Any, type: Type) -> str:
    if expression.sqlstate:
        return f"value {value!r}, not an error"
    name = str(Type(type.name, is_array=type.is_array))
    if name != expression.type and not (type.name == "bpchar" and expression.type == "character"):
        return f"type {name}, not {expression.type}"
    try:
        expected = None if expression.value is None else parsed(expression.value, replace(type, modifiers=(), declared=True))
    except TailgateError as error:
        return f"value {value!r}; PostgreSQL's has no stored form: {error.message}"
    result = unstored(value, type)
    return "same" if equal(expected, result, type) else f"value {result!r}"


def equal(expected: Any, result: Any, type: Type) -> bool:
    if isinstance(expected, (list, tuple)) and isinstance(result, (list, tuple)):
        return len(expected) == len(result) and all(equal(a, b, type) for a, b in zip(expected, result, strict=True))
    if isinstance(expected, Decimal) and isinstance(result, dict):
        return bool(sortable.stored(expected) == result)  # with the same display scale
    if isinstance(expected, Decimal) and isinstance(result, Decimal) and type.decimal[1] >= NUMERIC_SCALE:
        # PostgreSQL's scale depends on the value, Tailgate's on the column
        return abs(expected - result) <= Decimal("0.5").scaleb(max(int(expected.as_tuple().exponent), -NUMERIC_SCALE))
    if isinstance(expected, float) and isinstance(result, float) and math.isfinite(expected) and expected:
        return math.isclose(expected, result, rel_tol=3e-16 if type.name == "float8" else 1e-7)
    if isinstance(expected, str) and type.name == "bpchar" and isinstance(result, str):
        return expected.rstrip(" ") == result.rstrip(" ")
    return bool(normal(expected) == normal(result))


def main() -> None:
    connection = duckdb.connect()
    install(connection)
    counts: Counter[str] = Counter()
    for expression in corpus():
        try:
            verdict = on_duckdb(connection, expression)
        except Exception as error:  # noqa: BLE001  # a defect; the list continues
            verdict = f"defect {type(error).__name__}: {error}"
        counts[verdict.split()[0]] += 1
        if verdict != "same":
            answer = expression.sqlstate or f"{expression.value} {expression.type}"
            print(f"{expression.id}\t{expression.sql}\t{answer}\t{verdict}")
    print(dict(counts), file=sys.stderr)


if __name__ == "__main__":
    main()
