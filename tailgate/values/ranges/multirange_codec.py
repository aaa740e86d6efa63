"""Input and output of multiranges: `{}`, `{[1,5),[7,9)}`.

Source: PostgreSQL 15, src/backend/utils/adt/multirangetypes.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from struct import Struct

from tailgate.lake.errors import ProtocolViolation
from tailgate.lake.ranges import RANGE_OF
from tailgate.lake.types import Type
from tailgate.values.codec.binary import insufficient, leading, read_sized, sized
from tailgate.values.codec.codec import Codec, Value, Writer
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import BLANKS, after_blanks, malformed
from tailgate.values.ranges import forms, multiranges
from tailgate.values.ranges.multiranges import TYPES, Multirange, multirange

_EMPTY = "empty"
_ESCAPED = rf"\\[{BLANKS}]*[^{BLANKS}]"
_RANGE = re.compile(rf'[\[(](?:[^])"\\]|{_ESCAPED}|"(?:[^"\\]|{_ESCAPED})*")*[\])]')
_COUNT = Struct("!i")  # the number of ranges


def codec_of(range: Codec) -> Codec:
    """Returns the codec of multiranges whose ranges have a codec."""

    def read(text: str, type: Type, style: Style) -> Value:
        return _encoded(type, (range.read_text(part, _range_type(type), style) for part in _parts(text)))

    def read_binary(data: bytes, type: Type) -> Value:
        return _encoded(type, (range.read_binary(part, _range_type(type)) for part in _parts_binary(data)))

    def text_writer(type: Type, style: Style) -> Writer:
        write = range.text_writer(_range_type(type), style)
        return lambda form: b"{" + b",".join(map(write, _ranges(form))) + b"}"

    def binary_writer(type: Type) -> Writer:
        write = range.binary_writer(_range_type(type))
        return lambda form: _binary(list(_ranges(form)), write)

    return Codec(read, read_binary, text_writer, binary_writer, order_key=multiranges.order_key)


def _range_type(type: Type) -> Type:
    return Type(RANGE_OF[type.name])


def _encoded(type: Type, ranges: Iterator[Value]) -> bytes:
    """Returns the stored form of the multirange of ranges in stored form."""
    decoded = [forms.decode(form) for form in ranges if isinstance(form, bytes)]
    return multiranges.encode(multirange(TYPES[type.name], decoded))


def _ranges(form: bytes) -> Iterator[bytes]:
    """Yields the stored forms of the ranges of a multirange."""
    decoded: Multirange = multiranges.decode(form)
    return map(forms.encode, decoded.ranges)


def _parts(text: str) -> Iterator[str]:
    r"""Yields the texts of the ranges of a multirange that are not `empty`. Raises 22P02.

    >>> list(_parts(' { [1,2), empty,("a]",)} '))
    ['[1,2)', '("a]",)']
    """
    at = after_blanks(text, 0)
    if text[at : at + 1] != "{":
        raise malformed("multirange", text, "Missing left brace.")
    at = after_blanks(text, at + 1)
    is_first = True
    while not (is_first and text[at : at + 1] == "}"):
        is_first = False
        if at >= len(text):
            raise malformed("multirange", text, "Unexpected end of input.")
        if text[at] in "[(":
            part = _RANGE.match(text, at)
            if part is None:
                raise malformed("multirange", text, "Unexpected end of input.")
            yield part[0]
            at = part.end()
        elif text[at : at + len(_EMPTY)].lower() == _EMPTY:
            at += len(_EMPTY)
        else:
            raise malformed("multirange", text, "Expected range start.")
        at = after_blanks(text, at)
        if text[at : at + 1] == "}":
            break
        if at < len(text) and text[at] != ",":
            raise malformed("multirange", text, "Expected comma or end of multirange.")
        at = after_blanks(text, at + 1)
    if text[at + 1 :].strip(BLANKS):
        raise malformed("multirange", text, "Junk after closing right brace.")


def _parts_binary(data: bytes) -> Iterator[bytes]:
    """Yields the binary forms of the ranges of a multirange. Raises 08P01."""
    count, at = leading(_COUNT, data), _COUNT.size
    if count < 0:
        raise insufficient()
    for _ in range(count):
        part, at = read_sized(data, at)
        yield part
    if at < len(data):
        raise ProtocolViolation("invalid message format")


def _binary(ranges: list[bytes], write: Callable[[bytes], bytes]) -> bytes:
    return _COUNT.pack(len(ranges)) + b"".join(sized(write, form) for form in ranges)
