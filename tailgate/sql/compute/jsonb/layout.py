"""The places of objects and arrays in PostgreSQL's binary jsonb, on which the ids of keyvalue() depend.

An object or array is a header, an entry for each key and value, then the keys, then the values. Numbers, objects and
arrays begin at multiples of four bytes.

Source: PostgreSQL 15, src/backend/utils/adt/jsonb_util.c, numeric.c.
"""

from __future__ import annotations

from decimal import Decimal

from tailgate.values.numeric.scales import GROUP
from tailgate.values.strings.jsonb import Json

WORD = 4  # bytes of a header and of an entry
SHORT_SCALE_MAX, SHORT_WEIGHTS = 63, range(-64, 64)  # of numbers with a short header


def offset(part: Json, whole: Json) -> int:
    """Returns the offset of an object or array in a value that contains it, otherwise 0."""
    offsets: dict[int, int] = {}
    _end(whole, 0, offsets)
    return offsets.get(id(part), 0)


def _end(value: Json, at: int, offsets: dict[int, int]) -> int:
    """Returns the offset behind a value. `offsets` gets those of the objects and arrays in it, by their ids."""
    if isinstance(value, str):
        return at + len(value.encode())
    if isinstance(value, Decimal):
        return _aligned(at) + _size(value)
    if not isinstance(value, dict | list):
        return at
    at = _aligned(at)
    offsets[id(value)] = at
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    at += WORD * (1 + len(parts))
    for part in parts:
        at = _end(part, at, offsets)
    return at


def _aligned(at: int) -> int:
    return -(-at // WORD) * WORD


def _size(number: Decimal) -> int:
    """Returns the bytes of a number: two headers, and two bytes for each group of four digits without zeros around them."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    powers = [len(digits) - 1 - place + exponent for place, digit in enumerate(digits) if digit]
    weight, last = (powers[0] // GROUP, powers[-1] // GROUP) if powers else (0, 1)
    is_short = -exponent <= SHORT_SCALE_MAX and weight in SHORT_WEIGHTS
    return WORD + (2 if is_short else 4) + 2 * (weight - last + 1)
