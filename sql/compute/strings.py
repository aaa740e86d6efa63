"""Text. Positions and lengths count characters.

Source: PostgreSQL 15, src/backend/utils/adt/{varlena,oracle_compat,quote,formatting}.c.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal

from lake.errors import FeatureNotSupported, InvalidParameterValue, of
from lake.names import quoted
from sql.compute.patterns import compiled, for_re2, translated
from sql.compute.regexpchoices import choices
from sql.compute.regexpsearch import Searched
from sql.compute.registry import own

LENGTH_MAX = 2**26  # characters of a result, which Python writes in 20 ms; PostgreSQL's limit is a GiB


def _checked(length: int) -> int:
    if length > LENGTH_MAX:
        raise of("54000", "requested length too large")
    return max(length, 0)


@own("text", to="text")
def initcap(text: str) -> str:
    out, inside = [], False
    for char in text:
        out.append(char.lower() if inside else char.upper() if len(char.upper()) == 1 else char)
        inside = char.isalnum()
    return "".join(out)


@own("text", "int4", "text", to="text")
def lpad(text: str, length: int, fill: str) -> str:
    length = _checked(length)
    missing = length - len(text) if fill else 0
    return text[:length] if missing <= 0 else (fill * (missing // len(fill) + 1))[:missing] + text


@own("text", "int4", "text", to="text")
def rpad(text: str, length: int, fill: str) -> str:
    length = _checked(length)
    missing = length - len(text) if fill else 0
    return text[:length] if missing <= 0 else text + (fill * (missing // len(fill) + 1))[:missing]


@own("text", "int4", to="text", name="repeat")
def repeated(text: str, count: int) -> str:
    _checked(len(text.encode()) * max(count, 0))
    return text * max(count, 0)


@own("text", to="text")
def reverse(text: str) -> str:
    return text[::-1]


@own("text", "text", "text", to="text")
def translate(text: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for i, char in enumerate(old):
        table.setdefault(ord(char), new[i] if i < len(new) else None)
    return text.translate(table)


@own("text", to="int4", name="ascii")
def code(text: str) -> int:
    return ord(text[0]) if text else 0


@own("int4", to="text", name="chr")
def character(number: int) -> str:
    if number < 0:
        raise InvalidParameterValue("character number must be positive")
    if number == 0:
        raise of("54000", "null character not permitted")
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        raise of("54000", f"requested character too large for encoding: {number}")
    return chr(number)


@own("text", "text", "int4", "int4", to="text")
def overlay(text: str, new: str, start: int, count: int) -> str:
    if start <= 0:
        raise of("22011", "negative substring length not allowed")
    after = start + count
    if after > 2**31 - 1:
        raise of("22003", "integer out of range")
    return text[: start - 1] + new + text[max(after, 1) - 1 :]


@own("text", "text", to="bool", name="starts_with")
def begins(text: str, part: str) -> bool:
    return text.startswith(part)


@own("int8", to="text", name="to_hex_int8")
def hexadecimal(number: int) -> str:
    return f"{number & (2**64 - 1):x}"


@own("int4", to="text", name="to_hex_int4")
def short_hexadecimal(number: int) -> str:
    return f"{number & (2**32 - 1):x}"


@own("text", to="text")
def quote_ident(text: str) -> str:
    return quoted(text)


@own("text", to="text")
def quote_literal(text: str) -> str:
    prefix = "E" if "\\" in text else ""
    return prefix + "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


CONVERSION = re.compile(r"%(?:(?P<position>\d+)\$)?(?P<left>-+)?(?:(?P<width>\d+)|\*(?:(?P<at>\d+)\$)?(?P<star>))?(?P<type>.?)", re.S)


@own("text", "text[]", to="text", name="format")
def formatted(pattern: str, arguments: list[str | None]) -> str:
    """format(): %s, %I and %L with a position, a width, and - for the left."""
    out, at, following = [], 0, 0

    def argument(index: int) -> str | None:
        if index >= len(arguments):
            raise InvalidParameterValue("too few arguments for format()")
        return arguments[index]

    while (start := pattern.find("%", at)) >= 0:
        out.append(pattern[at:start])
        if pattern.startswith("%%", start):
            out.append("%")
            at = start + 2
            continue
        match = CONVERSION.match(pattern, start)
        assert match is not None
        at = match.end()
        left, width = bool(match["left"]), int(match["width"] or 0)
        if match["position"] == "0" or match["at"] == "0":
            raise InvalidParameterValue("format specifies argument 0, but arguments are numbered from 1")
        if match["star"] is not None:
            index = int(match["at"]) - 1 if match["at"] else following
            given = argument(index)
            following = index + 1
            width = int(given or 0)
            left, width = left or width < 0, abs(width)
        if not match["type"]:
            raise InvalidParameterValue("unterminated format() type specifier")
        if match["type"] not in "sIL":
            raise InvalidParameterValue(f'unrecognized format() type specifier "{match["type"]}"')
        index = int(match["position"]) - 1 if match["position"] else following
        value = argument(index)
        following = index + 1
        if value is None:
            if match["type"] == "I":
                raise of("22004", "null values cannot be formatted as an SQL identifier")
            text = "NULL" if match["type"] == "L" else ""
        else:
            text = quote_ident(value) if match["type"] == "I" else quote_literal(value) if match["type"] == "L" else value
        out.append(text.ljust(_checked(width)) if left else text.rjust(_checked(width)))
    out.append(pattern[at:])
    return "".join(out)


ESCAPED = re.compile(r"\\(?:\\|([0-9a-fA-F]{4})|\+([0-9a-fA-F]{6})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))?")


@own("text", to="text")
def unistr(text: str) -> str:
    def read(match: re.Match[str]) -> str:
        if match[0] == "\\\\":
            return "\\"
        digits = next((g for g in match.groups() if g), None)
        if digits is None:
            raise of("42601", "invalid Unicode escape")
        number = int(digits, 16)
        if number == 0 or number > 0x10FFFF:
            raise of("22023", f"invalid Unicode code point: {number:04X}")
        return chr(number)

    found = ESCAPED.sub(read, text)
    joined = found.encode("utf-16", "surrogatepass")
    try:
        return joined.decode("utf-16")
    except UnicodeDecodeError:
        raise of("42601", "invalid Unicode surrogate pair") from None


Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
FORMS: dict[str, Form] = {"NFC": "NFC", "NFD": "NFD", "NFKC": "NFKC", "NFKD": "NFKD"}


def _form(form: str) -> Form:
    if form.upper() not in FORMS:
        raise InvalidParameterValue(f"invalid normalization form: {form}")
    return FORMS[form.upper()]


@own("text", "text", to="text")
def normalize(text: str, form: str) -> str:
    return unicodedata.normalize(_form(form), text)


@own("text", "text", to="bool")
def is_normalized(text: str, form: str) -> bool:
    return unicodedata.is_normalized(_form(form), text)


@own("text", "text", to="text[]")
def string_to_array(text: str, separator: str) -> list[str]:
    if not text:
        return []
    return text.split(separator) if separator else [text]


@own("text", to="text[]", name="string_to_characters")
def characters(text: str) -> list[str]:
    return list(text)


# --- LIKE ------------------------------------------------------------------------------------------------------------------------


@own("text", "text", to="text")
def like_escape(pattern: str, escape: str) -> str:
    """The pattern with the backslash in place of another escape character."""
    if len(escape) > 1:
        raise of("22025", "invalid escape string")
    if escape == "\\":
        return pattern
    out, at = [], 0
    while at < len(pattern):
        char = pattern[at]
        if escape and char == escape:
            out.append("\\")
            at += 1
            out.append(pattern[at : at + 1])
        else:
            out.append("\\\\" if char == "\\" else char)
        at += 1
    return "".join(out)


@own("text", "text", to="text")
def similar_to(pattern: str, escape: str) -> str:
    """A pattern of SIMILAR TO as a regular expression of PostgreSQL's: similar_to_escape()."""
    if len(escape) > 1:
        raise of("22025", "invalid escape string")
    out, at, inside, quotes = ["^(?:"], 0, False, 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if escape and char == escape:
            if at >= len(pattern):
                raise of("22025", "invalid escape sequence") if not out else FeatureNotSupported("an escape character at a pattern's end")
            following = pattern[at]
            at += 1
            if following == '"' and not inside:
                if quotes == 0:
                    out.append("){1,1}?(")
                elif quotes == 1:
                    out.append("){1,1}(?:")
                else:
                    raise of("2200C", "SQL regular expression may not contain more than two escape-double-quote separators")
                quotes += 1
            else:
                out.append("\\" + following)
        elif inside:
            out.append("\\\\" if char == "\\" else char)
            inside = char != "]"
        elif char == "[":
            out.append(char)
            inside = True
        elif char in "%_(":
            out.append({"%": ".*", "_": ".", "(": "(?:"}[char])
        elif char in "\\.^$":
            out.append("\\" + char)
        else:
            out.append(char)
    return "".join(out) + ")$"


@own("text", "text", "text", to="text")
def substring_similar(text: str, pattern: str, escape: str) -> str | None:
    """SUBSTRING(text SIMILAR pattern ESCAPE escape): what stands between the two escaped quotes."""
    similar = similar_to(pattern, escape)
    if "){1,1}?(" not in similar:
        match = compiled(similar, "").search(text)
        return match[0] if match else None
    match = _between_quotes(similar).search(text)
    return match[1] if match else None


@lru_cache(maxsize=64)
def _between_quotes(similar: str) -> Searched:
    before, _, rest = similar.partition("){1,1}?(")
    inner, _, after = rest.partition("){1,1}(?:")
    parts = (before + ")", "(?:" + inner + ")", "(?:" + after)
    head, middle, tail = (translated(part, "").removeprefix("(?s)") for part in parts)
    head = re.sub(r"(?<!\\)([*+}])", r"\1?", head)  # as little as may be before what is wanted
    text = f"(?s){head}({middle}){tail}"
    return Searched(re.compile(text), for_re2(text), choices(text).power)
