"""Functions of dates, times, timestamps and intervals.

A literal unit (hour, week and so on) is part of an entry's name. Stable functions have one value in a
statement; a materialized view can only compare them with timestamps of its rows.
"""

from __future__ import annotations

from tailgate.lake.types import Type, numeric
from tailgate.sql.functions.entry import Function, ResultType, duckdb_error, spark_error, strict, udf

T = "text"
INTERVAL_UNITS = (
    "microsecond", "millisecond", "second", "minute", "hour", "day", "month", "quarter", "year", "decade", "century", "millennium"
)  # fmt: skip
CLOCK_UNITS = ("hour", "minute", "second", "millisecond", "microsecond", "epoch")
SCALES = {"second": 6, "millisecond": 3, "epoch": 6}
TRUNCATIONS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")


def _truncations() -> list[Function]:
    rows = []
    for unit in TRUNCATIONS:
        rows += [
            Function(f"date_trunc:{unit}", ("timestamp",), "timestamp",
                     f"CAST(date_trunc('{unit}', CAST({{0}} AS TIMESTAMP)) AS TIMESTAMP_NTZ)",
                     f"CAST(date_trunc('{unit}', {{0}}) AS TIMESTAMP)"),
            Function(f"date_trunc:{unit}", ("timestamptz",), "timestamptz",
                     f"date_trunc('{unit}', {{0}})",
                     f"CAST(CAST(date_trunc('{unit}', CAST({{0}} AS TIMESTAMP)) AS TIMESTAMP) AS TIMESTAMPTZ)", note="at UTC"),
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


MICROSECOND = "CAST('0.000001' AS DECIMAL(7,6))"  # in seconds, in Spark
SECONDS = "pmod(unix_micros(CAST({x} AS TIMESTAMP)), 60000000)"
SECONDS_DUCKDB = "(microsecond({x}))"
# scale and templates of each unit; {x} is a TIMESTAMP_NTZ, or a TIMESTAMP in UTC
FIELDS: dict[str, tuple[int, str, str]] = {
    "year": (0, "extract(YEAR FROM {x})", "year({x})"),
    "quarter": (0, "extract(QUARTER FROM {x})", "quarter({x})"),
    "month": (0, "extract(MONTH FROM {x})", "month({x})"),
    "week": (0, "extract(WEEK FROM {x})", "week({x})"),
    "day": (0, "extract(DAY FROM {x})", "day({x})"),
    "dow": (0, "(dayofweek(CAST({x} AS DATE)) - 1)", "dayofweek({x})"),
    "isodow": (0, "(weekday(CAST({x} AS DATE)) + 1)", "isodow({x})"),
    "doy": (0, "dayofyear(CAST({x} AS DATE))", "dayofyear({x})"),
    "isoyear": (0, "extract(YEAROFWEEK FROM {x})", "isoyear({x})"),
    "decade": (0, "CAST(floor(extract(YEAR FROM {x}) / 10) AS INT)", "(year({x}) // 10)"),
    "century": (0, "((extract(YEAR FROM {x}) + 99) div 100)", "((year({x}) + 99) // 100)"),
    "millennium": (0, "((extract(YEAR FROM {x}) + 999) div 1000)", "((year({x}) + 999) // 1000)"),
    "epoch": (
        6,
        f"(CAST(unix_micros(CAST({{x}} AS TIMESTAMP)) AS DECIMAL(20,0)) * {MICROSECOND})",
        "(epoch_us({x}) * 0.000001::DECIMAL(7,6))",
    ),
}
TIME_FIELDS: dict[str, tuple[int, str, str]] = {
    "hour": (0, "extract(HOUR FROM {x})", "hour({x})"),
    "minute": (0, "extract(MINUTE FROM {x})", "minute({x})"),
    "second": (6, f"(CAST({SECONDS} AS DECIMAL(20,0)) * {MICROSECOND})", f"({SECONDS_DUCKDB} * 0.000001::DECIMAL(7,6))"),
    "millisecond": (3, f"(CAST({SECONDS} AS DECIMAL(20,0)) * CAST('0.001' AS DECIMAL(4,3)))", f"({SECONDS_DUCKDB} * 0.001::DECIMAL(4,3))"),
    "microsecond": (0, SECONDS, SECONDS_DUCKDB),
}


def _of_scale(scale: int) -> ResultType:
    return lambda types: numeric(scale)


def _seconds(unit: str, spark: str, duckdb: str) -> tuple[str, str]:
    """Returns templates of date_part() for seconds or milliseconds, summed in PostgreSQL's order.

    `spark` and `duckdb` are templates of the microseconds in a minute.
    """
    scale = 1 if unit == "second" else 1000

    def in_doubles(micros: str, div: str) -> str:
        exact = f"CAST({micros} AS BIGINT)"
        return f"(({exact} {div} 1000000) * {scale} + ({exact} % 1000000) / CAST({1_000_000 // scale} AS DOUBLE))"

    return in_doubles(spark, "div"), in_doubles(duckdb, "//")


def _fields() -> list[Function]:
    rows = []
    for unit, (scale, spark, duckdb) in {**FIELDS, **TIME_FIELDS}.items():
        for source in ("date", "timestamp", "timestamptz"):
            if source == "date" and unit in TIME_FIELDS:
                continue
            sparks = spark.replace("{x}", "{0}" if source != "date" else "CAST({0} AS TIMESTAMP_NTZ)")
            duckdbs = duckdb.replace("{x}", "CAST({0} AS TIMESTAMP)")
            note = "at UTC" if source == "timestamptz" else ""
            parts = f"CAST({sparks} AS DOUBLE)", f"CAST({duckdbs} AS DOUBLE)"
            if unit in ("second", "millisecond"):
                parts = _seconds(unit, SECONDS.replace("{x}", "{0}"), SECONDS_DUCKDB.replace("{x}", "CAST({0} AS TIMESTAMP)"))
            elif unit == "epoch" and source != "date":
                parts = "(unix_micros(CAST({0} AS TIMESTAMP)) / 1e6D)", "(epoch_us(CAST({0} AS TIMESTAMP)) / 1e6)"
            result = _of_scale(0 if unit == "epoch" and source == "date" else scale)
            rows += [
                Function(f"extract:{unit}", (source,), result, f"CAST({sparks} AS {{type}})", f"CAST({duckdbs} AS {{type}})", note=note),
                Function(f"date_part:{unit}", (source,), "float8", *parts, note=note),
            ]
    for source, units in (("interval", (*INTERVAL_UNITS, "epoch")), ("time", CLOCK_UNITS)):
        for unit in units:
            field = udf(f"extract:{unit}", (source,), _of_scale(SCALES.get(unit, 0)), f"extract_{source}", order=(f"'{unit}'", 0))
            rows.append(field)
            if (source, unit) == ("interval", "epoch"):
                rows.append(udf("date_part:epoch", (source,), "float8", "epoch_interval"))
                continue
            call = f"tg_extract_{source}('{unit if unit not in ('second', 'millisecond') else 'microsecond'}', {{0}}"
            spark, duckdb = f"{call}, 38, {6 if unit == 'epoch' else 0})", f"{call})"
            parts = f"CAST({spark} AS DOUBLE)", f"CAST({duckdb} AS DOUBLE)"
            if unit in ("second", "millisecond"):
                parts = _seconds(unit, spark, duckdb)
            rows.append(Function(f"date_part:{unit}", (source,), "float8", *parts))
    for source, spark, duckdb in (
        ("date", "{0}", "{0}"), ("timestamp", "CAST({0} AS DATE)", "CAST({0} AS DATE)"),
        ("timestamptz", "CAST({0} AS DATE)", "CAST(CAST({0} AS TIMESTAMP) AS DATE)"),
    ):  # fmt: skip
        if source == "date":
            rows += [
                Function("extract:julian", (source,), _of_scale(0), f"CAST(datediff({spark}, DATE'1970-01-01') + {JULIAN} AS {{type}})",
                         f"CAST({duckdb} - DATE '1970-01-01' + {JULIAN} AS {{type}})"),
                Function("date_part:julian", (source,), "float8", f"CAST(datediff({spark}, DATE'1970-01-01') + {JULIAN} AS DOUBLE)",
                         f"CAST({duckdb} - DATE '1970-01-01' + {JULIAN} AS DOUBLE)"),
            ]  # fmt: skip
    for unit in ("timezone", "timezone_hour", "timezone_minute"):
        zero = strict("0", 1)
        rows += [
            Function(
                f"extract:{unit}", ("timestamptz",), _of_scale(0), f"CAST({zero} AS {{type}})", f"CAST({zero} AS {{type}})", note="at UTC"
            ),
            Function(f"date_part:{unit}", ("timestamptz",), "float8", f"CAST({zero} AS DOUBLE)", f"CAST({zero} AS DOUBLE)", note="at UTC"),
        ]
    return rows


JULIAN = 2_440_588  # the Julian day of 1970-01-01
DAY = 86_400_000_000  # microseconds
MICROS = "unix_micros(CAST({%d} AS TIMESTAMP))"


def _differences() -> list[Function]:
    """Returns differences of timestamps: days and time, without months."""
    spark = f"({MICROS % 0} - {MICROS % 1})"
    duckdb = "(epoch_us({0}) - epoch_us({1}))"
    struct = f"named_struct('months', 0, 'days', CAST({spark} div {DAY} AS INT), 'micros', {spark} % {DAY})"
    record = f"{{'months': 0::INTEGER, 'days': CAST({duckdb} // {DAY} AS INTEGER), 'micros': {duckdb} % {DAY}}}"
    return [
        Function("-", (t, t), "interval", f"CAST({strict(struct, 2)} AS {{type}})", strict(record, 2), "operator")
        for t in ("timestamp", "timestamptz")
    ]


def _swapped(template: str) -> str:
    return template.replace("{0}", "{2}").replace("{1}", "{0}").replace("{2}", "{1}")


def _shifts() -> list[Function]:
    """Returns additions of intervals: months first, then days, then time, as in PostgreSQL."""
    rows = []
    for t, spark_type, duckdb_type in (
        ("timestamp", "TIMESTAMP_NTZ", "TIMESTAMP"),
        ("timestamptz", "TIMESTAMP", "TIMESTAMPTZ"),
        ("date", "TIMESTAMP_NTZ", "TIMESTAMP"),
    ):
        for sign in "+-":
            minus = "-" if sign == "-" else ""
            spark = (
                f"CAST((CAST({{0}} AS {spark_type}) + make_ym_interval(0, {minus}{{1}}.months))"
                f" + make_dt_interval({minus}{{1}}.days, 0, 0, 0)"
                f" + make_dt_interval(0, 0, 0, CAST({minus}{{1}}.micros AS DECIMAL(20,0)) * {MICROSECOND}) AS {spark_type})"
            )
            duckdb = (
                f"CAST(((CAST({{0}} AS TIMESTAMP) + to_months({minus}{{1}}.months)) + to_days({minus}{{1}}.days))"
                f" + to_microseconds({minus}{{1}}.micros) AS {duckdb_type})"
            )
            result = "timestamp" if t == "date" else t
            rows.append(Function(sign, (t, "interval"), result, spark, duckdb, "operator"))
            if sign == "+":
                rows.append(Function(sign, ("interval", t), result, _swapped(spark), _swapped(duckdb), "operator"))
    return rows


def _milliseconds(_: tuple[Type, ...]) -> Type:
    """Returns the type of mz_now(), as in Materialize: milliseconds since 1970."""
    return numeric(0)


# PostgreSQL's first and last date, in days since 1970
FIRST_DAY, LAST_DAY = -2440588, 2145042905


def _days(day: str, sign: str, days: str) -> tuple[str, str]:
    """Returns templates of a date plus or minus days; 22008 outside of PostgreSQL's range."""
    spark_number = f"CAST(datediff({day}, DATE'1970-01-01') AS BIGINT) {sign} {days}"
    duckdb_number = f"CAST({day} - DATE '1970-01-01' AS BIGINT) {sign} {days}"
    spark_date = f"date_from_unix_date(CAST({spark_number} AS INT))"
    duckdb_date = f"DATE '1970-01-01' + CAST({duckdb_number} AS INTEGER)"

    def checked(number: str, date: str, error: str) -> str:
        return f"(CASE WHEN {number} NOT BETWEEN {FIRST_DAY} AND {LAST_DAY} THEN {error} ELSE {date} END)"

    return (
        checked(spark_number, spark_date, spark_error("22008", "date out of range")),
        checked(duckdb_number, duckdb_date, duckdb_error("22008", "date out of range")),
    )


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
        Function("age", ("timestamptz", "timestamptz"), i, "tg_age(CAST({0} AS TIMESTAMP_NTZ), CAST({1} AS TIMESTAMP_NTZ))",
                 "tg_age(CAST({0} AS TIMESTAMP), CAST({1} AS TIMESTAMP))", note="at UTC"),
        Function("age", ("timestamp",), i, "", "tg_age(date_trunc('day', CAST({now} AS TIMESTAMP)), {0})", volatility="stable"),
        Function("age", ("timestamptz",), i, "", "tg_age(date_trunc('day', CAST({now} AS TIMESTAMP)), CAST({0} AS TIMESTAMP))",
                 volatility="stable", note="at UTC"),
        *(Function("isfinite", (t,), "bool", strict("true", 1), strict("true", 1)) for t in ("date", "timestamp", "timestamptz",
            "interval")),
        udf("date_bin", (i, "timestamp", "timestamp"), "timestamp"),
        Function("date_bin", (i, "timestamptz", "timestamptz"), "timestamptz",
                 "CAST(tg_date_bin({0}, CAST({1} AS TIMESTAMP_NTZ), CAST({2} AS TIMESTAMP_NTZ)) AS TIMESTAMP)",
                 "CAST(tg_date_bin({0}, CAST({1} AS TIMESTAMP), CAST({2} AS TIMESTAMP)) AS TIMESTAMPTZ)"),
    ]  # fmt: skip


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
    Function("-", ("date", "date"), "int4", "datediff({0}, {1})", "CAST({0} - {1} AS INTEGER)", "operator"),
    Function("+", ("date", "int4"), "date", *_days("{0}", "+", "{1}"), "operator"),
    Function("+", ("int4", "date"), "date", *_days("{1}", "+", "{0}"), "operator"),
    Function("-", ("date", "int4"), "date", *_days("{0}", "-", "{1}"), "operator"),
    *_intervals(),
    *_zones(),
    *_constructors(),
    *_formats(),
    *(
        Function(name, (), _milliseconds, "", "CAST(epoch_ms({now}) AS DECIMAL(38,0))", volatility="stable")
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
