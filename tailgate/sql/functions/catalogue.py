"""The whole function catalogue: entries by name, and casts by their types."""

from __future__ import annotations

from collections import defaultdict

from tailgate.sql.functions import (
    advisory_locks,
    aggregates,
    arithmetic,
    arrays,
    byte_strings,
    casts,
    comparison,
    datetime,
    json,
    ksqldb,
    mathematics,
    networks,
    ranges,
    regexps,
    session_values,
    set_returning,
    text,
    windows,
)
from tailgate.sql.functions.entry import Function

ROWS: tuple[Function, ...] = (
    *arithmetic.ROWS,
    *comparison.ROWS,
    *text.ROWS,
    *byte_strings.ROWS,
    *byte_strings.BIT_ROWS,
    *regexps.ROWS,
    *mathematics.ROWS,
    *datetime.ROWS,
    *json.ROWS,
    *networks.ROWS,
    *ranges.ROWS,
    *ksqldb.ROWS,
    *arrays.ROWS,
    *aggregates.ROWS,
    *windows.ROWS,
    *set_returning.ROWS,
    *advisory_locks.ROWS,
    *session_values.ROWS,
    *casts.ROWS,
)


def _by_name() -> dict[tuple[str, str], tuple[Function, ...]]:
    by_name: dict[tuple[str, str], list[Function]] = defaultdict(list)
    for row in ROWS:
        if row.kind != "cast":
            kind = row.kind if row.kind in ("operator", "prefix") else "call"
            by_name[kind, row.name].append(row)
    return {key: tuple(rows) for key, rows in by_name.items()}


_BY_NAME = _by_name()


def _target(row: Function) -> str:
    return row.result if isinstance(row.result, str) else "numeric"


_CASTS: dict[tuple[str, str], Function] = {(row.arguments[0], _target(row)): row for row in ROWS if row.kind == "cast"}
# functions whose first argument is a unit of time
UNITS = frozenset(row.name.split(":")[0] for row in ROWS if ":" in row.name)


def calls(name: str) -> tuple[Function, ...]:
    """Returns the functions, aggregates, window and set-returning functions with a name."""
    return _BY_NAME.get(("call", name), ())


def operators(sign: str) -> tuple[Function, ...]:
    """Returns the operators with two arguments."""
    return _BY_NAME.get(("operator", sign), ())


def prefixes(sign: str) -> tuple[Function, ...]:
    """Returns the prefix operators."""
    return _BY_NAME.get(("prefix", sign), ())


def cast(source: str, target: str) -> Function | None:
    """Returns the cast between two types, or None."""
    return _CASTS.get((source, target))
