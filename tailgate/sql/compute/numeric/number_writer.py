"""Writes one number by a pattern, in PostgreSQL's steps, so that odd patterns give equal results.

Source: PostgreSQL 15, src/backend/utils/adt/formatting.c, NUM_processor().
"""

from __future__ import annotations

from tailgate.sql.compute.numeric.number_pattern import Pattern
from tailgate.sql.compute.numeric.numerals import ordinal_ending


def write(pattern: Pattern, integer_digits: int, fraction_digits: int, sign: str, digits: str) -> str:
    """Returns a number's text.

    `integer_digits` is the number of positions before the decimal point, `sign` is + or -, and
    `digits` is the number without its sign, or NaN or Infinity.
    """
    return _Writer(pattern, integer_digits, fraction_digits, sign, digits).write()


class _Writer:
    def __init__(self, pattern: Pattern, integer_digits: int, fraction_digits: int, sign: str, digits: str) -> None:
        flags = pattern.flags
        self.pattern, self.fraction_digits, self.sign = pattern, fraction_digits, sign
        self.fill_mode, self.zero_padded, self.has_point = "FM" in flags, "0" in flags, "." in flags
        self.anchored_sign = "S" in flags
        length = len(digits.split(".")[0])
        self.leading_blanks = max(integer_digits - length, 0)  # positions before the number's first digit
        fits = length <= integer_digits
        self.number = digits if fits else "#" * integer_digits + "." + "#" * pattern.fraction_digits
        separate_sign = bool(flags & {"PL", "MI"})
        if separate_sign:
            self.sign_written = "MI" in flags
        else:
            self.sign_written = sign == "+" and self.fill_mode and not self.anchored_sign
        self.bracketed = "PR" in flags and (separate_sign or sign == "-" or not self.fill_mode)
        self.sign_first = pattern.sign_first and (separate_sign or integer_digits != pattern.digits_before_sign)
        self.last_relevant = self._last_relevant()
        self.positions = fraction_digits + integer_digits - 1
        self.positions += not self.sign_written and self.leading_blanks == 0
        self.inside_number = False
        self.position = 0  # in the pattern's digits
        self.index = 0  # in the number
        self.out: list[str] = []

    def _last_relevant(self) -> int | None:
        """Returns the index of the last digit that is written, or None if all are."""
        point = self.number.find(".")
        if not self.fill_mode or not self.has_point or point < 0:
            return None
        last = max(len(self.number.rstrip("0")) - 1, point)
        if self.pattern.zero_end <= self.leading_blanks:
            return last
        return max(last, min(len(self.number) - 1, self.pattern.zero_end - self.leading_blanks))

    def write(self) -> str:
        blank = "" if self.fill_mode else " "
        for part in self.pattern.parts:
            match part.keyword:
                case "9" | "0" | "." | "D":
                    self._write_digit(part.keyword)
                case "," | "G":
                    self.out.append("," if self.inside_number else blank)
                case "L":
                    self.out.append(" ")
                case "TH" | "th":
                    if self.number[:1] != "#" and self.sign != "-" and not self.has_point:
                        ending = ordinal_ending(self.number)
                        self.out.append(ending.upper() if part.keyword == "TH" else ending)
                case "MI":
                    self.out.append("-" if self.sign == "-" else blank)
                case "PL":
                    self.out.append("+" if self.sign == "+" else blank)
                case "SG":
                    self.out.append(self.sign)
                case "":
                    self.out.append(part.text)
        return "".join(self.out)

    def _write_digit(self, keyword: str) -> None:
        self.inside_number = False
        last = self.last_relevant
        omitted_zero = not self.zero_padded and self.index == 0 and self.number[:1] == "0" and self.fraction_digits != 0
        ends_at_point = last is not None and self.number[last] == "."
        zero_starts = self.zero_padded and self.pattern.zero_start == self.position
        number_begins = self.position >= self.leading_blanks or zero_starts
        if not self.sign_written and number_begins and (not omitted_zero or ends_at_point):
            self._write_leading_sign()
        if self.position < self.leading_blanks and (self.pattern.zero_start > self.position or not self.zero_padded):
            self.out.append("" if self.fill_mode else " ")
        elif self.zero_padded and self.position < self.leading_blanks:
            self.out.append("0")
            self.inside_number = True
        elif self.index < len(self.number):
            char = self.number[self.index]
            if char == ".":
                self.out.append(".")
            elif last is not None and self.index > last and keyword != "0":
                pass
            elif omitted_zero:
                self.out.append(" " if not self.fill_mode else "0" if ends_at_point else "")
            else:
                self.out.append(char)
                self.inside_number = True
            self.index += 1
        end = self.positions + (self.leading_blanks > 0) + self.has_point
        if last is not None and last == self.index:
            end = self.position
        if self.position + 1 == end:
            self._write_trailing_sign()
        self.position += 1

    def _write_leading_sign(self) -> None:
        if self.anchored_sign:
            if not self.sign_first:
                return
            self.out.append(self.sign)
        elif self.bracketed:
            self.out.append(" " if self.sign == "+" else "<")
        elif self.sign == "-" or not self.fill_mode:
            self.out.append("-" if self.sign == "-" else " ")
        self.sign_written = True

    def _write_trailing_sign(self) -> None:
        if self.sign_written and self.bracketed:
            self.out.append(" " if self.sign == "+" else ">")
        elif self.anchored_sign and not self.sign_first:
            self.out.append(self.sign)
