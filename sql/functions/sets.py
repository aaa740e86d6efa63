"""Set-returning functions. Their templates give the rows as an array; NULL and an empty array are no rows."""

from __future__ import annotations

from dataclasses import replace

from lake.types import FACTS, Type
from sql.functions import text
from sql.functions.entry import Function, duckdb_error, spark_error

STEP = "step size cannot equal zero"
SERIES_MAX = 10_000_000  # rows of one call
TOO_MANY = f"generate_series gives more than {SERIES_MAX} rows"
ELEMENTS = tuple(t for t in FACTS if t not in ("unknown", "record", "name", "oid"))


def _set(name: str, arguments: tuple[str, ...], result: str, spark: str, duckdb: str, *outputs: tuple[str, str]) -> Function:
    return Function(name, arguments, result, spark, duckdb, "set", outputs=outputs)


def _element(types: tuple[Type, ...]) -> Type:
    return types[0].element


def _series() -> list[Function]:
    rows = []
    for t, word in (("int4", "INT"), ("int8", "BIGINT")):
        wide = "CAST({1} AS DECIMAL(38,0)) - {0}"
        for arguments, step in (((t, t), "1"), ((t, t, t), "{2}")):
            guards = (
                f"CASE WHEN {' OR '.join(f'{{{n}}} IS NULL' for n in range(len(arguments)))} THEN NULL WHEN {step} = 0 THEN %s"
                f" WHEN ({step} > 0 AND {{0}} > {{1}}) OR ({step} < 0 AND {{0}} < {{1}}) THEN NULL"
                f" WHEN abs({wide}) >= abs(CAST({step} AS DECIMAL(38,0))) * {SERIES_MAX} THEN %s ELSE %s END"
            )
            spark = guards % (spark_error("22023", STEP), spark_error("54000", TOO_MANY), f"sequence({{0}}, {{1}}, CAST({step} AS {word}))")
            duckdb_type = Type(t).duckdb
            made = f"CAST(generate_series(CAST({{0}} AS BIGINT), {{1}}, {step}) AS {duckdb_type}[])"
            rows.append(
                _set("generate_series", arguments, t, spark, guards % (duckdb_error("22023", STEP), duckdb_error("54000", TOO_MANY), made))
            )
    for t in ("timestamp", "timestamptz"):
        spark = f"tg_series_{t}({{0}}, {{1}}, {{2}}.months, {{2}}.days, {{2}}.micros)"
        length = "(({2}).months * 30 + ({2}).days) * 86400000000 + ({2}).micros"
        step = "to_months(({2}).months) + to_days(({2}).days) + to_microseconds(({2}).micros)"
        parts = [f"({{2}}).{part}" for part in ("months", "days", "micros")]
        mixed = f"greatest({', '.join(parts)}) > 0 AND least({', '.join(parts)}) < 0"
        series = f"generate_series(CAST({{0}} AS TIMESTAMP), CAST({{1}} AS TIMESTAMP), {step})"
        guards = (
            f"CASE WHEN {{0}} IS NULL OR {{1}} IS NULL THEN NULL WHEN {length} = 0 THEN {duckdb_error('22023', STEP)}"
            f" WHEN abs(epoch_us(CAST({{1}} AS TIMESTAMP)) - epoch_us(CAST({{0}} AS TIMESTAMP))) / abs({length}) >= {SERIES_MAX}"
            f" THEN {duckdb_error('54000', TOO_MANY)} WHEN {mixed}"
            " THEN tg_series_timestamp(CAST({0} AS TIMESTAMP), CAST({1} AS TIMESTAMP), {2})"
        )
        rows.append(_set("generate_series", (t, t, "interval"), t, spark, f"CAST({guards} ELSE {series} END AS {Type(t).duckdb}[])"))
    return rows


def _windows() -> dict[str, Function]:
    rows = {}
    for t in ("timestamp", "timestamptz"):
        every, size = (f"(({{{n}}}).days * CAST(86400000000 AS BIGINT) + ({{{n}}}).micros)" for n in (1, 2))
        at = "epoch_us(CAST({0} AS TIMESTAMP))"
        first = f"(CAST(floor(({at} - {size}) / {every}) AS BIGINT) + 1) * {every}"
        made = f"CAST(make_timestamp(s) AS {Type(t).duckdb}), 'window_end': CAST(make_timestamp(s + {size}) AS {Type(t).duckdb})"
        windows = f"list_transform(range({first}, {at} + 1, {every}), lambda s: {{'window_start': {made}}})"
        duckdb = f"CASE WHEN {{0}} IS NULL THEN NULL ELSE {windows} END"
        outputs = ("window_start", t), ("window_end", t)
        rows[t] = _set("hop", (t, "interval", "interval"), "record", f"tg_windows_{t}({{0}}, {every}, {size})", duckdb, *outputs)
    return rows


def _subscripts() -> tuple[Function, ...]:
    """The numbers of an array's elements, from 1 on or from the last one back."""
    spark = "CASE WHEN {1} = 1 AND size({0}) > 0 THEN sequence(1, size({0})) END"
    duckdb = "CASE WHEN {1} = 1 AND len({0}) > 0 THEN CAST(range(1, len({0}) + 1) AS INTEGER[]) END"
    back = (
        f"CASE {{2}} WHEN true THEN reverse({spark}) WHEN false THEN {spark} END",
        f"CASE {{2}} WHEN true THEN list_reverse({duckdb}) WHEN false THEN {duckdb} END",
    )
    return (
        _set("generate_subscripts", ("anyarray", "int4"), "int4", spark, duckdb),
        _set("generate_subscripts", ("anyarray", "int4", "bool"), "int4", *back),
    )


# the windows that hold a time, by its type: one every {1}, of size {2}; intervals without months, greater than zero
WINDOWS = _windows()


def _jsonb(name: str, function: str, result: str, *outputs: tuple[str, str]) -> Function:
    return _set(name, ("jsonb",), result, f"{function}({{0}})", f"{function}({{0}})", *outputs)


ROWS = (
    *_series(),
    *(Function("unnest", (f"{t}[]",), _element, "{0}", "{0}", "set") for t in ELEMENTS),
    _jsonb("jsonb_array_elements", "tg_jsonb_elements", "jsonb", ("value", "jsonb")),
    _jsonb("jsonb_array_elements_text", "tg_jsonb_elements_text", "text", ("value", "text")),
    _jsonb("jsonb_object_keys", "tg_jsonb_keys", "text"),
    _jsonb("jsonb_each", "tg_jsonb_each", "record", ("key", "text"), ("value", "jsonb")),
    _jsonb("jsonb_each_text", "tg_jsonb_each_text", "record", ("key", "text"), ("value", "text")),
    *(replace(row, name="string_to_table", result="text", kind="set") for row in text.ROWS if row.name == "string_to_array"),
    *_subscripts(),
    # chosen by PostgreSQL, refused here
    Function("generate_series", ("numeric", "numeric"), "numeric", kind="set"),
    Function("generate_series", ("numeric", "numeric", "numeric"), "numeric", kind="set"),
)
