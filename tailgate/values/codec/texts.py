"""Parts that the input functions of several types share: blanks, fields of rows and ranges, and errors for malformed texts."""

from __future__ import annotations

import re

from tailgate.lake.errors import CharacterNotInRepertoire, InvalidTextRepresentation, TailgateError

BLANKS = " \t\n\r\f\v"  # isspace() of C
_RUN = re.compile(r'[^"\\,)\]]+|.', re.DOTALL)  # a part of a field without quotes, backslashes and ends, or a character


def invalid(type: str, text: str) -> TailgateError:
    """Returns 22P02. `type` is the type's name in SQL."""
    return InvalidTextRepresentation(f'invalid input syntax for type {type}: "{text}"')


def malformed(kind: str, text: str, detail: str) -> TailgateError:
    """Returns 22P02. `kind`: array, record, range or multirange."""
    return InvalidTextRepresentation(f'malformed {kind} literal: "{text}"', detail=detail)


def read_field(kind: str, text: str, at: int, ends: str) -> tuple[str | None, int]:
    r"""Returns a field of a row or a bound of a range, and the place of the character of `ends` after it. Raises 22P02.

    The result is without quotes and backslashes. Any part may be in quotes. It is None without any character.

    >>> read_field("record", '(a" ""b"\\,,c)', 1, ",)"), read_field("record", "(a,)", 3, ",)")
    (('a "b,', 10), (None, 3))
    """
    start, parts, quoted = at, list[str](), False
    while at < len(text) and (quoted or text[at] not in ends):
        char, following = text[at], text[at + 1 : at + 2]
        if char == "\\" or (char == '"' and quoted and following == '"'):
            parts.append(following)
            at += 2
        elif char == '"':
            quoted = not quoted
            at += 1
        else:
            run = _RUN.match(text, at)
            assert run is not None
            parts.append(run[0])
            at = run.end()
    if at >= len(text):
        raise malformed(kind, text, "Unexpected end of input.")
    return ("".join(parts) if at > start else None), at


def after_blanks(text: str, at: int) -> int:
    """Returns the place of the next character that is not blank, from a place on."""
    while text[at : at + 1] and text[at] in BLANKS:
        at += 1
    return at


def utf8(data: bytes) -> str:
    """Decodes a text that a client sent. Raises 22021."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        # The first byte tells how many bytes a character has; PostgreSQL shows those that exist.
        first = data[error.start]
        length = 2 if first >> 5 == 0b110 else 3 if first >> 4 == 0b1110 else 4 if first >> 3 == 0b11110 else 1
        shown = " ".join(f"0x{byte:02x}" for byte in data[error.start : error.start + length])
        raise CharacterNotInRepertoire(f'invalid byte sequence for encoding "UTF8": {shown}') from None
    if "\0" in text:
        raise CharacterNotInRepertoire('invalid byte sequence for encoding "UTF8": 0x00')
    return text
