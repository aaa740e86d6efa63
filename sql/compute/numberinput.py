"""to_number: a number read by a pattern, as NUM_processor() does it.

Source: PostgreSQL 15, src/backend/utils/adt/formatting.c.
"""

from __future__ import annotations

from decimal import Decimal

from lake.errors import of
from sql.compute.numberformats import EXACT, Pattern, parsed
from sql.compute.registry import own
from sql.input import numbers

DATA = "0123456789.,+-"


@own("text", "text", to="numeric")
def to_number(text: str, pattern: str) -> Decimal | None:
    p = parsed(pattern) if pattern else None
    if p is None:
        return None
    if "RN" in p.flags:
        raise of("0A000", '"RN" not supported for input')
    if "EEEE" in p.flags:
        raise of("0A000", '"EEEE" not supported for input')
    reader = _Reader(text, p)
    digits = reader.read()
    value = numbers.numeric(digits)
    if "V" in p.flags:
        value = value.scaleb(-p.multi, EXACT)
    elif p.pre + p.post > 0 and value and value.adjusted() >= p.pre:
        raise of("22003", "numeric field overflow")
    return value


class _Reader:
    """NUM_processor reading: `at` is the place in the text."""

    def __init__(self, text: str, p: Pattern) -> None:
        self.text, self.p, self.at = text, p, 0
        self.sign, self.digits = " ", ""
        self.pre = self.post = 0
        self.point = False

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def read(self) -> str:
        p = self.p
        for kind, _ in p.pieces:
            if self.at >= len(self.text):
                break
            match kind:
                case "9" | "0" | "." | "D":
                    self._digit(kind)
                    self.at += 1
                case "," | "G":
                    self.at += self.peek() == ","
                case "L":
                    self._eat(1)
                case "TH" | "th":
                    self._eat(2)
                case "MI" | "PL" | "SG":
                    if self.peek() in {"MI": "-", "PL": "+", "SG": "+-"}[kind]:
                        self.sign = self.peek()
                        self.at += 1
                    else:
                        self._eat(1)
                case "":
                    self.at += 1
        return self.sign + self.digits.removesuffix(".")

    def _eat(self, count: int) -> None:
        while count and self.at < len(self.text) and self.peek() not in DATA:
            self.at, count = self.at + 1, count - 1

    def _digit(self, kind: str) -> None:
        p = self.p
        read = False
        if self.peek() == " ":
            self.at += 1
        if self.at >= len(self.text):
            return
        if self.sign == " " and kind in "09" and self.pre + self.post == 0:
            if "S" in p.flags and p.sign_first:
                if self.peek() in "+-":
                    self.sign = self.peek()
                    self.at += 1
            elif self.peek() == "-" or ("PR" in p.flags and self.peek() == "<"):
                self.sign = "-"
                self.at += 1
            elif self.peek() == "+":
                self.sign = "+"
                self.at += 1
        if self.at >= len(self.text):
            return
        if self.peek().isdigit():
            if self.point and self.post == p.post:
                return
            self.digits += self.peek()
            self.post += self.point
            self.pre += not self.point
            read = True
        elif "." in p.flags and not self.point and self.peek() == ".":
            self.digits += "."
            self.point = read = True
        if self.sign == " " and self.pre + self.post > 0:
            if "S" in p.flags and read and self.at + 1 < len(self.text) and not self.text[self.at + 1].isdigit():
                if self.text[self.at + 1] in "+-":
                    self.sign = self.text[self.at + 1]
                    self.at += 1
            elif not read and p.flags & {"PL", "MI"} and self.peek() in "+-":
                self.sign = self.peek()
