"""Type json, whose stored form is the text as it was written.

A tree of it preserves what jsonb does not: a number is its text, and an object has all its members, in order.

Source: PostgreSQL 15, chapter "JSON Types"; src/common/jsonapi.c, src/backend/utils/adt/json.c.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from tailgate.lake.errors import StatementTooComplex, UntranslatableCharacter
from tailgate.lake.types import Type
from tailgate.values.codec.codec import Codec
from tailgate.values.codec.columns import same_bytes
from tailgate.values.codec.style import Style
from tailgate.values.codec.texts import utf8
from tailgate.values.strings.jsonb import dump, invalid

Tree: TypeAlias = Any  # None, bool, Number, str, list or Members


class Number(str):
    """A number as its text."""


class Members(list[tuple[str, Any]]):
    """The members of an object: keys and values."""


def _refuse_constant(text: str) -> Tree:
    """Refuses NaN and Infinity, which Python accepts."""
    raise ValueError(text)


DECODER = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=_refuse_constant, object_pairs_hook=Members)


def checked(text: str) -> str:
    """Returns the text. Raises 22P02 if it is not JSON."""
    parse(text)
    return text


def parse(text: str) -> Tree:
    try:
        return DECODER.decode(text)
    except RecursionError:
        raise StatementTooComplex("stack depth limit exceeded") from None
    except ValueError:
        raise invalid() from None


def check_strings(tree: Tree) -> None:
    """Refuses zero characters and single surrogates, which type json accepts and text does not.

    Raises 22P05, 22P02.
    """
    match tree:
        case Number():
            pass
        case str():
            if "\0" in tree:
                raise UntranslatableCharacter("unsupported Unicode escape sequence", detail="\\u0000 cannot be converted to text.")
            if any("\ud800" <= c <= "\udfff" for c in tree):
                raise invalid()
        case Members():
            for key, value in tree:
                check_strings(key)
                check_strings(value)
        case list():
            for item in tree:
                check_strings(item)


def without_nulls(tree: Tree) -> str:
    """Returns the text of a tree without white space and without the members that are null.

    >>> without_nulls(parse('{"a": 1.0, "b": null, "c": [null]}'))
    '{"a":1.0,"c":[null]}'
    """
    match tree:
        case Number():
            return str(tree)
        case Members():
            return "{" + ",".join(f"{dump(k)}:{without_nulls(v)}" for k, v in tree if v is not None) + "}"
        case list():
            return "[" + ",".join(map(without_nulls, tree)) + "]"
    return dump(tree)


def _read(text: str, type: Type, style: Style) -> str:
    return checked(text)


def _read_binary(data: bytes, type: Type) -> str:
    return checked(utf8(data))


JSON = Codec(_read, _read_binary, lambda type, style: bytes, lambda type: bytes, column_text=same_bytes, column_binary=same_bytes)
