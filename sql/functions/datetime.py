"""Dates and times. Units (hour, week, …) must be literals, so each is a row.

`stable` functions have one value in a statement. A materialized view may compare them with the times of its rows, no more.
"""

from __future__ import annotations

from lake.types import Type, numeric
from sql.functions.entry import Function, ResultType, duckdb_error, own, spark_error, strict

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
            own(f"date_trunc:{unit}", ("timestamp",), "timestamp", "date_trunc_timestamp", order=(f"'{unit}'", 0)),
            own(f"date_trunc:{unit}", ("timestamptz",), "timestamptz", "date_trunc_timestamptz", order=(f"'{unit}'", 0, "'UTC'")),
        ]
    rows += [own(f"date_trunc:{unit}", ("interval",), "interval", "date_trunc_interval", order=(f"'{unit}'", 0)) for unit in INTERVAL_UNITS]
    rows += [
        own("date_trunc", (T, "timestamp"), "timestamp", "date_trunc_timestamp"),
        own("date_trunc", (T, "timestamptz"), "timestamptz", "date_trunc_timestamptz", order=(0, 1, "'UTC'"), note="at UTC"),
        own("date_trunc", (T, "timestamptz", T), "timestamptz", "date_trunc_timestamptz"),
        own("date_trunc", (T, "interval"), "interval", "date_trunc_interval"),
    ]
    return rows


MICROSECOND = "CAST('0.000001' AS DECIMAL(7,6))"  # of a second, in Spark
# unit → scale, Spark, DuckDB; {x} is a TIMESTAMP_NTZ or TIMESTAMP at UTC
SECONDS = "pmod(unix_micros(CAST({x} AS TIMESTAMP)), 60000000)"
SECONDS_DUCKDB = "(microsecond({x}))"
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
    """Seconds or milliseconds of the microseconds in a minute, as date_part gives them: a sum of doubles, in PostgreSQL's order."""
    scale = 1 if unit == "second" else 1000

    def of(micros: str, div: str) -> str:
        whole = f"CAST({micros} AS BIGINT)"
        return f"(({whole} {div} 1000000) * {scale} + ({whole} % 1000000) / CAST({1_000_000 // scale} AS DOUBLE))"

    return of(spark, "div"), of(duckdb, "//")


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
            field = own(f"extract:{unit}", (source,), _of_scale(SCALES.get(unit, 0)), f"extract_{source}", order=(f"'{unit}'", 0))
            rows.append(field)
            if (source, unit) == ("interval", "epoch"):
                rows.append(own("date_part:epoch", (source,), "float8", "epoch_interval"))
                continue
            ours = f"tg_extract_{source}('{unit if unit not in ('second', 'millisecond') else 'microsecond'}', {{0}}"
            spark, duckdb = f"{ours}, 38, {6 if unit == 'epoch' else 0})", f"{ours})"
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
    """Days and the rest, no months."""
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
    """Months first, then days, then the rest, as PostgreSQL."""
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
    """Of times as Materialize has them."""
    return numeric(0)


# days since 1970 of the first date that PostgreSQL has, and of the last
FIRST_DAY, LAST_DAY = -2440588, 2145042905


def _days(day: str, sign: str, days: str) -> tuple[str, str]:
    """A date some days on, in Spark and DuckDB; 22008 beyond PostgreSQL's range."""
    spark = f"CAST(datediff({day}, DATE'1970-01-01') AS BIGINT) {sign} {days}"
    duckdb = f"CAST({day} - DATE '1970-01-01' AS BIGINT) {sign} {days}"
    beyond = f"NOT BETWEEN {FIRST_DAY} AND {LAST_DAY}"
    errors = (raised("22008", "date out of range") for raised in (spark_error, duckdb_error))
    made = f"date_from_unix_date(CAST({spark} AS INT))", f"DATE '1970-01-01' + CAST({duckdb} AS INTEGER)"
    spark, duckdb = (
        f"(CASE WHEN {day_number} {beyond} THEN {error} ELSE {date} END)"
        for day_number, error, date in zip((spark, duckdb), errors, made, strict=True)
    )
    return spark, duckdb


def _intervals() -> list[Function]:
    i, f, t = "interval", "float8", "time"
    return [
        own("+", (i, i), i, "interval_add", "operator"),
        own("-", (i, i), i, "interval_subtract", "operator"),
        own("-", (i,), i, "interval_negate", "prefix"),
        own("*", (i, f), i, "interval_multiply", "operator"),
        own("*", (f, i), i, "interval_multiply", "operator", order=(1, 0)),
        own("/", (i, f), i, "interval_divide", "operator"),
        own("+", (t, i), t, "time_add", "operator"),
        own("+", (i, t), t, "time_add", "operator", order=(1, 0)),
        own("-", (t, i), t, "time_subtract", "operator"),
        Function("-", (t, t), i, strict("CAST(named_struct('months', 0, 'days', 0, 'micros', {0} - {1}) AS {type})", 2),
                 strict("{'months': 0::INTEGER, 'days': 0::INTEGER, 'micros': {0} - {1}}", 2), "operator"),
        own("+", ("date", t), "timestamp", "date_at_time", "operator"),
        own("+", (t, "date"), "timestamp", "date_at_time", "operator", order=(1, 0)),
        own("justify_hours", (i,), i),
        own("justify_days", (i,), i),
        own("justify_interval", (i,), i),
        own("age", ("timestamp", "timestamp"), i),
        Function("age", ("timestamptz", "timestamptz"), i, "tg_age(CAST({0} AS TIMESTAMP_NTZ), CAST({1} AS TIMESTAMP_NTZ))",
                 "tg_age(CAST({0} AS TIMESTAMP), CAST({1} AS TIMESTAMP))", note="at UTC"),
        Function("age", ("timestamp",), i, "", "tg_age(date_trunc('day', CAST({now} AS TIMESTAMP)), {0})", volatility="stable"),
        Function("age", ("timestamptz",), i, "", "tg_age(date_trunc('day', CAST({now} AS TIMESTAMP)), CAST({0} AS TIMESTAMP))",
                 volatility="stable", note="at UTC"),
        *(Function("isfinite", (t,), "bool", strict("true", 1), strict("true", 1)) for t in ("date", "timestamp", "timestamptz",
            "interval")),
        own("date_bin", (i, "timestamp", "timestamp"), "timestamp"),
        Function("date_bin", (i, "timestamptz", "timestamptz"), "timestamptz",
                 "CAST(tg_date_bin({0}, CAST({1} AS TIMESTAMP_NTZ), CAST({2} AS TIMESTAMP_NTZ)) AS TIMESTAMP)",
                 "CAST(tg_date_bin({0}, CAST({1} AS TIMESTAMP), CAST({2} AS TIMESTAMP)) AS TIMESTAMPTZ)"),
    ]  # fmt: skip


def _zones() -> list[Function]:
    return [
        own("timezone", (T, "timestamp"), "timestamptz", "timestamp_at_zone"),
        own("timezone", (T, "timestamptz"), "timestamp", "timestamptz_at_zone"),
        own("timezone", ("interval", "timestamp"), "timestamptz", "timestamp_at_offset"),
        own("timezone", ("interval", "timestamptz"), "timestamp", "timestamptz_at_offset"),
    ]


def _made() -> list[Function]:
    n, f = "int4", "float8"
    rows = [
        own("make_date", (n, n, n), "date"),
        own("make_time", (n, n, f), "time"),
        own("make_timestamp", (n, n, n, n, n, f), "timestamp"),
        own("make_timestamptz", (n, n, n, n, n, f), "timestamptz", order=(0, 1, 2, 3, 4, 5, "'UTC'"), note="at UTC"),
        own("make_timestamptz", (n, n, n, n, n, f, T), "timestamptz"),
    ]
    for given in range(8):
        types = ((n,) * 6 + (f,))[:given]
        missing = (*("0",) * 6, "CAST(0 AS DOUBLE)")[given:]
        rows.append(own("make_interval", types, "interval", order=(*range(given), *missing)))
    return rows


def _formats() -> list[Function]:
    return [
        *(own("to_char", (t, T), T, f"to_char_{t}") for t in ("timestamp", "timestamptz", "interval", "numeric", "float8", "float4")),
        *(Function("to_char", (t, T), T, "tg_to_char_numeric(CAST({0} AS DECIMAL(38,0)), {1})",
            "tg_to_char_numeric(CAST({0} AS VARCHAR), {1})")
          for t in ("int4", "int8")),
        own("to_number", (T, T), "numeric"),
        own("to_date", (T, T), "date"),
        own("to_timestamp", (T, T), "timestamptz", "to_timestamp_text", note="at UTC"),
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
    *_made(),
    *_formats(),
    *(
        Function(name, (), _milliseconds, "", "CAST(epoch_ms({now}) AS DECIMAL(38,0))", volatility="stable")
        for name in ("mz_now", "mz_logical_timestamp")
    ),
    Function("now", (), "timestamptz", "", "{now}", volatility="stable"),
    Function("transaction_timestamp", (), "timestamptz", "", "{now}", volatility="stable"),
    Function("statement_timestamp", (), "timestamptz", "", "{now}", volatility="stable"),
    Function("clock_timestamp", (), "timestamptz", "", "{now}", volatility="volatile"),
    Function("current_timestamp", (), "timestamptz", "", "{now}", volatility="stable"),
    Function("localtimestamp", (), "timestamp", "", "CAST({now} AS TIMESTAMP)", volatility="stable"),
    Function("current_date", (), "date", "", "CAST(CAST({now} AS TIMESTAMP) AS DATE)", volatility="stable"),
)
