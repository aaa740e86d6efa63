r"""Replaces the escapes of E'…', U&'…' and U&"…".

Source: PostgreSQL 15, section "String Constants"; src/backend/parser/scan.l and parser.c for errors and their positions.
"""

from __future__ import annotations

import re

from tailgate.lake.errors import CharacterNotInRepertoire, InvalidEscapeSequence, SyntaxError_, TailgateError

ESCAPE = re.compile(
    r"''|\\(?:(?P<octal>[0-7]{1,3})|x(?P<hexadecimal>[0-9A-Fa-f]{1,2})"
    r"|u(?P<short>[0-9A-Fa-f]{4})|U(?P<long>[0-9A-Fa-f]{8})|(?P<other>.))|[^\\']+",
    re.S,
)
ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
HINT_OF_E = "Unicode escapes must be \\uXXXX or \\UXXXXXXXX."
HINT_OF_U = "Unicode escapes must be \\XXXX or \\+XXXXXX."
NO_ESCAPE_CHARACTER = re.compile(r"[0-9A-Fa-f+'\" \t\n\r\f]")
INVALID_PAIR = "invalid Unicode surrogate pair"
INVALID_VALUE = "invalid Unicode escape value"


def near(message: str, text: str, position: int) -> TailgateError:
    """Returns the syntax error `message at or near "text"`."""
    return SyntaxError_(f'{message} at or near "{text}"', position=position)


def backslashes(parts: list[tuple[str, int]]) -> str:
    """Replaces the escapes of E'…'. `parts` has the text of each line's quotes and its offset."""
    result = b"".join(_backslashes(raw, position) for raw, position in parts)
    try:
        text = result.decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(result[error.start : error.start + _length(result[error.start])]) from None
    if "\0" in text:
        raise _not_utf8(b"\0")
    return text


def _backslashes(raw: str, position: int) -> bytes:
    result: list[bytes] = []
    high: int | None = None  # the first half of a surrogate pair
    for match in ESCAPE.finditer(raw):
        at = position + match.start()
        digits = match["short"] or match["long"]
        if high is not None and not digits:
            raise near(INVALID_PAIR, match[0][0], at)
        if digits:
            number = int(digits, 16)
            if _is_low(number) != (high is not None):
                raise near(INVALID_PAIR, match[0], at)
            if _is_high(number):
                high = number
                continue
            number = number if high is None else _joined(high, number)
            high = None
            if not 0 < number <= 0x10FFFF:
                raise near(INVALID_VALUE, match[0], at)
            result.append(chr(number).encode())
        elif match["octal"]:
            result.append(bytes([int(match["octal"], 8) & 0xFF]))
        elif match["hexadecimal"]:
            result.append(bytes([int(match["hexadecimal"], 16)]))
        elif (other := match["other"]) is None:
            result.append((match[0] if match[0] != "''" else "'").encode())
        elif other in "uU":
            raise InvalidEscapeSequence("invalid Unicode escape", hint=HINT_OF_E, position=at)
        else:
            result.append(ESCAPED.get(other, other).encode())
    if high is not None:
        raise near(INVALID_PAIR, "'", position + len(raw))
    return b"".join(result)


def escape_character(text: str, value: str, position: int) -> str:
    """Returns the character of UESCAPE. Raises 42601 if it cannot introduce an escape."""
    if len(value) != 1 or NO_ESCAPE_CHARACTER.match(value):
        raise near("invalid Unicode escape character", text, position)
    return value


def unicode(raw: str, escape: str, position: int) -> str:
    r"""Replaces \XXXX and \+XXXXXX of U&'…', with `escape` instead of the backslash.

    `position` is the offset of the inner text, for errors.
    """
    mark = re.escape(escape)
    pattern = re.compile(rf"{mark}(?:(?P<short>[0-9A-Fa-f]{{4}})|\+(?P<long>[0-9A-Fa-f]{{6}})|(?P<itself>{mark})|)|.", re.S)
    result: list[str] = []
    high: int | None = None
    for match in pattern.finditer(raw):
        at = position + match.start()
        digits = match["short"] or match["long"]
        if not digits and match[0] == escape:
            raise SyntaxError_("invalid Unicode escape", hint=HINT_OF_U, position=at)
        if not digits:
            if high is not None:
                raise SyntaxError_(INVALID_PAIR, position=at)
            result.append(escape if match["itself"] else match[0])
            continue
        number = int(digits, 16)
        if not 0 < number <= 0x10FFFF:
            raise SyntaxError_(INVALID_VALUE, position=at)
        if _is_low(number) != (high is not None):
            raise SyntaxError_(INVALID_PAIR, position=at)
        if _is_high(number):
            high = number
            continue
        result.append(chr(number if high is None else _joined(high, number)))
        high = None
    if high is not None:
        raise SyntaxError_(INVALID_PAIR, position=position + len(raw))
    return "".join(result)


def _is_high(number: int) -> bool:
    return 0xD800 <= number < 0xDC00


def _is_low(number: int) -> bool:
    return 0xDC00 <= number < 0xE000


def _joined(high: int, low: int) -> int:
    return 0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF)


def _length(first: int) -> int:
    """Returns how many bytes a character of UTF-8 has, by its first byte."""
    return 4 if first >= 0xF0 and first < 0xF8 else 3 if 0xE0 <= first < 0xF0 else 2 if 0xC0 <= first < 0xE0 else 1


def _not_utf8(raw: bytes) -> TailgateError:
    shown = " ".join(f"0x{byte:02x}" for byte in raw)
    return CharacterNotInRepertoire(f'invalid byte sequence for encoding "UTF8": {shown}')
