"""Text of an interval to (months, days, µs): `1 year 2 mons`, `-1 days +02:03:04`, `1s`, `P1Y2DT3H`.

Source: PostgreSQL 15, src/backend/utils/adt/datetime.c, DecodeInterval; units of its table `deltatktbl`.
"""

from __future__ import annotations

import re
from fractions import Fraction

# unit: (months, days, µs)
UNITS: dict[str, tuple[int, int, int]] = {
    **dict.fromkeys(("millennium", "millennia", "mil", "mils"), (12_000, 0, 0)),
    **dict.fromkeys(("century", "centuries", "cent", "c"), (1_200, 0, 0)),
    **dict.fromkeys(("decade", "decades", "dec", "decs"), (120, 0, 0)),
    **dict.fromkeys(("year", "years", "yr", "yrs", "y"), (12, 0, 0)),
    **dict.fromkeys(("month", "months", "mon", "mons"), (1, 0, 0)),
    **dict.fromkeys(("week", "weeks", "w"), (0, 7, 0)),
    **dict.fromkeys(("day", "days", "d"), (0, 1, 0)),
    **dict.fromkeys(("hour", "hours", "hr", "hrs", "h"), (0, 0, 3_600_000_000)),
    **dict.fromkeys(("minute", "minutes", "min", "mins", "m"), (0, 0, 60_000_000)),
    **dict.fromkeys(("second", "seconds", "sec", "secs", "s"), (0, 0, 1_000_000)),
    **dict.fromkeys(("millisecond", "milliseconds", "msec", "msecs", "ms"), (0, 0, 1_000)),
    **dict.fromkeys(("microsecond", "microseconds", "usec", "usecs", "us"), (0, 0, 1)),
}
_ISO = {"Y": "year", "M": "month", "W": "week", "D": "day", "TH": "hour", "TM": "minute", "TS": "second"}
_PIECE = re.compile(
    r"\s*(?:@\s*)?(?:(?P<sign>[+-])?(?P<hour>\d+):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2}(?:\.\d*)?))?(?=\s|$)"
    r"|(?P<number>[+-]?\d*\.?\d+|[+-]?\d+\.)\s*(?P<unit>[a-z]+)?)\s*"
)


def _add(total: list[Fraction], number: Fraction, unit: str) -> None:
    """A part of a month becomes days of 30, a part of a day becomes hours of 24."""
    months, days, micros = UNITS[unit]
    whole = [Fraction(int(number * months)), Fraction(int(number * days)), number * micros]
    if months:
        rest = (number * months - whole[0]) * 30
        whole[1] += int(rest)
        whole[2] += (rest - int(rest)) * 86_400_000_000
    elif days:
        whole[2] += (number * days - whole[1]) * 86_400_000_000
    for index, part in enumerate(whole):
        total[index] += part


def interval_micros(text: str) -> tuple[int, int, int] | None:
    """None if it is no interval.

    >>> interval_micros("1 year -2 mons 3 days 04:05:06.5"), interval_micros("1.5 d"), interval_micros("P1Y2M3DT4H5M6S")
    ((10, 3, 14706500000), (0, 1, 43200000000), (14, 3, 14706000000))
    >>> interval_micros("-1s"), interval_micros("1 day ago"), interval_micros("5"), interval_micros("soon")
    ((0, 0, -1000000), (0, -1, 0), (0, 0, 5000000), None)
    """
    total = [Fraction(0)] * 3
    words = text.strip().lower()
    if words.startswith("p"):
        found = re.fullmatch(r"p((?:[+-]?[\d.]+[ymwd])*)(?:t((?:[+-]?[\d.]+[hms])+))?", words)
        if found is None or words == "p":
            return None
        for prefix, part in (("", found[1] or ""), ("T", found[2] or "")):
            for number, unit in re.findall(r"([+-]?[\d.]+)([a-z])", part):
                _add(total, Fraction(number), _ISO[prefix + unit.upper()])
        return round(total[0]), round(total[1]), round(total[2])
    ago = words.endswith("ago")
    words = words.removesuffix("ago").strip()
    at = 0
    if not words:
        return None
    while at < len(words):
        piece = _PIECE.match(words, at)
        if piece is None or piece.end() == at:
            return None
        at = piece.end()
        if piece["hour"]:
            micros = (Fraction(piece["hour"]) * 3600 + Fraction(piece["minute"]) * 60 + Fraction(piece["second"] or 0)) * 1_000_000
            total[2] += -micros if piece["sign"] == "-" else micros
            continue
        unit = piece["unit"] or "second"
        if unit not in UNITS:
            return None
        _add(total, Fraction(piece["number"]), unit)
    sign = -1 if ago else 1
    return sign * round(total[0]), sign * round(total[1]), sign * round(total[2])
