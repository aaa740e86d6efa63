"""All functions of ksqlDB, and the choice of one by its name and arguments."""

from __future__ import annotations

from collections.abc import Sequence

from tailgate.lake.errors import UndefinedFunction
from tailgate.sql.ksqldb import types as t
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.functions import aggregates, choices, collections, json_texts, lambdas, numbers, tables, texts, times, urls
from tailgate.sql.ksqldb.functions.entry import Function

FAMILIES: dict[str, tuple[Function, ...]] = {
    "Aggregates": aggregates.ROWS,
    "Numbers": numbers.ROWS,
    "Strings": texts.STRINGS,
    "Bytes": texts.BYTES,
    "JSON": json_texts.ROWS,
    "URLs": urls.ROWS,
    "Date and time": times.ROWS,
    "Collections": collections.ROWS,
    "Lambdas": lambdas.ROWS,
    "Nulls": choices.ROWS,
    "Table functions": tables.ROWS,
}
ROWS = tuple(row for rows in FAMILIES.values() for row in rows)
AGGREGATE_NAMES = frozenset(row.name for row in aggregates.ROWS)
LAMBDA_NAMES = frozenset(row.name for row in lambdas.ROWS)
TABLE_NAMES = frozenset(row.name for row in tables.ROWS)


def variants(name: str) -> tuple[Function, ...]:
    """Returns the functions of a name. Those for units of time have one name."""
    return tuple(row for row in ROWS if row.name.partition(":")[0] == name)


def find(name: str, arguments: Sequence[TypeName], position: int | None = None) -> Function:
    """Returns the function that accepts arguments of these types, preferring equal types. Raises 42883."""
    rows = [row for row in ROWS if row.name == name]
    candidates = [(cost, row) for row in rows if (cost := row.cost(arguments)) is not None]
    if candidates:
        return min(candidates, key=lambda pair: pair[0])[1]
    shown, _, unit = name.upper().partition(":")
    if not rows:
        raise UndefinedFunction(
            f"Can't find any functions with the name '{shown}'", hint="SHOW FUNCTIONS lists the functions.", position=position
        )
    raise refused(name, [*(["INTERVALUNIT"] if unit else []), *map(t.in_schema, arguments)], position)


def refused(name: str, arguments: Sequence[str], position: int | None = None) -> UndefinedFunction:
    """Returns the error for arguments of these types that no function of a name accepts."""
    shown, _, unit = name.upper().partition(":")
    alternatives = (f"{shown}({', '.join([*([unit] if unit else []), row.signature])})" for row in ROWS if row.name == name)
    lines = ("Valid alternatives are:", *alternatives, "For detailed information on a function run: DESCRIBE FUNCTION <Function-Name>;")
    message = f"Function '{shown}' does not accept parameters ({', '.join(arguments)})."
    return UndefinedFunction(message, hint="\n".join(lines), position=position)
