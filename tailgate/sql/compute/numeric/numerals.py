"""Roman numerals and the endings of ordinal numbers."""

from __future__ import annotations

from tailgate.lake.errors import InvalidTextRepresentation

ROMAN_VALUES = (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1)
ROMAN_LETTERS = "M CM D CD C XC L XL X IX V IV I".split()


def roman(number: int) -> str:
    numeral = ""
    for value, letters in zip(ROMAN_VALUES, ROMAN_LETTERS, strict=True):
        numeral += letters * (number // value)
        number %= value
    return numeral


def ordinal_ending(number: str) -> str:
    """Returns the ending of an ordinal number: st, nd, rd or th. Raises 22P02 for other text."""
    last = number[-1:]
    if not last.isdigit():
        raise InvalidTextRepresentation(f'"{number}" is not a number')
    if len(number) > 1 and number[-2] == "1":
        return "th"
    return {"1": "st", "2": "nd", "3": "rd"}.get(last, "th")
