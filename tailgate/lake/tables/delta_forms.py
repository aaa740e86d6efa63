"""The form of columns in Delta tables, which other programs read: a general numeric is its text, in place of a struct."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake import numeric_texts
from tailgate.lake.types import GENERAL_ARROW

# the stored forms of general numerics and of arrays of them, and their forms in Delta
FORMS = ((GENERAL_ARROW, pa.string()), (pa.list_(GENERAL_ARROW), pa.list_(pa.string())))


def delta_schema(schema: pa.Schema) -> pa.Schema:
    """Returns the schema in Delta of columns in their stored form."""
    return pa.schema([field.with_type(_in_delta(field.type) or field.type) for field in schema])


def to_delta(rows: pa.Table) -> pa.Table:
    """Returns rows in their stored form as a Delta table has them."""
    for i, field in enumerate(rows.schema):
        if (form := _in_delta(field.type)) is not None:
            rows = rows.set_column(i, field.with_type(form), _each_chunk(numeric_texts.texts, rows.column(i), form))
    return rows


def from_delta(rows: pa.Table, stored: pa.Schema) -> pa.Table:
    """Returns rows of a Delta table in their stored form. `stored`: has the columns by name."""
    for i, field in enumerate(rows.schema):
        position = stored.get_field_index(field.name)
        form = stored.field(position).type if position >= 0 else None
        if form is not None and _in_delta(form) is not None and field.type != form:
            rows = rows.set_column(i, field.with_type(form), _each_chunk(numeric_texts.numerics, rows.column(i), form))
    return rows


def _in_delta(stored: pa.DataType) -> pa.DataType | None:
    """Returns the form in Delta of a stored form, or None if they are the same. Spark and Arrow name the elements of a list differently."""
    return next((form for general, form in FORMS if stored == general), None)


def _each_chunk(convert: Callable[[pa.Array], pa.Array], column: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    is_list = pa.types.is_list(type)
    return pa.chunked_array([_each_element(convert, chunk) if is_list else convert(chunk) for chunk in column.chunks], type)


def _each_element(convert: Callable[[pa.Array], pa.Array], lists: pa.ListArray) -> pa.ListArray:
    """Returns lists of converted elements; a list that is NULL stays NULL."""
    sizes = pc.list_value_length(lists).fill_null(0)
    ends = pc.cumulative_sum(sizes)
    starts = pc.if_else(lists.is_null(), None, pc.subtract(ends, sizes))
    last = pa.array([ends[-1].as_py() if len(ends) else 0], pa.int32())
    return pa.ListArray.from_arrays(pa.concat_arrays([starts, last]), convert(lists.flatten()))
