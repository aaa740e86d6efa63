"""A value to the text that PostgreSQL prints for it: `encoder(type, style)` is a function from raw value to bytes.

Source: PostgreSQL 15, the types' output functions; float8out and float4out for when an exponent is written; array_out and
record_out for when quotes are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tailgate.gateway.encode.calendar import date_text, fraction, time_text, timestamp_text, timestamptz_text
from tailgate.gateway.encode.raw import STRINGS
from tailgate.gateway.encode.style import Style
from tailgate.lake.types import Type

Encoder = Callable[[Any], bytes]


def bool_text(value: bool) -> bytes:
    return b"t" if value else b"f"


def int_text(value: int) -> bytes:
    return b"%d" % value


def float8_text(value: float) -> bytes:
    """Shortest digits that read back as the same number; an exponent from 1e15 on and below 1e-4.

    >>> float8_text(7.0), float8_text(1e15), float8_text(1e-5), float8_text(float("-inf"))
    (b'7', b'1e+15', b'1e-05', b'-Infinity')
    """
    text = repr(value)
    if text.endswith(".0"):
        if abs(value) < 1e15:
            return text[:-2].encode()
        return _scientific(text)
    if text[-1] in "fn":  # inf, nan
        return {"inf": b"Infinity", "-inf": b"-Infinity", "nan": b"NaN"}[text]
    return text.encode() if "e" in text or abs(value) < 1e15 else _scientific(text)


def _scientific(text: str) -> bytes:
    """Digits with a point, of a number of at least 1, to d.ddde+xx."""
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, _, part = text.partition(".")
    digits = (whole + part).rstrip("0")
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e+{len(whole) - 1:02d}".encode()


def float4_text(value: float) -> bytes:
    """
    >>> float4_text(1.1), float4_text(1e6), float4_text(123456.0), float4_text(0.0001)
    (b'1.1', b'1e+06', b'123456', b'0.0001')
    """
    if value != value or value in (float("inf"), float("-inf")):
        return float8_text(value)
    if value == 0:
        return float8_text(value)
    text = np.format_float_scientific(np.float32(value), unique=True, trim="-", exp_digits=2)
    mantissa, _, exponent = text.partition("e")
    power = int(exponent)
    if -4 <= power < 6:
        return np.format_float_positional(np.float32(value), unique=True, trim="-").encode()
    return f"{mantissa.rstrip('.')}e{exponent}".encode()


def _fewer_digits(digits: int) -> Encoder:
    """extra_float_digits of 0 and below: C's %.*g, as before PostgreSQL 12."""

    def encode(value: float) -> bytes:
        if value != value or value in (float("inf"), float("-inf")):
            return float8_text(value)
        return f"{value:.{max(digits, 1)}g}".encode()

    return encode


def numeric_encoder(scale: int) -> Encoder:
    """
    >>> numeric_encoder(2)(-5), numeric_encoder(0)(12), numeric_encoder(-2)(3)
    (b'-0.05', b'12', b'300')
    """
    if scale <= 0:
        shift = 10**-scale
        return lambda value: b"%d" % (value * shift)
    unit = 10**scale

    def encode(value: int) -> bytes:
        if value < 0:
            whole, part = divmod(-value, unit)
            return b"-%d.%0*d" % (whole, scale, part)
        whole, part = divmod(value, unit)
        return b"%d.%0*d" % (whole, scale, part)

    return encode


def bytea_hex(value: bytes) -> bytes:
    return b"\\x" + value.hex().encode()


def bytea_escape(value: bytes) -> bytes:
    """
    >>> bytea_escape(bytes([0, 65, 92]))
    b'\\\\000A\\\\\\\\'
    """
    return b"".join(b"\\\\" if c == 92 else bytes([c]) if 32 <= c <= 126 else b"\\%03o" % c for c in value)


def interval_postgres(value: tuple[int, int, int]) -> bytes:
    """
    >>> interval_postgres((14, 3, 3661500000)), interval_postgres((0, -1, 3600000000)), interval_postgres((0, 0, 0))
    (b'1 year 2 mons 3 days 01:01:01.5', b'-1 days +01:00:00', b'00:00:00')
    """
    months, days, micros = value
    years, months = _towards_zero(months, 12)
    parts, before = [], False
    for number, unit in ((years, b"year"), (months, b"mon"), (days, b"day")):
        if number:
            plus = b"+" if before and number > 0 else b""
            parts.append(b"%s%d %s%s" % (plus, number, unit, b"" if number == 1 else b"s"))
            before = number < 0
    if micros or not parts:
        sign = b"-" if micros < 0 else b"+" if before else b""
        parts.append(sign + time_text(abs(micros)))
    return b" ".join(parts)


def interval_iso(value: tuple[int, int, int]) -> bytes:
    """
    >>> interval_iso((14, 3, 3661500000)), interval_iso((0, 0, -500000)), interval_iso((0, 0, 0))
    (b'P1Y2M3DT1H1M1.5S', b'PT-0.5S', b'PT0S')
    """
    months, days, micros = value
    years, months = _towards_zero(months, 12)
    date = b"".join(b"%d%s" % (n, u) for n, u in ((years, b"Y"), (months, b"M"), (days, b"D")) if n)
    hours, rest = _towards_zero(micros, 3_600_000_000)
    minutes, rest = _towards_zero(rest, 60_000_000)
    seconds, rest = _towards_zero(rest, 1_000_000)
    time = b"".join(b"%d%s" % (n, u) for n, u in ((hours, b"H"), (minutes, b"M")) if n)
    if seconds or rest:
        time += b"%s%d%sS" % (b"-" if seconds < 0 or rest < 0 else b"", abs(seconds), fraction(abs(rest)))
    return b"P" + date + (b"T" + time if time else b"") if date or time else b"PT0S"


def _towards_zero(value: int, unit: int) -> tuple[int, int]:
    quotient, rest = divmod(abs(value), unit)
    return (-quotient, -rest) if value < 0 else (quotient, rest)


_ARRAY_QUOTED = re.compile(rb'[{}",\\\s\v]|^$|^null$', re.IGNORECASE)
_RECORD_QUOTED = re.compile(rb'[(),"\\\s\v]|^$')


def array_encoder(element: Encoder) -> Encoder:
    """
    >>> array_encoder(lambda v: v)([b"a", b"b c", None, b"null", b'x"'])
    b'{a,"b c",NULL,"null","x\\\\""}'
    """

    def quote(text: bytes) -> bytes:
        if _ARRAY_QUOTED.search(text):
            return b'"' + text.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
        return text

    return lambda value: b"{" + b",".join(b"NULL" if v is None else quote(element(v)) for v in value) + b"}"


def record_encoder(fields: list[Encoder]) -> Encoder:
    r"""
    >>> record_encoder([int_text, lambda v: v, int_text])((1, b'a "b" c', None)).decode()
    '(1,"a ""b"" c",)'
    """

    def quote(text: bytes) -> bytes:
        if _RECORD_QUOTED.search(text):
            return b'"' + text.replace(b"\\", b"\\\\").replace(b'"', b'""') + b'"'
        return text

    def encode(value: tuple[Any, ...]) -> bytes:
        return b"(" + b",".join(b"" if v is None else quote(f(v)) for f, v in zip(fields, value, strict=True)) + b")"

    return encode


def encoder(type: Type, style: Style) -> Encoder:
    if type.is_array:
        return array_encoder(encoder(type.element, style))
    name = type.name
    if name == "bpchar" and type.modifiers:
        width = type.modifiers[0]
        return lambda value: value if len(value) >= width else _padded(value, width)
    if name in STRINGS:
        return bytes
    if name in ("int2", "int4", "int8", "oid"):
        return int_text
    if name == "numeric":
        return numeric_encoder(type.decimal[1])
    if name in ("float4", "float8") and style.extra_float_digits <= 0:
        return _fewer_digits((15 if name == "float8" else 6) + style.extra_float_digits)
    if name == "timestamptz":
        return lambda value: timestamptz_text(value, style.time_zone)
    if name == "interval":
        return interval_iso if style.interval_style == "iso_8601" else interval_postgres
    if name == "bytea":
        return bytea_escape if style.bytea_output == "escape" else bytea_hex
    if name == "record":
        return record_encoder([encoder(f.type, style) for f in type.fields])
    return _PLAIN[name]


def _padded(value: bytes, width: int) -> bytes:
    """character(n): blanks up to n characters, which are not n bytes."""
    return value + b" " * (width - len(value.decode("utf-8", "replace")))


_PLAIN: dict[str, Encoder] = {
    "bool": bool_text,
    "float4": float4_text,
    "float8": float8_text,
    "date": date_text,
    "time": time_text,
    "timestamp": timestamp_text,
}
