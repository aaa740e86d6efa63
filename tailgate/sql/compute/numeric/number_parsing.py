"""to_number(), in the C locale.

Source: PostgreSQL 15, src/backend/utils/adt/formatting.c, NUM_processor(), numeric_to_number().
"""

from __future__ import annotations

from decimal import Decimal

from tailgate.lake.errors import FeatureNotSupported, NumericValueOutOfRange
from tailgate.lake.sortable import EXACT
from tailgate.sql.compute.numeric.number_pattern import Pattern, parse
from tailgate.sql.compute.registry import udf
from tailgate.values.numbers.numerics import exact

NUMBER_CHARACTERS = "0123456789.,+-"


@udf("text", "text", to="numeric")
def to_number(text: str, pattern: str) -> Decimal | None:
    if not pattern:
        return None
    p = parse(pattern)
    for keyword in ("RN", "EEEE"):
        if keyword in p.flags:
            raise FeatureNotSupported(f'"{keyword}" not supported for input')
    value = exact(_Reader(text, p).read())
    if "V" in p.flags:
        return value.scaleb(-p.shift_digits, EXACT)
    if p.integer_digits + p.fraction_digits > 0 and value and value.adjusted() >= p.integer_digits:
        raise NumericValueOutOfRange("numeric field overflow")
    return value


class _Reader:
    """Reads one number by a pattern: the input half of NUM_processor()."""

    def __init__(self, text: str, pattern: Pattern) -> None:
        self.text, self.pattern, self.at = text, pattern, 0
        self.sign, self.digits = " ", ""
        self.integer_digits = self.fraction_digits = 0
        self.point_read = False

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def read(self) -> str:
        """Returns the number's text, with a sign or a blank first."""
        for part in self.pattern.parts:
            if self.at >= len(self.text):
                break
            match part.keyword:
                case "9" | "0" | "." | "D":
                    self._read_digit(part.keyword)
                    self.at += 1
                case "," | "G":
                    self.at += self.peek() == ","
                case "L":
                    self._skip_text(1)
                case "TH" | "th":
                    self._skip_text(2)
                case "MI":
                    self._read_sign("-")
                case "PL":
                    self._read_sign("+")
                case "SG":
                    self._read_sign("+-")
                case "":
                    self.at += 1
        return self.sign + self.digits.removesuffix(".")

    def _read_sign(self, signs: str) -> None:
        if self.peek() in signs:
            self.sign = self.peek()
            self.at += 1
        else:
            self._skip_text(1)

    def _skip_text(self, count: int) -> None:
        """Skips up to some characters that cannot be part of a number."""
        while count and self.at < len(self.text) and self.peek() not in NUMBER_CHARACTERS:
            self.at, count = self.at + 1, count - 1

    def _read_digit(self, keyword: str) -> None:
        if self.peek() == " ":
            self.at += 1
        if self.at >= len(self.text):
            return
        if self.sign == " " and keyword in "09" and self.integer_digits + self.fraction_digits == 0:
            self._read_leading_sign()
        if self.at >= len(self.text):
            return
        read = False
        if self.peek().isdigit():
            if self.point_read and self.fraction_digits == self.pattern.fraction_digits:
                return
            self.digits += self.peek()
            self.fraction_digits += self.point_read
            self.integer_digits += not self.point_read
            read = True
        elif "." in self.pattern.flags and not self.point_read and self.peek() == ".":
            self.digits += "."
            self.point_read = read = True
        if self.sign == " " and self.integer_digits + self.fraction_digits > 0:
            self._read_trailing_sign(read)

    def _read_leading_sign(self) -> None:
        if "S" in self.pattern.flags and self.pattern.sign_first:
            if self.peek() in "+-":
                self.sign = self.peek()
                self.at += 1
        elif self.peek() == "-" or ("PR" in self.pattern.flags and self.peek() == "<"):
            self.sign = "-"
            self.at += 1
        elif self.peek() == "+":
            self.sign = "+"
            self.at += 1

    def _read_trailing_sign(self, digit_read: bool) -> None:
        flags, following = self.pattern.flags, self.text[self.at + 1 : self.at + 2]
        if "S" in flags and digit_read and following and not following.isdigit():
            if following in "+-":
                self.sign = following
                self.at += 1
        elif not digit_read and flags & {"PL", "MI"} and self.peek() in "+-":
            self.sign = self.peek()
