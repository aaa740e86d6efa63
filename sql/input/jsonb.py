"""jsonb as canonical text: how PostgreSQL prints it, which is the stored form everywhere.

Objects keep the last of equal keys, ordered by length and then by bytes; numbers keep their scale; `": "` and `", "` between.

Source: PostgreSQL 15, chapter "JSON Types"; src/backend/utils/adt/jsonb.c, jsonb_util.c lengthCompareJsonbStringValue.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, TypeAlias

from lake.errors import InvalidTextRepresentation, NumericValueOutOfRange, TailgateError, of

Json: TypeAlias = Any  # None, bool, Decimal, str, list, dict
DEPTH_MAX = 400  # nesting that Python's parser surely takes; PostgreSQL fails at some thousands
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPES |= {chr(n): f"\\u{n:04x}" for n in range(32) if chr(n) not in _ESCAPES}
_TABLE = str.maketrans(_ESCAPES)


def invalid() -> TailgateError:
    return InvalidTextRepresentation("invalid input syntax for type json")


def _number(text: str) -> Decimal:
    return Decimal(text)


def _constant(text: str) -> Json:
    raise ValueError(text)


_DECODER = json.JSONDecoder(parse_float=_number, parse_int=_number, parse_constant=_constant)


def load(text: str) -> Json:
    """The value of a JSON text. Raises 22P02."""
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        raise invalid() from None
    if "\\u" in text:
        _check(value)
    return value


def _check(value: Json) -> None:
    """What JSON allows and text does not: the character zero, and halves of surrogate pairs."""
    match value:
        case str():
            if "\0" in value:
                raise of("22P05", "unsupported Unicode escape sequence", detail="\\u0000 cannot be converted to text.")
            if any("\ud800" <= c <= "\udfff" for c in value):
                raise invalid()
        case list():
            for item in value:
                _check(item)
        case dict():
            for key, item in value.items():
                _check(key)
                _check(item)


def dump(value: Json) -> str:
    """Canonical text."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Decimal():
            return number(value)
        case str():
            return '"' + value.translate(_TABLE) + '"'
        case list():
            return "[" + ", ".join(map(dump, value)) + "]"
        case dict():
            items = sorted(value.items(), key=lambda item: (len(key := item[0].encode()), key))
            return "{" + ", ".join(f"{dump(k)}: {dump(v)}" for k, v in items) + "}"
    raise TypeError(type(value).__name__)


def number(value: Decimal) -> str:
    """As numeric_out: no exponent, the scale as written, no minus before zero."""
    if value.adjusted() > 131071:
        raise NumericValueOutOfRange("value overflows numeric format")
    text = format(value, "f")
    return text[1:] if value == 0 and text.startswith("-") else text


def canonical(text: str) -> str:
    """The stored form of a jsonb given as text.

    >>> canonical('{"bb": 1.10, "a": [1e2, "x"], "a": null}')
    '{"a": null, "bb": 1.10}'
    """
    return dump(load(text))


def made_object(pairs: list[list[str | None]]) -> str:
    """The object of keys with their values, which are texts of JSON; of equal keys the last. Raises 22023 for a key that is NULL."""
    members = []
    for key, value in pairs:
        if key is None:
            raise of("22023", "field name must not be null")
        members.append(f"{dump(key)}: {'null' if value is None else value}")
    return canonical("{" + ", ".join(members) + "}")
