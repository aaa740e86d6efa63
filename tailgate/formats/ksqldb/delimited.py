"""The format DELIMITED: a line with a field for each column. NULL is an empty field."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tailgate.formats.ksqldb import jsons
from tailgate.formats.ksqldb.values import Column, Values

QUOTED_MAX = "#"  # a field that begins with this character or one before it is quoted
SPECIAL = '"\r\n'


def encoded(columns: Sequence[Column], values: Sequence[Values], length: int, delimiter: str) -> list[bytes | None]:
    """Returns the line of each row. Values are those of JSON, without the quotes of strings."""
    fields = [[_text(text) for text in jsons.texts(c, of_column)] for c, of_column in zip(columns, values, strict=True)]
    return [delimiter.join(_field(column[n], delimiter, n_th) for n_th, column in enumerate(fields)).encode() for n in range(length)]


def _text(text: str) -> str | None:
    """Returns the content of a JSON string, another value as it is, and None for null."""
    return None if text == "null" else json.loads(text) if text.startswith('"') else text


def _field(text: str | None, delimiter: str, position: int) -> str:
    """Returns a field, in quotes if it needs them.

    The first field of a line is also quoted if it is empty, or begins with neither a letter nor a digit of ASCII, as in ksqlDB.

    >>> _field(None, ",", 0), _field("", ",", 0), _field("", ",", 1), _field('a"b', ",", 1), _field(" a", ",", 1)
    ('', '""', '', '"a""b"', '" a"')
    >>> _field("-1", ",", 0), _field("-1", ",", 1), _field("é", ",", 0)
    ('"-1"', '-1', '"é"')
    """
    if text is None:
        return ""
    if not text:
        return '""' if position == 0 else ""
    if position == 0 and not (text[0].isascii() and text[0].isalnum()):
        return _quoted(text)
    if text[0] <= QUOTED_MAX or text[-1] <= " " or delimiter in text or any(c in text for c in SPECIAL):
        return _quoted(text)
    return text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
