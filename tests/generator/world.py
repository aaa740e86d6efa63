"""The tables that random statements read, with the same rows in PostgreSQL and in Tailgate.

numbers, moments   with a key
texts, documents   with duplicate rows
Odd "names"        with names that need quotes
nothing            without rows
shown              a view
kept, kept_texts   materialized views; in PostgreSQL plain views, which follow their tables
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.generator.queries import Relation
from tests.generator.values import quoted, value

TABLES = (
    Relation(
        "numbers",
        (
            ("id", "int4"),
            ("a", "int2"),
            ("b", "int4"),
            ("c", "int8"),
            ("d", "numeric"),
            ("e", "float8"),
            ("f", "float4"),
            ("g", "bool"),
            ("m", "money"),
        ),
        "id",
    ),
    Relation(
        "texts",
        (
            ("k", "int4"),
            ("t", "text"),
            ("v", "varchar"),
            ("h", "bpchar"),
            ("y", "bytea"),
            ("u", "uuid"),
            ("n", "inet"),
            ("m", "macaddr"),
            ("b", "varbit"),
            ("c", "char"),
        ),
    ),
    Relation(
        "moments",
        (("id", "int4"), ("d", "date"), ("tm", "time"), ("tt", "timetz"), ("ts", "timestamp"), ("tz", "timestamptz"), ("iv", "interval")),
        "id",
    ),
    Relation("documents", (("k", "int4"), ("j", "jsonb"), ("ia", "int4[]"), ("ta", "text[]"))),
    Relation('"Odd ""names"""', (('"select"', "int4"), ('"A b"', "text"), ("día", "date"))),
    Relation("nothing", (("a", "int4"), ("b", "text"), ("c", "float8"))),
)
DECLARED = {"numbers.d": "numeric(10,2)", "texts.v": "varchar(8)", "texts.h": "char(5)", "texts.c": '"char"'}
VIEWS = (
    ("VIEW", Relation("shown", (("k", "int4"), ("t", "text"), ("d", "numeric"))), "SELECT k, t, d FROM texts JOIN numbers ON k = id"),
    (
        "MATERIALIZED VIEW",
        Relation("kept", (("g", "bool"), ("n", "int8"), ("s", "int8"), ("top", "int4"))),
        "SELECT g, count(*) AS n, sum(b) AS s, max(b) AS top FROM numbers GROUP BY g",
    ),
    (
        "MATERIALIZED VIEW",
        Relation("kept_texts", (("k", "int4"), ("t", "text"), ("ts", "timestamp"))),
        "SELECT k, t, ts FROM texts LEFT JOIN moments ON k = id",
    ),
)
RELATIONS = (*TABLES, *(relation for _, relation, _ in VIEWS))
ROWS = {"numbers": 12, "texts": 14, "moments": 8, "documents": 9, '"Odd ""names"""': 4, "nothing": 0}


Row = tuple[str | None, ...]  # values as text


def rows(chance: random.Random) -> dict[str, list[Row]]:
    """Returns the rows of each table. Tables without a key have some duplicate rows."""
    out: dict[str, list[Row]] = {}
    for table in TABLES:
        new_rows: list[Row] = []
        for n in range(ROWS[table.name]):
            twice = table.key is None and new_rows and chance.random() < 0.15
            new_rows.append(chance.choice(new_rows) if twice else row(table, n, chance))
        out[table.name] = new_rows
    return out


def row(table: Relation, number: int, chance: random.Random) -> Row:
    """Returns a random row of a table; `number` is its key."""
    values = [None if chance.random() < 0.12 else value(type, chance) for _, type in table.columns]
    if table.key is not None:
        values[0] = str(number)
    return tuple(_fitting(f"{table.name}.{c}", v) for (c, _), v in zip(table.columns, values, strict=True))


def _fitting(column: str, text: str | None) -> str | None:
    """Shortens a value to the declared length or precision of its column."""
    declared = DECLARED.get(column, "")
    if text is not None and declared.startswith(("varchar", "char")):
        return text[: 5 if declared.startswith("char") else 8]
    if text is not None and declared.startswith("numeric") and text.lstrip("-").split(".")[0].__len__() > 6:
        return "7.25"
    return text


def create(execute: Callable[[str], object], rows: dict[str, list[Row]], *, maintained: bool) -> None:
    """Creates the tables and views. With `maintained`, the views are materialized, as in Tailgate."""
    for table in TABLES:
        columns = [f"{c} {DECLARED.get(f'{table.name}.{c}', t)}" + (" PRIMARY KEY" if c == table.key else "") for c, t in table.columns]
        execute(f"CREATE TABLE {table.name} ({', '.join(columns)})")
        lines = ["(" + ", ".join("NULL" if v is None else quoted(v) for v in row) + ")" for row in rows[table.name]]
        if lines:
            execute(f"INSERT INTO {table.name} VALUES {', '.join(lines)}")
    for kind, view, query in VIEWS:
        execute(f"CREATE {kind if maintained else 'VIEW'} {view.name} AS {query}")
