"""Columns of general numerics as texts, and back. Numbers of 38 digits are converted by whole columns."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake import sortable
from tailgate.lake.types import GENERAL_ARROW, NUMERIC_PRECISION

ARROW_SCALE_MAX = 6  # Arrow writes smaller numbers with an exponent

_UNSCALED = GENERAL_ARROW.field("u").type
_SHORT = rf"^-?[0-9]{{1,{NUMERIC_PRECISION}}}$"


def texts(array: pa.StructArray) -> pa.Array:
    """Returns the texts of numerics; each display scale costs time for the whole column."""
    unscaled, scales, forms = array.flatten()  # NULL where the struct is
    out = pa.nulls(len(array), pa.string())
    different = pc.unique(scales.drop_null()).to_pylist()
    for scale in different:
        of_scale = _of_scale(unscaled, scale)
        out = of_scale if len(different) == 1 else pc.if_else(pc.equal(scales, scale).fill_null(False), of_scale, out)
    if forms.null_count == len(forms):
        return out
    others = [None if form is None else format(sortable.decode(form), "f") for form in forms.to_pylist()]
    return pc.coalesce(pa.array(others, pa.string()), out)


def _of_scale(unscaled: pa.Decimal128Array, scale: int) -> pa.Array:
    """Returns the texts of unscaled values with a display scale."""
    if scale <= ARROW_SCALE_MAX:
        type = pa.decimal128(NUMERIC_PRECISION, scale)
        return pa.Array.from_buffers(type, len(unscaled), unscaled.buffers(), unscaled.null_count, unscaled.offset).cast(pa.string())
    digits = unscaled.cast(pa.string())
    sign = pc.if_else(pc.starts_with(digits, "-"), "-", "")
    padded = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
    return pc.binary_join_element_wise(sign, pc.utf8_slice_codeunits(padded, 0, -scale), ".", pc.utf8_slice_codeunits(padded, -scale), "")


def numerics(column: pa.Array) -> pa.StructArray:
    """Returns the numerics of texts, which are NaN, Infinity, or digits with a sign and a decimal point."""
    point = pc.find_substring(column, ".")
    scales = pc.if_else(pc.less(point, 0), 0, pc.subtract(pc.subtract(pc.utf8_length(column), point), 1))
    digits = pc.replace_substring_regex(pc.replace_substring(column, ".", ""), "^(-?)0*([0-9])", r"\1\2")
    is_short = pc.match_substring_regex(digits, _SHORT)
    unscaled = pc.if_else(is_short, digits, None).cast(_UNSCALED)
    others = pa.nulls(len(column), pa.binary())
    if not pc.all(is_short).as_py():  # NULL without values
        values = pc.if_else(is_short, None, column).to_pylist()
        others = pa.array([None if text is None else sortable.encode(Decimal(text)) for text in values], pa.binary())
    fields = [unscaled, pc.if_else(is_short, scales, None).cast(pa.int16()), others]
    return pa.StructArray.from_arrays(fields, fields=list(GENERAL_ARROW), mask=pc.is_null(column))
