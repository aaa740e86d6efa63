"""Casts between types, and where PostgreSQL applies them without an explicit cast.

Both engines accept more text than PostgreSQL, and Spark truncates numbers that PostgreSQL rounds, so
the templates are explicit. Casts between timestamps with and without a time zone use UTC.

Source: PostgreSQL 15, catalog pg_cast.
"""

from __future__ import annotations

from tailgate.lake.ranges import ALL_RANGES, MULTIRANGE_OF, MULTIRANGES, RANGES
from tailgate.lake.types import MICROSECONDS
from tailgate.sql.functions.arithmetic import DUCKDB, OVERFLOW, SPARK, UNDERFLOW
from tailgate.sql.functions.entry import Context, Function, ResultType, duckdb_error, spark_error, strict
from tailgate.sql.numeric_types import integer, of_digits
from tailgate.values.strings.registered import OID_DIGITS, REGISTERED

ORDER = ("int2", "int4", "int8", "numeric", "float4", "float8")  # each is cast implicitly to those after it


def _cast(
    source: str, target: str, context: Context, spark: str, duckdb: str, result: ResultType | None = None, note: str = ""
) -> Function:
    return Function("cast", (source,), result or target, spark, duckdb, "cast", context=context, note=note)


FLOAT4_SPARK = (
    f"(CASE WHEN abs(CAST({{0}} AS FLOAT)) = float('Infinity') AND abs({{0}}) < double('Infinity') THEN {spark_error('22003', OVERFLOW)}"
    f" WHEN CAST({{0}} AS FLOAT) = 0 AND {{0}} <> 0 THEN {spark_error('22003', UNDERFLOW)} ELSE CAST({{0}} AS FLOAT) END)"
)
FLOAT4_DUCKDB = f"(CASE WHEN CAST({{0}} AS FLOAT) = 0 AND {{0}} <> 0 THEN {duckdb_error('22003', UNDERFLOW)} ELSE CAST({{0}} AS FLOAT) END)"


def _numbers() -> list[Function]:
    rows = []
    for i, source in enumerate(ORDER):
        for j, target in enumerate(ORDER):
            context: Context = "implicit" if i < j else "assignment"
            if source == target:
                continue
            if target == "numeric":
                if source in ("float4", "float8"):
                    # PostgreSQL uses as many digits as the type always represents exactly
                    digits = 5 if source == "float4" else 14
                    text = f"CAST(printf('%.{digits}e', CAST({{0}} AS DOUBLE)) AS {{type}})"
                    rows.append(_cast(source, target, context, strict(text, 1), f"tg_float_to_numeric({{0}}, {text}, {{scale}})"))
                else:
                    rows.append(_cast(source, target, context, "CAST({0} AS {type})", "CAST({0} AS {type})", integer))
                continue
            spark, duckdb = "{0}", "{0}"
            if j < i and target.startswith("int"):
                spark = {"numeric": "round({0}, 0)", "float4": "rint({0})", "float8": "rint({0})"}.get(source, "{0}")
                duckdb = {"float4": "round_even({0}, 0)", "float8": "round_even({0}, 0)"}.get(source, "{0}")
            if (source, target) == ("float8", "float4"):
                rows.append(_cast(source, target, context, FLOAT4_SPARK, FLOAT4_DUCKDB))
                continue
            spark = f"CAST({spark} AS {SPARK[target]})"
            if (source, target) == ("numeric", "float4"):
                duckdb = "CAST({0} AS VARCHAR)"  # DuckDB's cast to FLOAT rounds twice
            duckdb = f"CAST({duckdb} AS {DUCKDB[target]})"
            rows.append(_cast(source, target, context, spark, duckdb))
    return rows


# the values of the years that DuckDB writes as PostgreSQL does
COMMON = {t: f"{{0}} BETWEEN {t.upper()} '0001-01-01' AND {t.upper()} '9999-12-31'" for t in ("date", "timestamp")}
# the text of a value in Spark and DuckDB, in UTC and with PostgreSQL's default settings
_PLAIN = ("CAST({0} AS STRING)", "CAST({0} AS VARCHAR)")
TO_TEXT: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("int2", "int4", "int8", "numeric", "bool", "oid"), _PLAIN),
    **{
        t: (f"tg_{t}_to_text({{0}})", f"(CASE WHEN {common} THEN CAST({{0}} AS VARCHAR) ELSE tg_{t}_to_text({{0}}) END)")
        for t, common in COMMON.items()
    },
    **{t: (f"tg_{t}_to_text({{0}})",) * 2 for t in ("float4", "float8", "timestamptz", "time", "timetz", "interval", "money")},
    "bytea": ("concat('\\\\x', lower(hex({0})))", "('\\x' || lower(hex({0})))"),
    "inet": ("tg_inet_to_text({0})",) * 2,
    "cidr": ("tg_inet_to_text({0})",) * 2,
    "char": ("tg_char_to_text({0})",) * 2,
    **dict.fromkeys(REGISTERED, (f"substring({{0}}, {OID_DIGITS + 1})",) * 2),
    **dict.fromkeys(RANGES, ("tg_range_to_text({0})",) * 2),
    **dict.fromkeys(MULTIRANGES, ("tg_multirange_to_text({0})",) * 2),
    **dict.fromkeys(("uuid", "macaddr", "macaddr8", "bit", "varbit", "json", "jsonb", "jsonpath"), ("{0}", "{0}")),
}
# casts to text that print a value as its type's output function does, where the cast of PostgreSQL differs
OUTPUT = {
    "bool": Function(
        "cast", ("bool",), "text", "left(CAST({0} AS STRING), 1)", "left(CAST({0} AS VARCHAR), 1)", "cast", context="assignment"
    ),
    "bpchar": Function("cast", ("bpchar",), "text", "{0}", "{0}", "cast"),  # keeps trailing blanks
    "inet": Function(
        "cast", ("inet",), "text", "tg_inet_output({0})", "tg_inet_output({0})", "cast"
    ),  # without the length of a whole address
}
TEXT_TARGETS = (
    "bool", "int2", "int4", "int8", "float4", "float8", "numeric", "date", "timestamp", "timestamptz", "json", "jsonb", "bytea", "time",
    "timetz", "interval", "uuid", "oid", "inet", "cidr", "macaddr", "macaddr8", "bit", "varbit", "money", *ALL_RANGES,
)  # fmt: skip
INPUT_FUNCTIONS = {"jsonb": "jsonb_parse"}  # others are text_to_<type>


def _texts() -> list[Function]:
    rows = []
    for source in ("text", "varchar", "bpchar"):
        for target in TEXT_TARGETS:
            call = "tg_" + INPUT_FUNCTIONS.get(target, "text_to_" + target)
            if target == "numeric":
                template = call + "({0}, {precision}, {scale})"
                rows.append(_cast(source, target, "explicit", template, f"CAST({call}({{0}}, {{precision}}, {{scale}}) AS {{type}})"))
            else:
                rows.append(_cast(source, target, "explicit", call + "({0})", call + "({0})"))
    rows += [_cast(source, "jsonpath", "explicit", "", "tg_text_to_jsonpath({0})") for source in ("text", "varchar", "bpchar")]
    rows += [_cast(source, "text", "implicit" if source == "char" else "assignment", *templates) for source, templates in TO_TEXT.items()]
    rows += [
        _cast("name", "text", "implicit", "{0}", "{0}"),
        _cast("text", "name", "implicit", "{0}", "{0}"),
        _cast("text", "varchar", "implicit", "{0}", "{0}"),
        _cast("text", "bpchar", "implicit", "{0}", "{0}"),
        _cast("varchar", "text", "implicit", "{0}", "{0}"),
        _cast("varchar", "bpchar", "implicit", "{0}", "{0}"),
        _cast("bpchar", "text", "implicit", "rtrim({0})", "rtrim({0}, ' ')"),
        _cast("bpchar", "varchar", "implicit", "rtrim({0})", "rtrim({0}, ' ')"),
    ]
    return rows


def _json() -> list[Function]:
    parse = f"tg_{INPUT_FUNCTIONS['jsonb']}({{0}})"
    rows = [_cast("json", "jsonb", "assignment", parse, parse), _cast("jsonb", "json", "assignment", "{0}", "{0}")]
    for target in ("bool", "int2", "int4", "int8", "float4", "float8", "numeric"):
        call = f"tg_jsonb_{target}"
        if target == "numeric":
            template = call + "({0}, {precision}, {scale})"
            rows.append(_cast("jsonb", target, "explicit", template, f"CAST({call}({{0}}, {{precision}}, {{scale}}) AS {{type}})"))
        else:
            rows.append(_cast("jsonb", target, "explicit", call + "({0})", call + "({0})"))
    return rows


DAY = 86_400_000_000  # microseconds
TIMES = (
    _cast("date", "timestamp", "implicit", "tg_date_to_timestamp({0})", "tg_date_to_timestamp({0})"),
    _cast("date", "timestamptz", "implicit", "tg_date_to_timestamptz({0})", "tg_date_to_timestamptz({0})", note="at UTC"),
    _cast("timestamp", "timestamptz", "implicit", "CAST({0} AS TIMESTAMP)", "CAST({0} AS TIMESTAMPTZ)", note="at UTC"),
    _cast("timestamp", "date", "assignment", "tg_timestamp_to_date({0})", "CAST({0} AS DATE)"),
    _cast("timestamptz", "date", "assignment", "tg_timestamp_to_date({0})", "CAST(CAST({0} AS TIMESTAMP) AS DATE)", note="at UTC"),
    _cast("timestamptz", "timestamp", "assignment", "CAST({0} AS TIMESTAMP_NTZ)", "CAST({0} AS TIMESTAMP)", note="at UTC"),
    _cast(
        "timestamp",
        "time",
        "assignment",
        f"(CASE WHEN tg_is_finite_timestamp({{0}}) THEN pmod(unix_micros(CAST({{0}} AS TIMESTAMP)), {DAY}) END)",
        f"((epoch_us({{0}}) % {DAY} + {DAY}) % {DAY})",
    ),
    _cast(
        "time",
        "interval",
        "implicit",
        strict("CAST(named_struct('months', 0, 'days', 0, 'micros', {0}) AS {type})", 1),
        strict("{'months': 0::INTEGER, 'days': 0::INTEGER, 'micros': {0}}", 1),
    ),
    _cast("interval", "time", "assignment", f"pmod({{0}}.micros, {DAY})", f"(({{0}}.micros % {DAY} + {DAY}) % {DAY})"),
    _cast(
        "timestamptz",
        "time",
        "assignment",
        f"(CASE WHEN tg_is_finite_timestamp({{0}}) THEN pmod(unix_micros({{0}}), {DAY}) END)",
        f"((epoch_us({{0}}) % {DAY} + {DAY}) % {DAY})",
    ),
)
ZONED_TIMES = (
    _cast("time", "timetz", "implicit", *("tg_time_to_timetz({0})",) * 2, note="at UTC"),
    _cast("timetz", "time", "assignment", *("tg_timetz_to_time({0})",) * 2),
    _cast(
        "timestamptz",
        "timetz",
        "assignment",
        f"(CASE WHEN tg_is_finite_timestamp({{0}}) THEN tg_time_to_timetz(pmod(unix_micros({{0}}), {DAY})) END)",
        f"tg_time_to_timetz((epoch_us({{0}}) % {DAY} + {DAY}) % {DAY})",
        note="at UTC",
    ),
)
SINGLE_BYTES = (
    *(_cast(source, "char", "assignment", *("tg_text_to_char({0})",) * 2) for source in ("text", "varchar", "bpchar")),
    _cast("int4", "char", "explicit", *("tg_int4_to_char({0})",) * 2),
    _cast("char", "int4", "explicit", *("tg_char_to_int4({0})",) * 2),
)
MONEY = (
    *(_cast(t, "money", "assignment", *("(CAST({0} AS BIGINT) * 100)",) * 2) for t in ("int4", "int8")),
    _cast("numeric", "money", "assignment", "tg_numeric_to_money({0})", "tg_numeric_to_money(CAST({0} AS VARCHAR))"),
    _cast("money", "numeric", "assignment", *("CAST({0} * CAST('0.01' AS DECIMAL(3,2)) AS {type})",) * 2, of_digits(19, 2)),
)
NETWORKS = (
    _cast("cidr", "inet", "implicit", "{0}", "{0}"),
    _cast("inet", "cidr", "assignment", "tg_network({0})", "tg_network({0})"),
    _cast("macaddr", "macaddr8", "implicit", "tg_macaddr_to_macaddr8({0})", "tg_macaddr_to_macaddr8({0})"),
    _cast("macaddr8", "macaddr", "implicit", "tg_macaddr8_to_macaddr({0})", "tg_macaddr8_to_macaddr({0})"),
)
RANGES_TO_MULTIRANGES = tuple(_cast(t, multi, "explicit", *("tg_range_to_multirange({0})",) * 2) for t, multi in MULTIRANGE_OF.items())
# an integer becomes the number of bits that the type declares, and one without a declaration
BITS = (
    _cast("bit", "varbit", "implicit", "{0}", "{0}"),
    _cast("varbit", "bit", "implicit", "{0}", "{0}"),
    _cast("int4", "bit", "explicit", *("tg_integer_to_bits(CAST({0} AS BIGINT), {length})",) * 2),
    _cast("int8", "bit", "explicit", *("tg_integer_to_bits({0}, {length})",) * 2),
    _cast("bit", "int4", "explicit", *("tg_bits_to_int4({0})",) * 2),
    _cast("bit", "int8", "explicit", *("tg_bits_to_int8({0})",) * 2),
)
OID_OF = f"CAST(substring({{0}}, 1, {OID_DIGITS}) AS BIGINT)"  # the oid of a regclass or regtype


def _signed(oid: str) -> tuple[str, str]:
    """Returns the templates of an oid as an integer of 32 bits."""
    signed = f"CASE WHEN {oid} > 2147483647 THEN {oid} - 4294967296 ELSE {oid} END"
    return f"CAST({signed} AS INT)", f"CAST({signed} AS INTEGER)"


OTHERS = (
    _cast("bool", "int4", "explicit", "CAST({0} AS INT)", "CAST({0} AS INTEGER)"),
    _cast("int4", "bool", "explicit", "({0} <> 0)", "({0} <> 0)"),
    _cast(
        "int8",
        "oid",
        "implicit",
        f"(CASE WHEN {{0}} NOT BETWEEN 0 AND 4294967295 THEN {spark_error('22003', 'OID out of range')} ELSE {{0}} END)",
        f"(CASE WHEN {{0}} NOT BETWEEN 0 AND 4294967295 THEN {duckdb_error('22003', 'OID out of range')} ELSE {{0}} END)",
    ),
    *(
        _cast(t, "oid", "implicit", "pmod(CAST({0} AS BIGINT), 4294967296)", "((CAST({0} AS BIGINT) + 4294967296) % 4294967296)")
        for t in ("int2", "int4")
    ),
    _cast("oid", "int8", "assignment", "{0}", "{0}"),
    *(_cast(t, "oid", "implicit", OID_OF, OID_OF) for t in REGISTERED),
    *(_cast(t, "int8", "assignment", OID_OF, OID_OF) for t in REGISTERED),
    *(_cast(t, "int4", "assignment", *_signed(OID_OF)) for t in REGISTERED),
    _cast(
        "oid",
        "int4",
        "assignment",
        *_signed("{0}"),
    ),
)

ROWS = (*_numbers(), *_texts(), *_json(), *TIMES, *ZONED_TIMES, *SINGLE_BYTES, *MONEY, *NETWORKS, *RANGES_TO_MULTIRANGES, *BITS, *OTHERS)

# Fractions of a second are rounded half away from zero; for timestamps, zero is the begin of 2000.
EPOCH = 946_684_800_000_000  # 2000-01-01 in microseconds since 1970
DIGITS = f"{{length}} - {MICROSECONDS}"


def _rounded(name: str, duckdb_type: str) -> tuple[str, str]:
    duckdb = f"CAST(make_timestamp(round(epoch_us({{0}}) - {EPOCH}, {DIGITS}) + {EPOCH}) AS {duckdb_type})"
    return f"tg_round_{name}({{0}}, {{length}})", f"(CASE WHEN isfinite({{0}}) THEN {duckdb} ELSE {{0}} END)"


# the casts of values to the modifiers of their types: {length}, {precision} and {scale}
LENGTHS = {
    "varchar": ("left({0}, {length})", "left({0}, {length})"),
    "bpchar": ("rpad(left({0}, {length}), {length}, ' ')", "rpad(left({0}, {length}), {length}, ' ')"),
    "bit": ("rpad(left({0}, {length}), {length}, '0')",) * 2,
    "varbit": ("left({0}, {length})",) * 2,
    "numeric": ("CAST({0} AS {type})", "CAST({0} AS {type})"),
    "time": (f"round({{0}}, {DIGITS})", f"round({{0}}, {DIGITS})"),
    "timetz": ("tg_round_timetz({0}, {length})",) * 2,
    "timestamp": _rounded("timestamp", "TIMESTAMP"),
    "timestamptz": _rounded("timestamptz", "TIMESTAMPTZ"),
    "interval": (
        strict(f"CAST(named_struct('months', {{0}}.months, 'days', {{0}}.days, 'micros', round({{0}}.micros, {DIGITS})) AS {{type}})", 1),
        strict(f"{{'months': {{0}}.months, 'days': {{0}}.days, 'micros': round({{0}}.micros, {DIGITS})}}", 1),
    ),
}
