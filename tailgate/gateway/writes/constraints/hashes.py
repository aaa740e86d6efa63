"""Hashes of keys: 64 bits, as numpy's uint64, equal in every process.

Integers and times are hashed as whole columns (splitmix64); other values one by one from their
bytes (about 1 µs each).

Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014), for the mixing.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake.tables import moments
from tailgate.lake.types import GENERAL_ARROW
from tailgate.values.numbers import general
from tailgate.values.numbers.floats import normalized

_ONE, _TWO, _THREE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def hashes(keys: pa.Table) -> np.ndarray:
    """Returns a hash for each row; those of equal keys are equal."""
    result = np.zeros(keys.num_rows, np.uint64)
    for column in comparable(keys).columns:
        result = _mixed(result ^ _values(column.combine_chunks()))
    return result


def comparable(keys: pa.Table) -> pa.Table:
    """Returns columns in a form that is equal if the values are: a general numeric without its display scale."""
    for i, field in enumerate(keys.schema):
        if field.type == GENERAL_ARROW:
            keys = keys.set_column(i, field.with_type(pa.binary()), general.sort_keys(keys.column(i)))
    return keys


def salted(values: np.ndarray, salt: int) -> np.ndarray:
    """Returns other hashes for each salt; those of salt 0 are unchanged."""
    return _mixed(values ^ np.uint64(salt)) if salt else values


def _values(array: pa.Array) -> np.ndarray:
    """Returns the hash of each value, and a fixed one for NULL."""
    if not array.null_count:
        return _column(array)
    result = np.full(len(array), _ONE, np.uint64)
    result[pc.is_valid(array).to_numpy(zero_copy_only=False)] = _column(array.drop_null())
    return result


def _column(array: pa.Array) -> np.ndarray:
    kind = array.type
    numbers: np.ndarray
    if pa.types.is_integer(kind):
        numbers = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
    elif pa.types.is_date32(kind):
        numbers = array.cast(pa.int32()).cast(pa.int64()).to_numpy(zero_copy_only=False)
    elif pa.types.is_timestamp(kind):
        numbers = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
    else:
        return np.frombuffer(b"".join(blake2b(_bytes(v), digest_size=8).digest() for v in moments.numbers(array).to_pylist()), np.uint64)
    return numbers.view(np.uint64)


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):
        return struct.pack("<d", normalized(value))
    if isinstance(value, Decimal):  # a column and its foreign key may have different scales
        digits = f"{value:f}"
        return (digits.rstrip("0").rstrip(".") if "." in digits else digits).encode()
    return str(value).encode()


def _mixed(bits: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        bits = bits + _ONE
        bits = (bits ^ (bits >> np.uint64(30))) * _TWO
        bits = (bits ^ (bits >> np.uint64(27))) * _THREE
        mixed: np.ndarray = bits ^ (bits >> np.uint64(31))
        return mixed
