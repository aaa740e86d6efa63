"""Converts a column of strings to a type, as PostgreSQL's input functions do.

Columns in a common spelling are converted as a whole by Arrow (20-100 ns per value). Other columns
are converted value by value (1-5 µs) with the types' input functions, which also raise the exact errors.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake.errors import TailgateError
from tailgate.lake.types import Type
from tailgate.values.registry import read_text
from tailgate.values.stored import stored
from tailgate.values.strings import NAME_BYTES_MAX
from tailgate.values.style import Style

_INTEGER = r"^-?[0-9]{1,18}$"
_REAL = r"^-?[0-9]{1,17}(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?$"
_DATE = r"^[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])$"
_MOMENT = r"^[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])[ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?$"
_UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"


def column(texts: pa.ChunkedArray, type: Type, style: Style) -> pa.ChunkedArray:
    """Returns the values in stored form; NULL stays NULL.

    Raises PostgreSQL's error for the first invalid value, with its row number.
    """
    fast = None if type.is_array else _plain(texts, type)
    return fast if fast is not None else pa.chunked_array([_each(texts, type, style)], type.arrow)


def _plain(texts: pa.ChunkedArray, type: Type) -> pa.ChunkedArray | None:
    """Converts the column with Arrow; returns None unless all values are in a common spelling."""
    match type.name:
        case "text":
            return texts
        case "name":
            return texts if (pc.max(pc.binary_length(texts)).as_py() or 0) <= NAME_BYTES_MAX else None
        case "varchar":
            longest = pc.max(pc.utf8_length(texts)).as_py() if type.modifiers else None
            return texts if longest is None or longest <= type.modifiers[0] else None
        case "int2" | "int4" | "int8":
            return _cast(texts, type, _INTEGER)
        case "float8":
            return _cast(texts, type, _REAL)
        case "numeric":
            precision, scale = type.decimal
            digits = rf"^-?[0-9]{{1,{precision - scale}}}" + (rf"(\.[0-9]{{1,{scale}}})?$" if scale else "$")
            return _cast(texts, type, digits) if precision > scale else None
        case "date":
            return _cast(texts, type, _DATE)
        case "timestamp":
            return _cast(texts, type, _MOMENT)
        case "uuid":
            return _cast(texts, type, _UUID)
        case "bool":
            true, false = pc.equal(texts, "t"), pc.equal(texts, "f")
            return true if pc.all(pc.or_(true, false)).as_py() in (True, None) else None
    return None


def _cast(texts: pa.ChunkedArray, type: Type, pattern: str) -> pa.ChunkedArray | None:
    if pc.all(pc.match_substring_regex(texts, pattern)).as_py() is False:
        return None
    try:
        return texts.cast(type.arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _each(texts: pa.ChunkedArray, type: Type, style: Style) -> pa.Array:
    """Converts value by value; an error carries its row number."""
    found: list[Any] = []
    try:
        for text in texts.to_pylist():
            found.append(None if text is None else stored(read_text(text, type, style), type))
    except TailgateError as error:
        error.row = len(found)
        raise
    return pa.array(found, type.arrow)
