"""A jsonb as bytes whose order is PostgreSQL's order of jsonb; equal values have equal bytes. The twin of the engine's JsonbOrder.

A value begins with its kind: null, string, number, boolean, array, object, in this order. Strings end with a zero, which jsonb cannot
hold. Arrays and objects have their number of elements before them; an empty array at the top is below all, for scalars are stored as
arrays of one. Numbers: below zero, zero, above; then the power of ten and the digits, complemented below zero.

Source: PostgreSQL 15, src/backend/utils/adt/jsonb_util.c compareJsonbContainers().
"""

from __future__ import annotations

from decimal import Decimal

from sql.compute.registry import own
from sql.input.jsonb import Json, load

EMPTY, NULL, STRING, NUMBER, BOOLEAN, ARRAY, OBJECT = (bytes([n]) for n in range(7))


@own("jsonb", to="bytea")
def jsonb_order(text: str) -> bytes:
    """
    >>> jsonb_order('[]') < jsonb_order('null') < jsonb_order('1.0') == jsonb_order('1') < jsonb_order('1.01') < jsonb_order('[1]')
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
            return ARRAY + _whole(len(value)) + b"".join(map(_bytes, value))
    items = sorted(value.items(), key=lambda item: (len(key := item[0].encode()), key))
    return OBJECT + _whole(len(items)) + b"".join(_text(k) + _bytes(v) for k, v in items)


def _text(value: str) -> bytes:
    return value.encode() + b"\0"


def _whole(value: int) -> bytes:
    return value.to_bytes(4, "big")


def _number(value: Decimal) -> bytes:
    if not value:
        return b"\1"
    negative, figures, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, figures)).lstrip("0")
    power = len(digits) + exponent
    made = _whole(power + 2**31) + _text(digits.rstrip("0"))
    return b"\0" + bytes(255 - b for b in made) if negative else b"\2" + made
