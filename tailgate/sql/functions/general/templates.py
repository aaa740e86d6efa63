"""Templates for general arguments and results, in place of those of the catalogue's rows.

The arguments of type numeric are general. A row without a template here has the same one for both forms.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from tailgate.lake.types import NUMERIC_PRECISION, Type
from tailgate.sql.functions import ranges, set_returning
from tailgate.sql.functions.aggregates import VARIANCES
from tailgate.sql.functions.arithmetic import DIVISION
from tailgate.sql.functions.arrays import ELEMENT, NULL_POSITION, NULL_THRESHOLDS, ROWS, WITHOUT_POSITION
from tailgate.sql.functions.comparison import SIGNS, nested_duckdb
from tailgate.sql.functions.entry import Function, duckdb_error, spark_error, strict
from tailgate.sql.numeric_types import elements_may_be_general, recursion_may_be_general

N, ARRAY = "numeric", "numeric[]"
DIGITS_64 = 18  # of decimals that DuckDB computes as 64-bit integers
DIGITS_DOUBLE = 14  # of numbers that a DOUBLE has with an error of less than a tenth of the last digit, also after a multiplication
TEXT = "tg_general_to_text_any({0})"
_BINARY = {"+": "add_any", "-": "subtract_any", "*": "multiply_any", "%": "remainder_any", "^": "power"}
# the two parts of a quotient, of which the second one reads the first one as a column
QUOTIENT_SCALE = Function("quotient_scale", (N, N), "int4", duckdb="tg_general_quotient_scale({0}, {1})", takes_general=True)
DIVIDE = Function("divide", (N, N, "int4"), N, duckdb="tg_general_divide_any({0}, {1}, {2})", takes_general=True)
_FUNCTIONS = {
    "mod": "remainder_any", "div": "div", "gcd": "gcd", "lcm": "lcm", "log": "log", "power": "power", "pow": "power",
}  # fmt: skip
_UNARY = {
    "ceil": "ceil_any", "ceiling": "ceil_any", "floor": "floor_any", "sign": "sign_any", "abs": "abs_any", "sqrt": "sqrt", "exp": "exp",
    "ln": "ln", "log": "log10", "log10": "log10", "scale": "scale_any", "min_scale": "min_scale", "trim_scale": "trim_scale",
}  # fmt: skip
_SUM = "tg_general_sum(sum({distinct}tg_general_term({0})){filter}, max(tg_general_term_scale({0})){filter}, {others})"
_COUNT = "tg_integer_to_general(count({distinct}%s){filter})"
_FIXED_SUM = "CAST(sum({distinct}{0}){filter} AS DECIMAL(38,%s))"
_KEYS = ("tg_general_key_any({0})", "tg_general_key_any({1})")
_KEYED = "{{'k': tg_general_key_any({{0}}), 's': {}}}"
# equal elements of arrays have equal keys; their display scales differ
_ELEMENT_KEY = "tg_general_key_any(tg_x)"
_ARRAYS = ("list_transform({0}, lambda tg_x: tg_general_key_any(tg_x))", "list_transform({1}, lambda tg_x: tg_general_key_any(tg_x))")
_CONTAINS = "coalesce(list_contains(%s, tg_y), false)"
_POSITIONS = (
    f"list_filter(list_transform({{0}}, lambda tg_x, tg_i: CASE WHEN {_ELEMENT_KEY} IS NOT DISTINCT FROM {_KEYS[1]}"
    " THEN CAST(tg_i AS INTEGER) END), lambda tg_p: tg_p %s)"
)
_NO_NULLS = f"CASE WHEN len(list_filter({{1}}, lambda tg_x: tg_x IS NULL)) > 0 THEN {duckdb_error('22004', NULL_THRESHOLDS)} ELSE "


def _contains(container: str, elements: str) -> str:
    return strict(f"(len(list_filter({elements}, lambda tg_y: NOT {_CONTAINS % container})) = 0)", 2)


# functions of numrange and nummultirange: templates of Spark and DuckDB
_RANGE_TYPES = (("numrange", "range"), ("nummultirange", "multirange"))
_BOTH_TEXTS = ("tg_general_to_text({0})", TEXT)
RANGES: dict[tuple[str, str, tuple[str, ...]], tuple[str, str]] = {
    ("function", "numrange", (N, N)): ranges.constructor("numrange", 2, _BOTH_TEXTS),
    ("function", "numrange", (N, N, "text")): ranges.constructor("numrange", 3, _BOTH_TEXTS),
    **{("operator", "@>", (type, N)): ranges.contains(kind, 0, 1, _BOTH_TEXTS) for type, kind in _RANGE_TYPES},
    **{("operator", "<@", (N, type)): ranges.contains(kind, 1, 0, _BOTH_TEXTS) for type, kind in _RANGE_TYPES},
    **{
        ("function", side, (type,)): (f"tg_text_to_general(tg_range_{side}({{0}}))",) * 2
        for side in ("lower", "upper")
        for type, _ in _RANGE_TYPES
    },
}
# by kind, name and types of the arguments
TEMPLATES: dict[tuple[str, str, tuple[str, ...]], str] = {
    **{("operator", sign, (N, N)): f"tg_general_{name}({{0}}, {{1}})" for sign, name in _BINARY.items()},
    ("operator", "/", (N, N)): DIVISION % ("{0}", "{1}"),
    **{("function", name, (N, N)): f"tg_general_{call}({{0}}, {{1}})" for name, call in _FUNCTIONS.items()},
    **{("function", name, (N,)): f"tg_general_{call}({{0}})" for name, call in _UNARY.items()},
    **{("function", name, (N,)): f"tg_general_{name}_any({{0}}, 0)" for name in ("round", "trunc")},
    **{("function", name, (N, "int4")): f"tg_general_{name}_any({{0}}, {{1}})" for name in ("round", "trunc")},
    **{("operator", sign, (N, N)): nested_duckdb(sign, *_KEYS) for sign in SIGNS},
    **{("operator", sign, (ARRAY, ARRAY)): nested_duckdb(sign, *_ARRAYS) for sign in SIGNS},
    ("operator", "@>", (ARRAY, ARRAY)): _contains(*_ARRAYS),
    ("operator", "<@", (ARRAY, ARRAY)): _contains(*reversed(_ARRAYS)),
    ("operator", "&&", (ARRAY, ARRAY)): strict(f"(len(list_filter({_ARRAYS[1]}, lambda tg_y: {_CONTAINS % _ARRAYS[0]})) > 0)", 2),
    ("set", "unnest", (ARRAY,)): "{0}",
    ("set", "generate_series", (N, N)): "tg_general_series({0}, {1}, tg_general(1, 0))",
    ("set", "generate_series", (N, N, N)): "tg_general_series({0}, {1}, {2})",
    ("function", "array_remove", (ARRAY, N)): f"list_filter({{0}}, lambda tg_x: {_ELEMENT_KEY} IS DISTINCT FROM {_KEYS[1]})",
    ("function", "array_replace", (ARRAY, N, N)): (
        f"list_transform({{0}}, lambda tg_x: CASE WHEN {_ELEMENT_KEY} IS NOT DISTINCT FROM {_KEYS[1]} THEN {{2}} ELSE tg_x END)"
    ),
    ("function", "array_position", (ARRAY, N)): f"({_POSITIONS % 'IS NOT NULL'})[1]",
    ("function", "array_position", (ARRAY, N, "int4")): (
        f"(CASE WHEN {WITHOUT_POSITION[1]} THEN {duckdb_error('22004', NULL_POSITION)} ELSE ({_POSITIONS % '>= {2}'})[1] END)"
    ),
    ("function", "array_positions", (ARRAY, N)): _POSITIONS % "IS NOT NULL",
    ("function", "width_bucket", (N, ARRAY)): strict(
        f"{_NO_NULLS}CAST(len(list_filter({{1}}, lambda tg_x: {nested_duckdb('>=', _KEYS[0], _ELEMENT_KEY)})) AS INTEGER) END", 2
    ),
    ("prefix", "-", (N,)): "tg_general_negate_any({0})",
    ("prefix", "+", (N,)): "{0}",
    ("prefix", "@", (N,)): "tg_general_abs_any({0})",
    ("operator", "||", ("text", N)): "({0} || tg_general_to_text_any({1}))",
    ("operator", "||", (N, "text")): f"({TEXT} || {{1}})",
    ("function", "width_bucket", (N, N, N, "int4")): "tg_width_bucket_general({0}, {1}, {2}, {3})",
    ("function", "to_jsonb", (N,)): f"tg_json_number({TEXT})",
    ("function", "to_json", (N,)): f"tg_json_number({TEXT})",
    ("function", "factorial", ("int8",)): "tg_general_factorial({0})",
    ("function", "to_number", ("text", "text")): "tg_text_to_general(tg_to_number({0}, {1}))",
    ("function", "to_char", (N, "text")): "tg_to_char_general({0}, {1})",
    **{signature: duckdb for signature, (_, duckdb) in RANGES.items()},
    ("aggregate", "sum", (N,)): _SUM,
    ("aggregate", "avg", (N,)): DIVISION % (_SUM, _COUNT % "tg_general_key_any({0})"),
    ("aggregate", "mode", ("any",)): "tg_general_mode(list({0}{order}){present})",
    ("aggregate", "min", (N,)): f"arg_min({{0}}, {_KEYED.format('{0}.s')}){{present}}",
    ("aggregate", "max", (N,)): f"arg_max({{0}}, {_KEYED.format('- {0}.s')}){{present}}",
    **{("aggregate", name, (N,)): f"tg_general_variance('{name}', {{values}})" for name in VARIANCES},
}
# array_agg with DISTINCT and the values in order
DISTINCT_ARRAY = (
    "list_transform([list({0}{order}){filter}], lambda tg_l: list_filter(tg_l, lambda tg_x, tg_i: tg_i = 1"
    " OR tg_general_key_any(tg_x) IS DISTINCT FROM tg_general_key_any(tg_l[tg_i - 1])))[1]"
)
# aggregates of integers and of fixed numerics whose result is general
OF_FIXED: dict[tuple[str, str], str] = {
    **{("avg", t): DIVISION % (f"tg_integer_to_general({_FIXED_SUM % '0'})", _COUNT % "{0}") for t in ("int2", "int4", "int8")},
    **{
        (name, t): f"tg_general_variance_texts('{name}', list({{distinct}}CAST({{0}} AS VARCHAR)){{present}})"
        for name in VARIANCES
        for t in ("int2", "int4", "int8", N)
    },
}
# casts from general numerics, and to them, by the other type
FROM: dict[str, str] = {
    **{t: f"tg_general_to_{t}({{0}})" for t in ("int2", "int4", "int8", "float8")},
    "float4": f"tg_text_to_float4({TEXT})",
    "text": TEXT,
    "money": "tg_general_to_money({0})",
}
TO: dict[str, str] = {
    **dict.fromkeys(("int2", "int4", "int8"), "tg_integer_to_general({0})"),
    **dict.fromkeys(("text", "varchar", "bpchar"), "tg_text_to_general({0})"),
    **{t: f"tg_{t}_to_general({{0}})" for t in ("float4", "float8")},
    "jsonb": "tg_jsonb_general({0})",
    "money": "(CASE WHEN {0} IS NOT NULL THEN tg_general(CAST({0} AS DECIMAL(38,0)), 2) END)",
}
# Spark's casts to general numerics that differ from DuckDB's
SPARK_TO = {
    **dict.fromkeys(("int2", "int4", "int8"), "tg_integer_to_general(CAST({0} AS BIGINT))"),
    "money": "tg_fixed_to_general(CAST({0} * CAST('0.01' AS DECIMAL(3,2)) AS DECIMAL(21,2)))",
}


def _java(name: str) -> str:
    """Returns the name of a function of the class GeneralNumerics, for values of every size."""
    return name.removesuffix("_any")


def _key(value: str) -> str:
    return f"tg_general_key({value})"


def _of_keys() -> dict[tuple[str, str, tuple[str, ...]], str]:
    """Returns Spark's templates of functions that compare elements and return none, from those of other arrays."""
    templates: dict[tuple[str, str, tuple[str, ...]], str] = {}
    for row in ROWS:
        types = tuple(ARRAY if name.endswith("array") else N if name in ("anyelement", ELEMENT) else name for name in row.arguments)
        if row.name in (*SIGNS, "@>", "<@", "&&", "array_position", "array_positions"):
            template = row.spark
            for n, type in enumerate(types):
                value = f"{{{n}}}"
                keys = {ARRAY: f"transform({value}, tg_k -> {_key('tg_k')})", N: _key(value)}
                template = template.replace(value, keys.get(type, value))
            templates[row.kind, row.name, types] = template
    return templates


_HAS_NULL = f"CASE WHEN exists({{1}}, tg_x -> tg_x IS NULL) THEN {spark_error('22004', NULL_THRESHOLDS)} ELSE "
MAINTAINED = "maintained"  # the template of an aggregate, which is not used
# Spark's templates; views compute the other functions with fixed numerics
SPARK: dict[tuple[str, str, tuple[str, ...]], str] = {
    **{("operator", sign, (N, N)): f"tg_general_{_java(name)}({{0}}, {{1}})" for sign, name in _BINARY.items()},
    ("operator", "/", (N, N)): "tg_general_divide({0}, {1})",
    **{("function", name, (N, N)): f"tg_general_{_java(call)}({{0}}, {{1}})" for name, call in _FUNCTIONS.items()},
    **{("function", name, (N,)): f"tg_general_{_java(call)}({{0}})" for name, call in _UNARY.items()},
    **{("function", name, (N,)): f"tg_general_{name}({{0}}, 0)" for name in ("round", "trunc")},
    **{("function", name, (N, "int4")): f"tg_general_{name}({{0}}, {{1}})" for name in ("round", "trunc")},
    **{("operator", sign, (N, N)): f"(tg_general_compare({{0}}, {{1}}) {sign} 0)" for sign in SIGNS},
    ("prefix", "-", (N,)): "tg_general_negate({0})",
    ("prefix", "+", (N,)): "{0}",
    ("prefix", "@", (N,)): "tg_general_abs({0})",
    ("operator", "||", ("text", N)): "concat({0}, tg_general_to_text({1}))",
    ("operator", "||", (N, "text")): "concat(tg_general_to_text({0}), {1})",
    ("function", "width_bucket", (N, N, N, "int4")): "tg_width_bucket_general({0}, {1}, {2}, {3})",
    ("function", "to_jsonb", (N,)): "tg_general_to_json({0})",
    ("function", "to_json", (N,)): "tg_general_to_json({0})",
    **{signature: spark for signature, (spark, _) in RANGES.items()},
    **_of_keys(),
    ("set", "unnest", (ARRAY,)): "{0}",
    ("set", "generate_series", (N, N)): "tg_general_series({0}, {1}, tg_integer_to_general(1))",
    ("set", "generate_series", (N, N, N)): "tg_general_series({0}, {1}, {2})",
    ("function", "array_remove", (ARRAY, N)): f"filter({{0}}, tg_x -> NOT ({_key('tg_x')} <=> {_key('{1}')}))",
    ("function", "array_replace", (ARRAY, N, N)): (
        f"transform({{0}}, tg_x -> CASE WHEN {_key('tg_x')} <=> {_key('{1}')} THEN {{2}} ELSE tg_x END)"
    ),
    ("function", "width_bucket", (N, ARRAY)): strict(
        f"{_HAS_NULL}size(filter({{1}}, tg_x -> tg_general_compare({{0}}, tg_x) >= 0)) END", 2
    ),
    ("aggregate", "mode", ("any",)): MAINTAINED,
    **{("aggregate", name, (N,)): MAINTAINED for name in ("min", "max", "sum", "avg", *VARIANCES)},
}


# the same of views whose arrays may have general elements; in earlier views their results are fixed
SPARK_WITH_ELEMENTS = {
    ("function", "factorial", ("int8",)): "tg_general_factorial({0})",
    ("function", "to_number", ("text", "text")): "tg_to_number_general({0}, {1})",
}
# the same of views whose recursive queries may have general numerics; in earlier views the arguments are fixed
SPARK_WITH_RECURSION: dict[tuple[str, str, tuple[str, ...]], str] = {
    ("function", "to_char", (N, "text")): "tg_to_char_general({0}, {1})",
}
# in earlier views, Spark's sequence() fails if the first and the last one are 2^63 or more apart
BIGINT_SERIES = {
    row.arguments: row.spark.replace("sequence(", "tg_integer_series(")
    for row in set_returning.ROWS
    if row.name == "generate_series" and row.result == "int8"
}


def of_new_views(function: Function) -> Function:
    """Returns a row with Spark's template of new views. Earlier views keep theirs: with another text, their operators would be others."""
    if function.name != "generate_series" or not recursion_may_be_general():
        return function
    return replace(function, spark=BIGINT_SERIES.get(function.arguments, function.spark))


def general(function: Function) -> Function | None:
    """Returns a row with the templates for general arguments, or None if there is none."""
    signature = function.kind, function.name, function.arguments
    if signature not in TEMPLATES:
        return None
    spark = SPARK.get(signature, "")
    if elements_may_be_general():
        spark = SPARK_WITH_ELEMENTS.get(signature, spark)
    if recursion_may_be_general():
        spark = SPARK_WITH_RECURSION.get(signature, spark)
    return _with(function, TEMPLATES[signature], spark)


def _with(function: Function, template: str, spark: str = "") -> Function:
    return replace(function, duckdb=template, spark=spark, exact=("", ""), takes_general=True)


def of_fixed(function: Function, argument: Type) -> Function | None:
    """Returns a row of an aggregate whose result is general and whose argument is not, or None if there is none."""
    if function.name == "avg" and argument.name == N:
        total = from_fixed(Type(N, (NUMERIC_PRECISION, argument.decimal[1]))).replace("{0}", _FIXED_SUM % argument.decimal[1])
        return _with(function, DIVISION % (total, _COUNT % "{0}"))
    template = OF_FIXED.get((function.name, argument.name))
    return None if template is None or function.kind != "aggregate" else _with(function, template)


def is_division(function: Function) -> bool:
    """Returns whether a function is the quotient of two general numerics."""
    return function.duckdb == TEMPLATES["operator", "/", (N, N)]


def from_fixed(type: Type) -> str:
    """Returns the template of the cast of a fixed numeric.

    DuckDB divides 128-bit integers by a power of ten in 0.7 µs, so numbers with few digits become units by way of a DOUBLE.
    """
    precision, scale = type.decimal
    text = "replace(CAST({0} AS VARCHAR), '.', '')"
    number = "{0}" if precision + scale < DIGITS_64 else f"CAST({{0}} AS DECIMAL({max(precision, DIGITS_64 + 1)},{scale}))"
    units = "{0}" if scale == 0 else f"{number} * CAST({10**scale} AS DECIMAL({scale + 1},0))"
    if precision + scale > NUMERIC_PRECISION and scale:
        most = NUMERIC_PRECISION - 2 * scale - 1
        fits = f"CASE WHEN {{0}} BETWEEN -{10**most} AND {10**most} THEN CAST({units} AS DECIMAL(38,0)) ELSE" if most > 0 else ""
        units = f"{fits} CAST({text} AS DECIMAL(38,0)) {'END' if fits else ''}"
    if 0 < scale < DIGITS_DOUBLE and precision + scale >= DIGITS_64:
        most, short = 10 ** (DIGITS_DOUBLE - scale), f"CAST(CAST(CAST({{0}} AS DOUBLE) * {10**scale} AS BIGINT) AS DECIMAL(38,0))"
        units = f"CASE WHEN {{0}} BETWEEN -{most} AND {most} THEN {short} ELSE CAST({units} AS DECIMAL(38,0)) END"
    return f"(CASE WHEN {{0}} IS NOT NULL THEN tg_general(CAST({units} AS DECIMAL(38,0)), {scale}) END)"


def to_fixed(type: Type) -> str:
    """Returns the template of the cast to a fixed numeric."""
    precision, scale = type.decimal
    units = "{0}.u" if scale <= 0 else f"{{0}}.u * CAST('{Decimal(1).scaleb(-scale):f}' AS DECIMAL({scale},{scale}))"
    same = f"WHEN {{0}}.s = {scale} AND {{0}}.u IS NOT NULL THEN CAST({units} AS {type.duckdb}) "
    return f"(CASE {same}ELSE CAST(tg_general_to_fixed({{0}}, {precision}, {scale}) AS {type.duckdb}) END)"


def limited(type: Type) -> Function:
    """Returns the cast of a general numeric to one with modifiers."""
    precision, scale = type.modifiers
    fits = f"{{0}}.s = {scale} AND {{0}}.u IS NOT NULL" if precision >= NUMERIC_PRECISION else "false"
    duckdb = f"(CASE WHEN {fits} THEN {{0}} ELSE tg_general_fit({{0}}, {precision}, {scale}) END)"
    number = f"tg_general_round({{0}}, {scale})"
    bound = f"tg_text_to_general('{Decimal(1).scaleb(precision - scale):f}')"
    spark = (
        f"CASE WHEN {{0}} IS NULL OR tg_general_to_text({{0}}) = 'NaN' THEN {{0}}"
        f" WHEN tg_general_compare(tg_general_abs({number}), {bound}) < 0 THEN {number}"
        f" ELSE {spark_error('22003', 'numeric field overflow')} END"
    )
    return Function("cast", (N,), N, spark, duckdb, "cast", takes_general=True)


def cast(source: Type, target: Type) -> Function | None:
    """Returns the cast from or to a general numeric, or None if there is none. Other modifiers of the target are ignored."""
    if source.general:
        template = to_fixed(target) if target.name == N else FROM.get(target.name)
        spark = "tg_general_to_fixed({{0}}, {}, {})".format(*target.decimal) if target.name == N else f"tg_general_to_{target.name}({{0}})"
    else:
        template = from_fixed(source) if source.name == N else TO.get(source.name)
        spark = "tg_fixed_to_general({0})" if source.name == N else SPARK_TO.get(source.name, template or "")
    return None if template is None else Function("cast", (source.name,), target.name, spark, template, "cast", takes_general=True)
