r"""Arrays of one dimension: "{1,NULL,3}".

Source: PostgreSQL 15, src/backend/utils/adt/arrayfuncs.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from struct import Struct, pack
from typing import Any

from tailgate.lake.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidBinaryRepresentation,
    InvalidTextRepresentation,
    ProgramLimitExceeded,
    TailgateError,
)
from tailgate.lake.types import BY_OID, Type
from tailgate.values.codec.binary import TrailingData, insufficient, sized
from tailgate.values.codec.codec import Codec, Value, Writer
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import BLANKS

DIMENSIONS_MAX = 6
ELEMENTS_MAX = 134_217_727


def codec_of(element: Codec) -> Codec:
    """Returns the codec of arrays of a type."""

    def read(text: str, type: Type, style: Style) -> Value:
        member = type.element
        return tuple(None if item is None else element.read_text(item, member, style) for item in elements(text))

    def read_binary(data: bytes, type: Type) -> Value:
        return _read_binary(data, type.element, element.read_binary)

    def text_writer(type: Type, style: Style) -> Writer:
        return writer(element.text_writer(type.element, style))

    def binary_writer(type: Type) -> Writer:
        return _binary_writer(element.binary_writer(type.element), type.element.oid)

    def order_key(value: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple((item is None, None if item is None else element.order_key(item)) for item in value)

    return Codec(read, read_binary, text_writer, binary_writer, order_key=order_key)


# --- text ----------------------------------------------------------------------------------------

_QUOTED = re.compile(rb'[{}",\\\s\v]|^$|^null$', re.IGNORECASE)


def writer(element: Writer) -> Writer:
    """
    >>> writer(lambda v: v)([b"a", b"b c", None, b"null", b'x"'])
    b'{a,"b c",NULL,"null","x\\\\""}'
    """
    return lambda value: b"{" + b",".join(b"NULL" if v is None else quote(element(v)) for v in value) + b"}"


def quote(text: bytes) -> bytes:
    """Quotes the text of an element if it needs quotes."""
    return b'"' + text.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"' if _QUOTED.search(text) else text


_BOUNDS = re.compile(r"(?:\[[+-]?\d+(?::[+-]?\d+)?\]\s*)+=", re.ASCII)


def elements(text: str) -> list[str | None]:
    r"""Returns the texts of the elements of an array; None is NULL.

    >>> elements('{a,"b,\\"c",NULL,"NULL"}')
    ['a', 'b,"c', None, 'NULL']
    """
    start = len(text) - len(text.lstrip(BLANKS))
    if text[start : start + 1] != "{":
        if _BOUNDS.match(text, start):
            raise FeatureNotSupported("arrays with lower bounds are not supported")
        raise _malformed(text, 'Array value must start with "{" or dimension information.')
    items: list[str | None] = []
    at = start + 1
    while True:
        item, quoted, at = _element(text, at)
        end = text[at : at + 1]
        if not end:
            raise _malformed(text, "Unexpected end of input.")
        if item or quoted:
            items.append(None if not quoted and item.upper() == "NULL" else _unescaped(item))
        elif end == "," or items:
            raise _malformed(text, f'Unexpected "{end}" character.')
        at += 1
        if end == "}":
            if text[at:].strip(BLANKS):
                raise _malformed(text, "Junk after closing right brace.")
            return items


_BARE = re.compile(r'(?:[^"\\{},]|\\.)*', re.DOTALL)
_IN_QUOTES = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


def _element(text: str, at: int) -> tuple[str, bool, int]:
    """Returns an element with its backslashes, whether it was in quotes, and the place of the comma or brace after it."""
    while text[at : at + 1] and text[at] in BLANKS:
        at += 1
    if text[at : at + 1] == '"':
        match = _IN_QUOTES.match(text, at)
        if match is None:
            raise _malformed(text, "Unexpected end of input.")
        at = match.end()
        while text[at : at + 1] and text[at] in BLANKS:
            at += 1
        if text[at : at + 1] not in ("", ",", "}"):
            raise _malformed(text, "Unexpected array element.")
        return match[1], True, at
    match = _BARE.match(text, at)
    assert match is not None
    at = match.end()
    following = text[at : at + 1]
    if following == "{":
        if match[0].strip(BLANKS):
            raise _malformed(text, 'Unexpected "{" character.')
        _check_nesting(text, at)
        raise FeatureNotSupported("arrays of more than one dimension are not supported")
    if following in ('"', "\\"):
        raise _malformed(text, "Unexpected array element." if following == '"' else "Unexpected end of input.")
    return _without_last_blanks(match[0]), False, at


def _without_last_blanks(item: str) -> str:
    """Removes blanks at the end that no backslash precedes."""
    stripped = item.rstrip(BLANKS)
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return item[: len(stripped) + 1] if backslashes % 2 and len(item) > len(stripped) else stripped


def _unescaped(item: str) -> str:
    return re.sub(r"\\(.)", r"\1", item, flags=re.DOTALL) if "\\" in item else item


def _check_nesting(text: str, at: int) -> None:
    """Raises 22P02 unless the braces of an array of several dimensions match."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"|\\.', "", text, flags=re.DOTALL)
    depth = 0
    for place, char in enumerate(bare):
        depth += (char == "{") - (char == "}")
        if depth <= 0 and char == "}" and bare[place + 1 :].strip(BLANKS):
            raise _malformed(text, "Junk after closing right brace.")
    if depth:
        raise _malformed(text, "Unexpected end of input.")


def _malformed(text: str, detail: str) -> TailgateError:
    return InvalidTextRepresentation(f'malformed array literal: "{text}"', detail=detail)


# --- binary --------------------------------------------------------------------------------------

_HEAD = Struct("!iiI")  # dimensions, whether there are NULLs, oid of the elements
_DIMENSION = Struct("!ii")  # length, lower bound
_LENGTH = Struct("!i")


def _read_binary(data: bytes, element: Type, read: Callable[[bytes, Type], Value]) -> Value:
    count, at = _read_head(data, element)
    items: list[Value] = []
    for number in range(1, count + 1):
        (length,) = _unpacked(_LENGTH, data, at)
        at += 4
        if length < -1 or at + length > len(data):
            raise InvalidBinaryRepresentation("insufficient data left in message")
        if length == -1:
            items.append(None)
            continue
        try:
            items.append(read(data[at : at + length], element))
        except TrailingData:
            raise InvalidBinaryRepresentation(f"improper binary format in array element {number}") from None
        at += length
    if at != len(data):
        raise TrailingData
    return tuple(items)


def _read_head(data: bytes, element: Type) -> tuple[int, int]:
    """Returns the number of elements, and where the first one begins."""
    dimensions, flags, oid = _unpacked_head(data)
    if dimensions < 0:
        raise InvalidBinaryRepresentation(f"invalid number of dimensions: {dimensions}")
    if dimensions > DIMENSIONS_MAX:
        raise ProgramLimitExceeded(f"number of array dimensions ({dimensions}) exceeds the maximum allowed ({DIMENSIONS_MAX})")
    if flags not in (0, 1):
        raise InvalidBinaryRepresentation("invalid array flags")
    if oid != element.oid:
        raise DatatypeMismatch(f"binary data has array element type {_name(oid)} instead of expected {_name(element.oid)}")
    at = _HEAD.size
    count, bound = 0, 1
    for number in range(dimensions):
        length, bound = _unpacked(_DIMENSION, data, at + number * _DIMENSION.size)
        if not 0 <= length <= ELEMENTS_MAX:
            raise ProgramLimitExceeded(f"array size exceeds the maximum allowed ({ELEMENTS_MAX})")
        count = length if number == 0 else count * length
    if count and (dimensions > 1 or bound != 1):
        raise FeatureNotSupported("arrays of more than one dimension or with another lower bound than 1 are not supported")
    return count, at + dimensions * _DIMENSION.size


def _name(oid: int) -> str:
    name = str(BY_OID[oid]) if oid in BY_OID else "???"
    return f"{oid} ({name if oid else '-'})"


def _unpacked_head(data: bytes) -> tuple[int, int, int]:
    if len(data) >= _HEAD.size:
        return _HEAD.unpack_from(data)
    # The checks of the fields that exist come first.
    dimensions = int.from_bytes(data[:4], "big", signed=True) if len(data) >= 4 else 0
    flags = int.from_bytes(data[4:8], "big", signed=True) if len(data) >= 8 else 0
    if 0 <= dimensions <= DIMENSIONS_MAX and flags in (0, 1):
        raise insufficient()
    return dimensions, flags, 0


def _unpacked(layout: Struct, data: bytes, at: int) -> tuple[int, ...]:
    if at + layout.size > len(data):
        raise insufficient()
    return layout.unpack_from(data, at)


def _binary_writer(write: Writer, oid: int) -> Writer:
    def array(value: list[Any]) -> bytes:
        if not value:
            return pack("!iiI", 0, 0, oid)
        parts = [pack("!iiIii", 1, int(any(v is None for v in value)), oid, len(value), 1)]
        return b"".join(parts + [sized(write, v) for v in value])

    return array
