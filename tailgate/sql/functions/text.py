"""Functions and operators of text.

Positions and lengths count characters. PostgreSQL uses Unicode's simple case mapping; the engines use the
full mapping, which replaces ß and a few ligatures by two letters.
"""

from __future__ import annotations

from tailgate.sql.functions.casts import TO_TEXT
from tailgate.sql.functions.entry import Function, duckdb_error, spark_error, strict, udf

T, N = "text", "int4"
CASE_NOTE = "full case mapping: upper('ß') is 'SS'"


def _text(name: str, arguments: tuple[str, ...], spark: str, duckdb: str, result: str = T, note: str = "") -> Function:
    return Function(name, arguments, result, spark, duckdb, note=note)


POSITION = ("instr({0}, {1})", "CAST(strpos({0}, {1}) AS INTEGER)")  # the position of a part in a text, or 0
NEGATIVE = "negative substring length not allowed"


def substrings(type: str, *names: str) -> list[Function]:
    """Returns substring() and substr(); positions before the first character are empty."""
    rows = []
    start, end = "greatest({1}, 1)", "greatest(CAST({1} AS BIGINT) + {2}, 1)"
    spark = f"substring({{0}}, {start}, CAST(least({end} - {start}, 2147483647) AS INT))"
    duckdb = f"substring({{0}}, {start}, {end} - {start})"
    for name in names:
        rows += [
            Function(name, (type, N), type, *(strict(f"substring({{0}}, {start})", 2),) * 2),
            Function(name, (type, N, N), type,
                  strict(f"CASE WHEN {{2}} < 0 THEN {spark_error('22011', NEGATIVE)} ELSE {spark} END", 3),
                  strict(f"CASE WHEN {{2}} < 0 THEN {duckdb_error('22011', NEGATIVE)} ELSE {duckdb} END", 3)),
        ]  # fmt: skip
    return rows


def _trims() -> list[Function]:
    rows = []
    for name, side in (("btrim", "BOTH"), ("ltrim", "LEADING"), ("rtrim", "TRAILING")):
        call = {"btrim": "trim"}.get(name, name)
        rows += [
            _text(name, (T,), f"trim({side} ' ' FROM {{0}})", f"{call}({{0}}, ' ')"),
            _text(name, (T, T), f"trim({side} {{1}} FROM {{0}})", f"{call}({{0}}, {{1}})"),
        ]
    return rows


SPLIT = (
    "(CASE WHEN {1} IS NULL THEN tg_string_to_characters({0}) ELSE tg_string_to_array({0}, {1}) END)",
    "(CASE WHEN {1} IS NULL THEN tg_string_to_characters({0}) ELSE tg_string_to_array({0}, {1}) END)",
)

# the text of the types that || takes besides text; "char" casts to text, which makes it ambiguous in PostgreSQL
JOINED = {t: templates for t, templates in TO_TEXT.items() if t != "char"}


def _of(template: str, argument: int) -> str:
    return template.replace("{0}", f"{{{argument}}}")


ZERO_FIELD = "field position must not be zero"
FIELD = "WHEN {1} = '' THEN CASE WHEN {2} IN (1, -1) THEN {0} ELSE '' END ELSE split_part({0}, {1}, greatest({2}, -2147483647)) END"
SPLIT_SPARK = strict(f"CASE WHEN {{2}} = 0 THEN {spark_error('22023', ZERO_FIELD)} {FIELD}", 3)
SPLIT_DUCKDB = strict(f"CASE WHEN {{2}} = 0 THEN {duckdb_error('22023', ZERO_FIELD)} {FIELD}", 3)

ICU_KEY = Function("icu_sort_key", (T, T), T, "", "icu_sort_key({0}, {1})")  # a key in ICU's order of a locale
# pg_typeof() in views, as those of earlier versions have it
TYPE_NAME = Function("pg_typeof", ("any",), T, "'{name0}'", "CASE WHEN {0} IS NULL THEN '{name0}' ELSE '{name0}' END", strict=False)

ROWS = (
    Function("||", (T, T), T, "concat({0}, {1})", "({0} || {1})", "operator"),
    *(Function("||", (T, t), T, f"concat({{0}}, {_of(spark, 1)})", f"({{0}} || {_of(duckdb, 1)})", "operator")
      for t, (spark, duckdb) in JOINED.items()),
    *(Function("||", (t, T), T, f"concat({spark}, {{1}})", f"({duckdb} || {{1}})", "operator") for t, (spark, duckdb) in JOINED.items()),
    Function("||", ("bytea", "bytea"), "bytea", "concat({0}, {1})", "({0} || {1})", "operator"),
    Function("~~", (T, T), "bool", "({fits1})", "({fits1})", "operator"),
    Function("~~*", (T, T), "bool", "({fits1})", "({fits1})", "operator"),
    Function("!~~", (T, T), "bool", "(NOT ({fits1}))", "(NOT ({fits1}))", "operator"),
    Function("~~", ("bpchar", T), "bool", "({fits1})", "({fits1})", "operator"),
    Function("~~*", ("bpchar", T), "bool", "({fits1})", "({fits1})", "operator"),
    Function("!~~", ("bpchar", T), "bool", "(NOT ({fits1}))", "(NOT ({fits1}))", "operator"),
    Function("!~~*", ("bpchar", T), "bool", "(NOT ({fits1}))", "(NOT ({fits1}))", "operator"),
    Function("!~~*", (T, T), "bool", "(NOT ({fits1}))", "(NOT ({fits1}))", "operator"),
    Function("^@", (T, T), "bool", "startswith({0}, {1})", "starts_with({0}, {1})", "operator"),
    *(_text(name, (T,), "length({0})", "CAST(length({0}) AS INTEGER)", "int4") for name in ("length", "char_length", "character_length")),
    *(_text(name, ("bpchar",), "length(rtrim({0}))", "CAST(length(rtrim({0}, ' ')) AS INTEGER)", "int4")
      for name in ("length", "char_length", "character_length")),
    _text("octet_length", ("bpchar",), "octet_length({0})", "CAST(strlen({0}) AS INTEGER)", "int4"),
    _text("octet_length", (T,), "octet_length({0})", "CAST(strlen({0}) AS INTEGER)", "int4"),
    _text("lower", (T,), "lower({0})", "lower({0})", note=CASE_NOTE),
    _text("upper", (T,), "upper({0})", "upper({0})", note=CASE_NOTE),
    *substrings(T, "substring", "substr"),
    *_trims(),
    _text("replace", (T, T, T), "replace({0}, {1}, {2})", "replace({0}, {1}, {2})"),
    _text("split_part", (T, T, "int4"), SPLIT_SPARK, SPLIT_DUCKDB),
    _text("left", (T, "int4"), "left({0}, CASE WHEN {1} < 0 THEN greatest(0, length({0}) + {1}) ELSE {1} END)", "left({0}, {1})"),
    # the smallest integer has no negation; PostgreSQL then returns the whole text
    _text("right", (T, "int4"),
          "right({0}, CASE WHEN {1} = -2147483648 THEN length({0}) WHEN {1} < 0 THEN greatest(0, length({0}) + {1}) ELSE {1} END)",
          strict("CASE WHEN {1} = 0 THEN '' WHEN {1} = -2147483648 THEN {0} ELSE right({0}, {1}) END", 2)),
    *(_text(name, (T, T), *POSITION, "int4") for name in ("strpos", "position")),
    udf("repeat", (T, N), T),
    udf("reverse", (T,), T),
    udf("translate", (T, T, T), T),
    udf("initcap", (T,), T),
    udf("lpad", (T, N), T, order=(0, 1, "' '")),
    udf("lpad", (T, N, T), T),
    udf("rpad", (T, N), T, order=(0, 1, "' '")),
    udf("rpad", (T, N, T), T),
    udf("ascii", (T,), N),
    udf("chr", (N,), T),
    udf("overlay", (T, T, N), T, order=(0, 1, 2, "CAST(length({1}) AS INT)")),
    udf("overlay", (T, T, N, N), T),
    udf("to_hex", (N,), T, "to_hex_int4"),
    udf("to_hex", ("int8",), T, "to_hex_int8"),
    udf("quote_ident", (T,), T),
    udf("parse_ident", (T,), "text[]", order=(0, "true")),
    udf("parse_ident", (T, "bool"), "text[]"),
    udf("quote_literal", (T,), T),
    # DuckDB: a copy, see `Dialect.copied`
    Function("quote_nullable", (T,), T, "coalesce(tg_quote_literal({0}), 'NULL')", "coalesce(tg_quote_literal({0}) || '', 'NULL')",
        strict=False),
    # DuckDB: the argument may be the only place of a parameter
    Function("pg_typeof", ("any",), "regtype", "'{registered0}'", "CASE WHEN {0} IS NULL THEN '{registered0}' ELSE '{registered0}' END",
        strict=False, note="in views, the result is text"),
    Function("gen_random_uuid", (), "uuid", "", "CAST(gen_random_uuid() AS VARCHAR)", volatility="volatile"),
    Function("uuid_generate_v4", (), "uuid", "", "CAST(gen_random_uuid() AS VARCHAR)", volatility="volatile"),
    Function("try", ("anyelement",), "anyelement", "tg_try({0})", "TRY({0})", strict=False),
    udf("unistr", (T,), T),
    udf("normalize", (T,), T, order=(0, "'NFC'")),
    udf("normalize", (T, T), T),
    udf("is_normalized", (T,), "bool", order=(0, "'NFC'")),
    udf("is_normalized", (T, T), "bool"),
    udf("like_escape", (T, T), T),
    _text("similar_to_escape", (T,), "", "tg_similar_to({0}, '\\')"),
    _text("similar_to_escape", (T, T), "", "tg_similar_to({0}, {1})"),
    Function("string_to_array", (T, T), "text[]", *SPLIT, strict=False),
    Function("string_to_array", (T, T, T), "text[]", f"transform({SPLIT[0]}, tg_x -> nullif(tg_x, {{2}}))",
             f"list_transform({SPLIT[1]}, lambda tg_x: nullif(tg_x, {{2}}))", strict=False),
    _text("starts_with", (T, T), "startswith({0}, {1})", "starts_with({0}, {1})", "bool"),
    _text("bit_length", (T,), "(8 * octet_length({0}))", "CAST(8 * strlen({0}) AS INTEGER)", N),
    _text("md5", (T,), "md5({0})", "md5({0})"),
    Function("hashtext", (T,), N, "", "tg_hashtext({0})"),
    Function("hashtextextended", (T, "int8"), "int8", "", "tg_hashtextextended({0}, {1})"),
    Function("format", (T,), T, "tg_format({0}, array())", "tg_format({0}, CAST([] AS VARCHAR[]))"),
    Function("format", (T, T), T, "tg_format({0}, array({+}))", "tg_format({0}, [{+}])", strict=False, variadic=True),
    Function("concat", (T,), T, "concat_ws('', {*})", "concat({*})", strict=False, variadic=True),
    Function("concat_ws", (T, T), T, "concat_ws({*})", "concat_ws({*})", strict=False, variadic=True),
)  # fmt: skip
