"""The modifiers of interval types: the fields that a type has, and the digits of its seconds.

Source: PostgreSQL 15, src/backend/utils/adt/timestamp.c, intervaltypmodin, intervaltypmodout.
"""

from __future__ import annotations

FULL_RANGE = 0x7FFF  # the fields in the modifier of an interval that has all of them
FULL_PRECISION = 0xFFFF  # the digits in the modifier of an interval with fields and without declared digits
_FIELD_BITS = {"year": 1 << 2, "month": 1 << 1, "day": 1 << 3, "hour": 1 << 10, "minute": 1 << 11, "second": 1 << 12}
_NAMES = tuple(_FIELD_BITS)


def _mask(first: str, last: str) -> int:
    return sum(_FIELD_BITS[field] for field in _NAMES[_NAMES.index(first) : _NAMES.index(last) + 1])


# the fields that an interval type may have, such as `day to hour`, and their bits in its modifier
FIELDS: dict[str, int] = {
    **_FIELD_BITS,
    "year to month": _mask("year", "month"),
    **{
        f"{first} to {last}": _mask(first, last)
        for first, last in (
            ("day", "hour"),
            ("day", "minute"),
            ("day", "second"),
            ("hour", "minute"),
            ("hour", "second"),
            ("minute", "second"),
        )
    },
}
FIELDS_BY_MASK = {mask: fields for fields, mask in FIELDS.items()}


def interval_name(fields_and_digits: int) -> str:
    """Returns the name of an interval type by its modifier.

    >>> interval_name(0x1C08 << 16 | 3), interval_name(0x0408 << 16 | 0xFFFF), interval_name(0x7FFF << 16 | 2)
    ('interval day to second(3)', 'interval day to hour', 'interval(2)')
    """
    mask, digits = fields_and_digits >> 16, fields_and_digits & 0xFFFF
    fields = f" {FIELDS_BY_MASK[mask]}" if mask in FIELDS_BY_MASK else ""
    return f"interval{fields}" + (f"({digits})" if digits != FULL_PRECISION else "")
