"""Parts that the input functions of several types share: blanks, and the error for a malformed text."""

from __future__ import annotations

from tailgate.lake.errors import CharacterNotInRepertoire, InvalidTextRepresentation, TailgateError

BLANKS = " \t\n\r\f\v"  # isspace() of C


def invalid(type: str, text: str) -> TailgateError:
    """Returns 22P02. `type` is the type's name in SQL."""
    return InvalidTextRepresentation(f'invalid input syntax for type {type}: "{text}"')


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
