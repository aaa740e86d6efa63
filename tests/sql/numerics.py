"""Random expressions over declared numerics and integers, and PostgreSQL's texts of their values.

The binder knows the digits and the scale of each value, so all engines show what PostgreSQL shows.
"""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa

from tailgate.lake.catalog import Catalog, Change, Source
from tailgate.lake.types import INT2, INT4, INT8, NUMERIC_PRECISION, Field, Type
from tailgate.sql import plan
from tailgate.sql.bind import bind_query

COLUMNS = (
    Field("a", Type("numeric", (15, 2))),
    Field("b", Type("numeric", (6, 4))),
    Field("c", Type("numeric", (18, 0))),
    Field("d", Type("numeric", (3, 3))),
    Field("e", Type("numeric", (20, 5))),
    Field("i", INT2),
    Field("j", INT4),
    Field("k", INT8),
)
LITERALS = ("1", "0.5", "-2.50", "1000000", "0.001", "99.95")
RELATION = "numerics"


def catalog() -> Catalog:
    return Catalog().apply(Change((Source(Catalog().next_id, RELATION, COLUMNS, (7,), stored=True, envelope="upsert"),)))


def random_rows(source: random.Random, count: int) -> list[tuple[Decimal | int | None, ...]]:
    """Returns rows with values of every size, none of them zero."""
    return [tuple(_value(source, c.type) for c in COLUMNS) for _ in range(count)]


def _value(source: random.Random, type: Type) -> Decimal | int | None:
    if source.random() < 0.1:
        return None
    bits = {"int2": 15, "int4": 31, "int8": 63}.get(type.name)
    if bits is not None:
        return source.choice((1, -1)) * source.randint(1, 2 ** source.randint(1, bits) - 1)
    precision, scale = type.decimal
    units = source.choice((10**precision - 1, source.randint(1, 10 ** source.randint(1, precision) - 1)))
    return Decimal(source.choice((1, -1)) * units).scaleb(-scale)


def random_expressions(source: random.Random, count: int) -> list[tuple[str, plan.Query]]:
    """Returns bound expressions whose values have less than 38 digits."""
    expressions: list[tuple[str, plan.Query]] = []
    while len(expressions) < count:
        text = _expression(source, source.randint(1, 3))
        bound = bind_query(f"SELECT {text} FROM {RELATION}", catalog())
        type = bound.columns[0].type
        if type.name == "numeric" and type.decimal[0] < NUMERIC_PRECISION:
            expressions.append((text, bound))
    return expressions


def _expression(source: random.Random, depth: int) -> str:
    if depth == 0:
        return source.choice([c.name for c in COLUMNS] * 2 + list(LITERALS))
    inner = _expression(source, depth - 1)
    match source.randint(0, 9):
        case 0 | 1 | 2 | 3:
            return f"({inner} {source.choice('+-*%')} {_operand(source, depth - 1)}::numeric(9, 3))"
        case 4:
            return f"({inner} {source.choice('+-*')} {_operand(source, depth - 1)})"
        case 5:
            return f"{source.choice(('round', 'trunc'))}({inner}::numeric(20, 6), {source.randint(0, 8)})"
        case 6:
            return f"{source.choice(('round', 'trunc', 'ceil', 'floor'))}({inner}::numeric(20, 6))"
        case 7:
            return f"abs({inner})"
        case 8:
            return f"(- {inner})"
    return f"(CASE WHEN {inner} > 5 THEN {inner} END)"


def _operand(source: random.Random, depth: int) -> str:
    """Returns an expression of few digits that is not zero in a row of `random_rows`, for a divisor, too."""
    return source.choice(("b", "d", "i", "0.5", "7.25", "1.5")) if depth else source.choice(("b", "d", "i", "3.125"))


def on_postgres(server: psycopg.Connection[Any], rows: list[tuple[Any, ...]], texts: list[str]) -> list[list[str | None] | str]:
    """Returns for each expression the values as text, or the SQLSTATE of its error."""
    columns = ", ".join(f"{c.name} {c.type}" for c in COLUMNS)
    server.execute(f"CREATE TEMPORARY TABLE {RELATION} (n int, {columns})")
    for n, row in enumerate(rows):
        server.execute(f"INSERT INTO {RELATION} VALUES ({', '.join(['%s'] * (len(row) + 1))})", (n, *row))
    out: list[list[str | None] | str] = []
    for text in texts:
        try:
            values = server.execute(f"SELECT ({text})::text FROM {RELATION} ORDER BY n".replace("%", "%%"), ()).fetchall()
            out.append([value for (value,) in values])
        except psycopg.Error as error:
            out.append(error.sqlstate or "")
    return out


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    """Returns the rows as columns c0, c1, … in stored form, with their number as the last column."""
    arrays = [pa.array([row[i] for row in rows], c.type.arrow) for i, c in enumerate(COLUMNS)]
    names = [f"c{i}" for i in range(len(COLUMNS))]
    return pa.table([*arrays, pa.array(range(len(rows)))], [*names, "n"])


def shown(value: Decimal | None) -> str | None:
    return None if value is None else format(value, "f")
