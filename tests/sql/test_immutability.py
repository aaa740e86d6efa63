"""A function may compute a generated column exactly if PostgreSQL says that it is immutable."""

from __future__ import annotations

from typing import Any

import psycopg

from tailgate.lake.catalog import Table
from tailgate.lake.errors import InvalidObjectDefinition, TailgateError
from tailgate.lake.types import BOOL, Field
from tailgate.sql.binder.writes.generated import value_of
from tailgate.sql.functions.catalogue import ROWS
from tests.sql.arguments import declared, of_enum
from tests.sql.oracle import EXTENSIONS, NAMES, Case, case_of

# casts and functions that several rows of the catalogue compute, each of a column `a`
EXPRESSIONS = (
    ("int4[]", "a::text"), ("text", "a::int[]"), ("timestamptz[]", "a::date[]"), ("text[]", "a::date[]"), ("int4[]", "a::int8[]"),
    ("jsonb", "a::text"), ("text", "a::jsonb"), ("int4", "a || 'x'"), ("int4", "row_to_json(row(a, 1))"), ("int4", "to_json(a)"),
    ("text", "jsonb_build_object('x', a)"), ("timestamptz", "a AT TIME ZONE 'UTC'"), ("numeric", "a::int::text"), ("date", "a + 1"),
)  # fmt: skip
SCALARS = ("operator", "prefix", "function", "cast")


def expected(case: Case, server: psycopg.Connection[Any]) -> bool | None:
    """Returns whether PostgreSQL accepts the expression; None if it knows no such expression."""
    columns = "".join(f"{name} {type}, " for name, type in zip(NAMES, case.types, strict=False))
    try:
        server.execute(f"CREATE TEMPORARY TABLE g ({columns}g boolean GENERATED ALWAYS AS (({case.expression}) IS NULL) STORED)".encode())
    except psycopg.errors.InvalidObjectDefinition:
        return False
    except psycopg.Error:
        return None
    server.execute("DROP TABLE g")
    return True


def accepted(case: Case) -> bool | None:
    columns = tuple(Field(name, type) for name, type in zip(NAMES, case.types, strict=False))
    own = Field("g", BOOL)
    table = Table(id=1, name="g", columns=(*columns, own), generated={"g": f"({case.expression}) IS NULL"})
    try:
        value_of(own, table)
    except InvalidObjectDefinition:
        return False
    except TailgateError:
        return None
    return True


def test_every_function(server: psycopg.Connection[Any], seed: int) -> None:
    wrong, compared = [], 0
    for row in ROWS:
        if row.kind not in SCALARS or row.name in EXTENSIONS or of_enum(row) or not (case := case_of(row, seed)).expression:
            continue
        theirs, ours = expected(case, server), accepted(case)
        if None in (theirs, ours):
            continue
        compared += 1
        if theirs != ours:
            wrong.append(f"{row.kind} {row}: {case.expression} is {'' if theirs else 'not '}immutable")
    for type, expression in EXPRESSIONS:
        case = Case(ROWS[0], expression, (declared(type),), ())
        if expected(case, server) != accepted(case):
            wrong.append(expression)
    assert not wrong, "\n".join(wrong)
    assert compared > 900
