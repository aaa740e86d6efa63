"""Splits the text of a jsonpath into tokens.

Source: PostgreSQL 15, src/backend/utils/adt/jsonpath_scan.l.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from tailgate.lake.errors import InvalidTextRepresentation, SyntaxError_, TailgateError, UntranslatableCharacter

KEYWORDS = frozenset(
    """
    is to abs lax flag last null size true type with false floor double exists starts strict ceiling unknown datetime keyvalue
    like_regex
    """.split()
)
CASE_SENSITIVE = ("null", "true", "false")
SPECIAL = r"?%$.\[\]{}()|&!=<>@#,*:\-+/"
NAME = rf'(?:[^{SPECIAL}\\"\s]|\\u\{{[0-9A-Fa-f]*\}}|\\.)+'
_TOKEN = re.compile(
    rf"""
    (?P<blank>[ \t\n\r\f]+|/\*.*?\*/)
    |(?P<number>(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[Ee][-+]?[0-9]+)?)
    |(?P<sign>&&|\|\||==|<>|!=|<=|>=|\*\*|[{SPECIAL}])
    |(?P<word>{NAME})
    """,
    re.VERBOSE | re.DOTALL,
)
_VARIABLE = re.compile(rf'\$(?:(?P<quoted>")|(?P<name>{NAME}))', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_SIMPLE = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_WORD, _BLANKS = re.compile(NAME, re.DOTALL), re.compile(r"[ \t\n\r\f]*")
_JUNK = re.compile(rf"[^{SPECIAL}\s\"]")


@dataclass(frozen=True, slots=True)
class Token:
    """A token. `kind`: sign, number, word, keyword, string, variable or end. `source` is what messages show.

    `name`: a keyword as it is written.
    """

    kind: str
    text: str
    source: str
    name: str = ""


def syntax_error(source: str) -> TailgateError:
    """Returns the error for an unexpected token."""
    return SyntaxError_(f'syntax error at or near "{source}" of jsonpath input' if source else "syntax error at end of jsonpath input")


def tokens(text: str) -> list[Token]:
    """Returns the tokens of a text, and the end. Raises 42601, 22P02 and 22P05."""
    results: list[Token] = []
    at = 0
    while at < len(text):
        if text.startswith('"', at):
            value, end = _quoted(text, at + 1)
            results.append(Token("string", value, '"'))
            at = end
            continue
        variable = _VARIABLE.match(text, at)
        if variable is not None:
            name, end = _quoted(text, variable.end()) if variable["quoted"] else (_unescaped(variable["name"]), variable.end())
            results.append(Token("variable", name, '"' if variable["quoted"] else text[at:end]))
            at = end
            continue
        if text.startswith("/*", at) and text.find("*/", at + 2) < 0:
            raise SyntaxError_("unexpected end of comment at end of jsonpath input")
        match = _TOKEN.match(text, at)
        if match is None:
            raise syntax_error(text[at])
        at = match.end()
        kind = str(match.lastgroup)
        if kind == "blank":
            continue
        if kind == "number" and at < len(text) and _JUNK.match(text, at):
            word = _WORD.match(text, match.start())
            if word is None or word.end() <= at + 1:
                raise SyntaxError_(f'trailing junk after numeric literal at or near "{match[0]}{text[at]}" of jsonpath input')
            match, at, kind = word, word.end(), "word"
        blanks = _BLANKS.match(text, at)
        assert blanks is not None
        results.append(_word(match[0], blanks[0]) if kind == "word" else Token(kind, match[0], match[0]))
    return [*results, Token("end", "", "")]


def _word(source: str, blanks: str) -> Token:
    """Returns a name or keyword. Messages show the blanks behind it, because the word ends there."""
    text = _unescaped(source)
    lower = text.lower()
    is_keyword = "\\" not in source and lower in KEYWORDS and (lower not in CASE_SENSITIVE or text == lower)
    return Token("keyword" if is_keyword else "word", lower if is_keyword else text, blanks, text)


def _quoted(text: str, begin: int) -> tuple[str, int]:
    """Returns the string that begins behind a quote, and the place behind the closing quote."""
    at = begin
    while at < len(text) and text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    if at >= len(text):
        raise SyntaxError_("unterminated quoted string at end of jsonpath input")
    return _unescaped(text[begin:at]), at + 1


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        digits = match[1] or match[2] or match[3]
        if digits is None:
            if match[4] in "ux":
                raise SyntaxError_(f"invalid {'Unicode' if match[4] == 'u' else 'hexadecimal character'} escape sequence of jsonpath input")
            return _SIMPLE.get(match[4], match[4])
        number = int(digits, 16)
        if number == 0:
            raise UntranslatableCharacter("unsupported Unicode escape sequence", detail="\\u0000 cannot be converted to text.")
        if number > sys.maxunicode:
            raise SyntaxError_("invalid Unicode code point")
        return chr(number)

    result = _ESCAPE.sub(character, text)
    try:
        return result.encode("utf-16", "surrogatepass").decode("utf-16")  # joins pairs of surrogates
    except UnicodeDecodeError:
        raise InvalidTextRepresentation("invalid input syntax for type jsonpath") from None
