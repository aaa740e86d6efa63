"""What a value is sorted by, where that is not its stored form: '1 day' and '24 hours' are equal, and so is char(n) with other blanks."""

from __future__ import annotations

from dataclasses import replace

from lake.types import TEXT, numeric
from sql.functions.comparison import INTERVAL_DUCKDB, INTERVAL_SPARK
from sql.functions.entry import Function
from sql.plan import Call, Scalar, SortKey

INTERVAL = Function("order", ("interval",), "numeric", INTERVAL_SPARK.replace("%d", "0"), INTERVAL_DUCKDB.replace("%d", "0"))
BPCHAR = Function("order", ("bpchar",), "text", "rtrim({0})", "rtrim({0}, ' ')")


def sortable(scalar: Scalar) -> Scalar:
    if scalar.type.is_array:
        return scalar
    match scalar.type.name:
        case "interval":
            return Call(INTERVAL, (scalar,), numeric(0))
        case "bpchar":
            return Call(BPCHAR, (scalar,), TEXT)
    return scalar


def sorted_by(key: SortKey) -> SortKey:
    return replace(key, expression=sortable(key.expression))
