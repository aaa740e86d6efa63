"""Expressions of ksqlDB with their types and values: the lines of golden/functions.txt.

    expression => value (type)

`TAILGATE_UPDATE=1` of test_functions.py writes the results of DuckDB, which are compared with the documentation by hand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from tailgate.lake.catalog import Catalog
from tailgate.sql import plan
from tailgate.sql.bind import bind_query
from tailgate.sql.ksqldb import types
from tailgate.sql.ksqldb.expression_parser import KsqldbCursor, expression
from tailgate.sql.ksqldb.queries.scope import Scope
from tailgate.sql.ksqldb.queries.translation import Translator

FILE = Path(__file__).parent / "golden" / "functions.txt"
ARROW = " => "
NO_COLUMNS = Scope({}, ())


@dataclass(frozen=True)
class Example:
    text: str
    result: str  # as a line has it


def examples() -> tuple[Example, ...]:
    lines = (line.rpartition(ARROW) for line in FILE.read_text().splitlines() if line)
    return tuple(Example(text, result) for text, _, result in lines)


def bound(example: Example) -> tuple[plan.Query, str]:
    """Returns the query of an expression in PostgreSQL's dialect, and the expression's type."""
    typed = Translator(NO_COLUMNS, aggregates=False).value(expression(KsqldbCursor(example.text)))
    type = "NULL" if typed.type == types.UNKNOWN else types.shown(typed.type)
    return bind_query(f"SELECT {typed.text} AS x", Catalog()), type


def shown(value: Any, type: str) -> str:
    """Returns a value with its type as a line has them."""
    if type == "TIME" and isinstance(value, int):
        value = f"{timedelta(microseconds=value)}"
    match value:
        case None:
            text = "NULL"
        case bool():
            text = str(value).lower()
        case float() if not math.isfinite(value):
            text = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[str(value)]
        case bytes():
            text = value.hex()
        case Decimal():
            text = f"{value:f}"
        case time():
            text = value.isoformat()
        case _:
            text = str(value)
    return f"{text} ({type})"
