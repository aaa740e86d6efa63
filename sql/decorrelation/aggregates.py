"""Aggregates that decorrelation makes, and what aggregates are over no rows."""

from __future__ import annotations

from lake.errors import FeatureNotSupported
from lake.types import BOOL, INT8, Type
from sql.functions import catalogue
from sql.functions.entry import Function, duckdb_error, spark_error
from sql.plan import AggregateCall, Call, Coalesce, Literal, Scalar, SortKey

COUNTS = ("count", "regr_count")  # 0 over no rows; all others are NULL
TOO_MANY = ("21000", "more than one row returned by a subquery used as an expression")

# the value of a group of one row; of a larger one, one of its values
SINGLE_VALUE = Function("single_value", ("any",), "any", "any_value({0})", "first({0})", "aggregate", strict=False)
# a value, if the rows that it came from are no more than one
SINGLE_ROW = Function(
    "single_row",
    ("any", "int8"),
    "any",
    f"(CASE WHEN {{1}} > 1 THEN {spark_error(*TOO_MANY)} ELSE {{0}} END)",
    f"(CASE WHEN {{1}} > 1 THEN {duckdb_error(*TOO_MANY)} ELSE {{0}} END)",
    strict=False,
)


def count_rows() -> AggregateCall:
    (function,) = (f for f in catalogue.calls("count") if not f.arguments)
    return AggregateCall(function, (), INT8)


def collect(value: Scalar, order: tuple[SortKey, ...], type: Type, position: int | None) -> AggregateCall:
    """The array of a group's values. Raises 0A000 for values that are arrays."""
    if value.type.is_array:
        raise FeatureNotSupported("ARRAY of a subquery of arrays is not supported", position=position)
    (function,) = catalogue.calls("array_agg")
    return AggregateCall(function, (value,), type, order=order, position=position)


def single_value(value: Scalar) -> AggregateCall:
    return AggregateCall(SINGLE_VALUE, (value,), value.type)


def single_row(value: Scalar, rows: Scalar, position: int | None) -> Scalar:
    return Call(SINGLE_ROW, (value, rows), value.type, position)


def positive(number: Scalar) -> Scalar:
    (greater,) = (f for f in catalogue.operators(">") if f.arguments == ("int8", "int8"))
    return Call(greater, (number, Literal(0, INT8)), BOOL)


def over_nothing(call: AggregateCall, value: Scalar) -> Scalar:
    """An aggregate's value, where NULL stands also for a group without rows."""
    return Coalesce((value, Literal(0, call.type)), call.type) if call.function.name in COUNTS else value
