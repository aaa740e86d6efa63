"""Every aggregate of the catalogue over changing rows, compared with PostgreSQL 15."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tailgate.lake.types import INT4, Field, Type
from tailgate.sql.functions.aggregates import MAINTAINED
from tailgate.sql.functions.catalogue import ROWS
from tailgate.sql.functions.entry import Function
from tailgate.sql.tables.definition import type_name
from testing.random_queries import Table
from testing.views import Views
from testing.worlds import World
from tests.sql.arguments import EXTREME, declared, of_enum
from tests.sql.oracle import EXTENSIONS, NAMES, Result, agree, case_of, normal, parsed, stored, unstored
from tests.sql.samples import SAMPLES

pytestmark = [pytest.mark.spark, pytest.mark.long]

TICKS, CHANGES, TOGETHER = 4, 60, 40  # TOGETHER: aggregates per view
BITS = 3  # of all bit strings, because AND of different lengths is an error
AGGREGATES = [
    r for r in ROWS if r.kind == "aggregate" and r.duckdb and r.name in MAINTAINED and r.name not in EXTENSIONS and not of_enum(r)
]
NAMES_OF_TYPES = sorted({name for row in AGGREGATES for name in row.arguments})
COLUMNS = {"i": INT4, "k": INT4} | {f"{place}_{re.sub('[^a-z0-9]', '_', n)}": declared(n) for n in NAMES_OF_TYPES for place in "ab"}


def expression(row: Function) -> str:
    """Returns the call, with columns of its argument types."""
    columns = {name: f"{name}_{re.sub('[^a-z0-9]', '_', n)}" for name, n in zip(NAMES, row.arguments, strict=False)}
    return re.sub(r"\b[ab]\b(?!')", lambda m: columns.get(m[0], m[0]), case_of(row, 0).expression)


def pool(name: str) -> list[str | None]:
    family = {"any": "int4", "anyarray": "int4[]"}.get(name, name)
    if family == "bit":
        return [v for v in SAMPLES[family] if v is None or len(v) == BITS]
    # the squares of the largest values exceed a numeric of 38 digits: 22003
    return [v for v in SAMPLES[family] if v not in EXTREME and (name != "int8" or len(v or "") < 16)]


def test_every_aggregate(session: Any, tmp_path: Path, seed: int, server: psycopg.Connection[Any]) -> None:
    chance = random.Random(seed)
    table = Table(16384, "t", tuple(Field(n, t) for n, t in COLUMNS.items()))
    pools = [pool(n) for n in NAMES_OF_TYPES for _ in "ab"]
    world = World(0, tables=0)
    world.tables = (table,)
    views = Views(session, tmp_path, world, 1)
    parts = [AGGREGATES[at : at + TOGETHER] for at in range(0, len(AGGREGATES), TOGETHER)]
    for number, part in enumerate(parts):
        shown = ", ".join(f"{expression(r)} AS x{i}" for i, r in enumerate(part))
        assert views.add(f"v{number}", f"SELECT k, {shown} FROM t GROUP BY k")
    views.build()
    rows: list[tuple[str | None, ...]] = []
    for tick in range(TICKS):
        changes = []
        for change in range(CHANGES):
            if rows and chance.random() < 0.4:
                changes.append((table, values(rows.pop(chance.randrange(len(rows)))), -1))
            row = (str(tick * CHANGES + change), str(chance.randint(1, 3)), *map(chance.choice, pools))
            rows.append(row)
            changes.append((table, values(row), 1))
        views.tick(changes)
        server.execute("TRUNCATE t")
        with server.cursor() as cursor:
            marks = ", ".join(f"%s::{type_name(t)}" for t in COLUMNS.values())
            cursor.executemany(f"INSERT INTO t VALUES ({marks})", rows)  # type: ignore[arg-type]
        wrong = [w for number, part in enumerate(parts) for w in differences(views, f"v{number}", part, server)]
        assert not wrong, "\n".join(wrong)


def values(row: tuple[str | None, ...]) -> tuple[Any, ...]:
    return tuple(unstored(stored(v, t), t) for v, t in zip(row, COLUMNS.values(), strict=True))


def differences(views: Views, name: str, part: list[Function], server: psycopg.Connection[Any]) -> list[str]:
    item = views.catalog.relation(name)
    assert not views.rows[item.errors]
    ours = {row[0]: row[1:] for row in views.rows[item.id]}
    messages = []
    for i, row in enumerate(part):
        type = item.columns[i + 1].type
        bare = Type(type.name, is_array=type.is_array)
        for k, text in server.execute(f"SELECT k, ({expression(row)})::text FROM t GROUP BY k").fetchall():  # type: ignore[arg-type]
            expected: Result = ("value", None if text is None else normal(parsed(text, bare)))
            got: Result = ("value", normal(unstored(ours[k][i], type)))
            if not agree(row, expected, got) and not close(row, expected[1], got[1]):
                messages.append(f"{row}: {expression(row)} of group {k} is {expected}, not {got}")
    return messages


def close(row: Function, a: Any, b: Any) -> bool:
    """Returns whether two results are equal except for permitted differences.

    The order of rows decides the last digits of floats, the sign of zero, and which of several
    equal intervals is returned.
    """
    if row.name in ("min", "max") and row.arguments == ("interval",):
        return days(a) == days(b)
    a, b = (0.0 if v == "-0.0" else v for v in (a, b))
    return isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-5 if abs(a) > 1e9 else 1e-12, abs_tol=1e-12)


def days(interval: tuple[int, int, int]) -> tuple[int, int]:
    """Returns an interval as days and microseconds, as PostgreSQL compares it."""
    months, days, micros = interval
    return (months * 30 + days + micros // 86_400_000_000, micros % 86_400_000_000)
