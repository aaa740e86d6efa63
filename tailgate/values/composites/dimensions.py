"""The dimensions of arrays: their number, then the length of each one, then the lower bound of each one.

    {1,2,3}                     1, 3, 1
    [0:1][1:3]={{…},{…}}        2, 2, 3, 0, 1
    {}                          0

The elements of an array of several dimensions are in one list; the subscript of the last dimension changes fastest. Arrays with equal
elements are ordered as the lists of their dimensions are.

Source: PostgreSQL 15, src/backend/utils/adt/arrayutils.c, arrayfuncs.c and array_userfuncs.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import TypeAlias

from tailgate.lake.errors import ArraySubscriptError, NullValueNotAllowed, ProgramLimitExceeded

Dimensions: TypeAlias = tuple[int, ...]
Ranges: TypeAlias = Sequence[tuple[int, int]]  # the lower and the upper bound of each dimension

DIMENSIONS_MAX = 6
ELEMENTS_MAX = 134_217_727
ASSIGNED_MAX = 10_000_000  # elements up to which an assignment may extend an array: NULLs fill a gap
FIRST, LAST = -(2**31), 2**31 - 1  # in place of bounds of a slice that has none
EMPTY: Dimensions = (0,)
INCOMPATIBLE = "cannot concatenate incompatible arrays"


def of_list(count: int) -> Dimensions:
    """Returns the dimensions of an array of one dimension from 1.

    >>> of_list(3), of_list(0)
    ((1, 3, 1), (0,))
    """
    return (1, count, 1) if count else EMPTY


def dimensions(lengths: Sequence[int], bounds: Sequence[int] | None = None) -> Dimensions:
    """Returns dimensions with these lengths and lower bounds, 1 by default. An array without elements has none. Raises 54000."""
    if len(lengths) > DIMENSIONS_MAX:
        raise too_many(len(lengths))
    if prod(lengths) > ELEMENTS_MAX or any(not 0 <= length <= ELEMENTS_MAX for length in lengths):
        raise ProgramLimitExceeded(f"array size exceeds the maximum allowed ({ELEMENTS_MAX})")
    bounds = (1,) * len(lengths) if bounds is None else bounds
    for length, bound in zip(lengths, bounds, strict=True):
        if bound + length > LAST:
            raise ProgramLimitExceeded(f"array lower bound is too large: {bound}")
    return (len(lengths), *lengths, *bounds) if lengths and prod(lengths) else EMPTY


def too_many(number: int) -> ProgramLimitExceeded:
    return ProgramLimitExceeded(f"number of array dimensions ({number}) exceeds the maximum allowed ({DIMENSIONS_MAX})")


def lengths(array: Sequence[int]) -> list[int]:
    return list(array[1 : 1 + array[0]])


def bounds(array: Sequence[int]) -> list[int]:
    return list(array[1 + array[0] :])


def is_list(array: Sequence[int]) -> bool:
    """Returns whether an array has one dimension from 1, or no elements."""
    return array[0] == 0 or (array[0] == 1 and array[2] == 1)


def shown(array: Sequence[int]) -> str:
    """Returns the lower and upper bound of each dimension.

    >>> shown((2, 2, 3, 0, 1))
    '[0:1][1:3]'
    """
    return "".join(f"[{bound}:{bound + length - 1}]" for length, bound in zip(lengths(array), bounds(array), strict=True))


def place(array: Sequence[int], subscripts: Sequence[int | None]) -> int | None:
    """Returns the number of an element, counted from 1, or None if there is no such element.

    >>> place((2, 2, 3, 0, 1), (1, 2))
    5
    """
    if len(subscripts) != array[0]:
        return None
    number = 0
    for subscript, length, bound in zip(subscripts, lengths(array), bounds(array), strict=True):
        if subscript is None or not bound <= subscript < bound + length:
            return None
        number = number * length + subscript - bound
    return number + 1


def sliced(array: Sequence[int], lows: Sequence[int], highs: Sequence[int]) -> tuple[Dimensions, list[int]]:
    """Returns the dimensions of a slice, from 1, and the numbers of its elements. Dimensions without bounds are complete.

    >>> sliced((2, 2, 3, 1, 1), (1, 2), (9, 3))
    ((2, 2, 2, 1, 1), [2, 3, 5, 6])
    """
    if not 0 < len(lows) <= array[0]:
        return EMPTY, []
    numbers, sizes = [0], []
    for number, (length, bound) in enumerate(zip(lengths(array), bounds(array), strict=True)):
        low, high = bound, bound + length - 1
        if number < len(lows):
            low, high = max(low, lows[number]), min(high, highs[number])
        if low > high:
            return EMPTY, []
        sizes.append(high - low + 1)
        numbers = [n * length + subscript - bound for n in numbers for subscript in range(low, high + 1)]
    return dimensions(sizes), [n + 1 for n in numbers]


def assigned(array: Sequence[int], lows: Sequence[int], highs: Sequence[int]) -> tuple[Dimensions, list[int]]:
    """Returns the dimensions of an array after an assignment to a slice, and the source of each element.

    A positive number is that of an element of the old array, a negative one that of an element of the assigned array; 0 is NULL. An
    array of one dimension is extended. Raises 2202E, 54000.

    >>> assigned((1, 2, 1), (4,), (5,))
    ((1, 5, 1), [1, 2, 0, -1, -2])
    """
    if not array[0]:
        if FIRST in lows or LAST in highs:
            raise ArraySubscriptError("array slice subscript must provide both boundaries")
        array = (len(lows), *(0,) * len(lows), *lows)
    if len(lows) > array[0]:
        raise ArraySubscriptError("wrong number of array subscripts")
    old = [(bound, bound + length - 1) for length, bound in zip(lengths(array), bounds(array), strict=True)]
    part = [(a if low == FIRST else low, b if high == LAST else high) for (a, b), low, high in zip(old, lows, highs, strict=False)]
    part += old[len(part) :]
    if any(low > high for low, high in part):
        raise ArraySubscriptError("upper bound cannot be less than lower bound")
    is_empty = any(low > high for low, high in old)
    new = part if is_empty else [(min(a, low), max(b, high)) for (a, b), (low, high) in zip(old, part, strict=True)]
    if len(new) > 1 and not is_empty and new != old:
        raise ArraySubscriptError("array subscript out of range")
    shape = dimensions([high - low + 1 for low, high in new], [low for low, _ in new])
    if prod(lengths(shape)) > ASSIGNED_MAX:
        raise ProgramLimitExceeded(f"array size exceeds the maximum allowed ({ASSIGNED_MAX})")
    return shape, _sources(new, old, part)


def _sources(new: Ranges, old: Ranges, part: Ranges) -> list[int]:
    """Returns the source of each element of an assignment, as `assigned` does."""
    sources, assigned_count = [], 0
    for subscripts in product(*(range(low, high + 1) for low, high in new)):
        if all(low <= subscript <= high for subscript, (low, high) in zip(subscripts, part, strict=True)):
            assigned_count += 1
            sources.append(-assigned_count)
            continue
        number = 0
        for subscript, (low, high) in zip(subscripts, old, strict=True):
            if not low <= subscript <= high:
                number = -1
                break
            number = number * (high - low + 1) + subscript - low
        sources.append(number + 1)
    return sources


def concatenated(a: Sequence[int], b: Sequence[int]) -> Dimensions:
    """Returns the dimensions of a || b. An array with one dimension less than the other becomes an element of it. Raises 2202E."""
    if not a[0] or not b[0]:
        return tuple(a if a[0] else b)
    if abs(a[0] - b[0]) > 1:
        raise ArraySubscriptError(INCOMPATIBLE, detail=f"Arrays of {a[0]} and {b[0]} dimensions are not compatible for concatenation.")
    outer, inner = (a, b) if a[0] >= b[0] else (b, a)
    is_element = a[0] != b[0]
    skipped = 0 if is_element else 1
    if lengths(outer)[1:] != lengths(inner)[skipped:] or bounds(outer)[1:] != bounds(inner)[skipped:]:
        of = "dimensions" if is_element else "element dimensions"
        raise ArraySubscriptError(INCOMPATIBLE, detail=f"Arrays with differing {of} are not compatible for concatenation.")
    first = lengths(outer)[0] + (1 if is_element else lengths(inner)[0])
    return dimensions([first, *lengths(outer)[1:]], bounds(outer))


def nested(arrays: Sequence[Sequence[int] | None]) -> Dimensions:
    """Returns the dimensions of an array whose elements are arrays; None is NULL, which is like an empty array. Raises 2202E."""
    present = [tuple(array) for array in arrays if array is not None and array[0]]
    if not present:
        return EMPTY
    if len(present) < len(arrays) or any(array != present[0] for array in present):
        raise ArraySubscriptError("multidimensional arrays must have array expressions with matching dimensions")
    return dimensions([len(arrays), *lengths(present[0])], [1, *bounds(present[0])])


def accumulated(arrays: Sequence[Sequence[int] | None]) -> Dimensions:
    """Returns the dimensions of an array that an aggregate makes of arrays. Raises 22004, 2202E."""
    for array in arrays:
        if array is None:
            raise NullValueNotAllowed("cannot accumulate null arrays")
        if array is arrays[0] and not array[0]:
            raise ArraySubscriptError("cannot accumulate empty arrays")
        if array != arrays[0]:
            raise ArraySubscriptError("cannot accumulate arrays of different dimensionality")
    return nested(arrays)


def filled(sizes: Sequence[int | None], lows: Sequence[int | None] | None) -> Dimensions:
    """Returns the dimensions of an array with these lengths and lower bounds. Raises 22004, 2202E."""
    if None in sizes or (lows is not None and None in lows):
        raise NullValueNotAllowed("dimension values cannot be null")
    if len(sizes) > DIMENSIONS_MAX:
        raise too_many(len(sizes))
    if lows is not None and len(lows) != len(sizes):
        raise ArraySubscriptError("wrong number of array subscripts", detail="Low bound array has different size than dimensions array.")
    return dimensions([n for n in sizes if n is not None], None if lows is None else [n for n in lows if n is not None])
