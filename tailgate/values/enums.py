"""Enum types: values are the numbers of labels, in the order of the labels.

Source: PostgreSQL 15, src/backend/utils/adt/enum.c.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake.errors import InvalidTextRepresentation, ObjectNotInPrerequisiteState, TailgateError
from tailgate.lake.types import Type
from tailgate.values.codec.codec import Codec, Writer
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import utf8


def read(text: str, type: Type, style: Style) -> int:
    for number, label in type.labels:
        if label == text:
            return number
    raise _invalid(text, type)


def read_binary(data: bytes, type: Type) -> int:
    return read(utf8(data), type, Style())


def writer(type: Type, style: Style | None = None) -> Writer:
    labels = {number: label.encode() for number, label in type.labels}

    def write(value: int) -> bytes:
        if value not in labels:
            raise ObjectNotInPrerequisiteState(
                f"a row has a label of type {type.facts.sql} that was added after the statement began", hint="Execute the statement again."
            )
        return labels[value]

    return write


def read_column(texts: pa.ChunkedArray, type: Type) -> pa.ChunkedArray | None:
    """Returns the numbers of a column of labels; None if one is not valid."""
    numbers = pa.array([number for number, _ in type.labels], pa.int64())
    places = pc.index_in(texts, value_set=pa.array([label for _, label in type.labels], pa.string()))
    return None if places.null_count > texts.null_count else pc.take(numbers, places)


def write_column(array: pa.Array, type: Type, style: Style | None = None) -> pa.Array | None:
    """Returns the labels of a column; None if one is not known."""
    places = pc.index_in(array, value_set=pa.array([number for number, _ in type.labels], pa.int64()))
    if places.null_count > array.null_count:
        return None
    return pc.take(pa.array([label.encode() for _, label in type.labels], pa.binary()), places)


def _invalid(text: str, type: Type) -> TailgateError:
    return InvalidTextRepresentation(f'invalid input value for enum {type.facts.sql}: "{text}"')


ENUM = Codec(read, read_binary, writer, writer, read_column, write_column, write_column)
