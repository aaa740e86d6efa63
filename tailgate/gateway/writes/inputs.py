"""Converts a column of strings to a type, as PostgreSQL's input functions do.

Columns in a common spelling are converted as a whole by Arrow (20-100 ns per value). Other columns
are converted value by value (1-5 µs) with the functions for parameters, which also raise the exact
errors.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.gateway.encode.parameters import from_text
from tailgate.gateway.encode.style import Style
from tailgate.gateway.writes.modifiers import overflow
from tailgate.lake.errors import StringDataRightTruncation, TailgateError
from tailgate.lake.types import Type

_INTEGER = r"^-?[0-9]{1,18}$"
_REAL = r"^-?[0-9]{1,17}(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?$"
_DATE = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])$"
_MOMENT = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])[ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?$"
_UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_EXACT = Context(prec=80, rounding=ROUND_HALF_UP)


def column(texts: pa.ChunkedArray, type: Type, style: Style) -> pa.ChunkedArray:
    """Returns the values in stored form; NULL stays NULL.

    Raises PostgreSQL's error for the first invalid value, with its row number.
    """
    fast = None if type.is_array else _plain(texts, type)
    return fast if fast is not None else pa.chunked_array([_each(texts, type, style)], type.arrow)


def _plain(texts: pa.ChunkedArray, type: Type) -> pa.ChunkedArray | None:
    """Converts the column with Arrow; returns None unless all values are in a common spelling."""
    match type.name:
        case "text" | "name":
            return texts
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
            found.append(None if text is None else value(text, type, style))
    except TailgateError as error:
        error.row = len(found)
        raise
    return pa.array(found, type.arrow)


def value(text: str, type: Type, style: Style) -> Any:
    """Converts one value and applies the type's modifiers. Raises 22001, 22003."""
    return within(from_text(type, text, style), type)


def within(value: Any, type: Type) -> Any:
    """Applies the type's modifiers to a value. Raises 22001, 22003."""
    if value is None:
        return None
    if type.is_array:
        return [within(v, type.element) for v in value]
    match type.name:
        case "varchar" | "bpchar" if type.modifiers:
            return _cut(value, type)
        case "numeric":
            precision, scale = type.decimal
            try:
                found = Decimal(value).quantize(Decimal(1).scaleb(-scale), context=_EXACT)
            except InvalidOperation:
                raise overflow(type) from None
            if len(found.as_tuple().digits) > precision and found:
                raise overflow(type)
            return found
    return value


def _cut(text: str, type: Type) -> str:
    length = type.modifiers[0]
    if len(text) > length:
        if text[length:].strip(" "):
            raise StringDataRightTruncation(f"value too long for type {type}")
        text = text[:length]
    return text.ljust(length) if type.name == "bpchar" else text
