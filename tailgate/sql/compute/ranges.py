"""Functions of ranges. One function serves all range types, which the first byte of the stored form tells. Bounds are texts.

Functions that depend on the lowest and highest bound only take multiranges, too.

Source: PostgreSQL 15, src/backend/utils/adt/rangetypes.c.
"""

from __future__ import annotations

from collections.abc import Callable

from tailgate.lake.errors import DataException, SyntaxError_
from tailgate.lake.types import Type
from tailgate.sql.compute.registry import udf
from tailgate.values.ranges import forms
from tailgate.values.ranges.forms import RANGE_TYPES, Bound, Range, RangeType, decode, encode, lower_bound, ranged, upper_bound
from tailgate.values.ranges.multiranges import hull
from tailgate.values.registry import read_text, text_writer

R = "int4range"  # in place of any range type, which all have the same stored form
FLAGS = ("[]", "[)", "(]", "()")


# --- text and bounds -----------------------------------------------------------------------------


def _text(type: RangeType, bound: Bound) -> str | None:
    """Returns the text of a bound, or None if it is infinite."""
    value = forms.value(type, bound)
    return None if value is None else text_writer(type.subtype)(value).decode()


@udf(R, to="text")
def range_to_text(form: bytes) -> str:
    return text_writer(Type(decode(form).type.name))(form).decode()


@udf("text", "text[]", "text[]", to=R)
def range(name: str, bounds: list[str | None], flags: list[str | None]) -> bytes:
    """Returns the range of a type between the texts of two bounds, None for infinite ones. `flags`: one text, such as `[)`.

    >>> range_to_text(range("int4range", ["1", None], ["(]"]))
    '[2,)'
    """
    type, (lower, upper), (brackets,) = RANGE_TYPES[name], bounds, flags
    if brackets is None:
        raise DataException("range constructor flags argument must not be null")
    if brackets not in FLAGS:
        raise SyntaxError_("invalid range bound flags", hint='Valid values are "[]", "[)", "(]", and "()".')
    low, high = (None if text is None else read_text(text, type.subtype) for text in (lower, upper))
    first = lower_bound(type, low, inclusive=brackets[0] == "[")
    return encode(ranged(type, first, upper_bound(type, high, inclusive=brackets[1] == "]")))


@udf(R, to="text")
def range_lower(form: bytes) -> str | None:
    range = hull(form)
    return None if range.is_empty else _text(range.type, range.lower)


@udf(R, to="text")
def range_upper(form: bytes) -> str | None:
    range = hull(form)
    return None if range.is_empty else _text(range.type, range.upper)


def _test(name: str, test: Callable[[Range], bool]) -> None:
    udf(R, to="bool", name=name)(lambda form: test(hull(form)))


_test("range_is_empty", lambda r: r.is_empty)
_test("range_lower_inc", lambda r: not r.is_empty and r.lower.is_inclusive)
_test("range_upper_inc", lambda r: not r.is_empty and r.upper.is_inclusive)
_test("range_lower_inf", lambda r: not r.is_empty and r.lower.is_infinite)
_test("range_upper_inf", lambda r: not r.is_empty and r.upper.is_infinite)


# --- comparison ----------------------------------------------------------------------------------


@udf(R, "text", to="bool")
def range_contains_element(form: bytes, text: str) -> bool:
    range = decode(form)
    point = lower_bound(range.type, read_text(text, range.type.subtype), inclusive=True).key
    return not range.is_empty and range.lower.key <= point <= range.upper.key


@udf(R, R, to="bool")
def range_contains(form: bytes, other: bytes) -> bool:
    a, b = decode(form), decode(other)
    return b.is_empty or (not a.is_empty and a.lower.key <= b.lower.key and a.upper.key >= b.upper.key)


def _comparison(name: str, test: Callable[[Range, Range], bool]) -> None:
    """Registers an operator of two ranges that is false if either is empty."""

    def function(form: bytes, other: bytes) -> bool:
        a, b = hull(form), hull(other)
        return not a.is_empty and not b.is_empty and test(a, b)

    udf(R, R, to="bool", name=name)(function)


_comparison("range_overlaps", forms.overlap)
_comparison("range_adjacent", forms.adjacent)
_comparison("range_before", lambda a, b: a.upper.key < b.lower.key)
_comparison("range_overleft", lambda a, b: a.upper.key <= b.upper.key)
_comparison("range_overright", lambda a, b: a.lower.key >= b.lower.key)


# --- arithmetic ----------------------------------------------------------------------------------


@udf(R, R, to=R)
def range_union(form: bytes, other: bytes) -> bytes:
    a, b = decode(form), decode(other)
    if not a.is_empty and not b.is_empty and not forms.overlap(a, b) and not forms.adjacent(a, b):
        raise DataException("result of range union would not be contiguous")
    return range_merge(form, other)


@udf(R, R, to=R)
def range_merge(form: bytes, other: bytes) -> bytes:
    """Returns the smallest range that contains two ranges."""
    a, b = decode(form), decode(other)
    if a.is_empty or b.is_empty:
        return other if a.is_empty else form
    return encode(forms.merged(a, b))


@udf(R, R, to=R)
def range_intersect(form: bytes, other: bytes) -> bytes:
    a, b = decode(form), decode(other)
    if a.is_empty or b.is_empty or not forms.overlap(a, b):
        return encode(Range(a.type, None))
    return encode(forms.intersection(a, b))


@udf(R, R, to=R)
def range_minus(form: bytes, other: bytes) -> bytes:
    a, b = decode(form), decode(other)
    if a.is_empty or b.is_empty or not forms.overlap(a, b):
        return form
    begins_inside, ends_inside = a.lower.key >= b.lower.key, a.upper.key <= b.upper.key
    if not begins_inside and not ends_inside:
        raise DataException("result of range difference would not be contiguous")
    if begins_inside and ends_inside:
        return encode(Range(a.type, None))
    if ends_inside:
        return encode(ranged(a.type, a.lower, b.lower.inverted(forms.EXCLUSIVE_UPPER)))
    return encode(ranged(a.type, b.upper.inverted(forms.EXCLUSIVE_LOWER), a.upper))
