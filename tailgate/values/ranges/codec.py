"""Input and output of ranges: `[1,5)`, `("2024-01-01 00:00:00",)`, `empty`.

Source: PostgreSQL 15, src/backend/utils/adt/rangetypes.c.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tailgate.lake.errors import ProtocolViolation
from tailgate.lake.types import Type
from tailgate.values.codec.binary import read_sized, sized
from tailgate.values.codec.codec import Codec, Value, Writer
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import BLANKS, after_blanks, malformed, read_field
from tailgate.values.composites.records import quote
from tailgate.values.ranges.forms import RANGE_TYPES, Range, decode, encode, lower_bound, order_key, ranged, upper_bound, value

_EMPTY = "empty"
# flags of the binary form
IS_EMPTY, LOWER_INCLUSIVE, UPPER_INCLUSIVE, LOWER_INFINITE, UPPER_INFINITE = 0x01, 0x02, 0x04, 0x08, 0x10


def codec_of(subtype: Codec) -> Codec:
    """Returns the codec of ranges whose bounds have a codec."""

    def read(text: str, type: Type, style: Style) -> Value:
        return encode(_read(text, type, lambda bound: subtype.read_text(bound, RANGE_TYPES[type.name].subtype, style)))

    def read_binary(data: bytes, type: Type) -> Value:
        return encode(_read_binary(data, type, subtype))

    def text_writer(type: Type, style: Style) -> Writer:
        write = subtype.text_writer(RANGE_TYPES[type.name].subtype, style)
        return lambda form: _text(decode(form), write)

    def binary_writer(type: Type) -> Writer:
        write = subtype.binary_writer(RANGE_TYPES[type.name].subtype)
        return lambda form: _binary(decode(form), write)

    return Codec(read, read_binary, text_writer, binary_writer, order_key=order_key)


# --- text ----------------------------------------------------------------------------------------


def _read(text: str, type: Type, read: Callable[[str], Value]) -> Range:
    range_type = RANGE_TYPES[type.name]
    parts = _parsed(text)
    if parts is None:
        return Range(range_type, None)
    opening, lower, upper, closing = parts
    low, high = (None if bound is None else read(bound) for bound in (lower, upper))
    first = lower_bound(range_type, low, inclusive=opening == "[")
    return ranged(range_type, first, upper_bound(range_type, high, inclusive=closing == "]"))


def _parsed(text: str) -> tuple[str, str | None, str | None, str] | None:
    """Returns the opening bracket, the texts of the bounds, None for infinite ones, and the closing bracket; None for an empty range.

    >>> _parsed(' [1,"a,""b")')
    ('[', '1', 'a,"b', ')')
    """
    at = after_blanks(text, 0)
    if text[at : at + len(_EMPTY)].lower() == _EMPTY:
        if text[at + len(_EMPTY) :].strip(BLANKS):
            raise malformed("range", text, 'Junk after "empty" key word.')
        return None
    opening = text[at : at + 1]
    if opening not in ("[", "("):
        raise malformed("range", text, "Missing left parenthesis or bracket.")
    lower, at = read_field("range", text, at + 1, ",)]")
    if text[at] != ",":
        raise malformed("range", text, "Missing comma after lower bound.")
    upper, at = read_field("range", text, at + 1, ",)]")
    if text[at] == ",":
        raise malformed("range", text, "Too many commas.")
    if text[at + 1 :].strip(BLANKS):
        raise malformed("range", text, "Junk after right parenthesis or bracket.")
    return opening, lower, upper, text[at]


def _text(range: Range, write: Writer) -> bytes:
    if range.is_empty:
        return _EMPTY.encode()
    low, high = (b"" if bound.is_infinite else quote(write(value(range.type, bound))) for bound in (range.lower, range.upper))
    return (b"[" if range.lower.is_inclusive else b"(") + low + b"," + high + (b"]" if range.upper.is_inclusive else b")")


# --- binary --------------------------------------------------------------------------------------


def _read_binary(data: bytes, type: Type, subtype: Codec) -> Range:
    range_type = RANGE_TYPES[type.name]
    if not data:
        raise ProtocolViolation("no data left in message")
    flags, at = data[0], 1
    values: list[Any] = []
    for infinite in (LOWER_INFINITE, UPPER_INFINITE):
        if flags & (IS_EMPTY | infinite):
            values.append(None)
            continue
        bound, at = read_sized(data, at)
        values.append(subtype.read_binary(bound[: range_type.width] if range_type.width else bound, range_type.subtype))
    if at < len(data):
        raise ProtocolViolation("invalid message format")
    if flags & IS_EMPTY:
        return Range(range_type, None)
    lower = lower_bound(range_type, values[0], inclusive=bool(flags & LOWER_INCLUSIVE))
    return ranged(range_type, lower, upper_bound(range_type, values[1], inclusive=bool(flags & UPPER_INCLUSIVE)))


def _binary(range: Range, write: Writer) -> bytes:
    if range.is_empty:
        return bytes((IS_EMPTY,))
    lower, upper = range.lower, range.upper
    flags = LOWER_INCLUSIVE * lower.is_inclusive | UPPER_INCLUSIVE * upper.is_inclusive
    flags |= LOWER_INFINITE * lower.is_infinite | UPPER_INFINITE * upper.is_infinite
    return bytes((flags,)) + b"".join(sized(write, value(range.type, bound)) for bound in (lower, upper) if not bound.is_infinite)
