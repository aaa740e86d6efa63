"""Aggregates that decorrelation adds to plans, and the values of aggregates over no rows."""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.types import BOOL, INT8, Type
from tailgate.sql.functions import catalogue
from tailgate.sql.functions.entry import Function, duckdb_error, spark_error
from tailgate.sql.functions.multidimensional import templates
from tailgate.sql.plan import AggregateCall, Call, Coalesce, Literal, Scalar, SortKey

COUNTS = ("count", "regr_count")  # return 0 over no rows; all others return NULL
TOO_MANY = ("21000", "more than one row returned by a subquery used as an expression")

# Returns the value of a group of one row. For a larger group, returns any one of the values.
SINGLE_VALUE = Function("single_value", ("any",), "any", "any_value({0})", "first({0})", "aggregate", strict=False)
# Returns its first argument. Raises 21000 if the second one, a number of rows, is above one.
SINGLE_ROW = Function(
    "single_row",
    ("any", "int8"),
    "any",
    f"(CASE WHEN {{1}} > 1 THEN {spark_error(*TOO_MANY)} ELSE {{0}} END)",
    f"(CASE WHEN {{1}} > 1 THEN {duckdb_error(*TOO_MANY)} ELSE {{0}} END)",
    strict=False,
)


def count_rows() -> AggregateCall:
    """Returns a call of count(*)."""
    (function,) = (f for f in catalogue.calls("count") if not f.arguments)
    return AggregateCall(function, (), INT8)


def collect(value: Scalar, order: tuple[SortKey, ...], type: Type, position: int | None) -> AggregateCall:
    """Returns a call that collects a group's values in an array."""
    (function,) = catalogue.calls("array_agg")
    if value.type.multidimensional:
        function = replace(function, duckdb=templates.COLLECTED)
    return AggregateCall(function, (value,), type, order=order, position=position)


def single_value(value: Scalar) -> AggregateCall:
    return AggregateCall(SINGLE_VALUE, (value,), value.type)


def single_row(value: Scalar, rows: Scalar, position: int | None) -> Scalar:
    return Call(SINGLE_ROW, (value, rows), value.type, position)


def positive(number: Scalar) -> Scalar:
    """Returns the condition that a number of rows is above zero."""
    (greater,) = (f for f in catalogue.operators(">") if f.arguments == ("int8", "int8"))
    return Call(greater, (number, Literal(0, INT8)), BOOL)


def over_nothing(call: AggregateCall, value: Scalar) -> Scalar:
    """Returns an aggregate's value: 0 for a count that is NULL because its group has no rows."""
    return Coalesce((value, Literal(0, call.type)), call.type) if call.function.name in COUNTS else value
