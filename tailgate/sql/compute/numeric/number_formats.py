"""to_char() of numbers, in the C locale.

Source: PostgreSQL 15, src/backend/utils/adt/formatting.c, numeric_to_char(), float8_to_char().
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

from tailgate.sql.compute.numeric.general_numerics import to_integer
from tailgate.sql.compute.numeric.number_pattern import Pattern, parse
from tailgate.sql.compute.numeric.number_writer import write
from tailgate.sql.compute.numeric.numerals import roman
from tailgate.sql.compute.registry import udf
from tailgate.values.numeric.scales import WIDE

ROMAN_WIDTH = 15


@udf("numeric", "text", to="text")
def to_char_numeric(value: Decimal, pattern: str) -> str:
    return _numeric(value, pattern, general=False)


@udf("general", "text", to="text")
def to_char_general(value: Decimal, pattern: str) -> str:
    return _numeric(value, pattern, general=True)


def _numeric(value: Decimal, pattern: str, *, general: bool) -> str:
    """Formats a numeric. One that is not general has no errors and the mantissas of floats, as in views of earlier versions."""
    if not pattern:
        return ""
    p = parse(pattern)
    if "RN" in p.flags:
        return _roman(p, Decimal(to_integer("integer", 32, value)) if general else value)
    if "EEEE" in p.flags:
        return _scientific(p, value, carries=not general) if value.is_finite() else _without_exponent(p, p.integer_digits)
    return _decimal(p, value, p.fraction_digits, ROUND_HALF_UP, negative=False)


@udf("float8", "text", to="text")
def to_char_float8(value: float, pattern: str) -> str:
    return _float(value, pattern, 15)


@udf("float4", "text", to="text")
def to_char_float4(value: float, pattern: str) -> str:
    return _float(value, pattern, 6)


def _float(value: float, pattern: str, significant_digits: int) -> str:
    if not pattern:
        return ""
    p = parse(pattern)
    finite = math.isfinite(value)
    if not finite and "EEEE" in p.flags:
        return _without_exponent(p, p.integer_digits + 1)
    if not finite and "RN" not in p.flags:
        name = "NaN" if math.isnan(value) else "Infinity"
        return write(p, p.integer_digits, p.fraction_digits, "-" if value < 0 else "+", name)
    exact = Decimal(value) if finite else Decimal(0)
    if "RN" in p.flags:
        return _roman(p, Decimal(repr(value)) if finite else exact)
    if "EEEE" in p.flags:
        return _scientific(p, exact)
    fraction_digits = p.fraction_digits
    if "V" not in p.flags:
        integer_digits = len(f"{abs(value):.0f}")
        fraction_digits = max(0, min(fraction_digits, significant_digits - integer_digits))
    return _decimal(p, exact, fraction_digits, ROUND_HALF_EVEN, negative=exact.is_signed())


def _without_exponent(p: Pattern, integer_digits: int) -> str:
    """Formats NaN and infinities in scientific notation."""
    return " " + "#" * integer_digits + "." + "#" * (p.fraction_digits + 4)


def _decimal(p: Pattern, value: Decimal, fraction_digits: int, rounding: str, *, negative: bool) -> str:
    """Formats a number in decimal notation. `negative`: whether 0 has a minus sign."""
    integer_digits = p.integer_digits
    if "V" in p.flags:
        value, integer_digits = WIDE.multiply(value, Decimal(10) ** p.shift_digits), integer_digits + p.shift_digits
    if value.is_finite():
        value = value.quantize(Decimal(1).scaleb(-fraction_digits), rounding=rounding, context=WIDE)
    sign = "-" if negative or (value.is_signed() and value) else "+"
    return write(p, integer_digits, fraction_digits, sign, format(value, "f").removeprefix("-"))


def _scientific(p: Pattern, value: Decimal, *, carries: bool = True) -> str:
    """Formats a number in scientific notation. `carries`: a mantissa that is rounded to 10 becomes 1, as of floats."""
    if not value:
        return " 0" + ("." + "0" * p.fraction_digits if p.fraction_digits else "") + "e+00"
    exact = WIDE.create_decimal(value)

    def mantissa(exponent: int) -> Decimal:
        unit = Decimal(1).scaleb(-p.fraction_digits)
        return exact.scaleb(-exponent, WIDE).quantize(unit, rounding=ROUND_HALF_UP, context=WIDE)

    exponent = exact.adjusted()
    if carries and abs(mantissa(exponent)) >= 10:
        exponent += 1
    sign = "" if value < 0 else " "
    return f"{sign}{mantissa(exponent):f}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _roman(p: Pattern, value: Decimal) -> str:
    number = int(value.quantize(Decimal(1), rounding=ROUND_HALF_UP, context=WIDE))
    numeral = roman(number) if 1 <= number <= 3999 else "#" * ROMAN_WIDTH
    result = ""
    for part in p.parts:
        if part.keyword in ("RN", "rn"):
            cased = numeral if part.keyword == "RN" else numeral.lower()
            result += cased if "FM" in p.flags else cased.rjust(ROMAN_WIDTH)
        elif not part.keyword:
            result += part.text
    return result
