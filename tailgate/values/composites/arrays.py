r"""Arrays: "{1,NULL,3}", "{{1,2},{3,4}}", "[0:1]={1,2}".

The value of a multidimensional type is a pair of the elements and the dimensions, that of another array type the elements alone.

Source: PostgreSQL 15, src/backend/utils/adt/arrayfuncs.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod
from struct import Struct, pack
from typing import Any

from tailgate.lake.errors import (
    ArraySubscriptError,
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidBinaryRepresentation,
    NumericValueOutOfRange,
    TailgateError,
)
from tailgate.lake.types import BY_OID, Type
from tailgate.values.codec.binary import TrailingData, insufficient, sized
from tailgate.values.codec.codec import Codec, Value, Writer
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import BLANKS, after_blanks, malformed
from tailgate.values.composites import dimensions

MULTIDIMENSIONAL = "arrays of more than one dimension or with another lower bound than 1 are not supported here"
MULTIDIMENSIONAL_HINT = "A type with two pairs of brackets, such as integer[][], has them."


class Multidimensional(FeatureNotSupported):
    """An array has several dimensions or another lower bound than 1, and its type is not multidimensional."""


def codec_of(element: Codec) -> Codec:
    """Returns the codec of arrays of one dimension from 1."""
    whole = multidimensional_codec_of(element)

    def read(text: str, type: Type, style: Style) -> Value:
        return as_list(whole.read_text(text, type, style))

    def read_binary(data: bytes, type: Type) -> Value:
        return as_list(whole.read_binary(data, type))

    def text_writer(type: Type, style: Style) -> Writer:
        return writer(element.text_writer(type.element, style))

    def binary_writer(type: Type) -> Writer:
        write = whole.binary_writer(type)
        return lambda value: write((value, dimensions.of_list(len(value))))

    return Codec(read, read_binary, text_writer, binary_writer, order_key=lambda value: _order_keys(value, element))


def multidimensional_codec_of(element: Codec) -> Codec:
    """Returns the codec of arrays of any dimensions."""

    def read(text: str, type: Type, style: Style) -> Value:
        items, shape = parsed(text)
        member = type.element
        return tuple(None if item is None else element.read_text(item, member, style) for item in items), shape

    def read_binary(data: bytes, type: Type) -> Value:
        return _read_binary(data, type.element, element.read_binary)

    def text_writer(type: Type, style: Style) -> Writer:
        write = element.text_writer(type.element, style)
        return lambda value: text_of([b"NULL" if v is None else quote(write(v)) for v in value[0]], value[1])

    def binary_writer(type: Type) -> Writer:
        return _binary_writer(element.binary_writer(type.element), type.element.oid)

    return Codec(read, read_binary, text_writer, binary_writer, order_key=lambda value: (_order_keys(value[0], element), tuple(value[1])))


def as_list(value: Any) -> tuple[Any, ...]:
    """Returns the elements of an array. Raises 0A000 if it has several dimensions or another lower bound than 1."""
    items, shape = value
    if not dimensions.is_list(shape):
        raise Multidimensional(MULTIDIMENSIONAL, hint=MULTIDIMENSIONAL_HINT)
    return tuple(items)


def _order_keys(items: tuple[Any, ...], element: Codec) -> tuple[Any, ...]:
    return tuple((item is None, None if item is None else element.order_key(item)) for item in items)


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


def text_of(items: Sequence[bytes], shape: Sequence[int]) -> bytes:
    """Returns the text of an array, from the quoted texts of its elements.

    >>> text_of([b"1", b"2"], (2, 1, 2, 0, 1))
    b'[0:0][1:2]={{1,2}}'
    """
    is_from_one = all(bound == 1 for bound in dimensions.bounds(shape))
    return (b"" if is_from_one else dimensions.shown(shape).encode() + b"=") + nested_text(items, shape, b"{", b"}")


def nested_text(items: Sequence[bytes], shape: Sequence[int], opening: bytes, closing: bytes) -> bytes:
    """Returns the texts of elements in nested brackets."""
    for length in reversed(dimensions.lengths(shape)):
        items = [opening + b",".join(items[start : start + length]) + closing for start in range(0, len(items), length)]
    return items[0] if shape[0] else opening + closing


def parsed(text: str) -> tuple[list[str | None], dimensions.Dimensions]:
    r"""Returns the texts of the elements of an array, None for NULL, and its dimensions.

    >>> parsed('{a,"b,\\"c",NULL,"NULL"}')
    (['a', 'b,"c', None, 'NULL'], (1, 4, 1))
    >>> parsed("[2:2][1:2]={{1,2}}")
    (['1', '2'], (2, 1, 2, 2, 1))
    """
    lengths, bounds, at = _declared(text)
    if text[at : at + 1] != "{":
        start = 'Array contents must start with "{".' if bounds else 'Array value must start with "{" or dimension information.'
        raise malformed("array", text, start)
    contents = text[at:]
    items, actual, end = _contents(contents)
    if contents[end:].strip(BLANKS):
        raise malformed("array", contents, "Junk after closing right brace.")
    if bounds and lengths != actual:
        raise malformed("array", text, "Specified array dimensions do not match array contents.")
    return items, dimensions.dimensions(actual, bounds or None)


_BOUND = re.compile(r"\[([+-]?\d+)(?::([+-]?\d+))?\]", re.ASCII)


def _declared(text: str) -> tuple[list[int], list[int], int]:
    """Returns the lengths and lower bounds that a text begins with, and the place of the first brace. Raises 22P02, 2202E, 54000."""
    lengths: list[int] = []
    bounds: list[int] = []
    at = after_blanks(text, 0)
    while text[at : at + 1] == "[":
        if len(bounds) == dimensions.DIMENSIONS_MAX:
            raise dimensions.too_many(len(bounds) + 1)
        match = _BOUND.match(text, at)
        if match is None:
            raise malformed("array", text, '"[" must introduce explicitly-specified array dimensions.')
        low, high = (1, _bound(match[1])) if match[2] is None else (_bound(match[1]), _bound(match[2]))
        if high < low:
            raise ArraySubscriptError("upper bound cannot be less than lower bound")
        bounds.append(low)
        lengths.append(high - low + 1)
        at = after_blanks(text, match.end())
    if bounds:
        if text[at : at + 1] != "=":
            raise malformed("array", text, 'Missing "=" after array dimensions.')
        at = after_blanks(text, at + 1)
    return lengths, bounds, at


def _bound(text: str) -> int:
    """Returns a bound of a dimension. Raises 22003."""
    number = int(text.lstrip("+-0")[:11] or "0") * (-1 if text.startswith("-") else 1)
    if not dimensions.FIRST <= number <= dimensions.LAST:
        raise NumericValueOutOfRange("array bound is out of integer range")
    return number


def _contents(text: str) -> tuple[list[str | None], list[int], int]:
    """Returns the elements within braces, the length of each dimension, and the place after the last brace."""
    at = 0
    items: list[str | None] = []
    counts: list[int] = []  # of the items in each open brace
    lengths: dict[int, int] = {}  # of closed braces, by depth
    depth = 0  # of the elements, once there is one
    before = ""  # what precedes: an open brace, an element, or a closed brace
    while True:
        at = after_blanks(text, at)
        char = text[at : at + 1]
        if char == "{":
            if before == "element":
                raise _unexpected(text, char)
            if len(counts) == dimensions.DIMENSIONS_MAX:
                raise dimensions.too_many(len(counts) + 1)
            counts.append(0)
            before, at = "open", at + 1
            continue
        if char == "}" and before == "open" and len(counts) == 1:
            return [], [], at + 1
        if before == "closed" and char not in ("", ",", "}", "\\"):
            raise malformed("array", text, "Unexpected array element.")
        item, quoted, at = _element(text, at)
        end = text[at : at + 1]
        if end and not item and not quoted:
            raise _unexpected(text, end)
        items.append(None if not quoted and item.upper() == "NULL" else _unescaped(item))
        depth = depth or len(counts)
        counts[-1] += 1
        before = "element"
        while end == "}":
            if lengths.setdefault(len(counts), counts[-1]) != counts[-1] or (before == "element" and len(counts) != depth):
                raise malformed("array", text, "Multidimensional arrays must have sub-arrays with matching dimensions.")
            counts.pop()
            before, at = "closed", at + 1
            if not counts:
                return items, [lengths[level] for level in sorted(lengths)], at
            counts[-1] += 1
            at = after_blanks(text, at)
            end = text[at : at + 1]
            if end and end not in ",}":
                raise _unexpected(text, end) if end in "{\\" else malformed("array", text, "Unexpected array element.")
        if not end:
            raise malformed("array", text, "Unexpected end of input.")
        at += 1


def _unexpected(text: str, char: str) -> TailgateError:
    return malformed("array", text, f'Unexpected "{char}" character.')


_BARE = re.compile(r'(?:[^"\\{},]|\\.)*', re.DOTALL)
_IN_QUOTES = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


def _element(text: str, at: int) -> tuple[str, bool, int]:
    """Returns an element with its backslashes, whether it was in quotes, and the place of the comma or brace after it."""
    if text[at : at + 1] == '"':
        match = _IN_QUOTES.match(text, at)
        if match is None:
            raise malformed("array", text, "Unexpected end of input.")
        at = after_blanks(text, match.end())
        if text[at : at + 1] not in ("", ",", "}"):
            raise malformed("array", text, "Unexpected array element.")
        return match[1], True, at
    match = _BARE.match(text, at)
    assert match is not None
    at = match.end()
    following = text[at : at + 1]
    if following == "{":
        raise _unexpected(text, following)
    if following in ('"', "\\"):
        raise malformed("array", text, "Unexpected array element." if following == '"' else "Unexpected end of input.")
    return _without_last_blanks(match[0]), False, at


def _without_last_blanks(item: str) -> str:
    """Removes blanks at the end that no backslash precedes."""
    stripped = item.rstrip(BLANKS)
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return item[: len(stripped) + 1] if backslashes % 2 and len(item) > len(stripped) else stripped


def _unescaped(item: str) -> str:
    return re.sub(r"\\(.)", r"\1", item, flags=re.DOTALL) if "\\" in item else item


# --- binary --------------------------------------------------------------------------------------

_HEAD = Struct("!iiI")  # dimensions, whether there are NULLs, oid of the elements
_DIMENSION = Struct("!ii")  # length, lower bound
_LENGTH = Struct("!i")


def _read_binary(data: bytes, element: Type, read: Callable[[bytes, Type], Value]) -> Value:
    shape, at = _read_head(data, element)
    items: list[Value] = []
    for number in range(1, prod(dimensions.lengths(shape)) + 1 if shape[0] else 1):
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
    return tuple(items), shape


def _read_head(data: bytes, element: Type) -> tuple[dimensions.Dimensions, int]:
    """Returns the dimensions, and where the first element begins."""
    count, flags, oid = _unpacked_head(data)
    if count < 0:
        raise InvalidBinaryRepresentation(f"invalid number of dimensions: {count}")
    if count > dimensions.DIMENSIONS_MAX:
        raise dimensions.too_many(count)
    if flags not in (0, 1):
        raise InvalidBinaryRepresentation("invalid array flags")
    if oid != element.oid:
        raise DatatypeMismatch(f"binary data has array element type {_name(oid)} instead of expected {_name(element.oid)}")
    pairs = [_unpacked(_DIMENSION, data, _HEAD.size + number * _DIMENSION.size) for number in range(count)]
    return dimensions.dimensions([length for length, _ in pairs], [bound for _, bound in pairs]), _HEAD.size + count * _DIMENSION.size


def _name(oid: int) -> str:
    name = str(BY_OID[oid]) if oid in BY_OID else "???"
    return f"{oid} ({name if oid else '-'})"


def _unpacked_head(data: bytes) -> tuple[int, int, int]:
    if len(data) >= _HEAD.size:
        return _HEAD.unpack_from(data)
    # The checks of the fields that exist come first.
    count = int.from_bytes(data[:4], "big", signed=True) if len(data) >= 4 else 0
    flags = int.from_bytes(data[4:8], "big", signed=True) if len(data) >= 8 else 0
    if 0 <= count <= dimensions.DIMENSIONS_MAX and flags in (0, 1):
        raise insufficient()
    return count, flags, 0


def _unpacked(layout: Struct, data: bytes, at: int) -> tuple[int, ...]:
    if at + layout.size > len(data):
        raise insufficient()
    return layout.unpack_from(data, at)


def _binary_writer(write: Writer, oid: int) -> Writer:
    def array(value: tuple[Sequence[Any], Sequence[int]]) -> bytes:
        items, shape = value
        head = pack("!iiI", shape[0], int(any(v is None for v in items)), oid)
        pairs = zip(dimensions.lengths(shape), dimensions.bounds(shape), strict=True)
        return b"".join([head, *(_DIMENSION.pack(*pair) for pair in pairs), *(sized(write, v) for v in items)])

    return array
