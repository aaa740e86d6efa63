"""Functions of one-dimensional arrays, in SQL, so that elements may be of any type.

NULL elements equal each other in comparisons and searches, but not in `@>`, `<@` and `&&`.
"""

from __future__ import annotations

from tailgate.sql.functions.comparison import SIGNS, nested_duckdb
from tailgate.sql.functions.entry import Function, Kind, duckdb_error, spark_error, strict

ARRAY, ELEMENT = "anycompatiblearray", "anycompatible"
EACH = "tg_e"  # the element, in the SQL of what is tested or made of each element


def _row(name: str, arguments: tuple[str, ...], result: str, spark: str, duckdb: str, kind: Kind = "function") -> Function:
    return Function(name, arguments, result, spark, duckdb, kind, strict=False)


EMPTY = ("coalesce({%d}, CAST(array() AS {type}))", "coalesce({%d}, CAST([] AS {type}))")
APPEND = (f"concat({EMPTY[0] % 0}, array({{1}}))", f"list_concat({EMPTY[1] % 0}, [{{1}}])")
PREPEND = (f"concat(array({{0}}), {EMPTY[0] % 1})", f"list_concat([{{0}}], {EMPTY[1] % 1})")
CAT = "(CASE WHEN {0} IS NULL THEN {1} WHEN {1} IS NULL THEN {0} ELSE %s({0}, {1}) END)"
CATS = (CAT % "concat", CAT % "list_concat")
SIZE = ("size({0})", "CAST(len({0}) AS INTEGER)")
INDEX_IF_EQUAL = (
    "transform({0}, (tg_x, tg_i) -> CASE WHEN tg_x <=> {1} THEN tg_i + 1 END)",
    "list_transform({0}, lambda tg_x, tg_i: CASE WHEN tg_x IS NOT DISTINCT FROM {1} THEN CAST(tg_i AS INTEGER) END)",
)
POSITIONS = (f"filter({INDEX_IF_EQUAL[0]}, tg_p -> tg_p IS NOT NULL)", f"list_filter({INDEX_IF_EQUAL[1]}, lambda tg_p: tg_p IS NOT NULL)")
LATER_POSITIONS = (
    f"filter({INDEX_IF_EQUAL[0]}, tg_p -> tg_p >= {{2}})",
    f"list_filter({INDEX_IF_EQUAL[1]}, lambda tg_p: tg_p >= {{2}})",
)
NULL_POSITION = "initial position must not be null"
# PostgreSQL reads the position only if the array may contain the element
WITHOUT_POSITION = (
    "{2} IS NULL AND size({0}) > 0 AND ({1} IS NOT NULL OR exists({0}, tg_x -> tg_x IS NULL))",
    "{2} IS NULL AND len({0}) > 0 AND ({1} IS NOT NULL OR len(list_filter({0}, lambda tg_x: tg_x IS NULL)) > 0)",
)
LATER_POSITION = (
    f"(CASE WHEN {WITHOUT_POSITION[0]} THEN {spark_error('22004', NULL_POSITION)} ELSE get({LATER_POSITIONS[0]}, 0) END)",
    f"(CASE WHEN {WITHOUT_POSITION[1]} THEN {duckdb_error('22004', NULL_POSITION)} ELSE ({LATER_POSITIONS[1]})[1] END)",
)
CONTAINS_Y = ("coalesce(array_contains({%d}, tg_y), false)", "coalesce(list_contains({%d}, tg_y), false)")
INVALID_TRIM = "number of elements to trim must be between 0 and the number of elements"
# Spark orders NULL first, PostgreSQL last
NULLS_LAST = "transform({%d}, tg_x -> named_struct('n', tg_x IS NULL, 'x', tg_x))"
MULTIDIMENSIONAL = "arrays of more than one dimension or with another lower bound than 1 are not supported here"
FILL = (
    f"(CASE WHEN size({{1}}) = 1 THEN array_repeat({{0}}, get({{1}}, 0)) ELSE {spark_error('0A000', MULTIDIMENSIONAL)} END)",
    (
        "(CASE WHEN len({1}) = 1 THEN list_transform(range({1}[1]), lambda tg_x: {0})"
        f" ELSE {duckdb_error('0A000', MULTIDIMENSIONAL)} END)"
    ),
)
NULL_THRESHOLDS = "thresholds array must not contain NULLs"


def _contains(a: int, b: int) -> tuple[str, str]:
    return (
        strict(f"forall({{{b}}}, tg_y -> {CONTAINS_Y[0] % a})", 2),
        strict(f"(len(list_filter({{{b}}}, lambda tg_y: NOT {CONTAINS_Y[1] % a})) = 0)", 2),
    )


def _comparisons() -> list[Function]:
    rows = []
    for sign in SIGNS:
        spark = f"({NULLS_LAST % 0} {sign} {NULLS_LAST % 1})" if sign[0] in "<>" and sign != "<>" else f"({{0}} {sign} {{1}})"
        rows.append(_row(sign, ("anyarray", "anyarray"), "bool", spark, nested_duckdb(sign, "{0}", "{1}"), "operator"))
    return rows


ROWS = (
    *_comparisons(),
    _row("@>", ("anyarray", "anyarray"), "bool", *_contains(0, 1), "operator"),
    _row("<@", ("anyarray", "anyarray"), "bool", *_contains(1, 0), "operator"),
    _row("&&", ("anyarray", "anyarray"), "bool", strict(f"exists({{1}}, tg_y -> {CONTAINS_Y[0] % 0})", 2),
         strict(f"(len(list_filter({{1}}, lambda tg_y: {CONTAINS_Y[1] % 0})) > 0)", 2), "operator"),
    _row("||", (ARRAY, ARRAY), ARRAY, *CATS, "operator"),
    _row("||", (ARRAY, ELEMENT), ARRAY, *APPEND, "operator"),
    _row("||", (ELEMENT, ARRAY), ARRAY, *PREPEND, "operator"),
    _row("array_cat", (ARRAY, ARRAY), ARRAY, *CATS),
    _row("array_append", (ARRAY, ELEMENT), ARRAY, *APPEND),
    _row("array_prepend", (ELEMENT, ARRAY), ARRAY, *PREPEND),
    _row("array_remove", (ARRAY, ELEMENT), ARRAY, "filter({0}, tg_x -> NOT (tg_x <=> {1}))",
         "list_filter({0}, lambda tg_x: tg_x IS DISTINCT FROM {1})"),
    _row("array_replace", (ARRAY, ELEMENT, ELEMENT), ARRAY, "transform({0}, tg_x -> CASE WHEN tg_x <=> {1} THEN {2} ELSE tg_x END)",
         "list_transform({0}, lambda tg_x: CASE WHEN tg_x IS NOT DISTINCT FROM {1} THEN {2} ELSE tg_x END)"),
    _row("array_position", (ARRAY, ELEMENT), "int4", f"get({POSITIONS[0]}, 0)", f"({POSITIONS[1]})[1]"),
    _row("array_position", (ARRAY, ELEMENT, "int4"), "int4", *LATER_POSITION),
    _row("array_positions", (ARRAY, ELEMENT), "int4[]", *POSITIONS),
    _row("array_length", ("anyarray", "int4"), "int4", f"(CASE WHEN {{1}} = 1 THEN nullif({SIZE[0]}, 0) END)",
         f"(CASE WHEN {{1}} = 1 THEN nullif({SIZE[1]}, 0) END)"),
    _row("array_upper", ("anyarray", "int4"), "int4", f"(CASE WHEN {{1}} = 1 THEN nullif({SIZE[0]}, 0) END)",
         f"(CASE WHEN {{1}} = 1 THEN nullif({SIZE[1]}, 0) END)"),
    _row("array_lower", ("anyarray", "int4"), "int4", f"(CASE WHEN {{1}} = 1 AND {SIZE[0]} > 0 THEN 1 END)",
         f"(CASE WHEN {{1}} = 1 AND {SIZE[1]} > 0 THEN 1 END)"),
    _row("array_ndims", ("anyarray",), "int4", f"(CASE WHEN {SIZE[0]} > 0 THEN 1 END)", f"(CASE WHEN {SIZE[1]} > 0 THEN 1 END)"),
    _row("array_dims", ("anyarray",), "text", f"(CASE WHEN {SIZE[0]} > 0 THEN concat('[1:', CAST({SIZE[0]} AS STRING), ']') END)",
         f"(CASE WHEN {SIZE[1]} > 0 THEN '[1:' || CAST({SIZE[1]} AS VARCHAR) || ']' END)"),
    _row("cardinality", ("anyarray",), "int4", *SIZE),
    _row("trim_array", ("anyarray", "int4"), "anyarray",
         strict(f"CASE WHEN {{1}} < 0 OR {{1}} > size({{0}}) THEN {spark_error('2202E', INVALID_TRIM)}"
                " ELSE slice({0}, 1, size({0}) - {1}) END", 2),
         strict(f"CASE WHEN {{1}} < 0 OR {{1}} > len({{0}}) THEN {duckdb_error('2202E', INVALID_TRIM)}"
                " ELSE {0}[1:len({0}) - {1}] END", 2)),
    _row("array_fill", ("anyelement", "int4[]"), "anyarray", *FILL),
    _row("array_fill", ("anyelement", "int4[]", "int4[]"), "anyarray",
         f"(CASE WHEN get({{2}}, 0) = 1 AND size({{2}}) = 1 THEN {FILL[0]} ELSE {spark_error('0A000', MULTIDIMENSIONAL)} END)",
         f"(CASE WHEN {{2}}[1] = 1 AND len({{2}}) = 1 THEN {FILL[1]} ELSE {duckdb_error('0A000', MULTIDIMENSIONAL)} END)"),
    _row("width_bucket", (ELEMENT, ARRAY), "int4",
         strict(f"CASE WHEN exists({{1}}, tg_x -> tg_x IS NULL) THEN {spark_error('22004', NULL_THRESHOLDS)}"
                " ELSE size(filter({1}, tg_x -> {0} >= tg_x)) END", 2),
         strict(f"CASE WHEN len(list_filter({{1}}, lambda tg_x: tg_x IS NULL)) > 0 THEN {duckdb_error('22004', NULL_THRESHOLDS)}"
                " ELSE CAST(len(list_filter({1}, lambda tg_x: {0} >= tg_x)) AS INTEGER) END", 2)),
    # a[i], a[i:j] and ARRAY[…], for which PostgreSQL has no functions
    _row("[]", ("anyarray", "int4"), "anyelement", "(CASE WHEN {1} >= 1 THEN get({0}, {1} - 1) END)",
         "(CASE WHEN {1} >= 1 THEN {0}[{1}] END)"),
    _row("[:]", ("anyarray", "int4", "int4"), "anyarray",
         strict("slice({0}, greatest({1}, 1), greatest(least({2}, size({0})) - greatest({1}, 1) + 1, 0))", 3),
         strict("CASE WHEN {2} < 1 THEN {0}[1:0] ELSE {0}[greatest({1}, 1):{2}] END", 3)),
    Function("ARRAY", (ELEMENT,), ARRAY, "array({*})", "CAST([{*}] AS {type})", strict=False, variadic=True),
    Function("array_to_string", ("text[]", "text"), "text", "tg_array_to_string({0}, {1})", "tg_array_to_string({0}, {1})"),
    Function("array_to_string", ("text[]", "text", "text"), "text",
             "(CASE WHEN {2} IS NULL THEN tg_array_to_string({0}, {1}) ELSE tg_array_to_string_null({0}, {1}, {2}) END)",
             "(CASE WHEN {2} IS NULL THEN tg_array_to_string({0}, {1}) ELSE tg_array_to_string_null({0}, {1}, {2}) END)", strict=False),
)  # fmt: skip

# x op ANY (list) and x op ALL (list), from the list of the operator's results
MACROS = (
    *(
        f"tg_{name}(l) AS CASE WHEN l IS NULL THEN NULL WHEN list_contains(l, {decisive}) THEN {decisive}"
        f" WHEN len(list_filter(l, lambda x: x IS NULL)) > 0 THEN NULL ELSE {otherwise} END"
        for name, decisive, otherwise in (("any", "true", "false"), ("all", "false", "true"))
    ),
)

TO_TEXT = Function("cast", ("text[]",), "text", "tg_array_to_text({0})", "tg_array_to_text({0})", "cast", context="assignment")
FROM_TEXT = Function("cast", ("text",), "text[]", "tg_text_to_elements({0})", "tg_text_to_elements({0})", "cast")


def quantified(function: Function, for_all: bool, arguments: tuple[str, str]) -> Function:
    """Returns the entry of x op ANY (array), or x op ALL (array), from the operator's entry.

    `arguments` are the types of x and the array.
    """
    element = function.spark.replace("{1}", EACH), function.duckdb.replace("{1}", EACH)
    return Function(
        f"{function.name} {'ALL' if for_all else 'ANY'}",
        arguments,
        "bool",
        f"{'forall' if for_all else 'exists'}({{1}}, {EACH} -> {element[0]})" if function.spark else "",
        f"tg_{'all' if for_all else 'any'}(list_transform({{1}}, lambda {EACH}: {element[1]}))",
        "operator",
        strict=False,
        takes_general=function.takes_general,
    )


def each(function: Function, source: str, target: str) -> Function:
    """Returns the cast of arrays, from the cast of their elements."""
    element = tuple(t.replace("{0}", "tg_e").replace("{type}", "{element}") for t in (function.spark, function.duckdb))
    return Function(
        "cast",
        (source + "[]",),
        target + "[]",
        f"transform({{0}}, tg_e -> {element[0]})" if function.spark else "",
        f"list_transform({{0}}, lambda tg_e: {element[1]})",
        "cast",
        context=function.context,
        takes_general=function.takes_general,
    )
