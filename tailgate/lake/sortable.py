"""The sortable form of numerics: bytes whose unsigned order is the order of the values.

    head │ exponent, 3 bytes if the head says so │ digits to base 100 │ end, if negative │ display scale, 2 bytes

    head            02  -Infinity
                    03  negative, exponent above 82          7F  negative, exponent below -40
                    04 to 7E  negative                       80  zero
                    81  positive, exponent below -40         82 to FC  positive, exponent -40 to 82
                    FD  positive, exponent above 82          FE  Infinity       FF  NaN

The exponent is to base 100, for digits that begin after the decimal point: 1 is 0.01 · 100^1. A digit is
stored as its value plus 1, and zeros at the end are left out. Everything of a negative number is
complemented, and FF ends it, so that it is above the same digits with more behind them. All bytes but the
last two are equal if and only if the values are, and the display scale decides among equal values.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from tailgate.lake.types import NUMERIC_PRECISION

DIGITS_MAX = 131_072  # before the decimal point
SCALE_MAX = 16_383
# Python's decimals with as many digits as PostgreSQL's numerics may have.
EXACT = Context(prec=DIGITS_MAX + SCALE_MAX, Emax=999_999, Emin=-999_999, rounding=ROUND_HALF_UP)

SCALE_BYTES = 2
# DuckDB's sort key: a decimal with KEY_SCALE digits after the decimal point, and `key` of numbers with more of them
# or with more than KEY_DIGITS before it
KEY_SCALE, KEY_DIGITS = 20, 17
_MINUS_INFINITY, _ZERO, _SMALL, _LARGE, _INFINITY, _NAN = 0x02, 0x80, 0x81, 0xFD, 0xFE, 0xFF
_SMALLEST, _LARGEST = -40, 82  # exponents that are part of the head
_BIAS = 0x82 - _SMALLEST  # the head of exponent 0
_LONG_BIAS = 1 << 23  # of an exponent in 3 bytes
_END = b"\xff"
_COMPLEMENT = bytes(range(255, -1, -1))


def encode(value: Decimal) -> bytes:
    """Returns the sortable form of a number whose exponent is minus its display scale.

    >>> [encode(Decimal(text)).hex(" ") for text in ("12345.67", "1.0", "-1", "0.00", "NaN")]
    ['ad 02 18 2e 44 00 02', 'ab 02 00 01', '55 fd ff 00 00', '80 00 02', 'ff 00 00']
    """
    negative, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        head = _NAN if exponent in ("n", "N") else _MINUS_INFINITY if negative else _INFINITY
        return bytes((head, 0, 0))
    assert exponent <= 0, value
    scale = (-exponent).to_bytes(SCALE_BYTES, "big")
    if not value:
        return bytes((_ZERO,)) + scale
    text = "".join(map(str, digits))
    point = len(text) + exponent  # digits before the decimal point, below zero if 0.0…
    if point % 2:
        text, point = "0" + text, point + 1
    text = text.rstrip("0")
    if len(text) % 2:
        text += "0"
    body = bytes(int(text[at : at + 2]) + 1 for at in range(0, len(text), 2))
    form = _head(point // 2) + body
    return (_negated(form) if negative else form) + scale


def key(value: Decimal) -> bytes:
    """Returns the sortable form without the display scale: equal if and only if the values are."""
    return encode(value)[:-SCALE_BYTES]


def _head(exponent: int) -> bytes:
    if _SMALLEST <= exponent <= _LARGEST:
        return bytes((exponent + _BIAS,))
    return bytes((_LARGE if exponent > 0 else _SMALL,)) + (exponent + _LONG_BIAS).to_bytes(3, "big")


def _negated(form: bytes) -> bytes:
    return bytes((0x100 - form[0],)) + form[1:].translate(_COMPLEMENT) + _END


def decode(form: bytes) -> Decimal:
    """Returns the number with the display scale of a sortable form.

    >>> decode(encode(Decimal("-0.0120"))), decode(encode(Decimal("-Infinity")))
    (Decimal('-0.0120'), Decimal('-Infinity'))
    """
    head = form[0]
    if head in _SPECIAL:
        return _SPECIAL[head]
    scale = int.from_bytes(form[-SCALE_BYTES:], "big")
    if head == _ZERO:
        return Decimal((0, (0,), -scale))
    body = form[1:-SCALE_BYTES]
    negative = head < _ZERO
    if negative:
        head, body = 0x100 - head, body[:-1].translate(_COMPLEMENT)
    if head in (_SMALL, _LARGE):
        exponent, body = int.from_bytes(body[:3], "big") - _LONG_BIAS, body[3:]
    else:
        exponent = head - _BIAS
    digits = "".join([f"{digit - 1:02d}" for digit in body])
    point = 2 * exponent - len(digits)  # the exponent of the last digit
    digits = digits + "0" * (scale + point) if point > -scale else digits[: len(digits) + scale + point]
    return Decimal((negative, tuple(map(int, digits.lstrip("0"))), -scale))


_SPECIAL = {_NAN: Decimal("NaN"), _INFINITY: Decimal("Infinity"), _MINUS_INFINITY: Decimal("-Infinity")}


def stored(value: Decimal) -> dict[str, Any]:
    """Returns a number as the struct of Arrow and DuckDB (`Type.arrow`)."""
    if value.is_finite():
        _, digits, exponent = value.as_tuple()
        assert isinstance(exponent, int)
        if len(digits) <= NUMERIC_PRECISION:
            return {"u": Decimal((value.is_signed(), digits, 0)), "s": -exponent, "x": None}
    return {"u": None, "s": None, "x": encode(value)}


def loaded(u: Decimal, s: int, x: bytes | None) -> Decimal:
    """Returns the number with these fields of the struct."""
    return u.scaleb(-s, context=EXACT) if x is None else decode(x)
