"""DuckDB's macros that rendered plans call, as `name(parameters) AS body`."""

from __future__ import annotations

import re

from tailgate.sql.functions import aggregates, arithmetic, arrays, comparison, datetime
from tailgate.sql.functions.general import macros as general

OUT_OF_RANGE = f"abs(months) >= {2**31} OR abs(days) >= {2**31} OR abs(micros) >= {2**63}"
INTERVAL = (
    f"CASE WHEN {OUT_OF_RANGE} THEN error('[22008] interval out of range') WHEN months IS NOT NULL THEN"
    " {'months': CAST(months AS INTEGER), 'days': CAST(days AS INTEGER), 'micros': CAST(micros AS BIGINT)} END"
)
FRACTION = "[22003] percentile value ' || format('{:.6g}', f) || ' is not between 0 and 1"
PERCENTILE = f"CASE WHEN f < 0 OR f > 1 THEN error('{FRACTION}') ELSE"
SIMPLE = "length(rtrim(p, '%')) - length(replace(p, '%', '')) <= 1"  # sql.compute.regexp.likes.is_simple()
_MACROS = (
    *arithmetic.MACROS,
    *comparison.MACROS,
    *datetime.MACROS,
    # DuckDB 1.5 rounds 6e-07 to 0.01 if two digits after the decimal point are left
    (
        "tg_float_to_numeric(x, number, scale) AS CASE WHEN isnan(x) OR isinf(x) THEN error('[22003] numeric field overflow')"
        " WHEN abs(x) < 0.1 * 10.0 ** (- scale) THEN 0 ELSE number END"
    ),
    "tg_numeric_divide(a, b, sa, sb, s) AS tg_decimal_divide(CAST(a AS VARCHAR), CAST(b AS VARCHAR), s)",
    f"tg_interval_of(months, days, micros) AS {INTERVAL}",
    "tg_json_array(l) AS '[' || array_to_string(list_transform(l, lambda x: coalesce(x, 'null')), ', ') || ']'",
    f"tg_percentile_disc(l, f) AS {PERCENTILE} l[greatest(CAST(ceil(f * len(l)) AS BIGINT), 1)] END",
    "tg_at(l, place) AS l[CAST(place AS BIGINT) + 1]",
    "tg_between(low, high, part) AS CASE WHEN part = 0 THEN low ELSE low + part * (high - low) END",
    "tg_about(l, place) AS tg_between(tg_at(l, floor(place)), tg_at(l, ceil(place)), place - floor(place))",
    f"tg_percentile_cont(l, f) AS {PERCENTILE} tg_about(l, f * (len(l) - 1)) END",
    f"tg_like_any(x, p) AS CASE WHEN {SIMPLE} THEN x LIKE p ESCAPE '\\' ELSE tg_like(x, p) END",
    *aggregates.MACROS,
    *arrays.MACROS,
    *general.MACROS,
)


def catchable(sql: str) -> str:
    """Returns SQL whose errors TRY of DuckDB catches.

    TRY accepts no volatile function, and error() is one. The function tg_error is not, and there is a second
    form of each macro that calls it.
    """
    return re.sub(r"\berror\(", "tg_error(", CALLS.sub(r"tg_try_\1(", sql))


def _raising() -> frozenset[str]:
    """Returns the names of the macros that call error(), possibly through another macro, without their prefix tg_."""
    bodies = {definition.partition("(")[0].removeprefix("tg_"): definition.partition(" AS ")[2] for definition in _MACROS}
    raising = {name for name, body in bodies.items() if re.search(r"\berror\(", body)}
    while more := {n for n, body in bodies.items() if n not in raising and raising.intersection(re.findall(r"\btg_(\w+)\(", body))}:
        raising |= more
    return frozenset(raising)


CALLS = re.compile(rf"\btg_({'|'.join(sorted(_raising()))})\(")
MACROS = (*_MACROS, *(catchable(definition) for definition in _MACROS if CALLS.match(definition)))
