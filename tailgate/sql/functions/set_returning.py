"""Set-returning functions. A template returns an array of the rows; NULL means no rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tailgate.lake.ranges import RANGE_OF
from tailgate.lake.types import FACTS, Type
from tailgate.sql.compute.series import SERIES_MAX, TOO_MANY_ROWS, ZERO_STEP
from tailgate.sql.functions import text
from tailgate.sql.functions.entry import Function, duckdb_error, spark_error
from tailgate.sql.numeric_types import series

DAY = 86_400_000_000  # microseconds
ELEMENTS = tuple(t for t in FACTS if t not in ("unknown", "record", "name", "oid", "regclass", "regtype"))


def _set(name: str, arguments: tuple[str, ...], result: str, spark: str, duckdb: str, *outputs: tuple[str, str]) -> Function:
    return Function(name, arguments, result, spark, duckdb, "set", outputs=outputs)


def _element(types: tuple[Type, ...]) -> Type:
    return types[0].element


def _integer_series(t: str, spark_type: str, step: str, arguments: tuple[str, ...]) -> Function:
    """Returns generate_series() of integers; `step` is the template of the step."""
    any_null = " OR ".join(f"{{{n}}} IS NULL" for n in range(len(arguments)))
    empty = f"({step} > 0 AND {{0}} > {{1}}) OR ({step} < 0 AND {{0}} < {{1}})"
    distance = "abs(CAST({1} AS DECIMAL(38,0)) - {0})"

    def template(error: Callable[[str, str], str], numbers: str) -> str:
        return (
            f"CASE WHEN {any_null} THEN NULL WHEN {step} = 0 THEN {error('22023', ZERO_STEP)} WHEN {empty} THEN NULL"
            f" WHEN {distance} >= abs(CAST({step} AS DECIMAL(38,0))) * {SERIES_MAX} THEN {error('54000', TOO_MANY_ROWS)}"
            f" ELSE {numbers} END"
        )

    spark = template(spark_error, f"sequence({{0}}, {{1}}, CAST({step} AS {spark_type}))")
    duckdb = template(duckdb_error, f"CAST(generate_series(CAST({{0}} AS BIGINT), {{1}}, {step}) AS {Type(t).duckdb}[])")
    return _set("generate_series", arguments, t, spark, duckdb)


def _numeric_series(arguments: tuple[str, ...], step: str) -> Function:
    """Returns generate_series() of fixed numerics; those of general ones are in `sql.functions.general`."""
    numbers = "{0}", "{1}", step
    general = ", ".join(f"tg_fixed_to_general(CAST({number} AS DECIMAL(38,{{scale}})))" for number in numbers)
    spark = f"transform(tg_general_series({general}), tg_x -> tg_general_to_fixed(tg_x, {{precision}}, {{scale}}))"
    texts = ", ".join(f"tg_text_to_general(CAST({number} AS VARCHAR))" for number in numbers)
    duckdb = f"list_transform(tg_general_series({texts}), lambda tg_x: CAST(tg_general_to_text_any(tg_x) AS {{type}}))"
    return Function("generate_series", arguments, series, spark, duckdb, "set")


def _timestamp_series(t: str) -> Function:
    """Returns generate_series() of timestamps. DuckDB refuses steps with parts of both signs."""
    first, last = "CAST({0} AS TIMESTAMP)", "CAST({1} AS TIMESTAMP)"
    months, days, micros = (f"({{2}}).{part}" for part in ("months", "days", "micros"))
    size = f"({months} * 30 + {days}) * {DAY} + {micros}"
    step = f"to_months({months}) + to_days({days}) + to_microseconds({micros})"
    mixed_signs = f"greatest({months}, {days}, {micros}) > 0 AND least({months}, {days}, {micros}) < 0"
    duckdb = (
        f"CAST(CASE WHEN {{0}} IS NULL OR {{1}} IS NULL THEN NULL WHEN {size} = 0 THEN {duckdb_error('22023', ZERO_STEP)}"
        f" WHEN abs(epoch_us({last}) - epoch_us({first})) / abs({size}) >= {SERIES_MAX}"
        f" THEN {duckdb_error('54000', TOO_MANY_ROWS)}"
        f" WHEN {mixed_signs} THEN tg_series_timestamp({first}, {last}, {{2}})"
        f" ELSE generate_series({first}, {last}, {step}) END AS {Type(t).duckdb}[])"
    )
    spark = f"tg_series_{t}({{0}}, {{1}}, {{2}}.months, {{2}}.days, {{2}}.micros)"
    return _set("generate_series", (t, t, "interval"), t, spark, duckdb)


def _series() -> list[Function]:
    rows = []
    for t, spark_type in (("int4", "INT"), ("int8", "BIGINT")):
        rows.append(_integer_series(t, spark_type, "1", (t, t)))
        rows.append(_integer_series(t, spark_type, "{2}", (t, t, t)))
    rows += [_numeric_series(("numeric",) * 2, "1"), _numeric_series(("numeric",) * 3, "{2}")]
    return [*rows, *map(_timestamp_series, ("timestamp", "timestamptz"))]


def _window(t: str) -> Function:
    """Returns hop(timestamp, interval, size): the windows that contain a timestamp."""
    interval, size = (f"(({{{n}}}).days * CAST({DAY} AS BIGINT) + ({{{n}}}).micros)" for n in (1, 2))
    micros = "epoch_us(CAST({0} AS TIMESTAMP))"
    first = f"(CAST(floor(({micros} - {size}) / {interval}) AS BIGINT) + 1) * {interval}"
    start, end = (f"CAST(make_timestamp({at}) AS {Type(t).duckdb})" for at in ("s", f"s + {size}"))
    window = f"{{'window_start': {start}, 'window_end': {end}}}"
    windows = f"list_transform(range({first}, {micros} + 1, {interval}), lambda s: {window})"
    spark = f"tg_windows_{t}({{0}}, {interval}, {size})"
    duckdb = f"CASE WHEN {{0}} IS NULL THEN NULL ELSE {windows} END"
    outputs = ("window_start", t), ("window_end", t)
    return _set("hop", (t, "interval", "interval"), "record", spark, duckdb, *outputs)


def _subscripts() -> tuple[Function, ...]:
    """Returns generate_subscripts(): the subscripts of an array in either direction."""
    spark = "CASE WHEN {1} = 1 AND size({0}) > 0 THEN sequence(1, size({0})) END"
    duckdb = "CASE WHEN {1} = 1 AND len({0}) > 0 THEN CAST(range(1, len({0}) + 1) AS INTEGER[]) END"
    descending = (
        f"CASE {{2}} WHEN true THEN reverse({spark}) WHEN false THEN {spark} END",
        f"CASE {{2}} WHEN true THEN list_reverse({duckdb}) WHEN false THEN {duckdb} END",
    )
    return (
        _set("generate_subscripts", ("anyarray", "int4"), "int4", spark, duckdb),
        _set("generate_subscripts", ("anyarray", "int4", "bool"), "int4", *descending),
    )


# the entries of hop() by the timestamp's type; both intervals are positive and have no months
WINDOWS = {t: _window(t) for t in ("timestamp", "timestamptz")}


def _json(type: str) -> list[Function]:
    """Returns the functions of json or jsonb."""

    def row(name: str, call: str, result: str, *outputs: tuple[str, str]) -> Function:
        template = f"tg_{type}_{call}({{0}})"
        return _set(f"{type}_{name}", (type,), result, template, template, *outputs)

    return [
        row("array_elements", "elements", type, ("value", type)),
        row("array_elements_text", "elements_text", "text", ("value", "text")),
        row("object_keys", "keys", "text"),
        row("each", "each", "record", ("key", "text"), ("value", type)),
        row("each_text", "each_text", "record", ("key", "text"), ("value", "text")),
    ]


ROWS = (
    *_series(),
    *(Function("unnest", (f"{t}[]",), _element, "{0}", "{0}", "set") for t in ELEMENTS),
    *(_set("unnest", (multirange,), range, *("tg_multirange_ranges({0})",) * 2) for multirange, range in RANGE_OF.items()),
    *_json("json"),
    *_json("jsonb"),
    *(replace(row, name="string_to_table", result="text", kind="set") for row in text.ROWS if row.name == "string_to_array"),
    *_subscripts(),
)
