"""General numerics: input and output, in the stored form of Arrow and DuckDB (`Type.arrow`). Raw values are decimals."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake import numeric_texts, sortable
from tailgate.lake.types import Type
from tailgate.values.codec.codec import Codec, Writer
from tailgate.values.codec.style import Style
from tailgate.values.numbers import numerics

FAST_SCALES_MAX = 6  # different display scales in a column that Arrow writes, once for each scale
PLAIN = r"^-?[0-9]{1,300}(\.[0-9]{1,300})?$"  # numbers that need no check of their size


def read(text: str, type: Type, style: Style) -> Decimal:
    return _limited(numerics.general(text), type)


def read_binary(data: bytes, type: Type) -> Decimal:
    return _limited(numerics.decoded(data), type)


def _limited(value: Decimal, type: Type) -> Decimal:
    return numerics.limited(value, *type.modifiers) if type.modifiers else value


def text_writer(type: Type, style: Style) -> Writer:
    """Returns a writer of decimals.

    >>> [text_writer(Type("numeric", general=True), Style())(Decimal(text)) for text in ("1.10", "-Infinity")]
    [b'1.10', b'-Infinity']
    """
    return lambda value: format(value, "f").encode()


def binary_writer(type: Type) -> Writer:
    """Returns a writer of decimals.

    >>> binary_writer(Type("numeric", general=True))(Decimal("NaN")).hex()
    '00000000c0000000'
    """
    return numerics.encoded


def read_column(texts: pa.ChunkedArray, type: Type) -> pa.ChunkedArray | None:
    if type.modifiers or not pc.all(pc.match_substring_regex(texts, PLAIN), min_count=0).as_py():
        return None
    return pa.chunked_array([numeric_texts.numerics(chunk) for chunk in texts.chunks], type.arrow)


def column_text(array: pa.StructArray, type: Type, style: Style) -> pa.Array | None:
    """Writes numbers of few display scales."""
    few = len(pc.unique(pc.struct_field(array, "s"))) <= FAST_SCALES_MAX
    return numeric_texts.texts(array).view(pa.binary()) if few else None


def values(array: pa.StructArray) -> list[Any]:
    """Returns the decimals of an array in stored form."""
    return [None if parts is None else sortable.loaded(*parts) for parts in fields(array)]


def fields(array: pa.StructArray) -> list[tuple[Decimal, int, bytes | None] | None]:
    """Returns the fields of each number, None for NULL. Unlike decimals, those of 1.0 and 1.00 are not equal."""
    columns = zip(*(array.field(i).to_pylist() for i in range(3)), strict=True)
    return [parts if valid else None for parts, valid in zip(columns, array.is_valid().to_pylist(), strict=True)]


def sort_keys(column: pa.ChunkedArray) -> pa.Array:
    """Returns bytes whose order is the order of the numbers, and which are equal if the numbers are."""
    return pa.array([None if v is None else sortable.key(v) for chunk in column.chunks for v in values(chunk)], pa.binary())


GENERAL = Codec(read, read_binary, text_writer, binary_writer, read_column, column_text, order_key=sortable.key)
