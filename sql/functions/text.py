"""Text and bytes.

Positions and lengths count characters. Letters change case by Unicode's simple mapping in PostgreSQL and by its full one in the
engines: ß and a few ligatures become two letters there.
"""

from __future__ import annotations

from sql.functions.entry import Function, duckdb_error, spark_error, strict

T = "text"
PRINTED = ("int2", "int4", "int8", "numeric", "bool", "date", "timestamp", "uuid", "jsonb")  # types that || prints
UNPRINTED = ("float4", "float8", "timestamptz", "time", "interval", "oid", "bytea")
CASE_NOTE = "full case mapping: upper('ß') is 'SS'"


def _text(name: str, arguments: tuple[str, ...], spark: str, duckdb: str, result: str = T, note: str = "") -> Function:
    return Function(name, arguments, result, spark, duckdb, note=note)


NEGATIVE = "negative substring length not allowed"


def _substrings() -> list[Function]:
    """Positions before the first are counted and empty; the end is computed beyond 32 bits."""
    rows = []
    start, end = "greatest({1}, 1)", "greatest(CAST({1} AS BIGINT) + {2}, 1)"
    spark = f"substring({{0}}, {start}, CAST(least({end} - {start}, 2147483647) AS INT))"
    duckdb = f"substring({{0}}, {start}, {end} - {start})"
    for name in ("substring", "substr"):
        rows += [
            _text(name, (T, "int4"), strict(f"substring({{0}}, {start})", 2), strict(f"substring({{0}}, {start})", 2)),
            _text(name, (T, "int4", "int4"),
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


ZERO_FIELD = "field position must not be zero"
WHOLE = "WHEN {1} = '' THEN CASE WHEN {2} IN (1, -1) THEN {0} ELSE '' END ELSE split_part({0}, {1}, greatest({2}, -2147483647)) END"
SPLIT_SPARK = strict(f"CASE WHEN {{2}} = 0 THEN {spark_error('22023', ZERO_FIELD)} {WHOLE}", 3)
SPLIT_DUCKDB = strict(f"CASE WHEN {{2}} = 0 THEN {duckdb_error('22023', ZERO_FIELD)} {WHOLE}", 3)

ROWS = (
    Function("||", (T, T), T, "concat({0}, {1})", "({0} || {1})", "operator"),
    *(Function("||", (T, t), T, "concat({0}, CAST({1} AS STRING))", "({0} || CAST({1} AS VARCHAR))", "operator") for t in PRINTED),
    *(Function("||", (t, T), T, "concat(CAST({0} AS STRING), {1})", "(CAST({0} AS VARCHAR) || {1})", "operator") for t in PRINTED),
    *(Function("||", pair, T, kind="operator") for t in UNPRINTED for pair in ((T, t), (t, T))),
    Function("||", ("bytea", "bytea"), "bytea", "concat({0}, {1})", "({0} || {1})", "operator"),
    Function("~~", (T, T), "bool", "({0} LIKE {1})", "({0} LIKE {1} ESCAPE '\\')", "operator"),
    Function("~~*", (T, T), "bool", "({0} ILIKE {1})", "({0} ILIKE {1} ESCAPE '\\')", "operator"),
    Function("!~~", (T, T), "bool", "({0} NOT LIKE {1})", "({0} NOT LIKE {1} ESCAPE '\\')", "operator"),
    Function("!~~*", (T, T), "bool", "({0} NOT ILIKE {1})", "({0} NOT ILIKE {1} ESCAPE '\\')", "operator"),
    *(Function(sign, (T, T), "bool", kind="operator") for sign in ("~", "~*", "!~", "!~*", "^@")),
    *(_text(name, (T,), "length({0})", "CAST(length({0}) AS INTEGER)", "int4") for name in ("length", "char_length", "character_length")),
    *(_text(name, ("bpchar",), "length(rtrim({0}))", "CAST(length(rtrim({0}, ' ')) AS INTEGER)", "int4")
      for name in ("length", "char_length", "character_length")),
    _text("length", ("bytea",), "length({0})", "CAST(octet_length({0}) AS INTEGER)", "int4"),
    _text("octet_length", (T,), "octet_length({0})", "CAST(strlen({0}) AS INTEGER)", "int4"),
    _text("octet_length", ("bytea",), "length({0})", "CAST(octet_length({0}) AS INTEGER)", "int4"),
    _text("lower", (T,), "lower({0})", "lower({0})", note=CASE_NOTE),
    _text("upper", (T,), "upper({0})", "upper({0})", note=CASE_NOTE),
    *_substrings(),
    *_trims(),
    _text("replace", (T, T, T), "replace({0}, {1}, {2})", "replace({0}, {1}, {2})"),
    _text("split_part", (T, T, "int4"), SPLIT_SPARK, SPLIT_DUCKDB),
    _text("left", (T, "int4"), "left({0}, CASE WHEN {1} < 0 THEN greatest(0, length({0}) + {1}) ELSE {1} END)", "left({0}, {1})"),
    # the least integer has no negative, and PostgreSQL then cuts nothing
    _text("right", (T, "int4"),
          "right({0}, CASE WHEN {1} = -2147483648 THEN length({0}) WHEN {1} < 0 THEN greatest(0, length({0}) + {1}) ELSE {1} END)",
          strict("CASE WHEN {1} = 0 THEN '' WHEN {1} = -2147483648 THEN {0} ELSE right({0}, {1}) END", 2)),
    _text("strpos", (T, T), "instr({0}, {1})", "CAST(strpos({0}, {1}) AS INTEGER)", "int4"),
    _text("position", (T, T), "instr({0}, {1})", "CAST(strpos({0}, {1}) AS INTEGER)", "int4"),
    _text("repeat", (T, "int4"), "repeat({0}, {1})", strict("repeat({0}, greatest({1}, 0))", 2)),
    _text("reverse", (T,), "reverse({0})", "reverse({0})", note="DuckDB keeps combining marks with their letters"),
    _text("starts_with", (T, T), "startswith({0}, {1})", "starts_with({0}, {1})", "bool"),
    _text("md5", (T,), "md5({0})", "md5({0})"),
    _text("translate", (T, T, T), "translate({0}, {1}, {2})", "translate({0}, {1}, {2})"),
    Function("concat", (T,), T, "concat_ws('', {*})", "concat({*})", strict=False, variadic=True),
    Function("concat_ws", (T, T), T, "concat_ws({*})", "concat_ws({*})", strict=False, variadic=True),
    _text("convert_from", ("bytea", T), "tg_convert_from({0}, {1})", "tg_convert_from({0}, {1})"),
    Function("encode:hex", ("bytea",), T, "lower(hex({0}))", "lower(hex({0}))"),
    Function("decode:hex", (T,), "bytea"),
    # chosen by PostgreSQL, refused here
    _text("substring", (T, T), "", ""),
    _text("substring", (T, T, T), "", ""),
    _text("substring", ("bytea", "int4"), "", "", "bytea"),
    _text("substring", ("bytea", "int4", "int4"), "", "", "bytea"),
    _text("position", ("bytea", "bytea"), "", "", "int4"),
)  # fmt: skip
