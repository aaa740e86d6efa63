"""Functions of dates, times, timestamps and intervals.

A literal unit (hour, week and so on) is part of an entry's name. Stable functions have one value in a
statement; a materialized view can only compare them with timestamps of its rows.
"""

from __future__ import annotations

from tailgate.sql.functions.arithmetic import DIVISION
from tailgate.sql.functions.entry import Function, duckdb_error, strict, udf
from tailgate.sql.numeric_types import DIGITS, always_general, of_digits

T = "text"
INTERVAL_UNITS = (
    "microsecond", "millisecond", "second", "minute", "hour", "day", "month", "quarter", "year", "decade", "century", "millennium"
)  # fmt: skip
ZONE_UNITS = ("timezone", "timezone_hour", "timezone_minute")
CLOCK_UNITS = ("hour", "minute", "second", "millisecond", "microsecond", "epoch")
SCALES = {"second": 6, "millisecond": 3, "epoch": 6}
TRUNCATIONS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")


def _truncations() -> list[Function]:
    rows = []
    for unit in TRUNCATIONS:
        rows += [
            Function(f"date_trunc:{unit}", ("timestamp",), "timestamp",
                     f"tg_date_trunc_timestamp('{unit}', {{0}})",
                     f"tg_timestamp_in_range(CAST(date_trunc('{unit}', {{0}}) AS TIMESTAMP))"),
            Function(f"date_trunc:{unit}", ("timestamptz",), "timestamptz",
                     f"tg_date_trunc_timestamptz('{unit}', {{0}}, 'UTC')",
                     f"CAST(tg_timestamp_in_range(CAST(date_trunc('{unit}', CAST({{0}} AS TIMESTAMP)) AS TIMESTAMP)) AS TIMESTAMPTZ)",
                     note="at UTC"),
        ]  # fmt: skip
    for unit in ("decade", "century", "millennium"):
        rows += [
            udf(f"date_trunc:{unit}", ("timestamp",), "timestamp", "date_trunc_timestamp", order=(f"'{unit}'", 0)),
            udf(f"date_trunc:{unit}", ("timestamptz",), "timestamptz", "date_trunc_timestamptz", order=(f"'{unit}'", 0, "'UTC'")),
        ]
    rows += [udf(f"date_trunc:{unit}", ("interval",), "interval", "date_trunc_interval", order=(f"'{unit}'", 0)) for unit in INTERVAL_UNITS]
    rows += [
        udf("date_trunc", (T, "timestamp"), "timestamp", "date_trunc_timestamp"),
        udf("date_trunc", (T, "timestamptz"), "timestamptz", "date_trunc_timestamptz", order=(0, 1, "'UTC'"), note="at UTC"),
        udf("date_trunc", (T, "timestamptz", T), "timestamptz", "date_trunc_timestamptz"),
        udf("date_trunc", (T, "interval"), "interval", "date_trunc_interval"),
    ]
    return rows


SECONDS = "(microsecond({x}))"
FIELD_DIGITS = 22  # before the decimal point, of a field: the seconds of an interval of 2^31 months have 16
YEAR = "year({x})"


def _shown(year: str) -> str:
    """Returns an astronomical year of DuckDB as PostgreSQL counts it: 0 is -1, which is 1 BC."""
    return f"({year} - CAST({year} <= 0 AS INTEGER))"


def _period(years: int) -> str:
    return f"(CASE WHEN {YEAR} > 0 THEN ({YEAR} + {years - 1}) // {years} ELSE -(({years} - {YEAR}) // {years}) END)"


# scale and DuckDB's template of each unit; {x} is a TIMESTAMP
FIELDS: dict[str, tuple[int, str]] = {
    "year": (0, _shown(YEAR)),
    "quarter": (0, "quarter({x})"),
    "month": (0, "month({x})"),
    "week": (0, "week({x})"),
    "day": (0, "day({x})"),
    "dow": (0, "dayofweek({x})"),
    "isodow": (0, "isodow({x})"),
    "doy": (0, "dayofyear({x})"),
    "isoyear": (0, _shown("isoyear({x})")),
    "decade": (0, f"CAST(floor({YEAR} / 10) AS INTEGER)"),
    "century": (0, _period(100)),
    "millennium": (0, _period(1000)),
    "epoch": (6, "(epoch_us({x}) * 0.000001::DECIMAL(7,6))"),
}
TIME_FIELDS: dict[str, tuple[int, str]] = {
    "hour": (0, "hour({x})"),
    "minute": (0, "minute({x})"),
    "second": (6, f"({SECONDS} * 0.000001::DECIMAL(7,6))"),
    "millisecond": (3, f"({SECONDS} * 0.001::DECIMAL(4,3))"),
    "microsecond": (0, SECONDS),
}
GROWING = ("year", "isoyear", "decade", "century", "millennium", "epoch", "julian")  # infinite for an infinite date or timestamp


def _seconds(unit: str, spark: str, duckdb: str) -> tuple[str, str]:
    """Returns templates of date_part() for seconds or milliseconds, summed in PostgreSQL's order.

    `spark` and `duckdb` are templates of the microseconds in a minute.
    """
    scale = 1 if unit == "second" else 1000

    def in_doubles(micros: str, div: str) -> str:
        exact = f"CAST({micros} AS BIGINT)"
        return f"(({exact} {div} 1000000) * {scale} + ({exact} % 1000000) / CAST({1_000_000 // scale} AS DOUBLE))"

    return in_doubles(spark, "div"), in_doubles(duckdb, "//")


def _field(unit: str, source: str, scale: int, duckdb: str) -> list[Function]:
    """Returns the entries of a part of a date or timestamp. DuckDB's template of an infinite value is NULL."""
    note = "at UTC" if source == "timestamptz" else ""
    family = source.removesuffix("tz")
    exact = f"tg_extract_{family}('{unit}', {{0}}, 38, {scale})"
    parts = f"CAST({exact} AS DOUBLE)", f"CAST({duckdb} AS DOUBLE)"
    if unit in ("second", "millisecond"):
        micros = f"tg_extract_{family}('microsecond', {{0}}, 38, 0)"
        parts = _seconds(unit, micros, SECONDS.replace("{x}", "CAST({0} AS TIMESTAMP)"))
    elif unit == "epoch" and source != "date":
        parts = "(unix_micros(CAST({0} AS TIMESTAMP)) / 1e6D)", "(epoch_us(CAST({0} AS TIMESTAMP)) / 1e6)"
    whole = f"CAST({duckdb} AS {{type}})"
    if unit in GROWING:
        middle = SPARK_MIDDLE[source], f"{source.upper()} '2000-01-01'"
        parts = _or_infinity(f"tg_is_finite_{family}({{0}})", parts[0], middle[0]), _or_infinity("isfinite({0})", parts[1], middle[1])
        overflow = duckdb_error("22003", "numeric field overflow")
        whole = f"(CASE WHEN isfinite({{0}}) THEN {whole} WHEN {{0}} IS NOT NULL THEN {overflow} END)"
    spark = f"tg_extract_{family}('{unit}', {{0}}, {{precision}}, {{scale}})"
    return [
        Function(f"extract:{unit}", (source,), of_digits(FIELD_DIGITS, scale), spark, whole, note=note),
        Function(f"date_part:{unit}", (source,), "float8", *parts, note=note),
    ]


def _or_infinity(finite: str, part: str, middle: str, literal: str = "CAST('{}' AS DOUBLE)") -> str:
    infinite = " ".join(f"WHEN {{0}} {sign} {middle} THEN {literal.format(text)}" for sign, text in ((">", "Infinity"), ("<", "-Infinity")))
    return f"(CASE WHEN {finite} THEN {part} {infinite} END)"


# a value between -infinity and infinity
SPARK_MIDDLE = {
    "date": "DATE'2000-01-01'",
    "timestamp": "TIMESTAMP_NTZ'2000-01-01 00:00:00'",
    "timestamptz": "TIMESTAMP_LTZ'2000-01-01 00:00:00+00:00'",
}


def _fields() -> list[Function]:
    rows = []
    for unit, (scale, template) in (FIELDS | TIME_FIELDS).items():
        for source in ("date", "timestamp", "timestamptz"):
            if source == "date" and unit in TIME_FIELDS:
                continue
            days = unit == "epoch" and source == "date"
            duckdb = "((CAST({x} - DATE '1970-01-01' AS BIGINT)) * 86400)" if days else template
            rows += _field(
                unit, source, 0 if days else scale, duckdb.replace("{x}", "{0}" if source == "date" else "CAST({0} AS TIMESTAMP)")
            )
    rows += _field("julian", "date", 0, f"({{0}} - DATE '1970-01-01' + {JULIAN})")
    for source in ("timestamp", "timestamptz"):
        rows += _julian(source)
    for source, units in (("interval", (*INTERVAL_UNITS, "epoch")), ("time", CLOCK_UNITS), ("timetz", (*CLOCK_UNITS, *ZONE_UNITS))):
        for unit in units:
            type_of = of_digits(FIELD_DIGITS, SCALES.get(unit, 0))
            rows.append(udf(f"extract:{unit}", (source,), type_of, f"extract_{source}", order=(f"'{unit}'", 0)))
            if unit == "epoch" and source != "time":
                rows.append(udf("date_part:epoch", (source,), "float8", f"epoch_{source}"))
                continue
            call = f"tg_extract_{source}('{unit if unit not in ('second', 'millisecond') else 'microsecond'}', {{0}}"
            spark, duckdb = f"{call}, 38, {6 if unit == 'epoch' else 0})", f"{call})"
            parts = f"CAST({spark} AS DOUBLE)", f"CAST({duckdb} AS DOUBLE)"
            if unit in ("second", "millisecond"):
                parts = _seconds(unit, spark, duckdb)
            rows.append(Function(f"date_part:{unit}", (source,), "float8", *parts))
    for unit in ZONE_UNITS:
        spark, duckdb = "CASE WHEN tg_is_finite_timestamp({0}) THEN 0 END", "CASE WHEN isfinite({0}) THEN 0 END"
        for name, result, type in (("extract", of_digits(FIELD_DIGITS, 0), "{type}"), ("date_part", "float8", "DOUBLE")):
            casts = f"CAST({spark} AS {type})", f"CAST({duckdb} AS {type})"
            rows.append(Function(f"{name}:{unit}", ("timestamptz",), result, *casts, note="at UTC"))
    return rows


def _julian(source: str) -> list[Function]:
    """Returns the entries of the Julian day of a timestamp, with the fraction of the day that has passed."""
    local, is_finite = "CAST({0} AS TIMESTAMP)", "tg_is_finite_timestamp({0})"
    spark_days = f"CAST(datediff(tg_timestamp_to_date({{0}}), DATE'1970-01-01') + {JULIAN} AS BIGINT)"
    duckdb_days = f"CAST(CAST({local} AS DATE) - DATE '1970-01-01' + {JULIAN} AS BIGINT)"
    spark_micros, duckdb_micros = f"pmod(unix_micros({local}), {DAY})", f"((epoch_us({local}) % {DAY} + {DAY}) % {DAY})"
    middle = f"{source.upper()} '2000-01-01'"
    spark_fraction = f"tg_general_divide(tg_integer_to_general({spark_micros}), tg_integer_to_general(CAST({DAY} AS BIGINT)))"
    duckdb_fraction = DIVISION % (f"tg_integer_to_general({duckdb_micros})", f"tg_integer_to_general({DAY})")
    numerics = (
        f"tg_general_add(tg_integer_to_general({spark_days}), {spark_fraction})",
        f"tg_general_add_any(tg_integer_to_general({duckdb_days}), {duckdb_fraction})",
    )
    floats = tuple(
        f"(CAST({days} AS DOUBLE) + ({seconds} + ({micros} % 1000000) / CAST(1000000 AS DOUBLE)) / CAST(86400 AS DOUBLE))"
        for days, seconds, micros in (
            (spark_days, f"{spark_micros} div 1000000", spark_micros),
            (duckdb_days, f"{duckdb_micros} // 1000000", duckdb_micros),
        )
    )
    note, general, float = "at UTC" if source == "timestamptz" else "", "tg_text_to_general('{}')", "CAST('{}' AS DOUBLE)"
    return [
        Function(
            f"{name}:julian",
            (source,),
            result,
            _or_infinity(is_finite, values[0], SPARK_MIDDLE[source], infinity),
            _or_infinity("isfinite({0})", values[1], middle, infinity),
            note=note,
        )
        for name, result, values, infinity in (("extract", always_general, numerics, general), ("date_part", "float8", floats, float))
    ]


JULIAN = 2_440_588  # the Julian day of 1970-01-01
DAY = 86_400_000_000  # microseconds


def _differences() -> list[Function]:
    """Returns differences of timestamps: days and time, without months."""
    duckdb = "(epoch_us({0}) - epoch_us({1}))"
    record = f"{{'months': 0::INTEGER, 'days': CAST({duckdb} // {DAY} AS INTEGER), 'micros': {duckdb} % {DAY}}}"
    infinite = duckdb_error("22008", "cannot subtract infinite timestamps")
    checked = f"CASE WHEN isfinite({{0}}) AND isfinite({{1}}) THEN {record} ELSE {infinite} END"
    templates = "tg_timestamp_minus({0}, {1})", strict(checked, 2)
    return [Function("-", (t, t), "interval", *templates, "operator") for t in ("timestamp", "timestamptz")]


def _swapped(template: str) -> str:
    return template.replace("{0}", "{2}").replace("{1}", "{0}").replace("{2}", "{1}")


def _shifts() -> list[Function]:
    """Returns additions of intervals: months first, then days, then time, as in PostgreSQL."""
    rows = []
    for t in ("timestamp", "timestamptz", "date"):
        result = "timestamp" if t == "date" else t
        for sign in "+-":
            minus = "-" if sign == "-" else ""
            start = "tg_date_to_timestamp({0})" if t == "date" else "{0}"
            spark = f"tg_{result}_plus({start}, {{1}}, {sign}1)"
            at = "tg_date_to_timestamp({0})" if t == "date" else "CAST({0} AS TIMESTAMP)"
            duckdb = (
                f"CAST(tg_timestamp_in_range((({at} + to_months({minus}{{1}}.months)) + to_days({minus}{{1}}.days))"
                f" + to_microseconds({minus}{{1}}.micros)) AS {result.upper()})"
            )
            rows.append(Function(sign, (t, "interval"), result, spark, duckdb, "operator"))
            if sign == "+":
                rows.append(Function(sign, ("interval", t), result, _swapped(spark), _swapped(duckdb), "operator"))
    return rows


FIRST_DAY, LAST_DAY = -2440588, 2145042905  # PostgreSQL's first and last date, in days since 1970
INFINITE = "CAST(if(n > 0, 'infinity', '-infinity') AS {})"
OUT_OF_RANGE = duckdb_error("22008", "timestamp out of range")
NO_TIMESTAMP = duckdb_error("22008", "date out of range for timestamp")
MACROS = (
    f"tg_date_to_timestamp(d) AS coalesce(TRY_CAST(d AS TIMESTAMP), CASE WHEN d IS NOT NULL THEN {NO_TIMESTAMP} END)",
    "tg_date_to_timestamptz(d) AS CAST(tg_date_to_timestamp(d) AS TIMESTAMPTZ)",
    # the value of a number that stores it
    f"tg_date(n) AS CASE WHEN abs(n) = {2**31 - 1} THEN {INFINITE.format('DATE')} ELSE DATE '1970-01-01' + n END",
    *(
        f"tg_{t}(n) AS CASE WHEN abs(n) = {2**63 - 1} THEN {INFINITE.format(t.upper())} ELSE make_{t}(n) END"
        for t in ("timestamp", "timestamptz")
    ),
    f"tg_timestamp_in_range(t) AS CASE WHEN t < TIMESTAMP '4714-11-24 (BC) 00:00:00' AND isfinite(t) THEN {OUT_OF_RANGE} ELSE t END",
)


def _days(day: str, sign: str, days: str) -> tuple[str, str]:
    """Returns templates of a date plus or minus days; 22008 outside of PostgreSQL's range."""
    number = f"CAST({day} - DATE '1970-01-01' AS BIGINT) {sign} {days}"
    duckdb = (
        f"(CASE WHEN NOT isfinite({day}) AND {days} IS NOT NULL THEN {day} WHEN {number} NOT BETWEEN {FIRST_DAY} AND {LAST_DAY}"
        f" THEN {duckdb_error('22008', 'date out of range')} ELSE DATE '1970-01-01' + CAST({number} AS INTEGER) END)"
    )
    return f"tg_date_plus({day}, {sign}CAST({days} AS BIGINT))", duckdb


def _days_between() -> tuple[str, str]:
    infinite = duckdb_error("22008", "cannot subtract infinite dates")
    checked = f"CASE WHEN isfinite({{0}}) AND isfinite({{1}}) THEN CAST({{0}} - {{1}} AS INTEGER) ELSE {infinite} END"
    return "tg_date_minus({0}, {1})", strict(checked, 2)


def _intervals() -> list[Function]:
    i, f, t = "interval", "float8", "time"
    return [
        udf("+", (i, i), i, "interval_add", "operator"),
        udf("-", (i, i), i, "interval_subtract", "operator"),
        udf("-", (i,), i, "interval_negate", "prefix"),
        udf("*", (i, f), i, "interval_multiply", "operator"),
        udf("*", (f, i), i, "interval_multiply", "operator", order=(1, 0)),
        udf("/", (i, f), i, "interval_divide", "operator"),
        udf("+", (t, i), t, "time_add", "operator"),
        udf("+", (i, t), t, "time_add", "operator", order=(1, 0)),
        udf("-", (t, i), t, "time_subtract", "operator"),
        Function("-", (t, t), i, strict("CAST(named_struct('months', 0, 'days', 0, 'micros', {0} - {1}) AS {type})", 2),
                 strict("{'months': 0::INTEGER, 'days': 0::INTEGER, 'micros': {0} - {1}}", 2), "operator"),
        udf("+", ("date", t), "timestamp", "date_at_time", "operator"),
        udf("+", (t, "date"), "timestamp", "date_at_time", "operator", order=(1, 0)),
        udf("justify_hours", (i,), i),
        udf("justify_days", (i,), i),
        udf("justify_interval", (i,), i),
        udf("age", ("timestamp", "timestamp"), i),
        Function("age", ("timestamptz", "timestamptz"), i, "tg_age({0}, {1})",
                 "tg_age(CAST({0} AS TIMESTAMP), CAST({1} AS TIMESTAMP))", note="at UTC"),
        Function("age", ("timestamp",), i, "", "tg_age(date_trunc('day', CAST({now} AS TIMESTAMP)), {0})", volatility="stable"),
        Function("age", ("timestamptz",), i, "", "tg_age(date_trunc('day', CAST({now} AS TIMESTAMP)), CAST({0} AS TIMESTAMP))",
                 volatility="stable", note="at UTC"),
        *(Function("isfinite", (t,), "bool", f"tg_is_finite_{t.removesuffix('tz')}({{0}})", "isfinite({0})")
          for t in ("date", "timestamp", "timestamptz")),
        Function("isfinite", ("interval",), "bool", strict("true", 1), strict("true", 1)),
        udf("date_bin", (i, "timestamp", "timestamp"), "timestamp"),
        Function("date_bin", (i, "timestamptz", "timestamptz"), "timestamptz",
                 "CAST(tg_date_bin({0}, {1}, {2}) AS TIMESTAMP)",
                 "CAST(tg_date_bin({0}, CAST({1} AS TIMESTAMP), CAST({2} AS TIMESTAMP)) AS TIMESTAMPTZ)"),
    ]  # fmt: skip


def _zoned_times() -> list[Function]:
    i, tz, now = "interval", "timetz", "CAST({now} AS TIMESTAMP)"
    today = f"(epoch_us({now}) % {DAY})"
    return [
        udf("+", (tz, i), tz, "timetz_add", "operator"),
        udf("+", (i, tz), tz, "timetz_add", "operator", order=(1, 0)),
        udf("-", (tz, i), tz, "timetz_subtract", "operator"),
        udf("+", ("date", tz), "timestamptz", "date_at_timetz", "operator"),
        udf("+", (tz, "date"), "timestamptz", "date_at_timetz", "operator", order=(1, 0)),
        udf("timezone", (i, tz), tz, "timetz_at_offset"),
        Function("timezone", (T, tz), tz, "", "tg_timetz_at_zone({0}, {1}, {now})", volatility="stable"),
        Function("current_time", (), tz, "", f"tg_time_to_timetz({today})", volatility="stable"),
        Function("localtime", (), "time", "", today, volatility="stable"),
    ]


def _zones() -> list[Function]:
    return [
        udf("timezone", (T, "timestamp"), "timestamptz", "timestamp_at_zone"),
        udf("timezone", (T, "timestamptz"), "timestamp", "timestamptz_at_zone"),
        udf("timezone", ("interval", "timestamp"), "timestamptz", "timestamp_at_offset"),
        udf("timezone", ("interval", "timestamptz"), "timestamp", "timestamptz_at_offset"),
    ]


def _constructors() -> list[Function]:
    n, f = "int4", "float8"
    rows = [
        udf("make_date", (n, n, n), "date"),
        udf("make_time", (n, n, f), "time"),
        udf("make_timestamp", (n, n, n, n, n, f), "timestamp"),
        udf("make_timestamptz", (n, n, n, n, n, f), "timestamptz", order=(0, 1, 2, 3, 4, 5, "'UTC'"), note="at UTC"),
        udf("make_timestamptz", (n, n, n, n, n, f, T), "timestamptz"),
    ]
    for count in range(8):
        types = ((n,) * 6 + (f,))[:count]
        defaults = (*("0",) * 6, "CAST(0 AS DOUBLE)")[count:]
        rows.append(udf("make_interval", types, "interval", order=(*range(count), *defaults)))
    return rows


def _formats() -> list[Function]:
    return [
        *(udf("to_char", (t, T), T, f"to_char_{t}") for t in ("timestamp", "timestamptz", "interval", "numeric", "float8", "float4")),
        *(Function("to_char", (t, T), T, "tg_to_char_numeric(CAST({0} AS DECIMAL(38,0)), {1})",
            "tg_to_char_numeric(CAST({0} AS VARCHAR), {1})")
          for t in ("int4", "int8")),
        udf("to_number", (T, T), "numeric"),
        udf("to_date", (T, T), "date"),
        udf("to_timestamp", (T, T), "timestamptz", "to_timestamp_text", note="at UTC"),
    ]  # fmt: skip


ROWS = (
    *_truncations(),
    *_fields(),
    *_differences(),
    *_shifts(),
    Function("to_timestamp", ("float8",), "timestamptz", "tg_to_timestamp({0})", "tg_to_timestamp({0})"),
    Function("-", ("date", "date"), "int4", *_days_between(), "operator"),
    Function("+", ("date", "int4"), "date", *_days("{0}", "+", "{1}"), "operator"),
    Function("+", ("int4", "date"), "date", *_days("{1}", "+", "{0}"), "operator"),
    Function("-", ("date", "int4"), "date", *_days("{0}", "-", "{1}"), "operator"),
    *_intervals(),
    *_zoned_times(),
    *_zones(),
    *_constructors(),
    *_formats(),
    *(
        Function(name, (), of_digits(DIGITS["int8"], 0), "", "CAST(epoch_ms({now}) AS DECIMAL(38,0))", volatility="stable")
        for name in ("mz_now", "mz_logical_timestamp")
    ),
    Function("now", (), "timestamptz", "", "{now}", volatility="stable"),
    Function("transaction_timestamp", (), "timestamptz", "", "{now}", volatility="stable"),
    Function("statement_timestamp", (), "timestamptz", "", "{now}", volatility="stable"),
    Function("clock_timestamp", (), "timestamptz", "", "{now}", volatility="volatile"),
    Function("pg_sleep", ("float8",), T, "", "tg_pg_sleep({0})", volatility="volatile", note="the result is an empty text, not void"),
    *(
        Function(name, (argument,), T, "", f"tg_{name}({{0}})", volatility="volatile", note="the result is an empty text, not void")
        for name, argument in (("pg_sleep_for", "interval"), ("pg_sleep_until", "timestamptz"))
    ),
    Function("current_timestamp", (), "timestamptz", "", "{now}", volatility="stable"),
    Function("localtimestamp", (), "timestamp", "", "CAST({now} AS TIMESTAMP)", volatility="stable"),
    Function("current_date", (), "date", "", "CAST(CAST({now} AS TIMESTAMP) AS DATE)", volatility="stable"),
)
