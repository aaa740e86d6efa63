"""Translates PostgreSQL's advanced regular expressions to a syntax that Python and Java share.

Python and Java find the first alternative that matches, from left to right; PostgreSQL finds the
longest match. If the position of a match matters, patterns for which the two may differ are refused
(`ambiguity`). Whether a text matches at all is the same by both rules.

Source: PostgreSQL 15, section "POSIX Regular Expressions"; src/backend/utils/adt/regexp.c.
"""

from __future__ import annotations

import re

from tailgate.lake.errors import FeatureNotSupported, InvalidRegularExpression, TailgateError

CLASSES = {
    "alpha": r"a-zA-Z", "digit": r"0-9", "alnum": r"a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r" \t\n\r\f\v",
    "blank": r" \t", "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f", "word": r"a-zA-Z0-9_", "cntrl": r"\x00-\x1f\x7f",
    "print": r"\x20-\x7e", "graph": r"\x21-\x7e",
}  # fmt: skip
CLASS_ESCAPES = {"d": "0-9", "w": "a-zA-Z0-9_", "s": r" \t\n\r\f\v"}
NEGATED_CLASS_ESCAPES = {"D": r"\D", "W": r"\W", "S": r"\S"}
CHARACTER_ESCAPES = {
    "a": r"\x07", "b": r"\x08", "e": r"\x1b", "f": r"\f", "n": r"\n", "r": r"\r", "t": r"\t", "v": r"\x0b", "0": r"\x00",
}  # fmt: skip
HEX_DIGITS = {"x": "{1,2}", "u": "{4}", "U": "{8}"}  # of escapes with a code point
WORD_START = "(?<![a-zA-Z0-9_])(?=[a-zA-Z0-9_])"
WORD_END = "(?<=[a-zA-Z0-9_])(?![a-zA-Z0-9_])"
METACHARACTERS = frozenset(".^$*+?{}[]\\|()")
LOOK_AROUND = ("?=", "?!", "?<=", "?<!")
REPEAT_MAX = 255  # PostgreSQL's DUPMAX


def invalid(detail: str) -> TailgateError:
    return InvalidRegularExpression(f"invalid regular expression: {detail}")


def translate(pattern: str, flags: str, *, within_lines: bool) -> str:
    """Returns a pattern in the shared syntax. `within_lines`: [^…] does not match a line feed. Raises 2201B."""
    return _Translator(pattern, flags, within_lines).text


class _Translator:
    """A recursive descent parser that writes the translation of one pattern to `text`."""

    def __init__(self, pattern: str, flags: str, within_lines: bool) -> None:
        self.pattern, self.at, self.within_lines = pattern, 0, within_lines
        self.expanded = "x" in flags  # white space and comments are ignored
        self.groups = 0
        self.text = self._alternatives(0)
        if self.at < len(pattern):
            raise invalid("parentheses () not balanced")

    def _peek(self, length: int = 1) -> str:
        return self.pattern[self.at : self.at + length]

    # --- branches and atoms ----------------------------------------------------------------------

    def _alternatives(self, depth: int) -> str:
        branches = [self._branch(depth)]
        while self._peek() == "|":
            self.at += 1
            branches.append(self._branch(depth))
        if len(branches) > 1:
            branches = self._longest_first(branches)
        return "|".join(branches)

    def _longest_first(self, branches: list[str]) -> list[str]:
        """Orders branches of plain text by length if nothing that follows prefers a shorter one."""
        texts = [_plain_text(b) for b in branches]
        if all(t is not None for t in texts) and not self.pattern[self.at :].strip(")$"):
            pairs = sorted(zip(texts, branches, strict=True), key=lambda pair: -len(pair[0] or ""))
            return [branch for _, branch in pairs]
        return branches

    def _branch(self, depth: int) -> str:
        parts = []
        quantifiable = False
        while self.at < len(self.pattern):
            char = self._peek()
            if char == "|" or (char == ")" and depth):
                break
            if self.expanded and (char.isspace() or char == "#"):
                last_comment = char == "#" and "\n" not in self.pattern[self.at :]
                self.at = len(self.pattern) if last_comment else self.at + 1
                continue
            if char in "*+?" or (char == "{" and re.match(r"\{\d", self._peek(2))):
                if not quantifiable:
                    raise invalid("quantifier operand invalid")
                parts.append(self._quantifier())
                quantifiable = False
                continue
            atom, quantifiable = self._atom(depth)
            parts.append(atom)
        return "".join(parts)

    def _quantifier(self) -> str:
        text = self._peek()
        if text == "{":
            match = re.compile(r"\{(\d{1,99})(,(\d{0,99}))?\}").match(self.pattern, self.at)
            if match is None:
                raise invalid("invalid repetition count(s)")
            low, high = int(match[1]), int(match[3]) if match[3] else int(match[1])
            if low > REPEAT_MAX or high > REPEAT_MAX or low > high:
                raise invalid("invalid repetition count(s)")
            text = match[0]
        self.at += len(text)
        if self._peek() == "?":
            self.at += 1
            text += "?"
        if self._peek() in ("*", "+", "?"):
            raise invalid("quantifier operand invalid")
        return text

    def _atom(self, depth: int) -> tuple[str, bool]:
        """Returns an atom or constraint, and whether a quantifier may follow."""
        char = self._peek()
        self.at += 1
        match char:
            case "(":
                return self._group(depth)
            case ")":
                raise invalid("parentheses () not balanced")
            case "[":
                return self._bracket(), True
            case "^" | "$":
                return char, False
            case "\\":
                return self._escape()
            case ".":
                return char, True
            case "]" | "}" | "{":
                return "\\" + char, True
        return (re.escape(char) if char in METACHARACTERS else char), True

    def _group(self, depth: int) -> tuple[str, bool]:
        sign = next((s for s in ("?:", *LOOK_AROUND) if self.pattern.startswith(s, self.at)), "")
        if not sign and self._peek() == "?":
            raise invalid("quantifier operand invalid")
        self.at += len(sign)
        self.groups += not sign
        body = self._alternatives(depth + 1)
        if self._peek() != ")":
            raise invalid("parentheses () not balanced")
        self.at += 1
        return f"({sign}{body})", sign not in LOOK_AROUND

    # --- bracket expressions ---------------------------------------------------------------------

    def _bracket(self) -> str:
        if self.pattern.startswith("[:<:]]", self.at) or self.pattern.startswith("[:>:]]", self.at):
            is_start = self._peek(3) == "[:<"
            self.at += 6
            return WORD_START if is_start else WORD_END
        negated = self._peek() == "^"
        self.at += negated
        items: list[str] = []
        while True:
            char = self._peek()
            if not char:
                raise invalid("brackets [] not balanced")
            if char == "]" and items:
                self.at += 1
                break
            item = self._bracket_item()
            if self._peek() == "-" and self._peek(2) not in ("-]", "-"):
                self.at += 1
                last = self._bracket_item()
                first_char, last_char = _bracket_character(item), _bracket_character(last)
                if len(first_char) != 1 or len(last_char) != 1 or first_char > last_char:
                    raise invalid("invalid character range")
                item = f"{item}-{last}"
            items.append(item)
        if negated and self.within_lines:
            items.append(r"\n")
        return f"[{'^' if negated else ''}{''.join(items)}]"

    def _bracket_item(self) -> str:
        char = self._peek()
        if char == "[" and self._peek(2) in ("[:", "[.", "[="):
            return self._character_class()
        self.at += 1
        if char != "\\":
            return _escaped_in_bracket(char)
        char = self._peek()
        self.at += 1
        if char in CLASS_ESCAPES:
            return CLASS_ESCAPES[char]
        if char in NEGATED_CLASS_ESCAPES:
            return NEGATED_CLASS_ESCAPES[char]
        return self._character_escape(char, in_bracket=True)

    def _character_class(self) -> str:
        """Translates [:class:], [.element.] or [=element=]."""
        kind = self._peek(2)[1]
        end = self.pattern.find(kind + "]", self.at + 2)
        if end < 0:
            raise invalid("brackets [] not balanced")
        name = self.pattern[self.at + 2 : end]
        self.at = end + 2
        if kind != ":":
            if len(name) != 1:
                raise FeatureNotSupported("collating elements in regular expressions are not supported")
            return _escaped_in_bracket(name)
        if name not in CLASSES:
            raise invalid("invalid character class")
        return CLASSES[name]

    # --- escapes ---------------------------------------------------------------------------------

    def _escape(self) -> tuple[str, bool]:
        """Returns an atom or constraint after a backslash, and whether a quantifier may follow."""
        char = self._peek()
        self.at += 1
        match char:
            case "d" | "w" | "s":
                return f"[{CLASS_ESCAPES[char]}]", True
            case "D" | "W" | "S":
                return f"[^{CLASS_ESCAPES[char.lower()]}]", True
            case "m":
                return WORD_START, False
            case "M":
                return WORD_END, False
            case "y":
                return f"(?:{WORD_START}|{WORD_END})", False
            case "Y":
                return f"(?!{WORD_START}|{WORD_END})", False
            case "A":
                return r"\A", False
            case "Z":
                return r"(?!.|\n)", False
        if char.isdigit() and char != "0":
            if int(char) > self.groups:
                raise invalid("invalid backreference number")
            return f"(?:\\{char})", True
        return self._character_escape(char, in_bracket=False), True

    def _character_escape(self, char: str, *, in_bracket: bool) -> str:
        """Translates an escape that is one character."""
        if char in CHARACTER_ESCAPES and (in_bracket or char != "b"):
            return CHARACTER_ESCAPES[char]
        if char in HEX_DIGITS:
            match = re.compile(rf"[0-9a-fA-F]{HEX_DIGITS[char]}").match(self.pattern, self.at)
            if match is None:
                raise invalid("invalid escape \\ sequence")
            self.at = match.end()
            character = chr(int(match[0], 16))
            return _escaped_in_bracket(character) if in_bracket else re.escape(character)
        if char == "B":
            return r"\\"
        if not char or (char.isascii() and char.isalnum()):
            raise invalid("invalid escape \\ sequence")
        return _escaped_in_bracket(char) if in_bracket else re.escape(char)


def _escaped_in_bracket(char: str) -> str:
    return "\\" + char if char in "[]\\^-&~|" else char


def _bracket_character(item: str) -> str:
    """Returns the character of a bracket's item, or a longer text if the item is a class."""
    if len(item) == 2 and item[0] == "\\":
        return item[1:]
    return chr(int(item[2:], 16)) if item[:2] == "\\x" else item


def _plain_text(branch: str) -> str | None:
    """Returns a branch if it is plain text, else None."""
    if re.search(r"\\[a-zA-Z0-9]", branch):
        return None
    unescaped = re.sub(r"\\([^a-zA-Z0-9])", "", branch)
    return None if any(c in METACHARACTERS for c in unescaped) else branch
