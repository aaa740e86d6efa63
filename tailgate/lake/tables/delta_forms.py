"""The form of columns in Delta tables, which other programs read: a general numeric is its text, in place of a struct."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake import sortable
from tailgate.lake.types import GENERAL_ARROW, NUMERIC_PRECISION

_UNSCALED = GENERAL_ARROW.field("u").type
_SHORT = rf"^-?[0-9]{{1,{NUMERIC_PRECISION}}}$"


def delta_schema(schema: pa.Schema) -> pa.Schema:
    """Returns the schema in Delta of columns in their stored form."""
    return pa.schema([field.with_type(pa.string()) if field.type == GENERAL_ARROW else field for field in schema])


def to_delta(rows: pa.Table) -> pa.Table:
    """Returns rows in their stored form as a Delta table has them."""
    for i, field in enumerate(rows.schema):
        if field.type == GENERAL_ARROW:
            rows = rows.set_column(i, field.with_type(pa.string()), _each_chunk(_texts, rows.column(i), pa.string()))
    return rows


def from_delta(rows: pa.Table, stored: pa.Schema) -> pa.Table:
    """Returns rows of a Delta table in their stored form. `stored`: has the columns by name."""
    for i, field in enumerate(rows.schema):
        position = stored.get_field_index(field.name)
        if position >= 0 and stored.field(position).type == GENERAL_ARROW and field.type != GENERAL_ARROW:
            rows = rows.set_column(i, field.with_type(GENERAL_ARROW), _each_chunk(_numerics, rows.column(i), GENERAL_ARROW))
    return rows


def _each_chunk(convert: Callable[[pa.Array], pa.Array], column: pa.ChunkedArray, type: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([convert(chunk) for chunk in column.chunks], type)


def _texts(array: pa.StructArray) -> pa.Array:
    """Returns the texts of numerics. Numbers of 38 digits are written by whole columns, once for each display scale."""
    unscaled, scales, forms = array.flatten()  # NULL where the struct is
    digits = unscaled.cast(pa.string())
    out = digits
    for scale in pc.unique(scales).to_pylist():
        if scale:
            sign = pc.if_else(pc.starts_with(digits, "-"), "-", "")
            padded = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
            whole, part = pc.utf8_slice_codeunits(padded, 0, -scale), pc.utf8_slice_codeunits(padded, -scale)
            out = pc.if_else(pc.equal(scales, scale), pc.binary_join_element_wise(sign, whole, ".", part, ""), out)
    if forms.null_count == len(forms):
        return out
    others = [None if form is None else format(sortable.decode(form), "f") for form in forms.to_pylist()]
    return pc.coalesce(pa.array(others, pa.string()), out)


def _numerics(texts: pa.Array) -> pa.StructArray:
    """Returns the numerics of texts. Numbers of 38 digits are read by whole columns."""
    point = pc.find_substring(texts, ".")
    scales = pc.if_else(pc.less(point, 0), 0, pc.subtract(pc.subtract(pc.utf8_length(texts), point), 1))
    digits = pc.replace_substring_regex(pc.replace_substring(texts, ".", ""), "^(-?)0*([0-9])", r"\1\2")
    is_short = pc.match_substring_regex(digits, _SHORT)
    unscaled = pc.if_else(is_short, digits, None).cast(_UNSCALED)
    others = pa.nulls(len(texts), pa.binary())
    if not pc.all(is_short).as_py():  # NULL without values
        values = pc.if_else(is_short, None, texts).to_pylist()
        others = pa.array([None if text is None else sortable.encode(Decimal(text)) for text in values], pa.binary())
    fields = [unscaled, pc.if_else(is_short, scales, None).cast(pa.int16()), others]
    return pa.StructArray.from_arrays(fields, fields=list(GENERAL_ARROW), mask=pc.is_null(texts))
