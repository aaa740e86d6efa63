"""Aggregates. They ignore NULL, except for those that collect values.

Sums, means and deviations of no values are 0. Lists of no values are empty.

{order} is the order of the records, {latest} the reverse order; only streams have them.

Source: ksqlDB 0.29, documentation, "Aggregation functions".
"""

from __future__ import annotations

from collections.abc import Sequence

from tailgate.sql.ksqldb import types as t
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.functions.entry import Function, Kind, ResultType
from tailgate.sql.ksqldb.names import catalog_name
from tailgate.sql.ksqldb.typed.values import of_json

HISTOGRAM = TypeName("map", arguments=(t.VARCHAR, t.BIGINT))


def _row(
    name: str, arguments: tuple[Kind, ...], result: Kind | ResultType, template: str, does: str, *, may_fail: bool = False
) -> Function:
    return Function(name, arguments, result, template, does, aggregate=True, may_fail=may_fail)


def _array(arguments: Sequence[TypeName]) -> TypeName:
    """Returns the type of an array of the first argument."""
    return TypeName("array", arguments=(arguments[0],))


def _slice(array: str, bounds: str) -> str:
    """Returns the elements of an array from one place to another; of an array that is NULL, an empty array."""
    return f"coalesce(ksqldb_slice({array}, {bounds}), CAST('[]' AS jsonb))"


def _by_offset(name: str, order: str, does: str) -> list[Function]:
    """Returns the first values in an order: one, or a number of them in the order of the records."""
    first = f"(array_agg({{0}} ORDER BY {order}) FILTER (WHERE {{0}} IS NOT NULL))[1]"
    with_null = f"(array_agg({{0}} ORDER BY {order}) FILTER (WHERE {{0}} IS NOT NULL OR NOT {{1}}))[1]"
    values = "jsonb_agg({json0} ORDER BY {order}) FILTER (WHERE {0} IS NOT NULL%s)"
    rows = []
    for arguments, condition in (((t.INT,), ""), ((t.INT, t.BOOLEAN), " OR NOT {2}")):
        array = values % condition
        length = f"jsonb_array_length({array})"
        bounds = "1, {1}" if name.startswith("earliest") else f"{length} - {{1}} + 1, {length}"
        rows.append(_row(name, ("any", *arguments), _array, _slice(array, bounds), does))
    return [_row(name, ("any",), "same", first, does), _row(name, ("any", t.BOOLEAN), "same", with_null, does), *rows]


_COLLECTED = "jsonb_agg({json0} ORDER BY {order})"
_TOP = "jsonb_agg({json0} ORDER BY {0} DESC, {order}) FILTER (WHERE {0} IS NOT NULL)"
_HISTOGRAM = "coalesce(ksqldb_counts({0}), CAST('{}' AS jsonb))"
TOP_COLUMNS_MAX = 8  # further columns of TOPK


def _top_columns(count: int) -> Function:
    """Returns TOPK of a column and a number of others: structures in the order of the column."""
    names = ("sort_col", *(f"col{n}" for n in range(count)))
    members = ", ".join(f"'{name}', {{json{n}}}" for n, name in enumerate(names))
    array = f"jsonb_agg(jsonb_build_object({members}) ORDER BY {{0}} DESC, {{order}}) FILTER (WHERE {{0}} IS NOT NULL)"

    def result(arguments: Sequence[TypeName]) -> TypeName:
        structure = TypeName("struct", arguments=tuple(arguments[:-1]), fields=tuple(map(catalog_name, names)))
        return TypeName("array", arguments=(structure,))

    arguments: tuple[Kind, ...] = ("comparable", *("any",) * count, t.INT)
    does = "The n greatest values in descending order, with other columns of their rows."
    return _row("topk", arguments, result, _slice(array, f"1, {{{count + 1}}}"), does)


def _sum_of_lists(kind: TypeName, template: str) -> Function:
    """Returns SUM_LIST of arrays of a type of numbers. `template`: the sum of all rows from {lists}, the sum of one row's array."""
    wide = t.BIGINT if kind == t.INT else kind
    total, element = (of_json(variable, wide).text for variable in LIST_VARIABLES)
    value = f"coalesce({element}, 0)"
    next_total = f"ksqldb_plus({total}, {value})" if wide == t.BIGINT else f"{total} + {value}"
    lists = f"ksqldb_reduce({{0}}, CAST('0' AS jsonb), {', '.join(LIST_VARIABLES)}, to_jsonb({next_total}))"
    text = template.replace("{lists}", of_json(lists, wide).text)
    does = "The sum of the elements of all arrays, without NULL."
    return _row("sum_list", (TypeName("array", arguments=(kind,)),), kind, text, does)


LIST_VARIABLES = ("ksqldb_variable(999)", "ksqldb_variable(1000)")  # of the lambda of SUM_LIST
_LIST = "All values in the order of the records, with NULL, up to ksql.functions.collect_list.limit."
_SET = "The distinct values in the order of the records, up to ksql.functions.collect_set.limit."
_SUM = "The sum of the values."

ROWS = (
    _row("count", ("any",), t.BIGINT, "count({0})", "The number of values, or of rows with *."),
    _row("count_distinct", ("any",), t.BIGINT, "count(DISTINCT {0})", "The exact number of distinct values."),
    _row("sum", (t.INT,), t.INT, "coalesce(ksqldb_wrapped(sum({0})), 0)", _SUM),
    _row("sum", (t.BIGINT,), t.BIGINT, "coalesce(ksqldb_bigint_of_numeric(sum({0})), 0)", _SUM),
    _row("sum", (t.DECIMAL,), "same", "CAST(coalesce(sum({0}), 0) AS {type})", _SUM, may_fail=True),
    _row("sum", (t.DOUBLE,), t.DOUBLE, "coalesce(sum({0}), 0)", _SUM),
    _sum_of_lists(t.INT, "coalesce(ksqldb_wrapped(ksqldb_bigint_of_numeric(sum({lists}))), 0)"),
    _sum_of_lists(t.BIGINT, "coalesce(ksqldb_bigint_of_numeric(sum({lists})), 0)"),
    _sum_of_lists(t.DOUBLE, "coalesce(sum({lists}), 0)"),
    _row("avg", ("number",), t.DOUBLE, "coalesce(CAST(avg({0}) AS double precision), 0)", "The mean of the values."),
    _row("min", (t.BYTES,), t.BYTES, "decode(min(encode({0}, 'hex')), 'hex')", "The smallest value."),
    _row("max", (t.BYTES,), t.BYTES, "decode(max(encode({0}, 'hex')), 'hex')", "The greatest value."),
    _row("min", ("comparable",), "same", "min({0})", "The smallest value."),
    _row("max", ("comparable",), "same", "max({0})", "The greatest value."),
    _row("stddev_samp", (t.DOUBLE,), t.DOUBLE, "coalesce(var_samp({0}), 0)", "The sample variance, which has this name in ksqlDB."),
    _row("stddev_sample", (t.DOUBLE,), t.DOUBLE, "coalesce(stddev_samp({0}), 0)", "The sample standard deviation."),
    _row("correlation", (t.DOUBLE, t.DOUBLE), t.DOUBLE, "coalesce(corr({0}, {1}), CAST('NaN' AS double precision))",
         "Pearson's coefficient of correlation; NaN if it is not defined."),
    _row("attr", ("any",), "same", "CASE WHEN count(DISTINCT {0}) = 1 AND count({0}) = count(*) THEN min({0}) END",
         "The value if it is the same in all rows, otherwise NULL."),
    *_by_offset("earliest_by_offset", "{order}", "The value of the first record, or of the first n. Optional: whether NULL is ignored."),
    *_by_offset("latest_by_offset", "{latest}", "The value of the last record, or of the last n. Optional: whether NULL is ignored."),
    _row("collect_list", ("any",), _array, f"coalesce({_COLLECTED}, CAST('[]' AS jsonb))", _LIST),
    _row("collect_set", ("any",), _array, f"ksqldb_set({_COLLECTED})", _SET),
    _row("topk", ("comparable", t.INT), _array, _slice(_TOP, "1, {1}"), "The n greatest values in descending order."),
    *map(_top_columns, range(1, TOP_COLUMNS_MAX + 1)),
    _row("topkdistinct", ("comparable", t.INT), _array, _slice(f"ksqldb_set({_TOP})", "1, {1}"),
         "The n greatest distinct values in descending order."),
    _row("histogram", (t.VARCHAR,), HISTOGRAM, _HISTOGRAM,
         "The number of rows of each value."),
)  # fmt: skip
