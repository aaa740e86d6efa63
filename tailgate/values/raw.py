"""An Arrow column as Python values that need no further look at its type: the input of writers.

bool, int, float │ str types, bytea: bytes │ date: days │ time, timetz: int │ timestamp, timestamptz: µs since 1970
numeric: the unscaled int, or a decimal if it is general
interval: (months, days, µs) │ array: list of raw values, or a pair of it and the dimensions │ record: tuple of raw values
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tailgate.lake.types import Type
from tailgate.values.numbers import general

STRINGS = frozenset("text varchar bpchar name unknown json jsonb uuid macaddr macaddr8 bit varbit char jsonpath regclass regtype".split())


def stored(column: pa.Array | pa.ChunkedArray, type: Type) -> pa.Array:
    """Returns a column as one array in the type's stored form. DuckDB's results may have another width, as for sums."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # combine_chunks of no chunk at all
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    stored_type = type.arrow
    return column if column.type == stored_type else column.cast(stored_type)


def values(array: pa.Array, type: Type) -> list[Any]:
    """Returns the raw values of an array in stored form."""
    if type.multidimensional:
        return _tuples(array, [values(array.field(0), type.array()), array.field(1).to_pylist()])
    if type.is_array:
        flat = values(array.values, type.element)
        offsets = array.offsets.to_pylist()
        lists: list[Any] = [flat[start:end] for start, end in pairwise(offsets)]
        return [v if valid else None for v, valid in zip(lists, array.is_valid().to_pylist(), strict=True)] if array.null_count else lists
    name = type.name
    out: list[Any]
    if name in STRINGS:
        out = array.view(pa.binary()).to_pylist()
        return out
    if name == "date":
        out = array.view(pa.int32()).to_pylist()
        return out
    if name in ("timestamp", "timestamptz"):
        out = array.view(pa.int64()).to_pylist()
        return out
    if type.general:
        return general.values(array)
    if name == "numeric":
        return _unscaled(array)
    if name == "interval":
        return _tuples(array, [array.field(i).to_pylist() for i in range(3)])
    if name == "record":
        return _tuples(array, [values(array.field(i), f.type) for i, f in enumerate(type.fields)])
    out = array.to_pylist()
    return out


def _tuples(array: pa.StructArray, columns: list[list[Any]]) -> list[Any]:
    if not columns:
        return [() if valid else None for valid in array.is_valid().to_pylist()]
    rows = list(zip(*columns, strict=True))
    if array.null_count:
        return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
    return rows


def _unscaled(array: pa.Decimal128Array) -> list[int | None]:
    pairs = np.frombuffer(array.buffers()[1], dtype=np.int64)[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = pairs[0::2], pairs[1::2]
    if bool((high == (low >> 63)).all()):  # all fit into 64 bits
        out: list[int | None] = low.tolist()
    else:
        out = [(h << 64) + (lo & 0xFFFF_FFFF_FFFF_FFFF) for lo, h in zip(low.tolist(), high.tolist(), strict=True)]
    if array.null_count:
        return [value if valid else None for value, valid in zip(out, array.is_valid().to_pylist(), strict=True)]
    return out
