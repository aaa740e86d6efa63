"""Functions of money, which is a number of cents.

Source: PostgreSQL 15, src/backend/utils/adt/cash.c.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

from tailgate.lake.errors import DivisionByZero, FeatureNotSupported, NumericValueOutOfRange
from tailgate.lake.sortable import EXACT
from tailgate.sql.compute.registry import udf
from tailgate.values.numbers.money import write

INT_END = 2**63
SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
NAMES = "quadrillion trillion billion million thousand".split()
GROUPS = (*((f" {name} ", 1000 ** (5 - i)) for i, name in enumerate(NAMES)), ("", 1))


def _cents(value: int | float | Decimal) -> int:
    if not -INT_END <= value < INT_END:  # also of NaN
        raise NumericValueOutOfRange("bigint out of range")
    return int(value)


def _rounded(value: float) -> int:
    return _cents(float(round(value)) if math.isfinite(value) else value)


@udf("money", to="text")
def money_to_text(cents: int) -> str:
    return write(cents).decode()


@udf("numeric", to="money")
def numeric_to_money(value: Decimal) -> int:
    if not value.is_finite():
        kind = "NaN" if value.is_nan() else "infinity"
        raise FeatureNotSupported(f"cannot convert {kind} to bigint")
    return _cents(value.scaleb(2, context=EXACT).to_integral_value(ROUND_HALF_UP))


udf("general", to="money", name="general_to_money")(numeric_to_money)


@udf("money", "float8", to="money")
def money_times(cents: int, factor: float) -> int:
    return _rounded(cents * factor)


@udf("money", "float8", to="money")
def money_over(cents: int, divisor: float) -> int:
    if divisor == 0:
        raise DivisionByZero("division by zero")
    return _rounded(cents / divisor)


@udf("money", "money", to="float8")
def money_ratio(a: int, b: int) -> float:
    if b == 0:
        raise DivisionByZero("division by zero")
    return float(a) / float(b)


@udf("money", to="text")
def cash_words(cents: int) -> str:
    """Returns an amount in words, with PostgreSQL's blanks.

    >>> cash_words(12345), cash_words(-101), cash_words(100000)
    ('One hundred twenty three dollars and forty five cents', 'Minus one dollar and one cent', 'One thousand  dollars and zero cents')
    """
    dollars, rest = divmod(abs(cents), 100)
    text = "".join(f"{_words(group)}{name}" for name, size in GROUPS if (group := dollars // size % 1000)) or "zero"
    dollar, cent = "dollar" if dollars == 1 else "dollars", "cent" if rest == 1 else "cents"
    text = f"{'minus ' if cents < 0 else ''}{text} {dollar} and {_words(rest)} {cent}"
    return text[0].upper() + text[1:]


def _words(number: int) -> str:
    """Returns a number below 1000 in words."""
    hundreds, rest = divmod(number, 100)
    below = SMALL[rest] if rest < 20 else TENS[rest // 10] + (f" {SMALL[rest % 10]}" if rest % 10 else "")
    if not hundreds:
        return below
    return f"{SMALL[hundreds]} hundred" + ("" if not rest else f" and {below}" if rest < 20 else f" {below}")
