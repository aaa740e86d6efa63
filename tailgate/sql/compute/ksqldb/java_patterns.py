"""Regular expressions of Java in the syntax of Python.

    (?i)\\p{Alpha}++[a-z&&[^q]]$  ──►  tree of alternatives  ──►  text for Python, and for RE2 if it supports all parts

Classes become sets of characters, and flags become parts of the text, so the result has no flags. Groups have numbers only.

Source: documentation of java.util.regex.Pattern.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field

from tailgate.lake.errors import FeatureNotSupported, InvalidRegularExpression
from tailgate.sql.compute.ksqldb import code_points as c

UNITS = r"[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|[0-9a-fA-F]{4}"  # of UTF-16: both of a surrogate pair, or one
CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
GROUP_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
REPEAT = re.compile(r"\{([0-9]{1,10})(,([0-9]{0,10}))?\}")
REPEATS_MAX = 2**31 - 1
SETS_MAX = 20_000  # ranges of the named sets and intersections of a pattern, and characters whose other case is looked up
HAS_ATOMIC = sys.hexversion >= 0x030B0000
BEGIN = r"(?:\A)"  # a quantifier may follow
END = r"(?:(?=\r\n\Z)|(?<!\r)(?=\n\Z)|(?=[\r\x85\u2028\u2029]\Z)|\Z)"  # before a line end that is the last one
LINE_BEGIN = r"(?:(?!\Z)(?:\A|(?<=[\n\x85\u2028\u2029])|(?<=\r)(?!\n)))"
LINE_END = r"(?:(?=[\r\x85\u2028\u2029])|(?<!\r)(?=\n)|\Z)"
UNIX = {END: r"(?:(?=\n\Z)|\Z)", LINE_BEGIN: r"(?:(?!\Z)(?:\A|(?<=\n)))", LINE_END: r"(?:(?=\n)|\Z)"}  # with the flag d


@dataclass(frozen=True)
class JavaPattern:
    """A regular expression in Python's syntax. `linear`: whether RE2 supports it, too. `names`: the numbers of named groups.

    `backtracking`: the same with groups and repetitions that are tried again in place of atomic ones, which takes at least as many steps.
    """

    text: str
    linear: bool
    backtracking: str
    names: dict[str, int] = field(default_factory=dict)


def translated(pattern: str) -> JavaPattern:
    """Returns a regular expression of Java in Python's syntax. Raises 2201B, or 0A000 for a part that Python cannot express."""
    reader = _Reader(pattern)
    text = reader.all()
    return JavaPattern(text, reader.linear, _Reader(pattern, atomic=False).all() if reader.is_atomic else text, reader.names)


def group_number(text: str, at: int, groups: int) -> tuple[int, int]:
    """Reads the number of a group: one digit, and as many more as a group that exists has. Returns it and the place after it.

    >>> group_number("$123", 1, groups=20)
    (12, 3)
    """
    number, at = int(text[at]), at + 1
    while at < len(text) and text[at] in "0123456789" and (longer := number * 10 + int(text[at])) <= groups:
        number, at = longer, at + 1
    return number, at


class _Reader:
    """Reads a pattern from left to right. `flags`: those that are on, of i, u, s, m, d and x. `atomic`: whether to keep atomic parts."""

    def __init__(self, pattern: str, *, atomic: bool = True) -> None:
        self.pattern, self.at = pattern, 0
        self.linear, self.is_atomic, self._keeps_atomic = True, False, atomic
        self.names: dict[str, int] = {}
        self.groups = self.sizes = 0

    def invalid(self) -> InvalidRegularExpression:
        return InvalidRegularExpression(f"invalid regular expression pattern: {self.pattern}")

    def unsupported(self) -> FeatureNotSupported:
        return FeatureNotSupported(f'the regular expression "{self.pattern}" is not supported')

    def count(self, size: int) -> None:
        """Counts ranges or characters of a set, which take time to compile. Raises 0A000 above SETS_MAX."""
        self.sizes += size
        if self.sizes > SETS_MAX:
            raise self.unsupported()

    def accept(self, text: str) -> bool:
        is_next = self.pattern.startswith(text, self.at)
        self.at += len(text) * is_next
        return is_next

    def next(self) -> str:
        if self.at >= len(self.pattern):
            raise self.invalid()
        self.at += 1
        return self.pattern[self.at - 1]

    def until(self, end: str) -> str:
        """Returns the text before `end`, which it skips."""
        place = self.pattern.find(end, self.at)
        if place < 0:
            raise self.invalid()
        text, self.at = self.pattern[self.at : place], place + len(end)
        return text

    def all(self) -> str:
        """Returns the whole pattern."""
        text = self.alternatives(frozenset())
        if self.at < len(self.pattern):
            raise self.invalid()
        return text

    # --- sequences

    def alternatives(self, flags: frozenset[str]) -> str:
        """Reads alternatives up to the end or a closing parenthesis."""
        parts: list[str] = []
        while self.at < len(self.pattern) and self.pattern[self.at] != ")":
            if self.accept("|"):
                parts.append("|")
                continue
            if "x" in flags and self._comment():
                continue
            if (changed := self._flags(flags)) is not None:
                flags = changed
                continue
            parts.append(self._repeated(flags))
        return "".join(parts)

    def _comment(self) -> bool:
        """Skips white space, or a comment up to the end of its line."""
        if self.accept("#"):
            while self.at < len(self.pattern) and self.pattern[self.at] not in "\n\r\x85\u2028\u2029":
                self.at += 1
            return True
        return any(self.accept(space) for space in " \t\n\x0b\f\r")

    def _flags(self, flags: frozenset[str]) -> frozenset[str] | None:
        """Reads (?flags), which are valid up to the end of the group. Returns the flags, or None if there are none."""
        match = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?\)").match(self.pattern, self.at)
        if match is None:
            return None
        self.at = match.end()
        return self._changed(flags, match[1], match[2] or "")

    def _changed(self, flags: frozenset[str], on: str, off: str) -> frozenset[str]:
        if not set(on + off) <= set("idmsuxU"):
            raise self.invalid()
        if "U" in on + off:
            raise self.unsupported()
        return (flags | set(on)) - set(off)

    def _repeated(self, flags: frozenset[str]) -> str:
        """Reads an operand with its quantifier."""
        atom = self._atom(flags)
        sign = next((sign for sign in "*+?" if self.accept(sign)), "") or self._repetitions()
        if not sign:
            return atom
        if self.accept("?"):
            return atom + sign + "?"
        if self.accept("+"):
            self._be_atomic()
            return atom + sign + "+" * self._keeps_atomic
        return atom + sign

    def _repetitions(self) -> str:
        """Reads {low}, {low,} or {low,high}; returns an empty text if none follows."""
        match = REPEAT.match(self.pattern, self.at)
        if match is None:
            if self.pattern.startswith("{", self.at):
                raise self.invalid()
            return ""
        self.at = match.end()
        low = int(match[1])
        high = low if match[2] is None else int(match[3]) if match[3] else REPEATS_MAX
        if not low <= high <= REPEATS_MAX:
            raise self.invalid()
        return f"{{{low}}}" if high == low else f"{{{low},{'' if high == REPEATS_MAX else high}}}"

    def _be_atomic(self) -> None:
        """Notes that the pattern has a part that is not tried again. Raises 0A000 if Python has no such parts."""
        if not HAS_ATOMIC:
            raise self.unsupported()
        self.linear, self.is_atomic = False, True

    # --- operands

    def _atom(self, flags: frozenset[str]) -> str:
        char = self.next()
        match char:
            case "(":
                return self._group(flags)
            case "[":
                return c.written(self._class(flags))
            case "\\":
                return self._escape(flags)
            case ".":
                return "(?s:.)" if "s" in flags else c.written(c.complement(c.of_text("\n") if "d" in flags else c.LINE_ENDS))
            case "^":
                return self._anchor(LINE_BEGIN, flags) if "m" in flags else BEGIN
            case "$":
                return self._anchor(LINE_END if "m" in flags else END, flags)
            case "*" | "+" | "?":
                raise self.invalid()
            case "{":
                self.at -= 1
                return "(?:)"
        return self._literal(char, flags)

    def _anchor(self, text: str, flags: frozenset[str]) -> str:
        self.linear = False
        return UNIX[text] if "d" in flags else text

    def _literal(self, char: str, flags: frozenset[str]) -> str:
        return c.written(self._folded(c.of_text(char), flags)) if "i" in flags else re.escape(char)

    def _folded(self, of: c.Ranges, flags: frozenset[str]) -> c.Ranges:
        if "i" not in flags:
            return of
        if "u" in flags:
            self.count(sum(high - low + 1 for low, high in of))
        return c.folded(of, all_languages="u" in flags)

    def _group(self, flags: frozenset[str]) -> str:
        """Reads the rest of a group."""
        begin = "("
        if self.accept("?"):
            begin, flags = self._kind(flags)
        if begin == "(":
            self.groups += 1
        inner = self.alternatives(flags)
        if not self.accept(")"):
            raise self.invalid()
        return f"{begin}{inner})"

    def _kind(self, flags: frozenset[str]) -> tuple[str, frozenset[str]]:
        """Reads what follows (? and returns the beginning of the group in Python's syntax, with its flags."""
        for kind in (">", "=", "!", "<=", "<!"):
            if self.accept(kind):
                self.linear = False
                if kind == ">":
                    self._be_atomic()
                    kind = kind if self._keeps_atomic else ":"
                return f"(?{kind}", flags
        if self.accept("<"):
            name = self.until(">")
            if not GROUP_NAME.fullmatch(name) or name in self.names:
                raise self.invalid()
            self.names[name] = self.groups + 1
            return "(", flags
        on, _, off = self.until(":").partition("-")
        return "(?:", self._changed(flags, on, off)

    def _escape(self, flags: frozenset[str]) -> str:
        """Reads what follows a backslash."""
        char = self.next()
        if char in "123456789":
            number, self.at = group_number(self.pattern, self.at - 1, self.groups)
            return self._reference(number, flags)
        if char == "k":
            if not self.accept("<"):
                raise self.invalid()
            name = self.until(">")
            if name not in self.names:
                raise self.invalid()
            return self._reference(self.names[name], flags)
        if char == "Q":
            return "".join(self._literal(char, flags) for char in self._literal_text())  # a quantifier applies to the last one
        if char in "bBAzZGRX":
            return self._boundary(char)
        self.at -= 1
        if (of := self._class_escape(flags)) is not None:
            return c.written(of)
        return self._literal(self._character(), flags)

    def _reference(self, number: int, flags: frozenset[str]) -> str:
        self.linear = False
        if number > self.groups:
            return "(?!)"  # a group that does not exist matches nothing
        if "i" not in flags:
            return f"(?:\\{number})"
        return f"(?i:\\{number})" if "u" in flags else f"(?ai:\\{number})"

    def _boundary(self, char: str) -> str:
        if char == "A":
            return BEGIN
        if char == "R":
            return f"(?:\\r\\n|{c.written(c.VERTICAL)})"
        if char in "GX" or (char == "b" and self.pattern.startswith("{", self.at)):
            raise self.unsupported()
        self.linear = False
        return {"b": r"(?:\b)", "B": r"(?:\B|\A\Z)", "z": r"(?:\Z)", "Z": END}[char]

    # --- characters

    def _character(self) -> str:
        """Reads what follows a backslash and means one character."""
        char = self.next()
        if char in CONTROLS:
            return CONTROLS[char]
        if char == "c":
            return chr(ord(self.next()) ^ 64)
        if char == "0":
            return chr(int(self._digits(r"[0-3]?[0-7]{1,2}"), 8))
        if char == "u":
            units = "".join(chr(int(unit, 16)) for unit in self._digits(UNITS).split("\\u"))
            return units.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        if char == "x":
            digits = self.until("}") if self.accept("{") else self._digits("[0-9a-fA-F]{2}")
            if not re.fullmatch("[0-9a-fA-F]{1,8}", digits) or int(digits, 16) > c.MAX:
                raise self.invalid()
            return chr(int(digits, 16))
        if char == "N":
            raise self.unsupported()
        if char.isascii() and char.isalpha():
            raise self.invalid()
        return char

    def _digits(self, form: str) -> str:
        match = re.compile(form).match(self.pattern, self.at)
        if match is None:
            raise self.invalid()
        self.at = match.end()
        return match[0]

    def _class_escape(self, flags: frozenset[str]) -> c.Ranges | None:
        """Reads what follows a backslash and means a class; None for other escapes, of which it reads nothing."""
        char = self.pattern[self.at : self.at + 1]
        if char.lower() in c.LETTERS:
            self.at += 1
            of = c.LETTERS[char.lower()]
        elif char in ("p", "P"):
            self.at += 1
            of = self._property(self.until("}") if self.accept("{") else self.next(), flags)
        else:
            return None
        return c.complement(of) if char.isupper() else of

    def _property(self, name: str, flags: frozenset[str]) -> c.Ranges:
        of = c.of_property(name, ignore_case="i" in flags)
        if of is None:
            raise self.unsupported()
        self.count(len(of))
        return of

    # --- classes

    def _class(self, flags: frozenset[str]) -> c.Ranges:
        """Reads a class after its opening bracket."""
        negated = self.accept("^")
        of, is_empty = self._union(flags, is_first=True)
        while self.accept("&&"):
            while self.accept("&"):
                pass
            other, has_none = self._union(flags, is_first=False)
            of, is_empty = (of if has_none else other if is_empty else c.intersection(of, other)), is_empty and has_none
            self.count(len(of))
        if is_empty or not self.accept("]"):
            raise self.invalid()
        return c.complement(of) if negated else of

    def _union(self, flags: frozenset[str], *, is_first: bool) -> tuple[c.Ranges, bool]:
        """Reads the members of a class up to && or its end. Returns them, and whether there are none. ] is a member if it `is_first`."""
        pairs: list[tuple[int, int]] = []
        is_empty = True
        while self.at < len(self.pattern) and not self.pattern.startswith("&&", self.at):
            if self.pattern[self.at] == "]" and not (is_empty and is_first):
                break
            if "x" in flags and self._comment():
                continue
            is_empty = False
            pairs += self._member(flags)
        return c.ranges(pairs), is_empty

    def _member(self, flags: frozenset[str]) -> c.Ranges:
        """Reads a class, a range or a character inside of a class."""
        if self.accept("["):
            return self._class(flags)
        if self.accept("\\Q"):
            return self._folded(c.of_text(self._literal_text()), flags)
        if self.accept("\\"):
            if (of := self._class_escape(flags)) is not None:
                return of
            low = self._character()
        else:
            low = self.next()
        high = low
        if self.pattern.startswith("-", self.at) and self.pattern[self.at + 1 : self.at + 2] not in ("]", "[", ""):
            self.at += 1
            high = self._character() if self.accept("\\") else self.next()
        if high < low:
            raise self.invalid()
        return self._folded(((ord(low), ord(high)),), flags)

    def _literal_text(self) -> str:
        """Reads a text up to \\E or the end."""
        end = self.pattern.find("\\E", self.at)
        text = self.pattern[self.at : end if end >= 0 else None]
        self.at += len(text) + 2 * (end >= 0)
        return text
