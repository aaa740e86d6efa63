"""Splits text into tokens by PostgreSQL's lexical rules.

    text ──► tokens(text) ──► Cursor ──► the grammars

If the text has a lexical error (an unterminated quote), the last token holds the error. It is raised
when a grammar reaches this token, so an earlier syntax error is reported first, as in PostgreSQL.

Source: PostgreSQL 15, chapter "Lexical Structure"; src/backend/parser/scan.l for the wording of errors.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from tailgate.lake.errors import SyntaxError_, TailgateError
from tailgate.sql.lexer import escapes
from tailgate.sql.lexer.escapes import near

Kind = Literal["word", "quoted", "string", "bits", "integer", "decimal", "parameter", "operator", "end", "error"]

T = TypeVar("T")
C = TypeVar("C", bound="Cursor")
INTEGER_DIGITS_MAX = 4_300  # Python reads at most as many
NAME_BYTES_MAX = 63  # NAMEDATALEN - 1; longer names are truncated, as in PostgreSQL


@dataclass(frozen=True, slots=True)
class Token:
    """A token. `text` is as typed, without preceding blanks.

    `value` is the folded form of a word, the contents of a quoted name or string, and the number of a
    parameter. `position` is the 0-based offset in the text.
    """

    kind: Kind
    text: str
    value: str
    position: int
    error: TailgateError | None = field(default=None, compare=False)

    @property
    def end(self) -> int:
        """Returns the offset after the token."""
        return self.position + len(self.text)


BLANK = re.compile(r"(?:[ \t\n\r\f\v]+|--[^\n\r]*)+")
CONTINUED = re.compile(r"[ \t\f\v]*(?:--[^\n\r]*)?[\n\r](?:[ \t\n\r\f\v]|--[^\n\r]*[\n\r])*'")
WORD = re.compile(r"[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*")
NUMBER = re.compile(r"(?:[0-9]+\.(?!\.)[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?")
JUNK = re.compile(rf"[eE][+-]|{WORD.pattern}")  # behind a number
PARAMETER = re.compile(r"\$[0-9]+")
DOLLAR = re.compile(r"\$(?:[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*)?\$")
OPERATOR = re.compile(r"[~!@#^&|`?+\-*/%<>=]+")
PUNCTUATION = re.compile(r"::|:=|\.\.|[,()\[\].;:]")
COMMENT = re.compile(r"/\*|\*/")
BEYOND = set("~!@#^&|`?%")  # an operator with one of these characters may end in + or -


def tokens(text: str) -> tuple[Token, ...]:
    """Returns all tokens of a text. The last one has the kind 'end' or 'error'."""
    result: list[Token] = []
    at = 0
    try:
        while (token := _next(text, at)) is not None:
            result.append(token)
            at = token.end
    except TailgateError as error:
        start = blank.end() if (blank := BLANK.match(text, at)) else at
        with contextlib.suppress(TailgateError):  # an unterminated comment
            start = _skip(text, start)
        return (*result, Token("error", text[start:], "", start, error))
    return (*result, Token("end", "", "", len(text)))


def _next(text: str, at: int) -> Token | None:
    """Returns the token at or after an offset, or None at the end of the text."""
    at = _skip(text, at)
    if at == len(text):
        return None
    char = text[at]
    following = text[at + 1 : at + 3]
    if char == "'":
        return _string(text, at, at)
    if following[:1] == "'" and char in "eEnNbBxX":
        return _string(text, at, at + 1)
    if char in "uU" and following[:1] == "&" and following[1:] in ("'", '"'):
        return _string(text, at, at + 2) if following[1] == "'" else _quoted(text, at, at + 2)
    if char == '"':
        return _quoted(text, at, at)
    if match := WORD.match(text, at):
        return Token("word", match[0], _cut(_fold(match[0])), at)
    if match := NUMBER.match(text, at):
        number = match[0]
        if junk := JUNK.match(text, match.end()):
            raise near("trailing junk after numeric literal", text[at : junk.end()], at)
        return Token("integer" if number.isdigit() else "decimal", number, number, at)
    if char == "$":
        if match := PARAMETER.match(text, at):
            if junk := WORD.match(text, match.end()):
                raise near("trailing junk after parameter", text[at : junk.end()], at)
            return Token("parameter", match[0], match[0][1:], at)
        if match := DOLLAR.match(text, at):
            end = text.find(match[0], match.end())
            if end < 0:
                raise near("unterminated dollar-quoted string", text[at:], at)
            return Token("string", text[at : end + len(match[0])], text[match.end() : end], at)
    if match := PUNCTUATION.match(text, at):
        return Token("operator", match[0], match[0], at)
    if match := OPERATOR.match(text, at):
        sign = _operator(match[0])
        return Token("operator", sign, "<>" if sign == "!=" else sign, at)
    return Token("operator", char, char, at)


def _skip(text: str, at: int) -> int:
    """Returns the offset after blanks and comments. Comments nest."""
    while True:
        if match := BLANK.match(text, at):
            at = match.end()
        elif text.startswith("/*", at):
            depth, start = 0, at
            while True:
                mark = COMMENT.search(text, at)
                if mark is None:
                    raise near("unterminated /* comment", text[start:], start)
                depth += 1 if mark[0] == "/*" else -1
                at = mark.end()
                if depth == 0:
                    break
        else:
            return at


def _operator(run: str) -> str:
    """Returns the operator at the start of a sequence of operator characters.

    It ends before a comment, and without trailing + and - unless it contains a character of BEYOND.
    """
    for mark in ("--", "/*"):
        cut = run.find(mark)
        if cut >= 0:
            run = run[:cut]
    while len(run) > 1 and run[-1] in "+-" and not BEYOND & set(run):
        run = run[:-1]
    return run


def _fold(word: str) -> str:
    """Returns the word with ASCII letters in lower case. PostgreSQL folds no other letters in UTF-8."""
    return word.lower() if word.isascii() else "".join(c.lower() if c.isascii() else c for c in word)


def _cut(name: str) -> str:
    """Truncates a name to 63 bytes, at a character boundary."""
    raw = name.encode()
    return name if len(raw) <= NAME_BYTES_MAX else raw[:NAME_BYTES_MAX].decode(errors="ignore")


def _quoted(text: str, start: int, quote: int) -> Token:
    """Returns the token of a quoted name, "…" or U&"…". `quote` is the offset of the opening quote."""
    at = quote + 1
    while True:
        end = text.find('"', at)
        if end < 0:
            raise near("unterminated quoted identifier", text[start:], start)
        if text[end + 1 : end + 2] != '"':
            break
        at = end + 2
    value = text[quote + 1 : end].replace('""', '"')
    if not value:
        raise near("zero-length delimited identifier", text[start : end + 1], start)
    if quote > start:
        return _unicode(text, start, end + 1, "quoted", value)
    return Token("quoted", text[start : end + 1], _cut(value), start)


def _string(text: str, start: int, quote: int) -> Token:
    """Returns the token of '…', E'…', N'…', B'…', X'…' or U&'…', with continuations on later lines."""
    prefix = text[start:quote].lower()
    parts: list[tuple[str, int]] = []
    at = quote + 1
    while True:
        begin = at
        while True:
            if at >= len(text):
                what = {"b": "bit string literal", "x": "hexadecimal string literal"}.get(prefix, "quoted string")
                raise near(f"unterminated {what}", text[start:], start)
            if prefix == "e" and text[at] == "\\":
                at += 2
            elif text[at] != "'":
                at += 1
            elif text.startswith("''", at):
                at += 2
            else:
                break
        parts.append((text[begin:at], begin))
        at += 1
        if (match := CONTINUED.match(text, at)) is None:
            break
        at = match.end()
    if prefix == "e":
        return Token("string", text[start:at], escapes.backslashes(parts), start)
    value = "".join(part for part, _ in parts).replace("''", "'")
    if prefix == "u&":
        return _unicode(text, start, at, "string", value)
    if prefix in ("b", "x"):
        return Token("bits", text[start:at], prefix + value, start)
    return Token("string", text[start:at], value, start)


def _unicode(text: str, start: int, end: int, kind: Kind, raw: str) -> Token:
    """Returns the token of U&'…' or U&"…", with the UESCAPE that may follow."""
    escape = "\\"
    after = _skip(text, end)
    if (match := WORD.match(text, after)) is not None and _fold(match[0]) == "uescape":
        token = _next(text, match.end())
        if token is None:
            raise SyntaxError_("UESCAPE must be followed by a simple string literal at end of input", position=len(text))
        if token.kind != "string" or token.text[0] in "uUnN":
            raise near("UESCAPE must be followed by a simple string literal", token.text, token.position)
        escape = escapes.escape_character(token.text, token.value, token.position)
        end = token.end
    value = escapes.unicode(raw, escape, start + 3)
    return Token(kind, text[start:end], _cut(value) if kind == "quoted" else value, start)


class Cursor:
    """A position in the tokens of a text. `accept_word`, `any_word` and `accept` advance only if they match.

    `cache` has results of the grammar for parentheses, by the index of the opening one: the
    tree and the index after the closing one, or the error.
    """

    def __init__(self, text: str, row: tuple[Token, ...] | None = None, index: int = 0) -> None:
        self.text = text
        self.tokens = tokens(text) if row is None else row
        self.index = index
        self.cache: dict[int, tuple[Any, int] | TailgateError] = {}
        self.role_names: dict[int, Token] = {}  # by position: names of existing roles, and words such as CURRENT_USER

    @property
    def token(self) -> Token:
        """Returns the current token. Raises the lexical error if the text cannot be split further."""
        token = self.tokens[self.index]
        if token.error is not None:
            raise token.error
        return token

    def peek(self, ahead: int = 1) -> Token:
        """Returns the token `ahead` places after the current one, or the last token."""
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)]

    @property
    def position(self) -> int:
        """Returns the offset of the current token."""
        return self.token.position

    @property
    def finished(self) -> bool:
        """Returns whether all tokens are consumed."""
        return self.token.kind == "end"

    def advance(self) -> Token:
        """Consumes and returns the current token. Stays at the end of the text."""
        token = self.token
        if token.kind != "end":
            self.index += 1
        return token

    def since(self, start: int) -> str:
        """Returns the text from an offset to the end of the last consumed token."""
        return self.text[start : self.tokens[self.index - 1].end]

    def at_word(self, *words: str) -> bool:
        """Returns whether the next tokens are these words."""
        return all((t := self.peek(i)).kind == "word" and t.value == word for i, word in enumerate(words))

    def accept_word(self, *words: str) -> bool:
        """Consumes the words if they are the next tokens. Returns whether they are."""
        if not self.at_word(*words):
            return False
        self.index += len(words)
        return True

    def any_word(self, *words: str) -> str | None:
        """Consumes and returns the next word if it is one of these, else returns None."""
        token = self.token
        if token.kind == "word" and token.value in words:
            self.index += 1
            return token.value
        return None

    def at(self, sign: str, ahead: int = 0) -> bool:
        """Returns whether the token `ahead` places further is this punctuation mark or operator."""
        token = self.peek(ahead)
        return token.kind == "operator" and token.value == sign

    def accept(self, sign: str) -> bool:
        """Consumes a punctuation mark or operator if it is the next token. Returns whether it is."""
        if not self.at(sign):
            return False
        self.index += 1
        return True

    def listed(self: C, one: Callable[[C], T]) -> list[T]:
        """Parses a comma-separated list of at least one element, each with `one`."""
        items = [one(self)]
        while self.accept(","):
            items.append(one(self))
        return items

    def expect(self, sign: str) -> Token:
        """Consumes a punctuation mark or operator. Raises a syntax error if it is not next."""
        if not self.at(sign):
            raise self.error()
        return self.advance()

    def expect_word(self, *words: str) -> None:
        """Consumes the words. Raises a syntax error at the first that is not next."""
        for word in words:
            if not self.accept_word(word):
                raise self.error()

    def string(self) -> str:
        """Consumes a string and returns its value. Raises a syntax error if there is none."""
        if self.token.kind != "string":
            raise self.error()
        return self.advance().value

    def integer(self) -> int:
        """Consumes an integer and returns it. Raises a syntax error if there is none, or one with too many digits."""
        if self.token.kind != "integer" or len(self.token.value) > INTEGER_DIGITS_MAX:
            raise self.error()
        return int(self.advance().value)

    def finish(self) -> None:
        """Raises a syntax error unless all tokens are consumed."""
        if self.token.kind != "end":
            raise self.error()

    def error(self, token: Token | None = None, message: str = "syntax error") -> TailgateError:
        """Returns `syntax error at or near …` for a token, by default the current one."""
        token = token or self.token
        if token.kind == "end" and not token.text:
            return SyntaxError_(f"{message} at end of input", position=token.position)
        return near(message, token.text, token.position)
