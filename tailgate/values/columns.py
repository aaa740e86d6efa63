"""Readers of whole columns of texts, for values in a common spelling.

Arrow converts such a column in 20 to 100 ns per value, instead of 1 to 5 µs. A reader returns None
unless it gives the same values as the type's `read_text`, which then reads value by value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake.types import Type

ColumnReader: TypeAlias = Callable[[pa.ChunkedArray, Type], pa.ChunkedArray | None]


def value_by_value(texts: pa.ChunkedArray, type: Type) -> None:
    """The reader of a type that Arrow does not read as PostgreSQL does."""


def texts_themselves(texts: pa.ChunkedArray, type: Type) -> pa.ChunkedArray:
    return texts


def spelled(pattern: str) -> ColumnReader:
    """Returns a reader of values that all match a pattern: for them, Arrow's cast is the type's input function."""

    def read(texts: pa.ChunkedArray, type: Type) -> pa.ChunkedArray | None:
        if pc.all(pc.match_substring_regex(texts, f"^(?:{pattern})$")).as_py() is False:
            return None
        try:
            return texts.cast(type.arrow)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None

    return read
