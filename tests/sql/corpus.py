"""The 1,064 expressions of tests/fixtures/functions.jsonl, as PostgreSQL answered them, and what ours answer.

A verdict is 'same'; 'refused' by name; 'relation' for Spark where the expression is not one scalar but has a query in it; or what is
different. `tests/sql/corpus.txt` lists what is refused and what differs for a reason that docs/sql/differences.md gives.

python -m tests.sql.corpus      prints all that is not the same, by DuckDB
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from lake.catalog import Catalog
from lake.errors import TailgateError
from lake.types import NUMERIC_SCALE, Type
from sql import plan
from sql.bind import bind_query
from sql.duckdb import render
from sql.duckdb_functions import error_of, install
from sql.input.literals import parse
from tests.sql.oracle import normal, unstored

FOLDER = Path(__file__).parent
FIXTURE = FOLDER.parent / "fixtures" / "functions.jsonl"
EXPECTED = FOLDER / "corpus.txt"
HEADER = """# Of tests/fixtures/functions.jsonl, what is refused by name, and what differs: the row of docs/sql/differences.md that says so.
# It can only grow shorter.
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
    """Of those not the same: id to 'refused', or to the reason for the difference."""
    lines = (line for line in EXPECTED.read_text().splitlines() if line and not line.startswith("#"))
    return dict(line.split(maxsplit=1) for line in lines)


def bound(expression: Expression) -> plan.Query:
    return bind_query(f"SELECT {expression.sql}", Catalog())


def on_duckdb(connection: duckdb.DuckDBPyConnection, expression: Expression) -> str:
    try:
        query = bound(expression)
        text = render(query.plan)
    except TailgateError as error:
        return of_error(expression, error.sqlstate, error.message)
    try:
        row = connection.execute(text).fetchone()
    except duckdb.Error as error:
        made = error_of(error)
        return of_error(expression, made.sqlstate, made.message)
    assert row is not None
    return of_value(expression, row[0], query.columns[0].type)


def of_error(expression: Expression, sqlstate: str, message: str) -> str:
    if sqlstate == expression.sqlstate:
        return "same"
    return "refused" if sqlstate == "0A000" else f"error {sqlstate} {message}"


def of_value(expression: Expression, value: Any, type: Type) -> str:
    if expression.sqlstate:
        return f"value {value!r}, not an error"
    shown = str(Type(type.name, is_array=type.is_array))
    if shown != expression.type and not (type.name == "bpchar" and expression.type == "character"):
        return f"type {shown}, not {expression.type}"
    try:
        theirs = None if expression.value is None else parse(expression.value, Type(type.name, is_array=type.is_array))
    except TailgateError as error:
        return f"value {value!r}, theirs has no stored form: {error.message}"
    ours = unstored(value, type)
    return "same" if equal(theirs, ours, type) else f"value {ours!r}"


def equal(theirs: Any, ours: Any, type: Type) -> bool:
    if isinstance(theirs, (list, tuple)) and isinstance(ours, (list, tuple)):
        return len(theirs) == len(ours) and all(equal(a, b, type) for a, b in zip(theirs, ours, strict=True))
    if isinstance(theirs, Decimal) and isinstance(ours, Decimal) and type.decimal[1] >= NUMERIC_SCALE:
        # PostgreSQL's scale follows the value, ours is the column's
        return abs(theirs - ours) <= Decimal("0.5").scaleb(max(int(theirs.as_tuple().exponent), -NUMERIC_SCALE))
    if isinstance(theirs, float) and isinstance(ours, float) and math.isfinite(theirs) and theirs:
        return math.isclose(theirs, ours, rel_tol=3e-16 if type.name == "float8" else 1e-7)
    if isinstance(theirs, str) and type.name == "bpchar" and isinstance(ours, str):
        return theirs.rstrip(" ") == ours.rstrip(" ")
    return bool(normal(theirs) == normal(ours))


def main() -> None:
    connection = duckdb.connect()
    install(connection)
    counts: Counter[str] = Counter()
    for expression in corpus():
        try:
            verdict = on_duckdb(connection, expression)
        except Exception as error:  # noqa: BLE001  # a defect of ours, to be seen with all others
            verdict = f"defect {type(error).__name__}: {error}"
        counts[verdict.split()[0]] += 1
        if verdict != "same":
            wanted = expression.sqlstate or f"{expression.value} {expression.type}"
            print(f"{expression.id}\t{expression.sql}\t{wanted}\t{verdict}")
    print(dict(counts), file=sys.stderr)


if __name__ == "__main__":
    main()
