"""Regular expressions: PostgreSQL's AREs, translated to those of Python, whose spelling Java's share where it matters.

Both look for the first alternative that fits, left to right, where PostgreSQL looks for the longest match. So where the place of a match
matters, a pattern for which that may differ is refused (`regexpchoices`). Whether a text matches at all is the same by both rules.

Source: PostgreSQL 15, section "POSIX Regular Expressions"; src/backend/utils/adt/regexp.c.
"""

from __future__ import annotations

import re

from lake.errors import FeatureNotSupported, TailgateError, of

CLASSES = {
    "alpha": r"a-zA-Z", "digit": r"0-9", "alnum": r"a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r" \t\n\r\f\v",
    "blank": r" \t", "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f", "word": r"a-zA-Z0-9_", "cntrl": r"\x00-\x1f\x7f",
    "print": r"\x20-\x7e", "graph": r"\x21-\x7e",
}  # fmt: skip
SHORT = {"d": "0-9", "w": "a-zA-Z0-9_", "s": r" \t\n\r\f\v"}
CONTROL = {"a": r"\x07", "b": r"\x08", "e": r"\x1b", "f": r"\f", "n": r"\n", "r": r"\r", "t": r"\t", "v": r"\x0b", "0": r"\x00"}
BEGIN, END = "(?<![a-zA-Z0-9_])(?=[a-zA-Z0-9_])", "(?<=[a-zA-Z0-9_])(?![a-zA-Z0-9_])"  # of a word
LITERAL_META = frozenset(".^$*+?{}[]\\|()")
CONSTRAINTS = ("?=", "?!", "?<=", "?<!")
REPEAT_MAX = 255  # as PostgreSQL's DUPMAX


def invalid(detail: str) -> TailgateError:
    return of("2201B", f"invalid regular expression: {detail}")


class Translator:
    """One pattern; `text` is its translation."""

    def __init__(self, pattern: str, flags: str) -> None:
        self.pattern, self.at = pattern, 0
        self.expanded = "x" in flags
        self.groups = 0
        self.text = self._alternatives(0)
        if self.at < len(pattern):
            raise invalid("parentheses () not balanced")

    def _peek(self, length: int = 1) -> str:
        return self.pattern[self.at : self.at + length]

    def _alternatives(self, depth: int) -> str:
        branches = [self._branch(depth)]
        while self._peek() == "|":
            self.at += 1
            branches.append(self._branch(depth))
        if len(branches) > 1:
            branches = self._ordered(branches)
        return "|".join(branches)

    def _ordered(self, branches: list[str]) -> list[str]:
        """Plain words with nothing behind that could make a shorter one right: those longest first."""
        words = [_word(b) for b in branches]
        if all(w is not None for w in words) and not self.pattern[self.at :].strip(")$"):
            return [b for _, b in sorted(zip(words, branches, strict=True), key=lambda p: -len(p[0] or ""))]
        return branches

    def _branch(self, depth: int) -> str:
        out = []
        quantifiable = False
        while self.at < len(self.pattern):
            char = self._peek()
            if char == "|" or (char == ")" and depth):
                break
            if self.expanded and (char.isspace() or char == "#"):
                self.at = len(self.pattern) if char == "#" and "\n" not in self.pattern[self.at :] else self.at + 1
                continue
            if char in "*+?" or (char == "{" and re.match(r"\{\d", self._peek(2))):
                if not quantifiable:
                    raise invalid("quantifier operand invalid")
                out.append(self._quantifier())
                quantifiable = False
                continue
            atom, quantifiable = self._atom(depth)
            out.append(atom)
        return "".join(out)

    def _quantifier(self) -> str:
        char = self._peek()
        if char == "{":
            match = re.compile(r"\{(\d+)(,(\d*))?\}").match(self.pattern, self.at)
            if match is None:
                raise invalid("invalid repetition count(s)")
            low, high = int(match[1]), int(match[3]) if match[3] else int(match[1])
            if low > REPEAT_MAX or high > REPEAT_MAX or low > high:
                raise invalid("invalid repetition count(s)")
            self.at = match.end()
            text = match[0]
        else:
            self.at += 1
            text = char
        lazy = self._peek() == "?"
        if lazy:
            self.at += 1
            text += "?"
        if self._peek() in ("*", "+", "?") and self._peek():
            raise invalid("quantifier operand invalid")
        return text

    def _atom(self, depth: int) -> tuple[str, bool]:
        """One atom or constraint, and whether a quantifier may follow."""
        char = self._peek()
        self.at += 1
        match char:
            case "(":
                return self._group(depth)
            case ")":
                raise invalid("parentheses () not balanced")
            case "[":
                return self._bracket(), True
            case "^":
                return "^", False
            case "$":
                return "$", False
            case "\\":
                return self._escape()
            case "." | "]" | "}" | "{":
                return ("." if char == "." else "\\" + char), True
        return (re.escape(char) if char in LITERAL_META else char), True

    def _group(self, depth: int) -> tuple[str, bool]:
        sign = next((s for s in ("?:", *CONSTRAINTS) if self.pattern.startswith(s, self.at)), "")
        if not sign and self._peek() == "?":
            raise invalid("quantifier operand invalid")
        self.at += len(sign)
        self.groups += not sign
        inner = self._alternatives(depth + 1)
        if self._peek() != ")":
            raise invalid("parentheses () not balanced")
        self.at += 1
        return f"({sign}{inner})", sign not in CONSTRAINTS

    def _bracket(self) -> str:
        if self.pattern.startswith("[:<:]]", self.at) or self.pattern.startswith("[:>:]]", self.at):
            begin = self._peek(3) == "[:<"
            self.at += 6
            return BEGIN if begin else END
        negated = self._peek() == "^"
        self.at += negated
        out: list[str] = []
        first = True
        while True:
            char = self._peek()
            if not char:
                raise invalid("brackets [] not balanced")
            if char == "]" and not first:
                self.at += 1
                break
            first = False
            item = self._item()
            if self._peek() == "-" and self._peek(2) not in ("-]", "-"):
                self.at += 1
                last = self._item()
                if len(_one(item)) != 1 or len(_one(last)) != 1:
                    raise invalid("invalid character range")
                if _one(item) > _one(last):
                    raise invalid("invalid character range")
                item = f"{item}-{last}"
            out.append(item)
        return f"[{'^' if negated else ''}{''.join(out)}]"

    def _item(self) -> str:
        char = self._peek()
        if char == "[" and self._peek(2) in ("[:", "[.", "[="):
            kind = self._peek(2)[1]
            end = self.pattern.find(kind + "]", self.at + 2)
            if end < 0:
                raise invalid("brackets [] not balanced")
            name = self.pattern[self.at + 2 : end]
            self.at = end + 2
            if kind != ":":
                if len(name) != 1:
                    raise FeatureNotSupported("collating elements in regular expressions are not supported")
                return _in_class(name)
            if name not in CLASSES:
                raise invalid("invalid character class")
            return CLASSES[name]
        self.at += 1
        if char != "\\":
            return _in_class(char)
        char = self._peek()
        self.at += 1
        if char in SHORT and char:
            return SHORT[char]
        if char in ("D", "S", "W"):
            return {"D": r"\D", "S": r"\S", "W": r"\W"}[char]
        return self._character(char, inside=True)

    def _character(self, char: str, *, inside: bool) -> str:
        """An escape that is one character."""
        if char in CONTROL and (inside or char != "b"):
            return CONTROL[char]
        if char in ("x", "u", "U"):
            length = {"x": 2, "u": 4, "U": 8}[char]
            match = re.compile(rf"[0-9a-fA-F]{{{'1,' if char == 'x' else ''}{length}}}").match(self.pattern, self.at)
            if match is None:
                raise invalid("invalid escape \\ sequence")
            self.at = match.end()
            found = chr(int(match[0], 16))
            return _in_class(found) if inside else re.escape(found)
        if char == "B":
            return r"\\"
        if not char or char.isalnum():
            raise invalid("invalid escape \\ sequence")
        return _in_class(char) if inside else re.escape(char)

    def _escape(self) -> tuple[str, bool]:
        char = self._peek()
        self.at += 1
        match char:
            case "d" | "w" | "s":
                return f"[{SHORT[char]}]", True
            case "D" | "W" | "S":
                return f"[^{SHORT[char.lower()]}]", True
            case "m":
                return BEGIN, False
            case "M":
                return END, False
            case "y":
                return f"(?:{BEGIN}|{END})", False
            case "Y":
                return f"(?!{BEGIN}|{END})", False
            case "A":
                return r"\A", False
            case "Z":
                return r"(?!.|\n)", False
        if char.isdigit() and char != "0":
            if int(char) > self.groups:
                raise invalid("invalid backreference number")
            return f"(?:\\{char})", True
        return self._character(char, inside=False), True


def _in_class(char: str) -> str:
    return "\\" + char if char in "[]\\^-&~|" else char


def _one(item: str) -> str:
    """The character of an item of a bracket; something longer if it is more than one."""
    return (
        item[1:]
        if len(item) == 2 and item[0] == "\\"
        else item
        if len(item) == 1
        else chr(int(item[2:], 16))
        if item[:2] == "\\x"
        else item
    )


def _word(branch: str) -> str | None:
    """The text that a branch is, if it is only that."""
    plain = re.sub(r"\\([^a-zA-Z0-9])", "", branch)
    return branch if not any(c in LITERAL_META for c in plain) and not re.search(r"\\[a-zA-Z0-9]", branch) else None
