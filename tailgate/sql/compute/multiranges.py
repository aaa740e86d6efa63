"""Functions of multiranges. One function serves all multirange types, and takes ranges in place of multiranges of one range.

Source: PostgreSQL 15, src/backend/utils/adt/multirangetypes.c.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from tailgate.lake.errors import NullValueNotAllowed
from tailgate.lake.ranges import MULTIRANGE_OF
from tailgate.lake.types import Type
from tailgate.sql.compute.registry import udf
from tailgate.values.ranges import forms, multiranges
from tailgate.values.ranges.forms import RANGE_TYPES, lower_bound
from tailgate.values.ranges.multiranges import Multirange, decode, difference, encode, hull, intersection, of, order_key, union
from tailgate.values.registry import read_text, text_writer

R, M = "int4range", "int4multirange"  # in place of any range and multirange type, which all have the same stored form


@udf(M, to="text")
def multirange_to_text(form: bytes) -> str:
    return text_writer(Type(MULTIRANGE_OF[decode(form).type.name]))(form).decode()


udf(M, to="bytea", name="multirange_key")(order_key)


@udf("text", f"{R}[]", to=M)
def multirange(name: str, ranges: list[bytes | None]) -> bytes:
    """Returns the multirange of ranges. `name`: of the range type.

    >>> multirange_to_text(multirange("int4range", []))
    '{}'
    """
    present = [form for form in ranges if form is not None]
    if len(present) < len(ranges):
        raise NullValueNotAllowed("multirange values cannot contain null members")
    return encode(multiranges.multirange(RANGE_TYPES[name], map(forms.decode, present)))


@udf(R, to=M)
def range_to_multirange(form: bytes) -> bytes:
    return encode(of(form))


@udf(M, to=R)
def range_of_multirange(form: bytes) -> bytes:
    """Returns the smallest range that contains a multirange."""
    return forms.encode(hull(form))


@udf(M, to=f"{R}[]")
def multirange_ranges(form: bytes) -> list[bytes]:
    return [forms.encode(range) for range in decode(form).ranges]


@udf(M, "text", to="bool")
def multirange_contains_element(form: bytes, text: str) -> bool:
    multirange = decode(form)
    point = lower_bound(multirange.type, read_text(text, multirange.type.subtype), inclusive=True).key
    return any(range.lower.key <= point <= range.upper.key for range in multirange.ranges)


@udf(M, M, to="bool")
def multirange_contains(form: bytes, other: bytes) -> bool:
    return not difference(of(other), of(form)).ranges


@udf(M, M, to="bool")
def multirange_overlaps(form: bytes, other: bytes) -> bool:
    return bool(intersection(of(form), of(other)).ranges)


def _operation(name: str, operation: Callable[[Multirange, Multirange], Multirange]) -> None:
    udf(M, M, to=M, name=name)(lambda form, other: encode(operation(of(form), of(other))))


_operation("multirange_union", union)
_operation("multirange_intersect", intersection)
_operation("multirange_minus", difference)


# --- aggregates ----------------------------------------------------------------------------------


@udf(f"{R}[]", to=M)
def range_agg(values: list[bytes | None]) -> bytes | None:
    """Returns the multirange of the values in ranges or multiranges, or None if all are None."""
    parts = [of(form) for form in sorted(form for form in values if form is not None)]
    if not parts:
        return None
    return encode(multiranges.multirange(parts[0].type, (range for part in parts for range in part.ranges)))


@udf(f"{R}[]", to=M)
def range_intersect_agg(values: list[bytes | None]) -> bytes | None:
    """Returns the values that all ranges or multiranges have in common, of their type, or None if all are None."""
    present = sorted(form for form in values if form is not None)
    if not present:
        return None
    common = encode(reduce(intersection, map(of, present)))
    return common if multiranges.is_multirange(present[0]) else forms.encode(hull(common))
