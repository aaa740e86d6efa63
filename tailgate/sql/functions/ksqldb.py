"""The functions that only translations of ksqlDB's expressions call: those of `sql.compute.ksqldb`, and a few with templates.

Their names begin with `ksqldb_`.

- `ksqldb_present(jsonb)`: NULL for JSON's null.
- `ksqldb_wrapped(bigint)`: the integer of its lowest 32 bits, as Java's arithmetic of INT wraps around.
- `ksqldb_double_plus`, `ksqldb_double_minus`, `ksqldb_double_times`: +, - and * of doubles, an infinity if the result is too large.
- `ksqldb_array_elements(jsonb)`: jsonb_array_elements, also in CASE and COALESCE: its rows do not depend on the branch.
- `ksqldb_high_watermark(timestamptz)`: an aggregate, the greatest value that the group has had, also of rows that have left. In a
  view, the group stays when its last row leaves; its other aggregates are those of no rows.
- `ksqldb_first_time(bigint)`: an aggregate, the smallest value of the rows with which the group began. Rows that leave may have
  other values than when they came: it is for the time at which a row is processed.
- `ksqldb_counts(text)`: an aggregate, an object with the number of each of the first 1,000 values.

LAMBDAS evaluate their last argument for each element of an array. `sql.binder.lambdas` binds them, and the variables in
that argument: both engines write a variable as a name.

- `ksqldb_transform(array, variable, value)`: the array of the values.
- `ksqldb_filter(array, variable, condition)`: the elements for which the condition is true.
- `ksqldb_reduce(array, initial, state, variable, value)`: the last value; each value is the state of the next element.
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.sql.compute.catalogue import UDFS
from tailgate.sql.functions import set_returning
from tailgate.sql.functions.entry import Function, udf

PREFIX = "ksqldb_"
ELEMENTS = next(row for row in set_returning.ROWS if row.name == "jsonb_array_elements")
_COUNTS = "tg_ksqldb_histogram(CAST(to_json(list({0} ORDER BY {0}){present}) AS VARCHAR))"
_WRAPPED = "CAST((({0} + 2147483648) & 4294967295) - 2147483648 AS {type})"


def _of_doubles(name: str, template: str) -> Function:
    return Function(name, ("float8", "float8"), "float8", template, template)


ROWS = (
    *(udf(u.name, u.arguments, u.result) for u in UDFS.values() if u.name.startswith(PREFIX)),
    Function("ksqldb_present", ("jsonb",), "jsonb", "nullif({0}, 'null')", "nullif({0}, 'null')"),
    Function("ksqldb_wrapped", ("int8",), "int4", _WRAPPED, _WRAPPED),
    *(_of_doubles(f"ksqldb_double_{name}", f"({{0}} {sign} {{1}})") for name, sign in (("plus", "+"), ("minus", "-"), ("times", "*"))),
    replace(ELEMENTS, name="ksqldb_array_elements"),
    Function("ksqldb_high_watermark", ("timestamptz",), "timestamptz", "", "max({0}){filter}", "aggregate", strict=False),
    Function("ksqldb_counts", ("text",), "jsonb", "", _COUNTS, "aggregate", strict=False),
    Function("ksqldb_first_time", ("int8",), "int8", "", "min({0}){filter}", "aggregate", strict=False),
)

_ELEMENTS = "tg_ksqldb_elements({0})"
_REDUCED = "(CASE WHEN {1} IS NULL THEN NULL ELSE %s END)"  # the state is NULL


def _lambda(name: str, arguments: tuple[str, ...], spark: str, duckdb: str) -> Function:
    return Function(name, arguments, "jsonb", spark, duckdb, strict=False)


LAMBDAS = {
    f.name: f
    for f in (
        _lambda("ksqldb_transform", ("jsonb", "jsonb", "jsonb"), f"tg_ksqldb_array(transform({_ELEMENTS}, {{1}} -> {{2}}))",
                f"tg_ksqldb_array(list_transform({_ELEMENTS}, lambda {{1}}: {{2}}))"),
        _lambda("ksqldb_filter", ("jsonb", "jsonb", "bool"), f"tg_ksqldb_array(filter({_ELEMENTS}, {{1}} -> {{2}}))",
                f"tg_ksqldb_array(list_filter({_ELEMENTS}, lambda {{1}}: {{2}}))"),
        _lambda("ksqldb_reduce", ("jsonb", "jsonb", "jsonb", "jsonb", "jsonb"),
                _REDUCED % f"aggregate({_ELEMENTS}, {{1}}, ({{2}}, {{3}}) -> {{4}})",
                _REDUCED % f"list_reduce({_ELEMENTS}, lambda {{2}}, {{3}}: {{4}}, {{1}})"),
    )
}  # fmt: skip
VARIABLE = "ksqldb_variable"


def variable(number: int) -> Function:
    """Returns the function whose value is a variable of a lambda."""
    return Function(VARIABLE, (), "jsonb", f"tg_x{number}", f"tg_x{number}")
