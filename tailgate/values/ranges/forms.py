"""The stored form of ranges: bytes whose unsigned order is PostgreSQL's order.

    range type, 1 byte │ lower bound │ upper bound │ numrange: the display scales of both bounds, 2 bytes each

    bound           00  infinite lower bound        01 │ value │ side        02  infinite upper bound
    value           an integer, date or timestamp as an unsigned number of 4 or 8 bytes with its sign bit inverted,
                    or a numeric as in `lake.sortable`, without its display scale and with an end
    side            00  exclusive upper bound       01  inclusive           02  exclusive lower bound

An empty range has no bounds, so it is before all others. The order of two bounds, a lower and an upper one too, is that
of their bytes. Ranges of integers and dates are canonical: they include the lower bound and not the upper one.

Source: PostgreSQL 15, src/backend/utils/adt/rangetypes.c.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tailgate.lake import sortable
from tailgate.lake.errors import DataException, DatetimeFieldOverflow, NumericValueOutOfRange, TailgateError
from tailgate.lake.types import Type
from tailgate.values.caching import cached
from tailgate.values.times.calendar import INFINITIES_DATE, LAST_DAY

INFINITE_LOWER, FINITE, INFINITE_UPPER = b"\0", b"\1", b"\2"
EXCLUSIVE_UPPER, INCLUSIVE, EXCLUSIVE_LOWER = b"\0", b"\1", b"\2"
DECODED_MAX = 1024  # decoded ranges that are cached
NO_SCALE = bytes(sortable.SCALE_BYTES)
SCALES = 2 * sortable.SCALE_BYTES  # bytes after the bounds of a numrange
_POSITIVE = 0x80  # the heads of numerics from zero on
_LONG_HEADS = (0x03, 0x7F, 0x81, 0xFD)  # 3 bytes of an exponent follow
_MINUS_INFINITY = 0x02


@dataclass(frozen=True, slots=True)
class RangeType:
    """A range type.

    `tag`: the first byte of its stored form. `subtype`: the type of its bounds. `width`: bytes of a value, or 0 if it is a numeric.
    `last`: the last value of a discrete type, which has no next one, or None.
    """

    name: str
    tag: bytes
    subtype: Type
    width: int
    last: int | None = None


RANGE_TYPES = {
    t.name: t
    for t in (
        RangeType("int4range", b"i", Type("int4"), 4, 2**31 - 1),
        RangeType("int8range", b"l", Type("int8"), 8, 2**63 - 1),
        RangeType("numrange", b"n", Type("numeric", general=True), 0),
        RangeType("daterange", b"d", Type("date"), 4, LAST_DAY),
        RangeType("tsrange", b"t", Type("timestamp"), 8),
        RangeType("tstzrange", b"z", Type("timestamptz"), 8),
    )
}
_BY_TAG = {t.tag: t for t in RANGE_TYPES.values()}


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound: `key` is its stored form, `scale` the display scale of a numeric in 2 bytes."""

    key: bytes
    scale: bytes = b""

    @property
    def is_infinite(self) -> bool:
        return self.key[:1] != FINITE

    @property
    def is_inclusive(self) -> bool:
        return not self.is_infinite and self.key[-1:] == INCLUSIVE

    @property
    def form(self) -> bytes:
        """Returns the value in stored form."""
        return self.key[1:-1]

    def inverted(self, side: bytes) -> Bound:
        """Returns the bound at which the values on the other side of this one begin or end. `side`: that of an exclusive bound."""
        return Bound(self.key[:-1] + (side if self.is_inclusive else INCLUSIVE), self.scale)


@dataclass(frozen=True, slots=True)
class Range:
    """A range. An empty one has no bounds."""

    type: RangeType
    bounds: tuple[Bound, Bound] | None

    @property
    def is_empty(self) -> bool:
        return self.bounds is None

    @property
    def lower(self) -> Bound:
        assert self.bounds is not None
        return self.bounds[0]

    @property
    def upper(self) -> Bound:
        assert self.bounds is not None
        return self.bounds[1]


def lower_bound(type: RangeType, value: Any, *, inclusive: bool) -> Bound:
    """Returns the lower bound with a value, or an infinite one for None."""
    return _bound(type, value, INCLUSIVE if inclusive else EXCLUSIVE_LOWER) if value is not None else Bound(INFINITE_LOWER)


def upper_bound(type: RangeType, value: Any, *, inclusive: bool) -> Bound:
    """Returns the upper bound with a value, or an infinite one for None."""
    return _bound(type, value, INCLUSIVE if inclusive else EXCLUSIVE_UPPER) if value is not None else Bound(INFINITE_UPPER)


def _bound(type: RangeType, value: Any, side: bytes) -> Bound:
    if type.width:
        return Bound(FINITE + (value + (1 << 8 * type.width - 1)).to_bytes(type.width, "big") + side)
    form = sortable.encode(value)
    number, scale = form[: -sortable.SCALE_BYTES], form[-sortable.SCALE_BYTES :]
    end = b"\0" if number[0] >= _POSITIVE else b"\xff" if number[0] == _MINUS_INFINITY else b""
    return Bound(FINITE + number + end + side, scale)


def value(type: RangeType, bound: Bound) -> Any:
    """Returns the value of a bound, or None if it is infinite."""
    if bound.is_infinite:
        return None
    if type.width:
        return int.from_bytes(bound.form, "big") - (1 << 8 * type.width - 1)
    number = bound.form
    has_own_end = number[0] < _POSITIVE and number[0] != _MINUS_INFINITY
    decimal: Decimal = sortable.decode((number if has_own_end else number[:-1]) + bound.scale)
    return decimal


def ranged(type: RangeType, lower: Bound, upper: Bound) -> Range:
    """Returns the canonical range between two bounds. Raises 22000 if the upper one is below the lower one, 22003 and 22008."""
    if _is_empty(lower, upper):
        return Range(type, None)
    if type.last is not None:
        if not lower.is_inclusive and not _is_fixed(type, lower):
            lower = lower_bound(type, _next(type, lower), inclusive=True)
        if upper.is_inclusive and not _is_fixed(type, upper):
            upper = upper_bound(type, _next(type, upper), inclusive=False)
        if _is_empty(lower, upper):
            return Range(type, None)
    return Range(type, (lower, upper))


def _is_empty(lower: Bound, upper: Bound) -> bool:
    if lower.is_infinite or upper.is_infinite:
        return False
    if lower.form > upper.form:
        raise DataException("range lower bound must be less than or equal to range upper bound")
    return lower.form == upper.form and not (lower.is_inclusive and upper.is_inclusive)


def _is_fixed(type: RangeType, bound: Bound) -> bool:
    """Returns whether a bound of a discrete range stays as it is: dates next to infinity do not exist."""
    return bound.is_infinite or (type.name == "daterange" and value(type, bound) in INFINITIES_DATE)


def _next(type: RangeType, bound: Bound) -> int:
    number: int = value(type, bound)
    if number == type.last:
        raise _out_of_range(type)
    return number + 1


def _out_of_range(type: RangeType) -> TailgateError:
    message = f"{type.subtype} out of range"
    return DatetimeFieldOverflow(message) if type.name == "daterange" else NumericValueOutOfRange(message)


# --- two ranges that are not empty ---------------------------------------------------------------


def overlap(a: Range, b: Range) -> bool:
    """Returns whether two ranges have values in common."""
    return a.lower.key <= b.upper.key and b.lower.key <= a.upper.key


def adjacent(a: Range, b: Range) -> bool:
    """Returns whether two ranges meet: no value is between them or in both."""
    return _touch(a.upper, b.lower) or _touch(b.upper, a.lower)


def _touch(upper: Bound, lower: Bound) -> bool:
    return not upper.is_infinite and not lower.is_infinite and upper.form == lower.form and upper.is_inclusive != lower.is_inclusive


def merged(a: Range, b: Range) -> Range:
    """Returns the smallest range that contains two ranges."""
    lower = a.lower if a.lower.key < b.lower.key else b.lower
    return ranged(a.type, lower, a.upper if a.upper.key > b.upper.key else b.upper)


def intersection(a: Range, b: Range) -> Range:
    """Returns the values that two overlapping ranges have in common."""
    lower = a.lower if a.lower.key >= b.lower.key else b.lower
    return ranged(a.type, lower, a.upper if a.upper.key <= b.upper.key else b.upper)


# --- the stored form -----------------------------------------------------------------------------


def encode(range: Range) -> bytes:
    """Returns the stored form of a range.

    >>> int4range = RANGE_TYPES["int4range"]
    >>> one, two = lower_bound(int4range, 1, inclusive=True), upper_bound(int4range, 2, inclusive=True)
    >>> encode(ranged(int4range, one, two)).hex(" "), encode(Range(int4range, None)).hex(" ")
    ('69 01 80 00 00 01 01 01 80 00 00 03 00', '69')
    """
    if range.bounds is None:
        return range.type.tag + (b"" if range.type.width else 2 * NO_SCALE)
    lower, upper = range.bounds
    scales = b"" if range.type.width else (lower.scale or NO_SCALE) + (upper.scale or NO_SCALE)
    return range.type.tag + lower.key + upper.key + scales


@cached(DECODED_MAX)
def decode(form: bytes) -> Range:
    """Returns the range of a stored form."""
    type = _BY_TAG[form[:1]]
    end = len(form) - (0 if type.width else SCALES)
    if end == 1:
        return Range(type, None)
    middle = bound_end(type, form, 1)
    lower, upper = form[1:middle], form[middle:end]
    if type.width:
        return Range(type, (Bound(lower), Bound(upper)))
    return Range(type, (Bound(lower, form[end : end + sortable.SCALE_BYTES]), Bound(upper, form[end + sortable.SCALE_BYTES :])))


def bound_end(type: RangeType, form: bytes, start: int) -> int:
    """Returns where a bound ends that starts at a place."""
    if form[start : start + 1] != FINITE:
        return start + 1
    if type.width:
        return start + type.width + 2
    head = form[start + 1]
    return form.index(b"\0" if head >= _POSITIVE else b"\xff", start + (5 if head in _LONG_HEADS else 2)) + 2


def order_key(form: bytes) -> bytes:
    """Returns the stored form without display scales, which ranges with equal bounds have in common."""
    return form if _BY_TAG[form[:1]].width else form[:-SCALES]
