"""Type numeric.

Source: PostgreSQL 15, src/backend/utils/adt/numeric.c.
"""

from __future__ import annotations

from decimal import Decimal
from struct import pack, unpack_from

import pyarrow as pa

from tailgate.lake.errors import FeatureNotSupported, InvalidBinaryRepresentation, NumericValueOutOfRange, TailgateError
from tailgate.lake.sortable import DIGITS_MAX, EXACT, SCALE_MAX
from tailgate.lake.types import NUMERIC_PRECISION, Type
from tailgate.values.codec.binary import TrailingData, insufficient
from tailgate.values.codec.codec import Codec, Writer
from tailgate.values.codec.columns import arrow_text, spelled
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import BLANKS, invalid
from tailgate.values.numbers.floats import NUMBER, SPECIAL_NUMBERS

SHORT = 1_000  # characters of a number that needs no check of its size
SPECIAL_SCALE = 0x20  # PostgreSQL's binary form of an infinity has it as its scale
_GROUP = 10_000  # the base of the binary form
_POSITIVE, _NEGATIVE, _NAN, _INFINITY, _MINUS_INFINITY = 0x0000, 0x4000, 0xC000, 0xD000, 0xF000
_SPECIAL = {_NAN: "NaN", _INFINITY: "Infinity", _MINUS_INFINITY: "-Infinity"}


def read(text: str, type: Type, style: Style) -> Decimal:
    if not type.modifiers:
        return exact(text)
    if text.strip(BLANKS).lower().lstrip("+-") in ("inf", "infinity"):
        raise field_overflow(*type.decimal, infinite=True)
    return fitted(exact(text), type)


def exact(text: str) -> Decimal:
    """Returns a number with the scale of its text. Raises 22P02, 22003, and 0A000 for NaN and infinity."""
    number = text.strip(BLANKS)
    if not NUMBER.fullmatch(number):
        if number.isascii() and number.lower() in SPECIAL_NUMBERS and number[1:4].lower() != "nan":
            raise FeatureNotSupported(f"numeric '{number}' is not supported")
        raise invalid("numeric", text)
    if len(number) <= SHORT and number.isascii() and "e" not in number and "E" not in number:
        value = Decimal(number)
        return value or value.copy_abs()
    exponent = number.lower().partition("e")[2]
    if len(exponent.lstrip("+-0")) > 6:
        raise overflow()
    value = Decimal(number)
    power = value.as_tuple().exponent
    assert isinstance(power, int)  # the value is finite
    if (value.adjusted() >= DIGITS_MAX and value) or -power > SCALE_MAX:
        raise overflow()
    if power > 0:
        value = value.quantize(Decimal(1), context=EXACT)
    return value or value.copy_abs()


def general(text: str) -> Decimal:
    """Returns a number with the scale of its text, NaN, or an infinity. Raises 22P02 and 22003."""
    number = text.strip(BLANKS).lower()
    return Decimal(number) if number in SPECIAL_NUMBERS and number[1:4] != "nan" else exact(text)


def overflow() -> TailgateError:
    return NumericValueOutOfRange("value overflows numeric format")


def field_overflow(precision: int, scale: int, *, infinite: bool = False) -> TailgateError:
    bound = f"10^{precision - scale}" if precision != scale else "1"
    limit = "cannot hold an infinite value" if infinite else f"must round to an absolute value less than {bound}"
    return NumericValueOutOfRange("numeric field overflow", detail=f"A field with precision {precision}, scale {scale} {limit}.")


def scaled(value: Decimal, precision: int, scale: int) -> Decimal:
    """Rounds half away from zero to a scale. Raises 22003 if the result has too many digits or is infinite, and 0A000 for NaN."""
    if value.is_nan():
        raise FeatureNotSupported("numeric 'NaN' is not supported")
    if value.is_infinite():
        raise field_overflow(precision, scale, infinite=True)
    rounded = value.quantize(Decimal(1).scaleb(-scale), context=EXACT)
    if rounded and rounded.adjusted() >= precision - scale:
        raise field_overflow(precision, scale)
    return rounded or rounded.copy_abs()


def limited(value: Decimal, precision: int, scale: int) -> Decimal:
    """Returns the value of a general numeric with modifiers. Raises 22003 if it has too many digits or is infinite."""
    if value.is_nan():
        return value
    number = scaled(value, precision, scale)
    return number if scale >= 0 else number.quantize(Decimal(1), context=EXACT)


def fitted(value: Decimal, type: Type) -> Decimal:
    """Converts a number to the stored form of its type. Raises 22003."""
    precision, scale = type.decimal
    try:
        return scaled(value, precision, scale)
    except NumericValueOutOfRange:
        if type.modifiers and type.declared:
            raise
        raise overflow() from None


# --- binary --------------------------------------------------------------------------------------


def read_binary(data: bytes, type: Type) -> Decimal:
    value = decoded(data)
    if not value.is_finite():
        raise FeatureNotSupported("numeric NaN and infinity are not supported")
    return fitted(value, type) if type.modifiers else value


def decoded(data: bytes) -> Decimal:
    """Returns the number of a binary form, with its display scale."""
    if len(data) < 8:
        if len(data) >= 6:
            _check_sign(int.from_bytes(data[4:6], "big"))
        raise insufficient()
    count, weight, sign, scale = unpack_from("!HhHH", data)
    _check_sign(sign)
    if scale > SCALE_MAX:
        raise InvalidBinaryRepresentation('invalid scale in external "numeric" value')
    unscaled = 0
    for at in range(8, 8 + 2 * count, 2):
        if at + 2 > len(data):
            raise insufficient()
        digit = int.from_bytes(data[at : at + 2], "big")
        if digit >= _GROUP:
            raise InvalidBinaryRepresentation('invalid digit in external "numeric" value')
        unscaled = unscaled * _GROUP + digit
    if len(data) > 8 + 2 * count:
        raise TrailingData
    if sign in _SPECIAL:
        return Decimal(_SPECIAL[sign])
    value = Decimal(unscaled).scaleb(4 * (weight + 1 - count), context=EXACT)
    shown = _truncated(value, scale)
    if shown and shown.adjusted() >= DIGITS_MAX:
        raise overflow()
    return shown.copy_negate() if sign == _NEGATIVE and shown else shown


def _check_sign(sign: int) -> None:
    if sign not in (_POSITIVE, _NEGATIVE, _NAN, _INFINITY, _MINUS_INFINITY):
        raise InvalidBinaryRepresentation('invalid sign in external "numeric" value')


def _truncated(value: Decimal, scale: int) -> Decimal:
    """Returns a number with a scale; digits after it are cut off."""
    return value.quantize(Decimal(1).scaleb(-scale), rounding="ROUND_DOWN", context=EXACT)


def binary_writer(type: Type) -> Writer:
    """Returns a writer of digits to base 10,000 around the decimal point, without zero digits at either end.

    >>> write = binary_writer(Type("numeric", (10, 2)))
    >>> write(12345).hex(), write(0).hex()
    ('0002000000000002007b1194', '0000000000000002')
    """
    scale = type.decimal[1]
    shown = max(scale, 0)
    groups = -(-shown // 4)  # after the decimal point
    shift = 10 ** (4 * groups - shown) if scale >= 0 else 10**-scale

    def write(value: int) -> bytes:
        sign = _POSITIVE
        if value < 0:
            sign, value = _NEGATIVE, -value
        value *= shift
        digits: list[int] = []
        while value:
            value, digit = divmod(value, _GROUP)
            digits.append(digit)
        weight = len(digits) - 1 - groups
        digits.reverse()
        while digits and not digits[-1]:
            digits.pop()
        if not digits:
            weight = 0
        return pack(f"!hhHH{len(digits)}H", len(digits), weight, sign, shown, *digits)

    return write


def encoded(value: Decimal) -> bytes:
    """Returns the binary form of a number with its display scale, NaN, or an infinity."""
    if value.is_nan():
        return pack("!hhHH", 0, 0, _NAN, 0)
    if value.is_infinite():
        return pack("!hhHH", 0, 0, _MINUS_INFINITY if value < 0 else _INFINITY, SPECIAL_SCALE)
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return binary_writer(Type("numeric", (DIGITS_MAX, -exponent)))(int(value.scaleb(-exponent, context=EXACT)))


# --- text ----------------------------------------------------------------------------------------


def text_writer(type: Type, style: Style) -> Writer:
    """Returns a writer of unscaled numbers.

    >>> [text_writer(Type("numeric", (10, scale)), Style())(value) for scale, value in ((2, -5), (0, 12), (-2, 3))]
    [b'-0.05', b'12', b'300']
    """
    scale = type.decimal[1]
    if scale <= 0:
        shift = 10**-scale
        return lambda value: b"%d" % (value * shift)
    unit = 10**scale

    def write(value: int) -> bytes:
        if value < 0:
            whole, part = divmod(-value, unit)
            return b"-%d.%0*d" % (whole, scale, part)
        whole, part = divmod(value, unit)
        return b"%d.%0*d" % (whole, scale, part)

    return write


def read_column(texts: pa.ChunkedArray, type: Type) -> pa.ChunkedArray | None:
    precision, scale = type.decimal
    digits = f"-?[0-9]{{1,{precision - scale}}}" + (rf"(\.[0-9]{{1,{scale}}})?" if scale else "")
    return spelled(digits)(texts, type) if precision > scale else None


def column_text(array: pa.Array, type: Type, style: Style) -> pa.Array | None:
    return arrow_text(array) if type.decimal[1] == 0 and type.decimal[0] <= NUMERIC_PRECISION else None


NUMERIC = Codec(read, read_binary, text_writer, binary_writer, read_column, column_text)
