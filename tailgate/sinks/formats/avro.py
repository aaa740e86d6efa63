"""Encoding of Arrow columns (in their stored form) as Avro binary, one column at a time.

A value's bytes do not depend on their place. So each column becomes a list of bytes, a row is their
concatenation, and an envelope (tailgate/sinks/envelope.py) adds a few bytes around rows:

    column ──► [bytes or None, …] ──► nullable: 00 | 02 + bytes ──┐
    column ──► …                                                  ├─ joined by row ──► [row bytes, …]
    column ──► …                                                  ┘

Equal rows have equal bytes, so the bytes also serve to sort and compare rows. The schemas are in
tailgate/formats/events/avro.py. Tests compare both with fastavro.

Source: Apache Avro 1.11, "Binary encoding"; Confluent, "Wire format".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from tailgate.formats.events.avro import in_milliseconds
from tailgate.formats.varint import long
from tailgate.lake.errors import FeatureNotSupported
from tailgate.lake.sortable import EXACT
from tailgate.lake.types import Field, Type
from tailgate.values.numbers import general
from tailgate.values.numeric.scales import scale_of
from tailgate.values.registry import text_column

NULL, PRESENT = b"\x00", b"\x02"  # the branches of ["null", t], as zigzag numbers

_MICROS_PER_MILLI = 1000


def rows(columns: Sequence[Field], arrays: Sequence[pa.Array], length: int) -> list[bytes]:
    """Returns the encoded record of these columns, for each row. `length`: number of rows, needed without columns."""
    if not columns:
        return [b""] * length
    encoded = [_nullable(array, field.type, field.nullable) for field, array in zip(columns, arrays, strict=True)]
    if len(encoded) == 1:
        return encoded[0]
    return [b"".join(parts) for parts in zip(*encoded, strict=True)]


def _nullable(array: pa.Array, type: Type, nullable: bool) -> list[bytes]:
    values = _values(array, type)
    if nullable:
        return [NULL if value is None else PRESENT + value for value in values]
    if array.null_count:
        raise ValueError(f"null in a column of {type} that is not nullable")
    return values  # type: ignore[return-value]  # contains no None


def _values(array: pa.Array, type: Type) -> list[bytes | None]:
    """Returns the bytes of each value, None for null."""
    if type.is_array:
        return _each_list(array, type)
    if type.name == "record":
        return _each_record(array, type)
    if type.general:
        return _general(array)
    if type.name == "numeric":
        return _decimals(array, *type.decimal)
    if type.name in ("timestamp", "timestamptz"):
        numbers = array.cast(pa.int64())
        if in_milliseconds(type):
            return [None if n is None else long(n // _MICROS_PER_MILLI) for n in numbers.to_pylist()]
        return _longs(numbers)
    if type.name == "date":
        return _longs(array.cast(pa.int32()))
    if type.name == "interval":
        parts = (array.field(i).to_pylist() for i in range(3))
        return _masked(array, [_interval(m or 0, d or 0, u or 0) for m, d, u in zip(*parts, strict=True)])
    if type.enum is not None:
        labels = {number: text.encode() for number, text in type.labels}
        return [None if number is None else long(len(labels[number])) + labels[number] for number in array.to_pylist()]
    write = _PLAIN.get(type.name)
    return _bytes(text_column(array, type)) if write is None else write(array)


def _masked(array: pa.Array, values: list[bytes]) -> list[bytes | None]:
    """Returns the values with None where a struct is null; its children may hold any value there."""
    if not array.null_count:
        return list(values)
    return [value if valid else None for valid, value in zip(array.is_valid().to_pylist(), values, strict=True)]


def _longs(array: pa.Array) -> list[bytes | None]:
    return [None if n is None else long(n) for n in array.to_pylist()]


def _strings(array: pa.Array) -> list[bytes | None]:
    return _bytes(array.cast(pa.binary()))


def _bytes(array: pa.Array) -> list[bytes | None]:
    return [None if b is None else long(len(b)) + b for b in array.to_pylist()]


def _packed(form: str) -> Callable[[pa.Array], list[bytes | None]]:
    pack = struct.Struct(form).pack
    return lambda array: [None if value is None else pack(value) for value in array.to_pylist()]


def _booleans(array: pa.Array) -> list[bytes | None]:
    return [None if value is None else b"\x01" if value else b"\x00" for value in array.to_pylist()]


_interval = struct.Struct("<iiq").pack  # Materialize's field and byte order; Avro's duration has only milliseconds

_PLAIN: dict[str, Callable[[pa.Array], list[bytes | None]]] = {
    "bool": _booleans,
    "bytea": _bytes,
    "int2": _longs,
    "int4": _longs,
    "int8": _longs,
    "oid": _longs,
    "time": _longs,
    "float4": _packed("<f"),
    "float8": _packed("<d"),
    "text": _strings,
    "varchar": _strings,
    "bpchar": _strings,
    "name": _strings,
    "uuid": _strings,
    "macaddr": _strings,
    "macaddr8": _strings,
    "bit": _strings,
    "varbit": _strings,
    "json": _strings,
    "jsonb": _strings,
    "unknown": _strings,
}


def _decimals(array: pa.Array, precision: int, scale: int) -> list[bytes | None]:
    """Encodes each unscaled number after its length.

    Arrow stores 16 bytes, little-endian. Reading them is five times as fast as converting to Decimal.
    """
    if array.type != pa.decimal128(precision, scale):
        array = array.cast(pa.decimal128(precision, scale))
    if not len(array):
        return []
    data = memoryview(array.buffers()[1])[16 * array.offset :]
    valid: Iterable[bool] = array.is_valid().to_pylist() if array.null_count else (True for _ in range(len(array)))
    out: list[bytes | None] = []
    for i, present in enumerate(valid):
        if not present:
            out.append(None)
            continue
        unscaled = int.from_bytes(data[16 * i : 16 * i + 16], "little", signed=True)
        bytes = _big_endian(unscaled)
        out.append(long(len(bytes)) + bytes)
    return out


def _big_endian(number: int) -> bytes:
    """Returns the fewest bytes of a number in two's complement."""
    size = ((number if number >= 0 else ~number).bit_length() + 8) // 8
    return number.to_bytes(size, "big", signed=True)


def _general(array: pa.StructArray) -> list[bytes | None]:
    """Encodes each number as its display scale and its unscaled value. Raises 0A000 for NaN and infinities."""
    out: list[bytes | None] = []
    for value in general.values(array):
        if value is None:
            out.append(None)
        elif not value.is_finite():
            raise FeatureNotSupported(f"numeric {value} is not supported in Avro", hint="Cast the column to text or float8 in a view.")
        else:
            scale = scale_of(value)
            unscaled = _big_endian(int(value.scaleb(scale, context=EXACT)))
            out.append(long(scale) + long(len(unscaled)) + unscaled)
    return out


def _each_list(array: pa.Array, type: Type) -> list[bytes | None]:
    """Encodes each array as one block with all elements, then an empty block. Elements are always nullable, as in PostgreSQL."""
    elements = _nullable(array.flatten(), type.element, True)
    out: list[bytes | None] = []
    start = 0
    for length in array.value_lengths().to_pylist():
        if length is None:
            out.append(None)
            continue
        end = start + length
        out.append(long(length) + b"".join(elements[start:end]) + b"\x00" if length else b"\x00")
        start = end
    return out


def _each_record(array: pa.Array, type: Type) -> list[bytes | None]:
    # flatten() makes the fields of a null struct null, so any field may be null here, whatever its declaration
    fields: list[list[bytes]] = []
    for field, child in zip(type.fields, array.flatten(), strict=True):
        values = _values(child, field.type)
        fields.append([(NULL if v is None else PRESENT + v) if field.nullable else v or b"" for v in values])
    return _masked(array, [b"".join(parts) for parts in zip(*fields, strict=True)])


def stored(table: pa.Table, columns: Sequence[Field]) -> list[pa.Array]:
    """Returns the first columns of a table by position, each as one array in its stored form."""
    out: list[Any] = []
    for position, field in enumerate(columns):
        column = table.column(position)
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if isinstance(array, pa.ChunkedArray):  # combine_chunks returns this without chunks, or if the result is too large
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
        out.append(array if array.type == field.type.arrow else array.cast(field.type.arrow))
    return out
