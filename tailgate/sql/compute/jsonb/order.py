"""A jsonb as bytes whose order is PostgreSQL's order of jsonb. Equal values have equal bytes.

A value begins with its kind: null, string, number, boolean, array or object, in this order. Strings
end with a zero byte, which jsonb cannot contain. Arrays and objects begin with their number of
elements. An empty array at the top level comes before all other values, because PostgreSQL stores a
scalar as an array with one element. A number is its sign (negative, zero, positive), the power of
ten and the digits; the latter two are complemented if it is negative.

Source: PostgreSQL 15, src/backend/utils/adt/jsonb_util.c, compareJsonbContainers().
"""

from __future__ import annotations

from decimal import Decimal

from tailgate.sql.compute.registry import udf
from tailgate.values.jsonb import Json, key_order, load

EMPTY, NULL, STRING, NUMBER, BOOLEAN, ARRAY, OBJECT = (bytes([n]) for n in range(7))
NEGATIVE, ZERO, POSITIVE = (bytes([n]) for n in range(3))


@udf("jsonb", to="bytea")
def jsonb_order(text: str) -> bytes:
    """Returns the bytes of a jsonb.

    >>> jsonb_order('[]') < jsonb_order('null') < jsonb_order('1.0') == jsonb_order('1') < jsonb_order('[1]')
    True
    """
    value = load(text)
    return EMPTY if value == [] else _bytes(value)


def _bytes(value: Json) -> bytes:
    match value:
        case None:
            return NULL
        case str():
            return STRING + _text(value)
        case bool():
            return BOOLEAN + bytes([value])
        case Decimal():
            return NUMBER + _number(value)
        case list():
            return ARRAY + _int(len(value)) + b"".join(map(_bytes, value))
    keys = sorted(value, key=key_order)
    return OBJECT + _int(len(keys)) + b"".join(_text(k) + _bytes(value[k]) for k in keys)


def _text(value: str) -> bytes:
    return value.encode() + b"\0"


def _int(value: int) -> bytes:
    return value.to_bytes(4, "big")


def _number(value: Decimal) -> bytes:
    if not value:
        return ZERO
    negative, digit_tuple, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, digit_tuple)).lstrip("0")
    power = len(digits) + exponent
    magnitude = _int(power + 2**31) + _text(digits.rstrip("0"))
    return NEGATIVE + bytes(255 - b for b in magnitude) if negative else POSITIVE + magnitude
