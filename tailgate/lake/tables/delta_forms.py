"""The form of columns in Delta tables, which other programs read: a general numeric is its text, in place of a struct."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from tailgate.lake import numeric_texts
from tailgate.lake.types import GENERAL_ARROW


def delta_schema(schema: pa.Schema) -> pa.Schema:
    """Returns the schema in Delta of columns in their stored form."""
    return pa.schema([field.with_type(pa.string()) if field.type == GENERAL_ARROW else field for field in schema])


def to_delta(rows: pa.Table) -> pa.Table:
    """Returns rows in their stored form as a Delta table has them."""
    for i, field in enumerate(rows.schema):
        if field.type == GENERAL_ARROW:
            rows = rows.set_column(i, field.with_type(pa.string()), _each_chunk(numeric_texts.texts, rows.column(i), pa.string()))
    return rows


def from_delta(rows: pa.Table, stored: pa.Schema) -> pa.Table:
    """Returns rows of a Delta table in their stored form. `stored`: has the columns by name."""
    for i, field in enumerate(rows.schema):
        position = stored.get_field_index(field.name)
        if position >= 0 and stored.field(position).type == GENERAL_ARROW and field.type != GENERAL_ARROW:
            rows = rows.set_column(i, field.with_type(GENERAL_ARROW), _each_chunk(numeric_texts.numerics, rows.column(i), GENERAL_ARROW))
    return rows


def _each_chunk(convert: Callable[[pa.Array], pa.Array], column: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([convert(chunk) for chunk in column.chunks], type)
