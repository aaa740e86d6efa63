"""Multiranges: ranges in ascending order, none empty, that neither overlap nor meet.

The stored form is bytes whose unsigned order is PostgreSQL's order, in which a multirange is before those that it begins:

    multirange type, 1 byte │ lower bound │ upper bound │ lower bound │ … │ nummultirange: the display scales of all bounds,
                                                                            2 bytes each, and the number of ranges, 4 bytes

Bounds are those of ranges (`forms`).

Source: PostgreSQL 15, src/backend/utils/adt/multirangetypes.c.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tailgate.lake import sortable
from tailgate.lake.ranges import MULTIRANGE_OF
from tailgate.values.caching import cached
from tailgate.values.ranges import forms
from tailgate.values.ranges.forms import NO_SCALE, RANGE_TYPES, Bound, Range, RangeType

TYPES = {MULTIRANGE_OF[t.name]: t for t in RANGE_TYPES.values()}  # the range types by the names of the multirange types
_BY_TAG = {t.tag.upper(): t for t in TYPES.values()}
_COUNT = 4  # bytes of the number of ranges
DECODED_MAX = 16  # decoded multiranges that are cached: constants of an expression
DECODED_BYTES_MAX = 64 << 10  # of the stored form of one; it takes about ten times as much


@dataclass(frozen=True, slots=True)
class Multirange:
    """A multirange. `type`: that of its ranges."""

    type: RangeType
    ranges: tuple[Range, ...]


def multirange(type: RangeType, ranges: Iterable[Range]) -> Multirange:
    """Returns the multirange of the values in ranges of any order."""
    result: list[Range] = []
    for range in sorted((r for r in ranges if not r.is_empty), key=lambda r: (r.lower.key, r.upper.key)):
        if result and (forms.overlap(result[-1], range) or forms.adjacent(result[-1], range)):
            result[-1] = forms.merged(result[-1], range)
        else:
            result.append(range)
    return Multirange(type, tuple(result))


# --- the stored form -----------------------------------------------------------------------------


def encode(multirange: Multirange) -> bytes:
    """Returns the stored form of a multirange.

    >>> encode(Multirange(RANGE_TYPES["int4range"], ())), encode(Multirange(RANGE_TYPES["numrange"], ()))
    (b'I', b'N\\x00\\x00\\x00\\x00')
    """
    bounds = [bound for range in multirange.ranges for bound in (range.lower, range.upper)]
    form = multirange.type.tag.upper() + b"".join(bound.key for bound in bounds)
    if multirange.type.width:
        return form
    return form + b"".join(bound.scale or NO_SCALE for bound in bounds) + len(multirange.ranges).to_bytes(_COUNT, "big")


@cached(DECODED_MAX, DECODED_BYTES_MAX)
def decode(form: bytes) -> Multirange:
    """Returns the multirange of a stored form."""
    type, end, at = _BY_TAG[form[:1]], len(order_key(form)), 1
    bounds: list[Bound] = []
    while at < end:
        following = forms.bound_end(type, form, at)
        scale = end + sortable.SCALE_BYTES * len(bounds)
        bounds.append(Bound(form[at:following], b"" if type.width else form[scale : scale + sortable.SCALE_BYTES]))
        at = following
    return Multirange(type, tuple(Range(type, pair) for pair in zip(bounds[::2], bounds[1::2], strict=True)))


def order_key(form: bytes) -> bytes:
    """Returns the stored form without what multiranges with equal bounds do not have in common: display scales."""
    if _BY_TAG[form[:1]].width:
        return form
    return form[: -_COUNT - forms.SCALES * int.from_bytes(form[-_COUNT:], "big")]


def is_multirange(form: bytes) -> bool:
    """Returns whether a stored form is that of a multirange, not of a range."""
    return form[:1] in _BY_TAG


def of(form: bytes) -> Multirange:
    """Returns the multirange of a stored form, which may be that of a range."""
    if is_multirange(form):
        return decode(form)
    range = forms.decode(form)
    return Multirange(range.type, () if range.is_empty else (range,))


def hull(form: bytes) -> Range:
    """Returns the smallest range that contains a multirange, or the range of a stored form of a range."""
    if not is_multirange(form):
        return forms.decode(form)
    multirange = decode(form)
    if not multirange.ranges:
        return Range(multirange.type, None)
    return Range(multirange.type, (multirange.ranges[0].lower, multirange.ranges[-1].upper))


# --- operations ----------------------------------------------------------------------------------


def union(a: Multirange, b: Multirange) -> Multirange:
    return multirange(a.type, (*a.ranges, *b.ranges))


def intersection(a: Multirange, b: Multirange) -> Multirange:
    return Multirange(a.type, tuple(_common(a, b)))


def _common(a: Multirange, b: Multirange) -> Iterator[Range]:
    i = j = 0
    while i < len(a.ranges) and j < len(b.ranges):
        x, y = a.ranges[i], b.ranges[j]
        if forms.overlap(x, y):
            yield forms.intersection(x, y)
        if y.upper.key <= x.upper.key:
            j += 1
        else:
            i += 1


def difference(a: Multirange, b: Multirange) -> Multirange:
    return intersection(a, _complement(b))


def _complement(multirange: Multirange) -> Multirange:
    """Returns the values that are not in a multirange."""
    gaps: list[Range] = []
    lower = Bound(forms.INFINITE_LOWER)
    for range in multirange.ranges:
        if not range.lower.is_infinite:
            gaps.append(Range(multirange.type, (lower, range.lower.inverted(forms.EXCLUSIVE_UPPER))))
        lower = range.upper.inverted(forms.EXCLUSIVE_LOWER)
    if not multirange.ranges or not multirange.ranges[-1].upper.is_infinite:
        gaps.append(Range(multirange.type, (lower, Bound(forms.INFINITE_UPPER))))
    return Multirange(multirange.type, tuple(gaps))
