"""The input and output functions of a type, its order, and the Python types of its values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias, Union

from tailgate.lake.types import Type
from tailgate.values.codec.columns import ColumnBinaryWriter, ColumnReader, ColumnTextWriter, value_by_value
from tailgate.values.codec.style import Style

# A value as input functions return it: time is µs since midnight, timetz a number in its order, date days and timestamps
# µs since 1970 (a timestamptz in UTC), interval a tuple of months, days and µs, json text, uuid, macaddr and jsonb
# canonical text, inet, cidr, ranges and multiranges sortable bytes, an array a tuple.
Value: TypeAlias = Union[bool, int, float, str, bytes, Decimal, tuple["Value", ...], None]  # noqa: UP007

# Writes a raw value, as Arrow stores it: text, uuid, json and jsonb are bytes, date is days and timestamps
# are µs since 1970, numeric is the unscaled int, and an array is a list of raw values.
Writer: TypeAlias = Callable[[Any], bytes]


def itself(value: Any) -> Any:
    """Returns the value: most types compare in Python as in PostgreSQL, text by code points (the C collation)."""
    return value


@dataclass(frozen=True, slots=True)
class Codec:
    """The functions of a type.

    The readers apply the type's modifiers, such as a length. Errors have PostgreSQL's SQLSTATE and
    message. `read_binary` raises `TrailingData` if bytes follow the value. `read_column` reads texts
    in a common spelling; it returns None if `read_text` must read each value. `column_text` and
    `column_binary` write columns in stored form; they return None if the writer must write each value.
    `order_key` returns a key that compares like the value: keys are equal if PostgreSQL's `=` is true.
    """

    read_text: Callable[[str, Type, Style], Value]
    read_binary: Callable[[bytes, Type], Value]
    text_writer: Callable[[Type, Style], Writer]
    binary_writer: Callable[[Type], Writer]
    read_column: ColumnReader = value_by_value
    column_text: ColumnTextWriter = value_by_value
    column_binary: ColumnBinaryWriter = value_by_value
    order_key: Callable[[Any], Any] = itself
