"""Type jsonb, whose stored form is canonical text.

Objects have the last of equal keys; keys are ordered by length, then by bytes. Numbers preserve their
scale. One space follows a colon or comma.

Source: PostgreSQL 15, chapter "JSON Types"; src/backend/utils/adt/jsonb.c, jsonb_util.c
lengthCompareJsonbStringValue().
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tailgate.lake.errors import (
    InvalidBinaryRepresentation,
    InvalidParameterValue,
    InvalidTextRepresentation,
    StatementTooComplex,
    TailgateError,
    UntranslatableCharacter,
)
from tailgate.lake.sortable import DIGITS_MAX
from tailgate.lake.types import Type
from tailgate.values.codec.binary import insufficient
from tailgate.values.codec.codec import Codec
from tailgate.values.codec.columns import same_bytes
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import utf8
from tailgate.values.numbers import numerics

Json: TypeAlias = Any  # None, bool, Decimal, str, list or dict
_VERSION = b"\1"  # of the binary form
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPES |= {chr(n): f"\\u{n:04x}" for n in range(32) if chr(n) not in _ESCAPES}
_ESCAPE_TABLE = str.maketrans(_ESCAPES)


def invalid() -> TailgateError:
    return InvalidTextRepresentation("invalid input syntax for type json")


def _refuse_constant(text: str) -> Json:
    """Refuses NaN and Infinity, which Python accepts."""
    raise ValueError(text)


_DECODER = json.JSONDecoder(parse_float=numerics.exact, parse_int=numerics.exact, parse_constant=_refuse_constant)


def load(text: str) -> Json:
    """Returns the value of a JSON text. Raises 22P02."""
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise StatementTooComplex("stack depth limit exceeded") from None
    except ValueError:
        raise invalid() from None
    if "\\u" in text:
        _check_strings(value)
    return value


def _check_strings(value: Json) -> None:
    """Refuses zero characters and single surrogates, which JSON allows and text does not."""
    match value:
        case str():
            if "\0" in value:
                raise UntranslatableCharacter("unsupported Unicode escape sequence", detail="\\u0000 cannot be converted to text.")
            if any("\ud800" <= c <= "\udfff" for c in value):
                raise invalid()
        case list():
            for item in value:
                _check_strings(item)
        case dict():
            for key, item in value.items():
                _check_strings(key)
                _check_strings(item)


def member_order(key: str) -> tuple[int, bytes]:
    """Returns the sort key of an object's key."""
    encoded = key.encode()
    return len(encoded), encoded


def dump(value: Json) -> str:
    """Returns the canonical text of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Decimal():
            return number(value)
        case str():
            return '"' + value.translate(_ESCAPE_TABLE) + '"'
        case list():
            return "[" + ", ".join(map(dump, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{dump(k)}: {dump(value[k])}" for k in sorted(value, key=member_order)) + "}"
    raise TypeError(type(value).__name__)


def number(value: Decimal) -> str:
    """Returns a number as numeric prints it: without an exponent or a minus before zero."""
    if value.adjusted() >= DIGITS_MAX:
        raise numerics.overflow()
    text = format(value, "f")
    return text[1:] if value == 0 and text.startswith("-") else text


def canonical(text: str) -> str:
    """Returns the canonical text of a JSON text.

    >>> canonical('{"bb": 1.10, "a": [1e2, "x"], "a": null}')
    '{"a": null, "bb": 1.10}'
    """
    return dump(load(text))


def object_text(members: list[list[str | None]]) -> str:
    """Returns an object of (key, JSON text) pairs; the last of equal keys wins. Raises 22023."""
    parts = []
    for key, value in members:
        if key is None:
            raise InvalidParameterValue("field name must not be null")
        parts.append(f"{dump(key)}: {'null' if value is None else value}")
    return canonical("{" + ", ".join(parts) + "}")


# --- comparison ----------------------------------------------------------------------------------
#
# The key of a value begins with its kind: null, string, number, boolean, array or object, in this
# order. Strings end with a zero byte, which jsonb cannot contain. Arrays and objects begin with their
# number of elements. An empty array at the top level comes before all other values, because PostgreSQL
# stores a scalar as an array with one element. A number is its sign (negative, zero, positive), the
# power of ten and the digits; the latter two are complemented if it is negative.
#
# Source: PostgreSQL 15, src/backend/utils/adt/jsonb_util.c, compareJsonbContainers().

EMPTY, NULL, STRING, NUMBER, BOOLEAN, ARRAY, OBJECT = (bytes([n]) for n in range(7))
NEGATIVE, ZERO, POSITIVE = (bytes([n]) for n in range(3))


def order_key(text: str) -> bytes:
    """Returns bytes with the order of jsonb; equal values have equal bytes.

    >>> order_key('[]') < order_key('null') < order_key('1.0') == order_key('1') < order_key('[1]')
    True
    """
    value = load(text)
    return EMPTY if value == [] else _order_bytes(value)


def _order_bytes(value: Json) -> bytes:
    match value:
        case None:
            return NULL
        case str():
            return STRING + _order_text(value)
        case bool():
            return BOOLEAN + bytes([value])
        case Decimal():
            return NUMBER + _order_number(value)
        case list():
            return ARRAY + _order_int(len(value)) + b"".join(map(_order_bytes, value))
    keys = sorted(value, key=member_order)
    return OBJECT + _order_int(len(keys)) + b"".join(_order_text(k) + _order_bytes(value[k]) for k in keys)


def _order_text(value: str) -> bytes:
    return value.encode() + b"\0"


def _order_int(value: int) -> bytes:
    return value.to_bytes(4, "big")


def _order_number(value: Decimal) -> bytes:
    if not value:
        return ZERO
    negative, digit_tuple, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, digit_tuple)).lstrip("0")
    power = len(digits) + exponent
    magnitude = _order_int(power + 2**31) + _order_text(digits.rstrip("0"))
    return NEGATIVE + bytes(255 - b for b in magnitude) if negative else POSITIVE + magnitude


# --- input and output ----------------------------------------------------------------------------


def read(text: str, type: Type, style: Style) -> str:
    return canonical(text)


def read_binary(data: bytes, type: Type) -> str:
    if not data:
        raise insufficient()
    if data[:1] != _VERSION:
        raise InvalidBinaryRepresentation(f"unsupported jsonb version number {data[0]}")
    return canonical(utf8(data[1:]))


def write_binary(value: bytes) -> bytes:
    return _VERSION + value


def column_binary(array: pa.Array, type: Type) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar(_VERSION), array.view(pa.binary()), b"")


JSONB = Codec(
    read,
    read_binary,
    lambda type, style: bytes,
    lambda type: write_binary,
    column_text=same_bytes,
    column_binary=column_binary,
    order_key=order_key,
)
