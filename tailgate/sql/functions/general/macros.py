"""DuckDB's SQL for general numerics, structs of an unscaled value `u` and a display scale `s`, or bytes `x`.

A macro computes with the unscaled values if the operands are small enough. Otherwise a Python function
computes the same row. A template of DuckDB for general arguments has the name of its function and types.

    tg_general(u, s)          the struct of an unscaled value
    tg_general_key(a)         the sort key: equal if and only if the values are equal
"""

from __future__ import annotations

from tailgate.lake.sortable import KEY_DIGITS, KEY_SCALE, SCALE_MAX
from tailgate.lake.types import GENERAL_DUCKDB
from tailgate.values.numeric.scales import GROUP, SIGNIFICANT_DIGITS

FACTOR_MAX = 10**18 - 1  # of both factors, so that the product has less than 38 digits; a DECIMAL(18, 0)
TERM_MAX = 10**37  # of both terms
SHIFT_MAX = 18  # zeros that are added to a value below FACTOR_MAX
SUM_DIGITS = 8  # before the decimal point, of values that DuckDB sums: their sum may have 10^10 of them


def _small(a: str, limit: int = FACTOR_MAX) -> str:
    return f"{a}.u BETWEEN -{limit} AND {limit}"


def _shifted(a: str, zeros: str) -> str:
    return f"{a}.u * tg_power_of_ten({zeros})"


def _long(a: str) -> str:
    """Returns the unscaled value of a small number. Without the first cast DuckDB takes 15 times as long."""
    return f"CAST(CAST({a}.u AS DECIMAL(18,0)) AS BIGINT)"


_POWERS = ", ".join(str(10**n) for n in range(38))
_ONE_SCALE = f"a.s = b.s AND {_small('a', TERM_MAX)} AND {_small('b', TERM_MAX)}"
_A_SHIFTED = f"a.s < b.s AND b.s - a.s <= {SHIFT_MAX} AND {_small('a')} AND {_small('b', TERM_MAX)}"
_B_SHIFTED = f"b.s < a.s AND a.s - b.s <= {SHIFT_MAX} AND {_small('b')} AND {_small('a', TERM_MAX)}"
_KEY_SMALL = f"a.s <= {KEY_SCALE} AND abs(a.u) < tg_power_of_ten(a.s + {KEY_DIGITS})"
_SUM_SMALL = f"a.s <= {KEY_SCALE} AND abs(a.u) < tg_power_of_ten(a.s + {SUM_DIGITS})"
_LONG = _long("a")
_PLACES = "CAST(tg_power_of_ten(a.s - n) AS BIGINT)"
# The scale of a quotient follows from the first groups of four digits of both operands (`values.numeric.scales`). A number's
# place is that of its first digit in its group: 40 is the digit before the decimal point.
POINT = 40
DIVIDEND_DIGITS = 37  # of a dividend with the zeros that the scale of the quotient needs


def _sum(name: str, sign: str) -> str:
    return (
        f"tg_general_{name}_any(a, b) AS CASE WHEN {_ONE_SCALE} THEN tg_general(a.u {sign} b.u, a.s)"
        f" WHEN {_A_SHIFTED} THEN tg_general({_shifted('a', 'b.s - a.s')} {sign} b.u, b.s)"
        f" WHEN {_B_SHIFTED} THEN tg_general(a.u {sign} {_shifted('b', 'a.s - b.s')}, a.s)"
        f" ELSE tg_general_{name}(a, b) END"
    )


def _rounding(name: str, digits: str) -> str:
    """Returns round() or trunc(). `digits`: SQL of the unscaled result, without its sign, if digits are lost."""
    return (
        f"tg_general_{name}_any(a, n) AS CASE WHEN n >= a.s AND n - a.s <= {SHIFT_MAX} AND {_small('a')}"
        f" THEN tg_general({_shifted('a', 'n - a.s')}, n)"
        f" WHEN n >= 0 AND a.s - n BETWEEN 1 AND {SHIFT_MAX} AND {_small('a')} THEN tg_general(sign(a.u) * ({digits}), n)"
        f" ELSE tg_general_{name}(a, n) END"
    )


def _whole(name: str, correction: str) -> str:
    """Returns ceil() or floor(). `correction`: SQL of the difference from the number without its digits after the decimal point."""
    places = "CAST(tg_power_of_ten(a.s) AS BIGINT)"
    return (
        f"tg_general_{name}_any(a) AS CASE WHEN a.s = 0 AND a.u IS NOT NULL THEN a"
        f" WHEN a.s <= {SHIFT_MAX} AND {_small('a')} THEN tg_general({_LONG} // {places} {correction.format(f'({_LONG} % {places})')}, 0)"
        f" ELSE tg_general_{name}(a) END"
    )


def _leading(a: str) -> str:
    """Returns the first group of digits of a small number."""
    size = f"(tg_general_place({a}) % {GROUP} + 1)"
    zeros, rest = (f"tg_small_power_of_ten(greatest({n}, 0))" for n in (f"{size} - {_count(a)}", f"{_count(a)} - {size}"))
    return f"(abs({_long(a)}) * {zeros}) // {rest}"


def _count(a: str) -> str:
    """Returns the number of digits of a small number; of zero, up to the digit before the decimal point."""
    return f"CASE WHEN {a}.u = 0 THEN {a}.s + 1 ELSE length(CAST(abs({_long(a)}) AS VARCHAR)) END"


_ZEROS = "(n - a.s + b.s)"
_DIVIDEND = f"CAST(abs(a.u) AS HUGEINT) * tg_small_power_of_ten({_ZEROS} // 2) * tg_small_power_of_ten({_ZEROS} - {_ZEROS} // 2)"
_DIVISOR = "CAST(abs(b.u) AS HUGEINT)"
_DIGITS = "lpad(ltrim(CAST(a.u AS VARCHAR), '-'), CAST(greatest(a.s + 1, length(ltrim(CAST(a.u AS VARCHAR), '-'))) AS INTEGER), '0')"
MACROS = (
    f"tg_power_of_ten(n) AS CAST([{_POWERS}] AS DECIMAL(38,0)[])[n + 1]",
    # up to 10^18; exact, because doubles are up to 10^22. In a lambda, it takes a tenth of the time of a look-up in a list.
    "tg_small_power_of_ten(n) AS CAST(pow(10, n) AS BIGINT)",
    "tg_json_number(t) AS CASE WHEN t IN ('NaN', 'Infinity', '-Infinity') THEN '\"' || t || '\"' ELSE t END",
    f"tg_general(u, s) AS CAST({{'u': u, 's': s, 'x': NULL}} AS {GENERAL_DUCKDB})",
    f"tg_general_copy(a) AS CAST({{'u': a.u, 's': a.s, 'x': a.x || ''::BLOB}} AS {GENERAL_DUCKDB})",
    "tg_integer_to_general(a) AS CASE WHEN a IS NOT NULL THEN tg_general(a, 0) END",
    _sum("add", "+"),
    _sum("subtract", "-"),
    (
        f"tg_general_multiply_any(a, b) AS CASE WHEN {_small('a')} AND {_small('b')} AND a.s + b.s <= {SCALE_MAX}"
        " THEN tg_general(a.u * b.u, a.s + b.s) ELSE tg_general_multiply(a, b) END"
    ),
    (
        f"tg_general_remainder_any(a, b) AS CASE WHEN a.s = b.s AND {_small('a')} AND {_small('b')} AND b.u <> 0"
        f" THEN tg_general({_LONG} % {_long('b')}, a.s) ELSE tg_general_remainder(a, b) END"
    ),
    f"tg_general_place(a) AS {_count('a')} - a.s + {POINT - 1}",
    # the scale of a quotient of small numbers, or NULL
    (
        f"tg_general_quotient_scale(a, b) AS CASE WHEN {_small('a')} AND {_small('b')} AND b.u <> 0 AND greatest(a.s, b.s) < {SHIFT_MAX}"
        f" THEN greatest({SIGNIFICANT_DIGITS} - {GROUP} * (tg_general_place(a) // {GROUP} - tg_general_place(b) // {GROUP}"
        f" - CAST({_leading('a')} <= {_leading('b')} AS INTEGER)), a.s, b.s) END"
    ),
    # the quotient with this scale
    (
        "tg_general_divide_any(a, b, n) AS CASE WHEN n IS NULL THEN tg_general_divide(a, b)"
        f" WHEN tg_general_place(a) - {POINT - 1} + n + b.s <= {DIVIDEND_DIGITS}"
        " THEN tg_general(CAST(CAST(sign(a.u) * sign(b.u) AS HUGEINT)"
        f" * (({_DIVIDEND} * 2 + {_DIVISOR}) // ({_DIVISOR} * 2)) AS DECIMAL(38,0)), n) ELSE tg_general_divide(a, b) END"
    ),
    "tg_general_negate_any(a) AS CASE WHEN a.u IS NOT NULL THEN tg_general(- a.u, a.s) ELSE tg_general_negate(a) END",
    "tg_general_abs_any(a) AS CASE WHEN a.u >= 0 THEN a WHEN a.u < 0 THEN tg_general(- a.u, a.s) ELSE tg_general_abs(a) END",
    "tg_general_sign_any(a) AS CASE WHEN a.u IS NOT NULL THEN tg_general(sign(a.u), 0) ELSE tg_general_sign(a) END",
    _rounding("round", f"(abs({_LONG}) + {_PLACES} // 2) // {_PLACES}"),
    _rounding("trunc", f"abs({_LONG}) // {_PLACES}"),
    _whole("ceil", "+ CAST({} > 0 AS BIGINT)"),
    _whole("floor", "- CAST({} < 0 AS BIGINT)"),
    "tg_general_scale_any(a) AS CASE WHEN a.u IS NOT NULL THEN CAST(a.s AS INTEGER) ELSE tg_general_scale(a) END",
    (
        f"tg_general_key_any(a) AS CASE WHEN {_KEY_SMALL} THEN {{'f1': {_shifted('a', f'{KEY_SCALE} - a.s')}, 'f2': ''::BLOB}}"
        " ELSE tg_general_key(a) END"
    ),
    # a number that DuckDB sums, with KEY_SCALE digits after the decimal point, or NULL
    f"tg_general_term(a) AS CASE WHEN {_SUM_SMALL} THEN {_shifted('a', f'{KEY_SCALE} - a.s')} END",
    f"tg_general_term_scale(a) AS CASE WHEN {_SUM_SMALL} THEN a.s END",
    f"tg_general_is_other(a) AS a IS NOT NULL AND ({_SUM_SMALL}) IS NOT TRUE",
    # the sum of terms, the largest of their display scales, and the other values
    (
        "tg_general_part(total, scale) AS tg_general(CAST(total AS HUGEINT) // CAST(tg_power_of_ten("
        f"{KEY_SCALE} - coalesce(scale, 0)) AS HUGEINT), coalesce(scale, 0))"
    ),
    (
        "tg_general_sum(total, scale, others) AS CASE WHEN others IS NOT NULL"
        " THEN tg_general_total(tg_general_part(coalesce(total, 0), scale), others)"
        " WHEN total IS NOT NULL THEN tg_general_part(total, scale) END"
    ),
    (
        "tg_general_to_text_any(a) AS CASE WHEN a.s = 0 AND a.u IS NOT NULL THEN CAST(a.u AS VARCHAR) WHEN a.u IS NOT NULL THEN"
        f" CASE WHEN a.u < 0 THEN '-' ELSE '' END || left({_DIGITS}, -a.s) || '.' || right({_DIGITS}, a.s) ELSE tg_general_to_text(a) END"
    ),
)
