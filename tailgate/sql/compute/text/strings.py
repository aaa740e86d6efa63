"""Functions of text. Positions and lengths count characters.

Source: PostgreSQL 15, src/backend/utils/adt/{varlena,oracle_compat,quote,formatting}.c.
"""

from __future__ import annotations

import re
import string
import unicodedata
from functools import lru_cache
from typing import Literal

from tailgate.lake.catalog.names import quoted
from tailgate.lake.errors import (
    FeatureNotSupported,
    InvalidEscapeSequence,
    InvalidParameterValue,
    InvalidUseOfEscapeCharacter,
    NumericValueOutOfRange,
    ProgramLimitExceeded,
    SubstringError,
    SyntaxError_,
)
from tailgate.lake.keywords import quoted_text
from tailgate.sql.compute.regexp.ambiguity import analyze
from tailgate.sql.compute.regexp.patterns import compiled, for_re2, translated
from tailgate.sql.compute.regexp.search import Pattern
from tailgate.sql.compute.registry import udf

LENGTH_MAX = 2**26  # characters of a result, which Python writes in 20 ms; PostgreSQL's limit is 1 GiB


def checked_length(length: int) -> int:
    """Returns a result's length, at least 0. Raises 54000 above the limit."""
    if length > LENGTH_MAX:
        raise ProgramLimitExceeded("requested length too large")
    return max(length, 0)


@udf("text", to="text")
def initcap(text: str) -> str:
    result, inside_word = [], False
    for char in text:
        upper = char.upper()
        result.append(char.lower() if inside_word else upper if len(upper) == 1 else char)
        inside_word = char.isalnum()
    return "".join(result)


@udf("text", "int4", "text", to="text")
def lpad(text: str, length: int, fill: str) -> str:
    length = checked_length(length)
    missing = length - len(text) if fill else 0
    return text[:length] if missing <= 0 else (fill * (missing // len(fill) + 1))[:missing] + text


@udf("text", "int4", "text", to="text")
def rpad(text: str, length: int, fill: str) -> str:
    length = checked_length(length)
    missing = length - len(text) if fill else 0
    return text[:length] if missing <= 0 else text + (fill * (missing // len(fill) + 1))[:missing]


@udf("text", "int4", to="text")
def repeat(text: str, count: int) -> str:
    checked_length(len(text.encode()) * max(count, 0))
    return text * max(count, 0)


@udf("text", to="text")
def reverse(text: str) -> str:
    return text[::-1]


@udf("text", "text", "text", to="text")
def translate(text: str, originals: str, replacements: str) -> str:
    table: dict[int, str | None] = {}
    for i, char in enumerate(originals):
        table.setdefault(ord(char), replacements[i] if i < len(replacements) else None)
    return text.translate(table)


@udf("text", to="int4", name="ascii")
def code_point(text: str) -> int:
    return ord(text[0]) if text else 0


@udf("int4", to="text", name="chr")
def character(number: int) -> str:
    if number < 0:
        raise InvalidParameterValue("character number must be positive")
    if number == 0:
        raise ProgramLimitExceeded("null character not permitted")
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        raise ProgramLimitExceeded(f"requested character too large for encoding: {number}")
    return chr(number)


@udf("text", "text", "int4", "int4", to="text")
def overlay(text: str, replacement: str, start: int, count: int) -> str:
    if start <= 0:
        raise SubstringError("negative substring length not allowed")
    end = start + count
    if end > 2**31 - 1:
        raise NumericValueOutOfRange("integer out of range")
    return text[: start - 1] + replacement + text[max(end, 1) - 1 :]


@udf("text", "text", to="bool")
def starts_with(text: str, prefix: str) -> bool:
    return text.startswith(prefix)


@udf("int8", to="text")
def to_hex_int8(number: int) -> str:
    return f"{number & (2**64 - 1):x}"


@udf("int4", to="text")
def to_hex_int4(number: int) -> str:
    return f"{number & (2**32 - 1):x}"


# --- quoting -------------------------------------------------------------------------------------


@udf("text", to="text")
def quote_ident(text: str) -> str:
    return quoted(text)


@udf("text", to="text")
def quote_literal(text: str) -> str:
    prefix = "E" if "\\" in text else ""
    return prefix + quoted_text(text.replace("\\", "\\\\"))


# --- Unicode -------------------------------------------------------------------------------------

UNICODE_ESCAPE = re.compile(r"\\(?:\\|([0-9a-fA-F]{4})|\+([0-9a-fA-F]{6})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))?")


@udf("text", to="text")
def unistr(text: str) -> str:
    def unescape(match: re.Match[str]) -> str:
        if match[0] == "\\\\":
            return "\\"
        digits = next((g for g in match.groups() if g), None)
        if digits is None:
            raise SyntaxError_("invalid Unicode escape")
        number = int(digits, 16)
        if number == 0 or number > 0x10FFFF:
            raise InvalidParameterValue(f"invalid Unicode code point: {number:04X}")
        return chr(number)

    # Decoding as UTF-16 joins surrogate pairs and refuses single surrogates.
    utf16 = UNICODE_ESCAPE.sub(unescape, text).encode("utf-16", "surrogatepass")
    try:
        return utf16.decode("utf-16")
    except UnicodeDecodeError:
        raise SyntaxError_("invalid Unicode surrogate pair") from None


NormalForm = Literal["NFC", "NFD", "NFKC", "NFKD"]
NORMAL_FORMS: dict[str, NormalForm] = {"NFC": "NFC", "NFD": "NFD", "NFKC": "NFKC", "NFKD": "NFKD"}


def _normal_form(name: str) -> NormalForm:
    if name.upper() not in NORMAL_FORMS:
        raise InvalidParameterValue(f"invalid normalization form: {name}")
    return NORMAL_FORMS[name.upper()]


@udf("text", "text", to="text")
def normalize(text: str, form: str) -> str:
    return unicodedata.normalize(_normal_form(form), text)


@udf("text", "text", to="bool")
def is_normalized(text: str, form: str) -> bool:
    return unicodedata.is_normalized(_normal_form(form), text)


# --- arrays --------------------------------------------------------------------------------------


@udf("text", "text", to="text[]")
def string_to_array(text: str, separator: str) -> list[str]:
    if not text:
        return []
    return text.split(separator) if separator else [text]


@udf("text", to="text[]")
def string_to_characters(text: str) -> list[str]:
    return list(text)


# --- LIKE and SIMILAR TO -------------------------------------------------------------------------


@udf("text", "text", to="text")
def like_escape(pattern: str, escape: str) -> str:
    """Returns a LIKE pattern that uses the backslash instead of another escape character."""
    if len(escape) > 1:
        raise InvalidEscapeSequence("invalid escape string", hint="Escape string must be empty or one character.")
    if escape == "\\":
        return pattern
    result, at = [], 0
    while at < len(pattern):
        char = pattern[at]
        if escape and char == escape:
            result.append("\\")
            at += 1
            result.append(pattern[at : at + 1])
        else:
            result.append("\\\\" if char == "\\" else char)
        at += 1
    return "".join(result)


@udf("text", "text", to="text")
def similar_to(pattern: str, escape: str) -> str:
    """Returns the regular expression of a SIMILAR TO pattern, as similar_to_escape() does."""
    if len(escape) > 1:
        raise InvalidEscapeSequence("invalid escape string", hint="Escape string must be empty or one character.")
    result, at, inside_brackets, separators = ["^(?:"], 0, False, 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if escape and char == escape:
            if at >= len(pattern):
                raise FeatureNotSupported("an escape character at the end of a pattern is not supported")
            following = pattern[at]
            at += 1
            if following == '"' and not inside_brackets:
                result.append(_separator(separators))
                separators += 1
            else:
                result.append("\\" + following)
        elif inside_brackets:
            result.append("\\\\" if char == "\\" else char)
            inside_brackets = char != "]"
        elif char == "[":
            result.append(char)
            inside_brackets = True
        elif char in "%_(":
            result.append({"%": ".*", "_": ".", "(": "(?:"}[char])
        elif char in "\\.^$":
            result.append("\\" + char)
        else:
            result.append(char)
    return "".join(result) + ")$"


def _separator(number: int) -> str:
    """Returns the regular expression of an escaped double quote; the first is number 0."""
    if number > 1:
        raise InvalidUseOfEscapeCharacter("SQL regular expression may not contain more than two escape-double-quote separators")
    return "){1,1}?(" if number == 0 else "){1,1}(?:"


@udf("text", "text", "text", to="text")
def substring_similar(text: str, pattern: str, escape: str) -> str | None:
    """Computes SUBSTRING(… SIMILAR … ESCAPE …): the part between escaped double quotes."""
    similar = similar_to(pattern, escape)
    if "){1,1}?(" not in similar:
        match = compiled(similar, "").search(text)
        return match[0] if match else None
    match = _pattern_with_separators(similar).search(text)
    return match[1] if match else None


@lru_cache(maxsize=64)
def _pattern_with_separators(similar: str) -> Pattern:
    """Returns the pattern of a SIMILAR TO pattern with escaped double quotes; its first group is the part between them."""
    before, _, rest = similar.partition("){1,1}?(")
    inner, _, after = rest.partition("){1,1}(?:")
    parts = (before + ")", "(?:" + inner + ")", "(?:" + after)
    head, middle, tail = (translated(part, "").removeprefix("(?s)") for part in parts)
    head = re.sub(r"(?<!\\)([*+}])", r"\1?", head)  # the part before the first quote is the shortest
    regexp = f"(?s){head}({middle}){tail}"
    return Pattern(re.compile(regexp), for_re2(regexp), analyze(regexp).power)


# --- identifiers ---------------------------------------------------------------------------------

SPACES = re.compile(r"[ \t\n\r\f]*")
IDENTIFIER = re.compile(r'"((?:[^"]|"")*)"|[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*')
TO_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


@udf("text", "bool", to="text[]")
def parse_ident(text: str, strict: bool) -> list[str]:
    def error(detail: str | None = None) -> InvalidParameterValue:
        return InvalidParameterValue(f'string is not a valid identifier: "{text}"', detail=detail)

    def after_spaces(at: int) -> int:
        match = SPACES.match(text, at)
        return at if match is None else match.end()

    parts: list[str] = []
    at = after_spaces(0)
    while True:
        match = IDENTIFIER.match(text, at)
        if match is None and text.startswith('"', at):
            raise error("String has unclosed double quotes.")
        if match is None and text.startswith(".", at):
            raise error('No valid identifier before ".".')
        if match is None:
            raise error('No valid identifier after ".".' if parts else None)
        quoted = match.group(1)
        if quoted == "":
            raise error("Quoted identifier must not be empty.")
        parts.append(match.group().translate(TO_LOWER) if quoted is None else quoted.replace('""', '"'))
        at = after_spaces(match.end())
        if not text.startswith(".", at):
            if strict and at < len(text):
                raise error()
            return parts
        at = after_spaces(at + 1)
