"""Dates and timestamps as the numbers that store them, because Python's types lack infinity and some years."""

from __future__ import annotations

import pyarrow as pa


def numbers(array: pa.Array) -> pa.Array:
    """Returns an array whose dates are days and whose timestamps are µs since 1970, also inside lists and structs.

    >>> numbers(pa.array([[2**31 - 1]], pa.list_(pa.date32()))).to_pylist()
    [[2147483647]]
    """
    type = _numbered(array.type)
    return array if type == array.type else array.cast(type)


def _numbered(type: pa.DataType) -> pa.DataType:
    if pa.types.is_date32(type):
        return pa.int32()
    if pa.types.is_timestamp(type):
        return pa.int64()
    if pa.types.is_list(type):
        return pa.list_(type.value_field.with_type(_numbered(type.value_type)))
    if pa.types.is_struct(type):
        return pa.struct([type.field(i).with_type(_numbered(type.field(i).type)) for i in range(type.num_fields)])
    return type


def contains_dates(type: pa.DataType) -> bool:
    """Returns whether a type is date, or a list or struct that contains dates."""
    if pa.types.is_list(type):
        return contains_dates(type.value_type)
    if pa.types.is_struct(type):
        return any(contains_dates(type.field(i).type) for i in range(type.num_fields))
    return bool(pa.types.is_date32(type))
