"""What a value is compared by, where that is not its stored form: '1 day' and '24 hours' are equal, jsonb 1.0 and 1, char(n) with other
blanks; a jsonb is in order of what is in it.

Sort keys are equal where values are, so rows are also grouped by them (`sql.grouped`).
"""

from __future__ import annotations

from dataclasses import replace

from lake.types import TEXT, Type, numeric
from sql.functions import arrays
from sql.functions.comparison import INTERVAL_DUCKDB, INTERVAL_SPARK
from sql.functions.entry import Function
from sql.functions.jsonb import COMPARED
from sql.plan import Call, Scalar, SortKey

ORDERS: dict[str, tuple[Function, Type]] = {
    "interval": (
        Function("order", ("interval",), "numeric", INTERVAL_SPARK.replace("%d", "0"), INTERVAL_DUCKDB.replace("%d", "0")),
        numeric(0),
    ),
    "bpchar": (Function("order", ("bpchar",), "text", "rtrim({0})", "rtrim({0}, ' ')"), TEXT),
    "jsonb": (Function("order", ("jsonb",), "bytea", COMPARED, COMPARED), Type("bytea")),
}


def many_forms(type: Type) -> bool:
    """Whether equal values may be stored differently."""
    return type.name in ORDERS


def sortable(scalar: Scalar) -> Scalar:
    """What the scalar is compared by; itself where that is its stored form. Of an array the keys of its elements."""
    if not many_forms(scalar.type):
        return scalar
    function, type = ORDERS[scalar.type.name]
    if not scalar.type.is_array:
        return Call(function, (scalar,), type)
    return Call(replace(arrays.each(function, scalar.type.name, type.name), name="order", kind="function"), (scalar,), type.array())


def sorted_by(key: SortKey) -> SortKey:
    return replace(key, expression=sortable(key.expression))
