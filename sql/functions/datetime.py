"""Dates and times. Units (hour, week, …) must be literals, so each is a row.

`stable` functions have one value in a statement. A materialized view may compare them with the times of its rows, no more.
"""

from __future__ import annotations

from lake.types import Type, numeric
from sql.functions.entry import Function, ResultType, duckdb_error, spark_error, strict

# spellings of units, as PostgreSQL's datetktbl and deltatktbl
SPELLINGS = {
    spelling: unit
    for unit, spellings in {
        "microsecond": "microseconds microsecon us usec usecond useconds usecs",
        "millisecond": "milliseconds millisecon ms msec msecond mseconds msecs",
        "second": "seconds s sec secs",
        "minute": "minutes m min mins",
        "hour": "hours h hr hrs",
        "day": "days d",
        "week": "weeks w",
        "month": "months mon mons",
        "quarter": "qtr",
        "year": "years y yr yrs",
        "decade": "decades dec decs",
        "century": "centuries c cent",
        "millennium": "millennia mil mils",
        "dow": "",
        "isodow": "",
        "doy": "",
        "epoch": "",
        "isoyear": "",
        "julian": "",
        "timezone": "",
        "timezone_hour": "timezone_h",
        "timezone_minute": "timezone_m",
    }.items()
    for spelling in (unit, *spellings.split())
}

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


def _fields() -> list[Function]:
    rows = []
    for unit, (scale, spark, duckdb) in {**FIELDS, **TIME_FIELDS}.items():
        for source in ("date", "timestamp", "timestamptz"):
            if source == "date" and unit in TIME_FIELDS:
                continue
            sparks = spark.replace("{x}", "{0}" if source != "date" else "CAST({0} AS TIMESTAMP_NTZ)")
            duckdbs = duckdb.replace("{x}", "CAST({0} AS TIMESTAMP)")
            note = "at UTC" if source == "timestamptz" else ""
            result = _of_scale(0 if unit == "epoch" and source == "date" else scale)
            rows += [
                Function(f"extract:{unit}", (source,), result, f"CAST({sparks} AS {{type}})", f"CAST({duckdbs} AS {{type}})", note=note),
                Function(f"date_part:{unit}", (source,), "float8", f"CAST({sparks} AS DOUBLE)", f"CAST({duckdbs} AS DOUBLE)", note=note),
            ]
    return rows


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


ROWS = (
    *_truncations(),
    *_fields(),
    *_differences(),
    *_shifts(),
    Function("to_timestamp", ("float8",), "timestamptz", "tg_to_timestamp({0})", "tg_to_timestamp({0})"),
    Function("to_timestamp", ("text", "text"), "timestamptz"),
    Function("-", ("date", "date"), "int4", "datediff({0}, {1})", "CAST({0} - {1} AS INTEGER)", "operator"),
    Function("+", ("date", "int4"), "date", *_days("{0}", "+", "{1}"), "operator"),
    Function("+", ("int4", "date"), "date", *_days("{1}", "+", "{0}"), "operator"),
    Function("-", ("date", "int4"), "date", *_days("{0}", "-", "{1}"), "operator"),
    *(
        Function(sign, arguments, result, kind="operator")
        for sign, arguments, result in (
            ("+", ("interval", "interval"), "interval"),
            ("-", ("interval", "interval"), "interval"),
            ("*", ("interval", "float8"), "interval"),
            ("*", ("float8", "interval"), "interval"),
            ("/", ("interval", "float8"), "interval"),
            ("+", ("date", "time"), "timestamp"),
            ("+", ("time", "date"), "timestamp"),
            ("+", ("time", "interval"), "time"),
            ("-", ("time", "interval"), "time"),
            ("-", ("time", "time"), "interval"),
        )
    ),
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
