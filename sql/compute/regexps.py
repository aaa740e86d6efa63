"""Regular expressions: PostgreSQL's AREs, translated to those of Python, whose spelling Java's share where it matters.

Both look for the first alternative that fits, left to right, where PostgreSQL looks for the longest match. So where the place of a match
matters, a pattern for which that may differ is refused: alternatives of which one may begin like another, and greedy beside non-greedy
quantifiers. Whether a text matches at all is the same by both rules.

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
REPEAT_MAX = 255  # as PostgreSQL's DUPMAX


def invalid(detail: str) -> TailgateError:
    return of("2201B", f"invalid regular expression: {detail}")


class Translator:
    """One pattern; `text` is its translation."""

    def __init__(self, pattern: str, flags: str, searching: bool) -> None:
        self.pattern, self.at = pattern, 0
        self.searching = searching  # whether the place of a match matters
        self.expanded = "x" in flags
        self.greedy: set[bool] = set()
        self.groups = 0
        self.alternatives = False
        self.references = False
        self.text = self._alternatives(0)
        if self.at < len(pattern):
            raise invalid("parentheses () not balanced")
        if searching and (len(self.greedy) > 1 or (self.alternatives and False in self.greedy)):
            raise FeatureNotSupported("a regular expression with greedy and non-greedy parts is not supported")

    def _peek(self, length: int = 1) -> str:
        return self.pattern[self.at : self.at + length]

    def _alternatives(self, depth: int) -> str:
        branches = [self._branch(depth)]
        while self._peek() == "|":
            self.at += 1
            branches.append(self._branch(depth))
        if len(branches) > 1:
            self.alternatives = True
            if self.searching:
                branches = self._ordered(branches)
        return "|".join(branches)

    def _ordered(self, branches: list[str]) -> list[str]:
        """Alternatives of which at most one fits, or plain words: those longest first."""
        words = [_word(b) for b in branches]
        whole = not self.pattern[self.at :].strip(")$")  # nothing behind can make a shorter word right
        if all(w is not None for w in words) and whole:
            return [b for _, b in sorted(zip(words, branches, strict=True), key=lambda p: -len(p[0] or ""))]
        if all(w is not None for w in words) and not any(a != b and a.startswith(b) for a in words for b in words if a and b):
            return branches
        firsts = [_first(b) for b in branches]
        for i, first in enumerate(firsts):
            for other in firsts[i + 1 :]:
                if first is None or other is None or first & other:
                    raise FeatureNotSupported(
                        "a regular expression with alternatives that begin alike is not supported",
                        hint="PostgreSQL takes the longest match of all alternatives.",
                    )
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
            text, fixed = match[0], match[2] is None
        else:
            self.at += 1
            text, fixed = char, False
        lazy = self._peek() == "?"
        if lazy:
            self.at += 1
            text += "?"
        if self._peek() in ("*", "+", "?") and self._peek():
            raise invalid("quantifier operand invalid")
        if not fixed or lazy:
            self.greedy.add(not lazy)
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
        for sign, constraint in (("?:", False), ("?=", True), ("?!", True), ("?<=", True), ("?<!", True)):
            if self.pattern.startswith(sign, self.at):
                self.at += len(sign)
                searching, self.searching = self.searching, self.searching and not constraint
                inner = self._alternatives(depth + 1)
                self.searching = searching
                break
        else:
            if self._peek() == "?":
                raise invalid("quantifier operand invalid")
            sign = ""
            constraint = False
            self.groups += 1
            inner = self._alternatives(depth + 1)
        if self._peek() != ")":
            raise invalid("parentheses () not balanced")
        self.at += 1
        return f"({sign}{inner})", not constraint

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
            self.references = True
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


def _first(branch: str) -> frozenset[int] | None:
    """Code points below 256 that may begin what a branch matches (256 stands for all beyond); None if it may be empty or is not known."""
    match = re.match(r"\[(?:\\.|[^\]\\])+\]|\\[^a-zA-Z0-9]|[^.^$*+?{}\[\]\\|()]", branch)
    if match is None or (branch[match.end() :] and branch[match.end()] in "*?"):
        return None
    if branch[match.end() : match.end() + 2] == "{0":
        return None
    one = re.compile(match[0])
    return frozenset(n for n in range(257) if one.fullmatch(chr(n if n < 256 else 0x4E00)))
