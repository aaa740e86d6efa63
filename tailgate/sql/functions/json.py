"""Operators and functions of jsonb, which is its canonical text, and of json, which is its text as written.

json has no comparisons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tailgate.lake.ranges import ALL_RANGES
from tailgate.sql.functions.casts import OUTPUT, TO_TEXT
from tailgate.sql.functions.comparison import SIGNS
from tailgate.sql.functions.entry import Function, Kind, duckdb_error, spark_error, strict, udf

COMPARED = "tg_jsonb_order({0})"  # bytes with the order of jsonb

J, W, T, N, P = "jsonb", "json", "text", "int4", "text[]"  # W is written as it was read


def _both(name: str, arguments: tuple[str, ...], result: str, template: str, kind: Kind = "function") -> Function:
    return Function(name, arguments, result, template, template, kind)


def _comparisons() -> list[Function]:
    """Returns the comparison operators, which compare values and not text: 1.0 = 1."""
    first, second = (COMPARED.replace("{0}", f"{{{i}}}") for i in (0, 1))
    return [_both(sign, (J, J), "bool", f"({first} {sign} {second})", "operator") for sign in SIGNS]


def _to_jsonb() -> list[Function]:
    """Returns to_jsonb() for each type: numbers and booleans as is, other values as strings."""
    rows = [_both("to_jsonb", (J,), J, "{0}"), _both("to_jsonb", (W,), J, "tg_jsonb_parse({0})")]
    for t in ("int2", "int4", "int8", "numeric", "bool"):
        rows.append(Function("to_jsonb", (t,), J, *TO_TEXT[t]))
    for t in ("text", "varchar", "name", "uuid", "macaddr", "macaddr8", "bit", "varbit", "jsonpath"):
        rows.append(_both("to_jsonb", (t,), J, "tg_jsonb_of_text({0})"))
    for t in ("time", "timetz", "interval", "bytea", "inet", "cidr", "char", "money", "regclass", "regtype", *ALL_RANGES):
        spark, duckdb = (OUTPUT[t].spark, OUTPUT[t].duckdb) if t in OUTPUT else TO_TEXT[t]
        rows.append(Function("to_jsonb", (t,), J, f"tg_jsonb_of_text({spark})", f"tg_jsonb_of_text({duckdb})"))
    for t in ("float4", "float8", "timestamp", "timestamptz", "date"):
        rows.append(udf("to_jsonb", (t,), J, f"jsonb_of_{t}", note="at UTC" if t == "timestamptz" else ""))
    return rows


TREATMENTS = '"delete_key", "return_target", "use_json_null", or "raise_exception"'


def _jsonb_set_lax() -> list[Function]:
    """Returns jsonb_set_lax with three to five arguments: what becomes of the key of a NULL value is the last one."""

    def template(error: Callable[[str, str], str], create: str, treatment: str) -> str:
        unknown = error("22023", f"null_value_treatment must be {TREATMENTS}")
        return (
            f"(CASE WHEN {{0}} IS NULL OR {{1}} IS NULL OR {create} IS NULL THEN NULL WHEN {treatment} IS NULL THEN {unknown}"
            f" WHEN {{2}} IS NOT NULL THEN tg_jsonb_set({{0}}, {{1}}, {{2}}, {create})"
            f" WHEN {treatment} = 'raise_exception' THEN {error('22004', 'JSON value must not be null')}"
            f" WHEN {treatment} = 'use_json_null' THEN tg_jsonb_set({{0}}, {{1}}, 'null', {create})"
            f" WHEN {treatment} = 'delete_key' THEN tg_jsonb_delete_path({{0}}, {{1}})"
            f" WHEN {treatment} = 'return_target' THEN {{0}} ELSE {unknown} END)"
        )

    return [
        Function("jsonb_set_lax", (J, P, J, "bool", T)[:count], J, template(spark_error, create, treatment),
                 template(duckdb_error, create, treatment), strict=False)
        for count, create, treatment in ((3, "true", "'use_json_null'"), (4, "{3}", "'use_json_null'"), (5, "{3}", "{4}"))
    ]  # fmt: skip


JSONB_ROWS = (
    udf("->", (J, T), J, "jsonb_get", "operator"),
    udf("->", (J, N), J, "jsonb_element", "operator"),
    udf("->>", (J, T), T, "jsonb_get_text", "operator"),
    udf("->>", (J, N), T, "jsonb_element_text", "operator"),
    udf("#>", (J, P), J, "jsonb_path", "operator"),
    udf("#>>", (J, P), T, "jsonb_path_text", "operator"),
    udf("@>", (J, J), "bool", "jsonb_contains", "operator"),
    udf("<@", (J, J), "bool", "jsonb_contains", "operator", order=(1, 0)),
    udf("?", (J, T), "bool", "jsonb_exists", "operator"),
    udf("?|", (J, P), "bool", "jsonb_exists_any", "operator"),
    udf("?&", (J, P), "bool", "jsonb_exists_all", "operator"),
    udf("||", (J, J), J, "jsonb_concat", "operator"),
    Function("-", (J, T), J, strict("tg_jsonb_delete({0}, array({1}))", 2), strict("tg_jsonb_delete({0}, [{1}])", 2), "operator"),
    udf("-", (J, N), J, "jsonb_delete_at", "operator"),
    udf("-", (J, P), J, "jsonb_delete", "operator"),
    udf("#-", (J, P), J, "jsonb_delete_path", "operator"),
    *_comparisons(),
    udf("jsonb_typeof", (J,), T),
    udf("jsonb_array_length", (J,), N),
    Function("jsonb_extract_path", (J, T), J, "tg_jsonb_path({0}, array({+}))", "tg_jsonb_path({0}, [{+}])", variadic=True),
    Function("jsonb_extract_path_text", (J, T), T, "tg_jsonb_path_text({0}, array({+}))", "tg_jsonb_path_text({0}, [{+}])", variadic=True),
    udf("jsonb_set", (J, P, J), J, order=(0, 1, 2, "true")),
    udf("jsonb_set", (J, P, J, "bool"), J),
    *_jsonb_set_lax(),
    udf("jsonb_insert", (J, P, J), J, order=(0, 1, 2, "false")),
    udf("jsonb_insert", (J, P, J, "bool"), J),
    udf("jsonb_strip_nulls", (J,), J),
    udf("jsonb_pretty", (J,), T),
    udf("jsonb_object", (P,), J, "jsonb_from_pairs"),
    udf("jsonb_object", (P, P), J, "jsonb_object_of"),
    *_to_jsonb(),
    # the binder converts the arguments to arrays of jsonb, and of text for keys
    udf("jsonb_build_array", ("jsonb[]",), J),
    udf("jsonb_build_object", ("text[]", "jsonb[]"), J),
)


def _float(type: str) -> Function:
    """Returns to_json() of a float: NaN and infinity become strings."""
    spark, duckdb = (
        f"(CASE WHEN {text} IN ('NaN', 'Infinity', '-Infinity') THEN concat('\"', {text}, '\"') ELSE {text} END)" for text in TO_TEXT[type]
    )
    return Function("to_json", (type,), W, spark, duckdb)


def _to_json() -> list[Function]:
    """Returns to_json() for each type; jsonb has the same text, except of floats."""
    rows = [Function("to_json", (W,), W, "{0}", "{0}")]
    for row in JSONB_ROWS:
        if row.name == "to_jsonb" and row.arguments != (W,):
            (type,) = row.arguments
            rows.append(
                _float(type) if type in ("float4", "float8") else Function("to_json", (type,), W, row.spark, row.duckdb, note=row.note)
            )
    return rows


JSON_ROWS = (
    udf("->", (W, T), W, "json_get", "operator"),
    udf("->", (W, N), W, "json_element", "operator"),
    udf("->>", (W, T), T, "json_get_text", "operator"),
    udf("->>", (W, N), T, "json_element_text", "operator"),
    udf("#>", (W, P), W, "json_path", "operator"),
    udf("#>>", (W, P), T, "json_path_text", "operator"),
    udf("json_typeof", (W,), T),
    udf("json_array_length", (W,), N),
    Function("json_extract_path", (W, T), W, "tg_json_path({0}, array({+}))", "tg_json_path({0}, [{+}])", variadic=True),
    Function("json_extract_path_text", (W, T), T, "tg_json_path_text({0}, array({+}))", "tg_json_path_text({0}, [{+}])", variadic=True),
    udf("json_strip_nulls", (W,), W),
    udf("json_object", (P,), W, "json_from_pairs"),
    udf("json_object", (P, P), W, "json_object_of"),
    *_to_json(),
    # the binder converts the arguments to arrays of json, and of text for keys
    udf("array_to_json", ("json[]",), W),
    udf("json_build_array", ("json[]",), W),
    udf("json_build_object", ("text[]", "json[]"), W),
)


def _paths() -> list[Function]:
    """Returns the functions and operators of jsonpath. In views, the driver parses the path, which must be a literal."""

    def row(name: str, arguments: tuple[str, ...], result: str, call: str, rest: str, kind: Kind = "function") -> Function:
        spark, duckdb = (f"tg_jsonb_path_{call}({{0}}, {{{path}}}, {rest})" for path in ("path1", "1"))
        return Function(name, arguments, result, spark, duckdb, kind, outputs=((name, J),) if kind == "set" else ())

    rows = [row("@?", (J, "jsonpath"), "bool", "exists", "'{}', true", "operator")]
    rows.append(row("@@", (J, "jsonpath"), "bool", "match", "'{}', true", "operator"))
    for call, result in (("exists", "bool"), ("match", "bool"), ("query", J), ("query_array", J), ("query_first", J)):
        for count, rest in ((2, "'{}', false"), (3, "{2}, false"), (4, "{2}, {3}")):
            arguments = (J, "jsonpath", J, "bool")[:count]
            function = row(f"jsonb_path_{call}", arguments, result, call, rest, "set" if call == "query" else "function")
            in_zone = function.duckdb.replace(f"tg_jsonb_path_{call}(", f"tg_jsonb_path_{call}_tz(")
            outputs = tuple((f"{name}_tz", type) for name, type in function.outputs)
            rows.append(function)
            rows.append(
                replace(function, name=f"{function.name}_tz", spark="", duckdb=in_zone, volatility="stable", note="at UTC", outputs=outputs)
            )
    return rows


ROWS = (*JSONB_ROWS, *JSON_ROWS, *_paths())
