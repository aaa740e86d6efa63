"""The values of a foreign key whose columns and those of the key have different types.

DuckDB compares texts, integers and floats of different types, and their hashes are equal. Integers and numerics with and without a
declared precision have different stored forms. They are converted to the type of the other side, to NULL if it has no such value:
NULL equals nothing.

Source: PostgreSQL 15, src/backend/utils/adt/ri_triggers.c (RI_FKey_cascade_upd), src/backend/utils/adt/numeric.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa

from tailgate.gateway.writes.rows.modifiers import fitted, overflow
from tailgate.lake.constraints import Reference
from tailgate.lake.errors import NumericValueOutOfRange
from tailgate.lake.numeric_texts import numerics
from tailgate.lake.types import Field, Type
from tailgate.values.numbers import general
from tailgate.values.numbers.integers import RANGES

_WIDE = Context(prec=200_000, rounding=ROUND_HALF_UP)  # more digits than a numeric can have


def in_key_types(reference: Reference, rows: pa.Table) -> pa.Table:
    """Returns the referencing columns of rows as the types of the key, with the names k0, k1, …"""
    return _all_converted("k", rows, reference.table.columns, reference.columns, reference.referenced.columns, reference.key.columns)


def in_reference_types(reference: Reference, rows: pa.Table) -> pa.Table:
    """Returns the key of referenced rows as the types of the referencing columns, with the names r0, r1, …"""
    return _all_converted("r", rows, reference.referenced.columns, reference.key.columns, reference.table.columns, reference.columns)


def _all_converted(
    name: str, rows: pa.Table, fields: Sequence[Field], columns: Sequence[int], others: Sequence[Field], positions: Sequence[int]
) -> pa.Table:
    pairs = zip(columns, positions, strict=True)
    arrays = [_converted(rows.column(column), fields[column].type, others[other].type) for column, other in pairs]
    return pa.table(arrays, names=[f"{name}{i}" for i in range(len(arrays))])


def _differ(source: Type, target: Type) -> bool:
    return "numeric" in (source.name, target.name) and (source.name != target.name or source.general != target.general)


def _converted(values: pa.ChunkedArray, source: Type, target: Type) -> pa.ChunkedArray:
    """Returns values as another type, NULL if it does not have them."""
    if not _differ(source, target):
        return values
    if target.general:
        return _general(values, source)
    numbers = _decimals(values, source)
    fitting = (_fitting(number, target) for number in numbers)
    return _stored([fit if fit == number else None for fit, number in zip(fitting, numbers, strict=True)], target)


def assigned(values: pa.ChunkedArray, source: Type, target: Type) -> pa.ChunkedArray:
    """Returns values as ON UPDATE CASCADE assigns them to a column of another type. Raises 22001, 22003."""
    if target.general and _differ(source, target):
        values = _general(values, source)
    if target.general or not _differ(source, target):
        try:
            return fitted(pa.table([values], names=["c0"]), [Field("c0", target)]).column(0)
        except pa.ArrowInvalid:
            raise _out_of_range(target) from None
    numbers = [_fitting(number, target) for number in _decimals(values, source)]
    if sum(number is None for number in numbers) > values.null_count:
        raise _out_of_range(target)
    return _stored(numbers, target)


def _out_of_range(type: Type) -> Exception:
    return NumericValueOutOfRange(f"{type.facts.sql} out of range") if type.name in RANGES else overflow(type)


def _decimals(values: pa.ChunkedArray, type: Type) -> list[Decimal | None]:
    if type.general:
        return [number for chunk in values.chunks for number in general.values(chunk)]
    return [None if value is None else Decimal(value) for value in values.to_pylist()]


def _general(values: pa.ChunkedArray, source: Type) -> pa.ChunkedArray:
    texts = [None if number is None else format(number, "f") for number in _decimals(values, source)]
    return pa.chunked_array([numerics(pa.array(texts, pa.string()))])


def _fitting(number: Decimal | None, type: Type) -> Decimal | None:
    """Returns the nearest number of an integer type, or of a numeric with a declared precision. None if it is too large, or NaN."""
    if number is None or not number.is_finite():
        return None
    if type.name in RANGES:
        low, high = RANGES[type.name]
        whole = number.to_integral_value(ROUND_HALF_UP)
        return whole if low <= whole <= high else None
    precision, scale = type.decimal
    rounded = number.quantize(Decimal(1).scaleb(-scale), context=_WIDE)
    return rounded if rounded.copy_abs() < Decimal(10) ** (precision - scale) else None


def _stored(numbers: Sequence[Decimal | None], type: Type) -> pa.ChunkedArray:
    if type.name in RANGES:
        return pa.chunked_array([pa.array([None if n is None else int(n) for n in numbers], type.arrow)])
    return pa.chunked_array([pa.array(numbers, type.arrow)])
