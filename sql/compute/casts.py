"""Values as text, as PostgreSQL prints them with DateStyle ISO, IntervalStyle postgres, at UTC.

Source: PostgreSQL 15, the types' output functions.
"""

from __future__ import annotations

import math
import re
import struct
from datetime import date, datetime, timezone
from fractions import Fraction

from sql.compute.registry import own

Interval = tuple[int, int, int]


@own("float8", to="text")
def float8_to_text(value: float) -> str:
    """The fewest digits within half a unit of the number's last place; an exponent from 1e15 on and below 1e-4.

    >>> float8_to_text(7.0), float8_to_text(1e15), float8_to_text(1e-5), float8_to_text(float("-inf"))
    ('7', '1e+15', '1e-05', '-Infinity')
    """
    shown = repr(value)
    if (
        abs(value) >= 2**52
        and math.isfinite(value)
        and not _inside(shown, value, math.nextafter(value, math.inf), math.nextafter(value, 0))
    ):
        # just between two numbers: Python takes it, PostgreSQL does not
        shown = next(
            t for d in range(15, 18) if _inside(t := f"{value:.{d}e}", value, math.nextafter(value, math.inf), math.nextafter(value, 0))
        )
    return _float(shown, 15)


def _inside(text: str, value: float, *neighbours: float) -> bool:
    """Whether a text is nearer to a number than to both of its neighbours."""
    at, near = Fraction(text), Fraction(value)
    return all(abs(at - near) < abs(at - Fraction(n)) for n in neighbours if math.isfinite(n))


@own("float4", to="text")
def float4_to_text(value: float) -> str:
    """
    >>> float4_to_text(1234567.75), float4_to_text(0.10000000149011612)
    ('1.2345678e+06', '0.1')
    """
    if value == 0 or value != value or value in (float("inf"), float("-inf")):
        return _float(repr(value), 6)
    bits = struct.unpack("i", struct.pack("f", value))[0]
    neighbours = [struct.unpack("f", struct.pack("i", bits + d))[0] for d in (-1, 1)]
    return _float(next(t for d in range(10) if _inside(t := f"{value:.{d}e}", value, *neighbours)), 6)


def _float(text: str, exponent_from: int) -> str:
    if text in ("inf", "-inf", "nan"):
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[text]
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    mantissa, _, power = text.partition("e")
    whole, _, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0")
    if not digits:
        return sign + "0"
    # 0.00123 = digits 123 at exponent -3
    exponent = int(power or 0) + len(whole) - 1 if whole.strip("0") else int(power or 0) - (len(part) - len(part.lstrip("0"))) - 1
    digits = digits.rstrip("0") or "0"
    if exponent >= exponent_from or exponent < -4:
        return f"{sign}{digits[0]}{'.' + digits[1:] if len(digits) > 1 else ''}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    digits = digits.ljust(exponent + 1, "0")
    return sign + digits[: exponent + 1] + ("." + digits[exponent + 1 :] if len(digits) > exponent + 1 else "")


@own("time", to="text")
def time_to_text(micros: int) -> str:
    seconds, part = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text + f".{part:06d}".rstrip("0") if part else text


@own("interval", to="text")
def interval_to_text(value: Interval) -> str:
    """
    >>> interval_to_text((14, 3, 3661500000)), interval_to_text((0, -1, 3600000000)), interval_to_text((0, 0, 0))
    ('1 year 2 mons 3 days 01:01:01.5', '-1 days +01:00:00', '00:00:00')
    """
    months, days, micros = value
    years = int(months / 12)
    parts, before = [], False
    for number, unit in ((years, "year"), (months - 12 * years, "mon"), (days, "day")):
        if number:
            parts.append(f"{'+' if before and number > 0 else ''}{number} {unit}{'' if number == 1 else 's'}")
            before = number < 0
    if micros or not parts:
        parts.append(("-" if micros < 0 else "+" if before else "") + time_to_text(abs(micros)))
    return " ".join(parts)


def timestamp_text(value: datetime, between: str = " ") -> str:
    text = value.replace(tzinfo=None).isoformat(sep=between)
    return text.rstrip("0") if value.microsecond else text


@own("timestamptz", to="text")
def timestamptz_to_text(value: datetime) -> str:
    return timestamp_text(value.astimezone(timezone.utc)) + "+00"


def date_text(value: date) -> str:
    return value.isoformat()


QUOTED = re.compile(r'[{}",\\\s\v]|^$|^null$', re.IGNORECASE)


@own("text[]", to="text")
def array_to_text(items: list[str | None]) -> str:
    """An array's text, of its elements' texts.

    >>> array_to_text(["a", "b c", None, "null", 'x"'])
    '{a,"b c",NULL,"null","x\\\\""}'
    """
    return "{" + ",".join(map(_element, items)) + "}"


def _element(item: str | None) -> str:
    if item is None:
        return "NULL"
    return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"' if QUOTED.search(item) else item


@own("text", to="text[]")
def text_to_elements(text: str) -> list[str | None]:
    from sql.input.literals import elements

    return elements(text)
