"""Aggregates. The engine maintains them in views by name; the templates are for DuckDB.

Besides the arguments `{0}`, `{1}` and so on, a template contains parts of a call of DuckDB:

    {distinct}    DISTINCT, if the call has it
    {order}       the call's ORDER BY, then the arguments, so that the result depends on the values only
    {filter}      FILTER (WHERE …), if the call has it
    {present}     the same, and a condition that the arguments in STRICT are not NULL

The arguments of an ordered-set aggregate are the direct arguments, then the aggregated ones.
"""

from __future__ import annotations

from tailgate.lake.ranges import ALL_RANGES, MULTIRANGE_OF
from tailgate.lake.types import Type
from tailgate.sql.functions.comparison import INTERVAL_DUCKDB
from tailgate.sql.functions.entry import Function, ResultType
from tailgate.sql.numeric_types import largest_scale, quotient_scale, same_scale, whole

ORDERED = "int2 int4 int8 float4 float8 numeric text date time timetz timestamp timestamptz oid inet money".split()
VARIANCES = "var_pop var_samp variance stddev_pop stddev_samp stddev".split()
REGRESSIONS = """
    corr covar_pop covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
""".split()

# properties of aggregates, by name
WITHIN_GROUP = frozenset({"mode", "percentile_cont", "percentile_disc"})  # ordered-set aggregates
# aggregates whose result depends on the order of the values
COLLECTING = frozenset({"string_agg", "array_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg"})
# aggregates whose result contains NULLs
ANY_NULL = frozenset({"array_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg"})
STRICT = {  # arguments whose NULLs are ignored, if not the first alone
    **dict.fromkeys((*REGRESSIONS, "latest_by_offset", "earliest_by_offset"), (0, 1)),
    **dict.fromkeys(("max_by", "min_by", "percentile_cont", "percentile_disc"), (1,)),
}
SIMPLE = """
    count sum avg min max bool_and bool_or every bit_and bit_or bit_xor any_value max_by min_by latest_by_offset earliest_by_offset
    ksqldb_high_watermark ksqldb_first_time ksqldb_counts
""".split()
RANGE_AGGREGATES = frozenset({"range_agg", "range_intersect_agg"})  # with DISTINCT, their result is the same
MAINTAINED = frozenset([*SIMPLE, *RANGE_AGGREGATES, *VARIANCES, *REGRESSIONS, *COLLECTING, *WITHIN_GROUP])


def _aggregate(name: str, arguments: tuple[str, ...], result: str | ResultType, spark: str, duckdb: str) -> Function:
    return Function(name, arguments, result, spark, duckdb, "aggregate", strict=False)


def _average(types: tuple[Type, ...]) -> Type:
    return quotient_scale((whole(types),))


def _first(types: tuple[Type, ...]) -> Type:
    return types[0]


def _last(types: tuple[Type, ...]) -> Type:
    return types[-1]


def _array(types: tuple[Type, ...]) -> Type:
    """Returns the result type of array_agg(). An array of arrays has more dimensions."""
    return types[0].array(multidimensional=types[0].is_array)


def _of(name: str) -> str:
    """Returns a call of DuckDB's aggregate with one argument."""
    return f"{name}({{distinct}}{{0}}){{filter}}"


SUM, COUNT = _of("sum"), _of("count")
_FIELDS = ", ".join(f"sum({{distinct}}{{0}}.{field}){{filter}}" for field in ("months", "days", "micros"))
INTERVAL_SUM = f"tg_interval_of({_FIELDS})"
# types with different forms of equal values, and the value to compare; the smallest form wins
EQUAL_IN_MANY_FORMS = (("interval", INTERVAL_DUCKDB.replace("%d", "0")), ("bpchar", "rtrim({0}, ' ')"))
PRESENT = "list({distinct}{0}{order}){present}"  # the values, in order

ROWS = (
    _aggregate("count", (), "int8", "count(*)", "count(*){filter}"),
    _aggregate("count", ("any",), "int8", "count({0})", COUNT),
    _aggregate("sum", ("int2",), "int8", "sum({0})", f"CAST({SUM} AS BIGINT)"),
    _aggregate("sum", ("int4",), "int8", "sum({0})", f"CAST({SUM} AS BIGINT)"),
    _aggregate("sum", ("int8",), whole, "sum(CAST({0} AS DECIMAL(38,0)))", f"CAST({SUM} AS DECIMAL(38,0))"),
    _aggregate("sum", ("numeric",), largest_scale, "sum({0})", f"CAST({SUM} AS {{type}})"),
    _aggregate("sum", ("float4",), "float4", "CAST(sum({0}) AS FLOAT)", f"CAST({SUM} AS FLOAT)"),
    _aggregate("sum", ("float8",), "float8", "sum({0})", SUM),
    _aggregate("sum", ("money",), "money", "sum({0})", f"CAST({SUM} AS BIGINT)"),
    _aggregate("sum", ("interval",), "interval", "", INTERVAL_SUM),
    *(
        _aggregate(
            "avg",
            (t,),
            quotient_scale if t == "numeric" else _average,
            "avg({0})",
            f"CAST(tg_numeric_divide(CAST({SUM} AS DECIMAL(38,{s})), {COUNT}, {s}, 0, {{scale}}) AS {{type}})",
        )
        for t, s in (("int2", "0"), ("int4", "0"), ("int8", "0"), ("numeric", "{scale0}"))
    ),
    _aggregate("avg", ("float4",), "float8", "avg({0})", "avg({distinct}CAST({0} AS DOUBLE)){filter}"),
    _aggregate("avg", ("float8",), "float8", "avg({0})", _of("avg")),
    _aggregate("avg", ("interval",), "interval", "", f"tg_interval_divide({INTERVAL_SUM}, CAST({COUNT} AS DOUBLE))"),
    *(
        _aggregate(name, (t,), same_scale if t == "numeric" else t, f"{name}({{0}})", f"{name}({{0}}){{filter}}")
        for name in ("min", "max")
        for t in ORDERED
    ),
    *(
        _aggregate(name, (t,), t, "", f"(list({{0}} ORDER BY {key} {direction}, {{0}}){{present}})[1]")
        for name, direction in (("min", "ASC"), ("max", "DESC"))
        for t, key in EQUAL_IN_MANY_FORMS
    ),
    *(_aggregate(name, (t,), t, "", f"{name}({{0}}){{filter}}") for name in ("min", "max") for t in ("anyarray", "anyenum")),
    *(_aggregate(name, ("bool",), "bool", "", f"{name}({{0}}){{filter}}") for name in ("bool_and", "bool_or")),
    _aggregate("every", ("bool",), "bool", "", "bool_and({0}){filter}"),
    *(_aggregate(name, (t,), t, "", _of(name)) for name in ("bit_and", "bit_or", "bit_xor") for t in ("int2", "int4", "int8")),
    *(
        _aggregate(f"bit_{name}", ("bit",), "bit", "", f"tg_bits_aggregate('{name.upper()}', list({{distinct}}{{0}}){{present}})")
        for name in ("and", "or", "xor")
    ),
    # computed exactly from all values, as text or floating point
    *(
        _aggregate(
            name,
            (t,),
            quotient_scale if t == "numeric" else _average,
            "",
            f"CAST(tg_variance('{name}', list({{distinct}}CAST({{0}} AS VARCHAR)){{present}}, {{scale}}) AS {{type}})",
        )
        for name in VARIANCES
        for t in ("int2", "int4", "int8", "numeric")
    ),
    *(
        _aggregate(name, (t,), "float8", "", f"tg_moments('{name}', list({{distinct}}[CAST({{0}} AS DOUBLE)]){{present}})")
        for name in VARIANCES
        for t in ("float4", "float8")
    ),
    *(
        _aggregate(name, ("float8", "float8"), "float8", "", f"tg_moments('{name}', list({{distinct}}[{{0}}, {{1}}]){{present}})")
        for name in REGRESSIONS
        if name != "regr_count"
    ),
    _aggregate("regr_count", ("float8", "float8"), "int8", "", "len(coalesce(list({distinct}[{0}, {1}]){present}, []))"),
    *(
        _aggregate(name, ("any", "any"), _first, "", f"(list({{0}} ORDER BY {{1}} {direction}, {{0}} NULLS LAST){{present}})[1]")
        for name, direction in (("min_by", "ASC"), ("max_by", "DESC"))
    ),
    *(
        _aggregate(name, ("any", "int8"), _first, "", f"(list({{0}} ORDER BY {{1}} {direction}, {{0}}){{present}})[1]")
        for name, direction in (("earliest_by_offset", "ASC"), ("latest_by_offset", "DESC"))
    ),
    # the smallest stored form, so that the result depends on the values only
    _aggregate("any_value", ("any",), _first, "", "min({0}){filter}"),
    _aggregate("array_agg", ("any",), _array, "", "list({distinct}{0}{order}){filter}"),
    _aggregate("string_agg", ("text", "text"), "text", "", f"array_to_string({PRESENT}, coalesce({{1}}, ''))"),
    _aggregate(
        "string_agg",
        ("bytea", "bytea"),
        "bytea",
        "",
        f"list_reduce({PRESENT}, lambda tg_a, tg_b: tg_a || coalesce({{1}}, ''::BLOB) || tg_b)",
    ),
    *(_aggregate(f"{type}_agg", (type,), type, "", "tg_json_array(list({distinct}{0}{order}){filter})") for type in ("json", "jsonb")),
    _aggregate("json_object_agg", ("text", "json"), "json", "", "tg_json_object_agg(list({distinct}[{0}, {1}]{order}){filter})"),
    _aggregate("jsonb_object_agg", ("text", "jsonb"), "jsonb", "", "tg_jsonb_object(list({distinct}[{0}, {1}]{order}){filter})"),
    *(_aggregate("range_agg", (t,), MULTIRANGE_OF.get(t, t), "", f"tg_range_agg({PRESENT})") for t in ALL_RANGES),
    *(_aggregate("range_intersect_agg", (t,), t, "", f"tg_range_intersect_agg({PRESENT})") for t in ALL_RANGES),
    _aggregate("mode", ("any",), _first, "", "mode({0}{order}){filter}"),
    _aggregate("percentile_disc", ("float8", "any"), _last, "", "tg_percentile_disc(list({1}{order}){present}, {0})"),
    _aggregate("percentile_cont", ("float8", "float8"), "float8", "", "tg_percentile_cont(list({1}{order}){present}, {0})"),
    _aggregate("percentile_cont", ("float8", "interval"), "interval", "", ""),
    _aggregate("percentile_cont", ("float8[]", "float8"), "float8[]", "", ""),
    _aggregate("percentile_cont", ("float8[]", "interval"), "interval[]", "", ""),
    _aggregate("percentile_disc", ("float8[]", "any"), "float8[]", "", ""),
)  # fmt: skip

# the template of string_agg with a delimiter that differs from row to row
JOINED = {
    "text": "tg_joined(list({distinct}[{0}, {1}]{order}){present})",
    "bytea": "tg_joined_bytes(list({distinct}[{0}, {1}]{order}){present})",
}
EMPTY = "''"
_BEHIND = "list_transform(l, lambda tg_p, tg_i: CASE WHEN tg_i = 1 THEN tg_p[1] ELSE coalesce(tg_p[2], {}) || tg_p[1] END)"
MACROS = (
    f"tg_joined(l) AS array_to_string({_BEHIND.format(EMPTY)}, {EMPTY})",
    f"tg_joined_bytes(l) AS list_reduce({_BEHIND.format(f'{EMPTY}::BLOB')}, lambda tg_a, tg_b: tg_a || tg_b)",
)
