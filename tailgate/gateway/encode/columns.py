"""A whole column at a time: Arrow array in stored form to an array of the bytes of its fields, nulls kept.

What Arrow and numpy cannot do (intervals, arrays, records, years before 1) goes through the value-at-a-time functions.
Cost: about 10-40 ns a field for the types below, 200-1,000 ns for the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.encode import raw
from tailgate.lake.types import Type
from tailgate.values.calendar import DAY, DAYS_TO_2000, MICROS_TO_2000, SECOND, days
from tailgate.values.codec import Writer
from tailgate.values.registry import binary_writer, text_writer
from tailgate.values.style import Style
from tailgate.values.zones import offset, offset_text

# where Arrow's text of dates has four digits of year
_FIRST_DAY, _LAST_DAY = days(1, 1, 1) + 1, days(9999, 12, 31) - 1
_QUARTER_HOUR = 900  # s: no zone has changed its offset at any other second since 1972
_SINCE_1975 = 157_766_400


def text_column(array: pa.Array, type: Type, style: Style) -> pa.Array:
    if not type.is_array:
        name = type.name
        if name in raw.STRINGS and not (name == "bpchar" and type.modifiers):
            return array.view(pa.binary())
        if name in ("int2", "int4", "int8", "oid"):
            return array.cast(pa.string()).view(pa.binary())
        if name == "bool":
            return pc.if_else(array, b"t", b"f").cast(pa.binary())
        if name == "numeric" and type.decimal[1] == 0 and type.decimal[0] <= 38:
            return array.cast(pa.string()).view(pa.binary())
        if name == "date" and _within(array.view(pa.int32()), _FIRST_DAY, _LAST_DAY):
            return array.cast(pa.string()).view(pa.binary())
        if name == "timestamp" and _within(array.view(pa.int64()), _FIRST_DAY * DAY, _LAST_DAY * DAY):
            return _timestamps(array.view(pa.int64())).view(pa.binary())
        if name == "timestamptz" and _within(array.view(pa.int64()), _FIRST_DAY * DAY, _LAST_DAY * DAY):
            return _zoned(array.view(pa.int64()), style.time_zone)
    return _each(text_writer(type, style), array, type)


def binary_column(array: pa.Array, type: Type) -> pa.Array:
    if not type.is_array:
        name = type.name
        if name in raw.STRINGS and name not in ("jsonb", "uuid") and not (name == "bpchar" and type.modifiers):
            return array.view(pa.binary())
        if name == "bytea":
            return array
        if name == "jsonb":
            return pc.binary_join_element_wise(pa.scalar(b"\1"), array.view(pa.binary()), b"")
        if name in _BIG_ENDIAN:
            plain = array.view(pa.int64()) if name in ("timestamp", "timestamptz") else array.view(pa.int32()) if name == "date" else array
            if name == "date" and not _within(plain, _FIRST_DAY, _LAST_DAY):
                return _each(binary_writer(type), array, type)
            if name in ("timestamp", "timestamptz") and not _within(plain, _FIRST_DAY * DAY, _LAST_DAY * DAY):
                return _each(binary_writer(type), array, type)
            dtype, epoch = _BIG_ENDIAN[name]
            numbers = np.asarray(plain.fill_null(0) if plain.null_count else plain)
            return fixed((numbers - epoch if epoch else numbers).astype(dtype), plain)
    return _each(binary_writer(type), array, type)


_BIG_ENDIAN: dict[str, tuple[str, int]] = {
    "int2": (">i2", 0),
    "int4": (">i4", 0),
    "int8": (">i8", 0),
    "oid": (">u4", 0),
    "float4": (">f4", 0),
    "float8": (">f8", 0),
    "time": (">i8", 0),
    "date": (">i4", DAYS_TO_2000),
    "timestamp": (">i8", MICROS_TO_2000),
    "timestamptz": (">i8", MICROS_TO_2000),
}


def fixed(numbers: np.ndarray[Any, Any], like: pa.Array | None = None) -> pa.Array:
    """Fields of one width each from a numpy array; null where `like` is."""
    size = numbers.dtype.itemsize
    offsets = np.arange(0, size * (len(numbers) + 1), size, dtype=np.int32) if len(numbers) else np.zeros(1, dtype=np.int32)
    whole = pa.Array.from_buffers(pa.binary(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(numbers))])
    return pc.if_else(like.is_valid(), whole, pa.scalar(None, pa.binary())) if like is not None and like.null_count else whole


def _each(encode: Writer, array: pa.Array, type: Type) -> pa.Array:
    return pa.array([None if value is None else encode(value) for value in raw.values(array, type)], pa.binary())


def _within(array: pa.Array, first: int, last: int) -> bool:
    limits = pc.min_max(array)
    low, high = limits["min"].as_py(), limits["max"].as_py()
    return low is None or (low >= first and high <= last)


def _timestamps(micros: pa.Array) -> pa.Array:
    """Returns timestamps as text without the zeros at the end that Arrow writes."""
    return pc.ascii_rtrim(pc.ascii_rtrim(micros.view(pa.timestamp("us")).cast(pa.string()), "0"), ".")


def _zoned(micros: pa.Array, time_zone: str) -> pa.Array:
    numbers = np.asarray(micros.fill_null(0) if micros.null_count else micros)
    seconds = numbers // SECOND
    steps = seconds // _QUARTER_HOUR * _QUARTER_HOUR if len(seconds) and seconds.min() >= _SINCE_1975 else seconds
    places, which = np.unique(steps, return_inverse=True)
    east = np.array([offset(time_zone, int(place)) for place in places], dtype=np.int64)
    suffixes = pa.array([offset_text(int(seconds)) for seconds in east], pa.binary()).take(pa.array(which.reshape(-1)))
    local = pa.array(numbers + east[which.reshape(-1)] * SECOND, pa.int64())
    out = pc.binary_join_element_wise(_timestamps(local).view(pa.binary()), suffixes, b"")
    return pc.if_else(micros.is_valid(), out, pa.scalar(None, pa.binary())) if micros.null_count else out
