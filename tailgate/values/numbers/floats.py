"""Types real and double precision.

Source: PostgreSQL 15, src/backend/utils/adt/float.c, src/common/d2s.c, f2s.c.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from struct import Struct, pack, unpack

import numpy as np

from tailgate.lake.errors import NumericValueOutOfRange
from tailgate.lake.types import Type
from tailgate.values.codec.binary import fixed, packed
from tailgate.values.codec.codec import Codec, Writer
from tailgate.values.codec.columns import packed_column, spelled
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import BLANKS, invalid

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# What strtod() of C reads besides decimal numbers.
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?")
_NAN = re.compile(r"[+-]?nan(?:\(\w*\))?", re.IGNORECASE | re.ASCII)
SPECIAL_NUMBERS = {
    "nan": math.nan,
    **dict.fromkeys(("inf", "infinity", "+inf", "+infinity"), math.inf),
    **dict.fromkeys(("-inf", "-infinity"), -math.inf),
}
_EXACT_8, _EXACT_4 = 2.0**52, 2.0**23  # from here on, a text can be halfway between two numbers
_NORMAL_4 = 2.0**-126  # smaller numbers have fewer digits
_FLOAT = Struct("f")


def read(text: str, type: Type, style: Style) -> float:
    number = text.strip(BLANKS)
    if NUMBER.fullmatch(number):
        value = float(number)
    elif (special := SPECIAL_NUMBERS.get(number.lower()) if number.isascii() else None) is not None:
        return special
    elif _NAN.fullmatch(number):
        return math.nan
    elif _HEXADECIMAL.fullmatch(number):
        value = _of_hexadecimal(number)
    else:
        raise invalid(type.facts.sql, text)
    if type.name == "float4" and math.isfinite(value):
        value = _single(value)
    if math.isinf(value) or (value == 0 and re.match(r"[+-]?[0.]*[1-9]", number)):
        raise NumericValueOutOfRange(f'"{number}" is out of range for type {type.facts.sql}')
    return value


def _of_hexadecimal(number: str) -> float:
    try:
        return float.fromhex(number)
    except OverflowError:
        return math.inf


def _single(value: float) -> float:
    try:
        return float(unpack("f", pack("f", value))[0])
    except OverflowError:
        return math.inf


# --- comparison ----------------------------------------------------------------------------------


def normalized(value: float) -> float:
    """Returns 0 for -0, and one of the forms of NaN, so that equal values have equal bytes."""
    return math.nan if math.isnan(value) else value + 0.0


def order_key(value: float) -> tuple[bool, float]:
    """Returns a key in which NaN equals itself and is greater than all numbers."""
    return (True, 0.0) if math.isnan(value) else (False, normalized(value))


# --- text --------------------------------------------------------------------------------------------


def write_double(value: float) -> bytes:
    """Writes the fewest digits that read back as the same number; an exponent from 1e15 on and below 1e-4.

    >>> write_double(7.0), write_double(1e15), write_double(1e-5), write_double(float("-inf"))
    (b'7', b'1e+15', b'1e-05', b'-Infinity')
    """
    text = repr(value)
    if -_EXACT_8 < value < _EXACT_8:
        if text.endswith(".0"):
            return text[:-2].encode() if -1e15 < value < 1e15 else _scientific(text)
        return text.encode() if -1e15 < value < 1e15 or "e" in text else _scientific(text)
    if text[-1] in "fn":  # inf, nan
        return {"inf": b"Infinity", "-inf": b"-Infinity", "nan": b"NaN"}[text]
    neighbours = math.nextafter(value, math.inf), math.nextafter(value, 0)
    if not _is_nearest(text, value, *neighbours):
        # The text is halfway between two numbers; Python accepts that, PostgreSQL does not.
        texts = (f"{value:.{digits}e}" for digits in range(15, 18))
        text = next(t for t in texts if _is_nearest(t, value, *neighbours))
    return _scientific(text)


def _is_nearest(text: str, value: float, *neighbours: float) -> bool:
    """Returns whether a text is nearer to a number than to both of its neighbours."""
    number = Fraction(text)
    distance = abs(number - Fraction(value))
    return all(distance < abs(number - Fraction(n)) for n in neighbours if math.isfinite(n))


def _scientific(text: str) -> bytes:
    """Converts Python's text of a number of at least 1 to digits with an exponent."""
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).rstrip("0")
    exponent = int(power or 0) + len(whole) - 1
    return f"{sign}{digits[0]}{'.' + digits[1:] if len(digits) > 1 else ''}e+{exponent:02d}".encode()


def write_single(value: float) -> bytes:
    """Returns the text of a real. The value has single precision.

    >>> write_single(1.100000023841858), write_single(1e6), write_single(123456.0), write_single(9.999999747378752e-05)
    (b'1.1', b'1e+06', b'123456', b'0.0001')
    """
    if value == 0 or not math.isfinite(value):
        return write_double(value)
    text = f"{value:.6g}"
    # Two texts of six digits are never the same normal number, so this one is the shortest.
    if abs(value) < _NORMAL_4 or not _reads_back(text, value):
        text = _shortest_single(value)
    return text.encode()


def _shortest_single(value: float) -> str:
    """Returns the fewest digits that read back as the same number, if six are too few or too many."""
    if abs(value) < _NORMAL_4 or _is_power_of_two(value):  # subnormal, or its neighbours are not equally far
        text = np.format_float_scientific(np.float32(value), unique=True, trim="-", exp_digits=2)
        if _reads_back(text, value) and not 1e-4 <= abs(value) < 1e6:
            return text
    form = "g" if 1e-4 <= abs(value) < 1e6 else "e"
    digits = (7, 8, 9) if form == "g" else (6, 7, 8)
    return next(text for n in digits if _reads_back(text := f"{value:.{n}{form}}", value))


def _reads_back(text: str, value: float) -> bool:
    """Returns whether PostgreSQL reads a text as this real, and not as halfway between two."""
    number = float(text)
    if _FLOAT.unpack(_FLOAT.pack(number))[0] != value:
        return False
    if abs(value) < _EXACT_4:
        return True
    gap = math.ulp(value) * 2.0**29
    if abs(number - value) / gap not in (0.5, 0.25):
        return True
    nearer = math.copysign(gap / 2 if _is_power_of_two(value) else gap, value)
    return _is_nearest(text, value, value - nearer, value + math.copysign(gap, value))


def _is_power_of_two(value: float) -> bool:
    return abs(math.frexp(value)[0]) == 0.5


def _fewer_digits(digits: int) -> Writer:
    """Returns a writer for extra_float_digits of 0 and below: C's %.*g, as before PostgreSQL 12."""

    def write(value: float) -> bytes:
        return f"{value:.{max(digits, 1)}g}".encode() if math.isfinite(value) else write_double(value)

    return write


def single_writer(type: Type, style: Style) -> Writer:
    return write_single if style.extra_float_digits > 0 else _fewer_digits(6 + style.extra_float_digits)


def double_writer(type: Type, style: Style) -> Writer:
    return write_double if style.extra_float_digits > 0 else _fewer_digits(15 + style.extra_float_digits)


_COMMON = r"-?[0-9]{1,17}(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?"

REAL = Codec(read, fixed("!f"), single_writer, packed("!f"), column_binary=packed_column("!f"), order_key=order_key)
DOUBLE_PRECISION = Codec(
    read, fixed("!d"), double_writer, packed("!d"), spelled(_COMMON), column_binary=packed_column("!d"), order_key=order_key
)
