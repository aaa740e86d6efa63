"""Converts values to their column's modifiers, such as length, precision and scale, as PostgreSQL does.

Plans return values of the column's type without modifiers; this module applies the modifiers, a
whole column at a time.

Source: PostgreSQL 15, src/backend/utils/adt/varchar.c (varchar, bpchar, on assignment), numeric.c (apply_typmod),
timestamp.c (AdjustTimestampForTypmod).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake import sortable
from tailgate.lake.errors import StringDataRightTruncation, TailgateError
from tailgate.lake.types import FRACTIONAL, MICROSECONDS, NUMERIC_PRECISION, Field, Type, arrow_schema
from tailgate.sql.functions.casts import EPOCH
from tailgate.values.numbers import general, numerics
from tailgate.values.strings.bits import check_length
from tailgate.values.times.calendar import INFINITIES_TIME
from tailgate.values.times.units import HOUR, MINUTE
from tailgate.values.times.zoned_times import rounded

INFINITIES = pa.array(INFINITIES_TIME)


def fitted(rows: pa.Table, columns: Sequence[Field]) -> pa.Table:
    """Returns the rows with the names and types of the columns. Raises 22001, 22003."""
    arrays = [_column(values, field.type) for values, field in zip(rows.columns, columns, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=arrow_schema(tuple(columns)))
    return table if all(array.num_chunks == 1 for array in arrays) else table.combine_chunks()


def _column(values: pa.ChunkedArray, type: Type) -> pa.ChunkedArray:
    if not type.is_array:
        if type.name in ("varchar", "bpchar") and type.modifiers:
            return _text(values, type)
        if type.name in ("bit", "varbit") and type.modifiers:
            return _bits(values, type)
        if type.name == "numeric":
            return _numeric(values, type)
        if type.name in FRACTIONAL and type.modifiers:
            return _rounded(values, type)
        if type.name == "record":
            return _fields(values, type)
    elif type.name == "record" or (type.modifiers and (type.name in ("varchar", "bpchar", "bit", "varbit") or type.name in FRACTIONAL)):
        return _elements(values, type)
    return values if values.type == type.arrow else values.cast(type.arrow)


def _fields(values: pa.ChunkedArray, type: Type) -> pa.ChunkedArray:
    """Applies the modifiers of the fields of rows."""
    structs = values.combine_chunks()
    fields = [_column(pa.chunked_array([structs.field(n)]), f.type).combine_chunks() for n, f in enumerate(type.fields)]
    return pa.chunked_array([pa.StructArray.from_arrays(fields, fields=list(type.arrow), mask=structs.is_null())])


def _elements(values: pa.ChunkedArray, type: Type) -> pa.ChunkedArray:
    """Applies the modifiers of an array's elements."""
    if type.multidimensional:
        structs = values.combine_chunks()
        elements = _elements(pa.chunked_array([structs.field(0)]), type.array()).combine_chunks()
        return pa.chunked_array([pa.StructArray.from_arrays([elements, structs.field(1)], fields=list(type.arrow), mask=structs.is_null())])
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy()
    offsets = pa.array(np.concatenate([np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)]))
    elements = _column(pa.chunked_array([pc.list_flatten(values).combine_chunks()]), type.element)
    missing = pc.is_null(values).combine_chunks()
    return pa.chunked_array([pa.ListArray.from_arrays(offsets, elements.combine_chunks(), mask=missing)]).cast(type.arrow)


def _text(values: pa.ChunkedArray, type: Type) -> pa.ChunkedArray:
    """Applies the length of varchar or bpchar."""
    length = type.modifiers[0]
    longest = pc.max(pc.utf8_length(values)).as_py() or 0
    if longest > length:
        if (pc.max(pc.utf8_length(pc.utf8_rtrim(values, characters=" "))).as_py() or 0) > length:
            raise StringDataRightTruncation(f"value too long for type {type}")
        values = pc.utf8_slice_codeunits(values, 0, length)
    return pc.utf8_rpad(values, length) if type.name == "bpchar" else values


def _bits(values: pa.ChunkedArray, type: Type) -> pa.ChunkedArray:
    """Checks the lengths of bit strings."""
    for length in pc.unique(pc.utf8_length(values)).to_pylist():
        if length is not None:
            check_length(length, type)
    return values


def _rounded(values: pa.ChunkedArray, type: Type) -> pa.ChunkedArray:
    """Rounds times, timestamps or intervals to the fractional digits of their type."""
    if type.name == "interval":
        return _interval(values, type)
    if type.modifiers[0] == MICROSECONDS:
        return values.cast(type.arrow)
    if type.name == "timetz":
        rows = [None if value is None else rounded(value, type.modifiers[0]) for value in values.to_pylist()]
        return pa.chunked_array([pa.array(rows, type.arrow)])
    micros = values.cast(type.arrow).cast(pa.int64())
    if type.name == "time":
        return _round(micros, type).cast(type.arrow)
    finite = pc.add(_round(pc.subtract(micros, EPOCH), type), EPOCH)
    return pc.if_else(pc.is_in(micros, INFINITIES), micros, finite).cast(type.arrow)


def _interval(values: pa.ChunkedArray, type: Type) -> pa.ChunkedArray:
    """Rounds seconds, and removes the parts below the last field."""
    months, days, micros = (pc.struct_field(values, name) for name in ("months", "days", "micros"))
    last = type.fields_of_interval.rpartition(" ")[2]
    if last in ("year", "month", "day"):
        micros = pc.multiply(micros, 0)
    elif last in ("hour", "minute"):
        micros = _multiple(micros, HOUR if last == "hour" else MINUTE)
    elif type.modifiers[0] < MICROSECONDS:
        micros = _round(micros, type)
    if last in ("year", "month"):
        days = pc.multiply(days, 0)
    if last == "year":
        months = _multiple(months, 12)
    rows = pc.make_struct(months.cast(pa.int32()), days.cast(pa.int32()), micros, field_names=["months", "days", "micros"])
    return pc.if_else(pc.is_valid(values), rows, pa.scalar(None, type.arrow)).cast(type.arrow)


def _multiple(numbers: pa.ChunkedArray, unit: int) -> pa.ChunkedArray:
    """Returns the multiples of a unit that are nearest to numbers, towards zero."""
    return pc.multiply(pc.divide(numbers, unit), unit)


def _round(micros: pa.ChunkedArray, type: Type) -> pa.ChunkedArray:
    """Rounds microseconds half away from zero, as AdjustTimestampForTypmod() does."""
    unit = 10 ** (MICROSECONDS - type.modifiers[0])
    return pc.multiply(pc.divide(pc.add(micros, pc.multiply(pc.sign(micros), unit // 2)), unit), unit)


def _numeric(values: pa.ChunkedArray, type: Type) -> pa.ChunkedArray:
    """Rounds to the scale of a numeric and checks its precision."""
    if values.type == type.arrow or type.general:
        cast = values if values.type == type.arrow else values.cast(type.arrow)
        return _limited(cast, type) if type.general and type.modifiers else cast
    scale = type.decimal[1]
    try:
        if not pa.types.is_decimal(values.type):
            return values.cast(type.arrow)
        if values.type.scale > scale:
            widest = pa.decimal128(NUMERIC_PRECISION, values.type.scale)
            values = pc.round(values.cast(widest), scale, "half_towards_infinity")
        return values.cast(type.arrow)
    except pa.ArrowInvalid:
        raise overflow(type) from None


def _limited(values: pa.ChunkedArray, type: Type) -> pa.ChunkedArray:
    """Rounds general numerics to the scale of their column and checks its precision."""
    precision, scale = type.modifiers
    decimal = pc.is_valid(pc.struct_field(values, "u"))
    fits = pc.fill_null(pc.and_(decimal, pc.equal(pc.struct_field(values, "s"), scale)), False)
    if precision >= NUMERIC_PRECISION and pc.all(pc.or_(fits, pc.is_null(values)), min_count=0).as_py():
        return values
    numbers = [number for chunk in values.chunks for number in general.values(chunk)]
    rows = [None if number is None else sortable.stored(numerics.limited(number, precision, scale)) for number in numbers]
    return pa.chunked_array([pa.array(rows, type.arrow)])


def overflow(type: Type) -> TailgateError:
    """Returns the error for a number with too many digits for its type."""
    if not type.modifiers or not type.declared:
        return numerics.overflow()
    return numerics.field_overflow(*type.modifiers)
