"""Function format().

    %[position$][-][width]type       a width is a number, * (the next argument) or *n$ (argument n); a type is s, I or L

The errors of a conversion come in PostgreSQL's order: its syntax, its type, the argument for its width, its argument.

Source: PostgreSQL 15, src/backend/utils/adt/varlena.c text_format(), text_format_parse_format().
"""

from __future__ import annotations

import re

from tailgate.lake.errors import InvalidParameterValue, NullValueNotAllowed, NumericValueOutOfRange
from tailgate.lake.types import INT4
from tailgate.sql.compute.registry import udf
from tailgate.sql.compute.text.strings import checked_length, quote_ident, quote_literal
from tailgate.values.codec.style import DEFAULT
from tailgate.values.numbers import integers

CONVERSION = re.compile(
    r"%(?:(?P<position>\d+)\$)?(?P<left>-+)?"
    r"(?:(?P<width>\d+)|(?P<star>\*)(?:(?P<at>\d+)(?P<end>\$)?)?)?(?P<type>.?)",
    re.DOTALL | re.ASCII,
)
NUMBER_MAX = 2**31 - 1


@udf("text", "text[]", to="text", name="format")
def format_text(pattern: str, arguments: list[str | None]) -> str:
    result, at, next_argument = [], 0, 0

    def argument(index: int) -> str | None:
        if index >= len(arguments):
            raise InvalidParameterValue("too few arguments for format()")
        return arguments[index]

    while (start := pattern.find("%", at)) >= 0:
        result.append(pattern[at:start])
        if pattern.startswith("%%", start):
            result.append("%")
            at = start + 2
            continue
        match = CONVERSION.match(pattern, start)
        assert match is not None
        at = match.end()
        position, width_position, width = _checked(match)
        if match["star"]:
            index = next_argument if width_position is None else width_position - 1
            text = argument(index)
            width = 0 if text is None else integers.read(text, INT4, DEFAULT)
            next_argument = index + 1
        index = next_argument if position is None else position - 1
        result.append(_padded(_converted(argument(index), match["type"]), width or 0, left=bool(match["left"])))
        next_argument = index + 1
    result.append(pattern[at:])
    return "".join(result)


def _checked(match: re.Match[str]) -> tuple[int | None, int | None, int | None]:
    """Returns the numbers of a conversion: the positions of its argument and of its width, and its width.

    Raises 22023, 22003.
    """
    position, width_position, width = (_number(match[name]) for name in ("position", "at", "width"))
    if position == 0:
        raise InvalidParameterValue("format specifies argument 0, but arguments are numbered from 1")
    if match["at"] and not match["end"] and match["type"]:
        raise InvalidParameterValue('width argument position must be ended by "$"')
    if width_position == 0 and match["end"]:
        raise InvalidParameterValue("format specifies argument 0, but arguments are numbered from 1")
    if not match["type"]:
        raise InvalidParameterValue("unterminated format() type specifier")
    if match["type"] not in "sIL":
        raise InvalidParameterValue(f'unrecognized format() type specifier "{match["type"]}"')
    return position, width_position, width


def _number(digits: str | None) -> int | None:
    if digits is None:
        return None
    number = int(digits[:20])
    if number > NUMBER_MAX:
        raise NumericValueOutOfRange("number is out of range")
    return number


def _converted(value: str | None, type: str) -> str:
    if value is None:
        if type == "I":
            raise NullValueNotAllowed("null values cannot be formatted as an SQL identifier")
        return "NULL" if type == "L" else ""
    return quote_ident(value) if type == "I" else quote_literal(value) if type == "L" else value


def _padded(text: str, width: int, *, left: bool) -> str:
    """Returns the text with blanks up to a width. `left`: the text comes first, as with a negative width."""
    if width < -NUMBER_MAX:
        raise NumericValueOutOfRange("number is out of range")
    length = checked_length(abs(width))
    return text.ljust(length) if left or width < 0 else text.rjust(length)
