"""The catalogue as a whole: rows by name, casts by their two types."""

from __future__ import annotations

from collections import defaultdict

from sql.functions import (
    aggregates,
    arithmetic,
    arrays,
    bytestrings,
    casts,
    comparison,
    datetime,
    jsonb,
    mathematics,
    patterns,
    sets,
    text,
    windows,
)
from sql.functions.entry import Function

ROWS: tuple[Function, ...] = (
    *arithmetic.ROWS,
    *comparison.ROWS,
    *text.ROWS,
    *bytestrings.ROWS,
    *patterns.ROWS,
    *mathematics.ROWS,
    *datetime.ROWS,
    *jsonb.ROWS,
    *arrays.ROWS,
    *aggregates.ROWS,
    *windows.ROWS,
    *sets.ROWS,
    *casts.ROWS,
)


def _by_name() -> dict[tuple[str, str], tuple[Function, ...]]:
    found: dict[tuple[str, str], list[Function]] = defaultdict(list)
    for row in ROWS:
        if row.kind != "cast":
            found["call" if row.kind in ("function", "aggregate", "window", "set") else row.kind, row.name].append(row)
    return {key: tuple(rows) for key, rows in found.items()}


_BY_NAME = _by_name()


def _target(row: Function) -> str:
    return row.result if isinstance(row.result, str) else "numeric"


_CASTS: dict[tuple[str, str], Function] = {(row.arguments[0], _target(row)): row for row in ROWS if row.kind == "cast"}
UNITS = frozenset(row.name.split(":")[0] for row in ROWS if ":" in row.name)  # functions whose first argument is a unit


def calls(name: str) -> tuple[Function, ...]:
    """Functions, aggregates and set-returning functions of a name."""
    return _BY_NAME.get(("call", name), ())


def operators(sign: str) -> tuple[Function, ...]:
    """Operators of two arguments."""
    return _BY_NAME.get(("operator", sign), ())


def prefixes(sign: str) -> tuple[Function, ...]:
    """Operators of one argument, before it."""
    return _BY_NAME.get(("prefix", sign), ())


def cast(source: str, target: str) -> Function | None:
    return _CASTS.get((source, target))
