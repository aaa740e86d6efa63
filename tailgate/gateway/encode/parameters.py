"""What a client binds, to Python values in stored form: `decode(type, format, data)`.

    bool, int, float, str, bytes, Decimal, datetime.date │ time: µs │ timestamp: naive datetime │ timestamptz: aware, in UTC
    interval: {"months": …, "days": …, "micros": …} │ uuid, jsonb: text │ arrays: list

Errors are PostgreSQL's: 22P02 and 22003 for text, 22P03 for binary. What Python cannot hold (infinity, year 10000) is refused.

Source: PostgreSQL 15, the types' input and receive functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from struct import error as StructError
from struct import unpack, unpack_from
from typing import Any

from tailgate.gateway.encode.calendar import DAYS_TO_2000, MICROS_TO_2000, days, zone
from tailgate.gateway.encode.intervals import interval_micros
from tailgate.gateway.encode.jsonb import canonical
from tailgate.gateway.encode.style import Style
from tailgate.lake.errors import (
    CharacterNotInRepertoire,
    DatetimeFieldOverflow,
    FeatureNotSupported,
    InvalidBinaryRepresentation,
    InvalidDatetimeFormat,
    InvalidParameterValue,
    InvalidTextRepresentation,
    NumericValueOutOfRange,
    ProtocolViolation,
    TailgateError,
)
from tailgate.lake.types import Type

_EPOCH = datetime(1970, 1, 1)
_RANGES = {"int2": (-(2**15), 2**15 - 1), "int4": (-(2**31), 2**31 - 1), "int8": (-(2**63), 2**63 - 1), "oid": (-(2**31), 2**32 - 1)}


def decode(type: Type, format: int, data: bytes, style: Style, place: str = "bind parameter 1") -> Any:
    """`place`: for the message of a binary form that does not read; "" where the context tells it."""
    if format == 0:
        return from_text(type, utf8(data), style)
    try:
        return from_binary(type, data)
    except (StructError, ValueError, IndexError, OverflowError) as error:
        if isinstance(error, StructError) and len(data) < type.size:
            raise ProtocolViolation("insufficient data left in message") from None
        raise InvalidBinaryRepresentation("incorrect binary data format" + (f" in {place}" if place else "")) from None


def utf8(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        first = data[error.start]  # tells how many bytes a character has, of which PostgreSQL shows those that are there
        length = 2 if first >> 5 == 0b110 else 3 if first >> 4 == 0b1110 else 4 if first >> 3 == 0b11110 else 1
        bad = " ".join(f"0x{byte:02x}" for byte in data[error.start : error.start + length])
        raise CharacterNotInRepertoire(f'invalid byte sequence for encoding "UTF8": {bad}') from None
    if "\0" in text:
        raise CharacterNotInRepertoire('invalid byte sequence for encoding "UTF8": 0x00')
    return text


# --- text ----------------------------------------------------------------------------------------------------------------


def from_text(type: Type, text: str, style: Style) -> Any:
    if type.is_array:
        return [None if v is None else from_text(type.element, v, style) for v in _array_items(text)]
    name = type.name
    if name in _RANGES:
        return _integer(type, text)
    if name in ("timestamp", "timestamptz"):
        return timestamp(text, type, style)
    reader = _TEXT.get(name)
    return text if reader is None else reader(type, text)


def _no_time(type: Type, text: str) -> TailgateError:
    """PostgreSQL's messages here leave out that there is no zone."""
    return InvalidDatetimeFormat(f'invalid input syntax for type {type.facts.sql.removesuffix(" without time zone")}: "{text}"')


def _wrong(type: Type, text: str) -> TailgateError:
    return InvalidTextRepresentation(f'invalid input syntax for type {type.facts.sql}: "{text}"')


_INTEGER = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)


def _integer(type: Type, text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise _wrong(type, text)
    value = int(text)
    low, high = _RANGES[type.name]
    if not low <= value <= high:
        raise NumericValueOutOfRange(f'value "{text}" is out of range for type {type.facts.sql}')
    return value % 2**32 if type.name == "oid" else value


_TRUE = ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1")
_FALSE = ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0")


def boolean(type: Type, text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE and word not in _FALSE:
        raise _wrong(type, text)
    return word in _TRUE


def _float(type: Type, text: str) -> float:
    word = text.strip()
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf(inity)?|nan", word, re.IGNORECASE | re.ASCII):
        raise _wrong(type, text)
    value = float(word)
    if value in (float("inf"), float("-inf")) and "inf" not in word.lower():
        raise NumericValueOutOfRange(f'"{text}" is out of range for type {type.facts.sql}')
    return value


def _numeric(type: Type, text: str) -> Decimal:
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        raise _wrong(type, text) from None
    if "_" in text:
        raise _wrong(type, text)
    if not value.is_finite():
        raise FeatureNotSupported(f'numeric "{text}" is not supported')
    return value


def _bytea(type: Type, text: str) -> bytes:
    if text.startswith("\\x"):
        digits = re.sub(r"\s", "", text[2:])
        bad = re.search(r"[^0-9a-fA-F]", digits)
        if bad is not None:
            raise InvalidParameterValue(f'invalid hexadecimal digit: "{bad[0]}"')
        if len(digits) % 2:
            raise InvalidParameterValue("invalid hexadecimal data: odd number of digits")
        return bytes.fromhex(digits)
    if re.search(r"\\(?!\\|[0-3][0-7][0-7])", text.replace("\\\\", "")):
        raise InvalidTextRepresentation("invalid input syntax for type bytea")
    return re.sub(rb"\\(\\|[0-3][0-7][0-7])", lambda m: b"\\" if m[1] == b"\\" else bytes([int(m[1], 8)]), text.encode())


_DATE = r"(?P<year>\d{4,6})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(:(?P<second>\d{2})(\.(?P<fraction>\d{0,9}))?)?"
_MOMENT = re.compile(
    rf"\s*({_DATE}|(?P<compact>\d{{8}}))([T\s]+{_TIME})?\s*(?P<zone>Z|[+-][\d:]+|[A-Za-z][\w/+-]+)?\s*(?P<era>BC|AD)?\s*$", re.IGNORECASE
)
_CLOCK = re.compile(rf"\s*{_TIME}\s*(Z|[+-][\d:]+)?\s*$", re.IGNORECASE)


def _clock(match: re.Match[str], text: str) -> int:
    if match["hour"] is None:
        return 0
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
    micros = round(int((match["fraction"] or "0").ljust(9, "0")) / 1000)
    total = ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros
    if minute > 59 or second > 60 or total > 86_400_000_000:
        raise DatetimeFieldOverflow(f'date/time field value out of range: "{text}"')
    return total


def _day(match: re.Match[str], text: str) -> int:
    if match["compact"]:
        year, month, day = int(match["compact"][:4]), int(match["compact"][4:6]), int(match["compact"][6:])
    else:
        year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    if match["era"] and match["era"].upper() == "BC":
        raise FeatureNotSupported(f'dates before the year 1 are not supported: "{text}"')
    try:
        date(year, month, day)
    except ValueError:
        raise DatetimeFieldOverflow(f'date/time field value out of range: "{text}"') from None
    return days(year, month, day)


def _moment(type: Type, text: str) -> re.Match[str]:
    match = _MOMENT.match(text)
    if match is None:
        if text.strip().lower() in ("infinity", "-infinity"):
            raise FeatureNotSupported(f'{type.facts.sql} "{text}" is not supported as a parameter')
        raise _no_time(type, text)
    return match


def _date(type: Type, text: str) -> date:
    match = _moment(type, text)
    return date(1970, 1, 1) + timedelta(days=_day(match, text))


def _time(type: Type, text: str) -> int:
    match = _CLOCK.match(text)
    if match is None:
        raise _no_time(type, text)
    return _clock(match, text)


def timestamp(text: str, type: Type, style: Style) -> datetime:
    match = _moment(type, text)
    at = _EPOCH + timedelta(days=_day(match, text), microseconds=_clock(match, text))
    if type.name == "timestamp":
        return at
    named = match["zone"]
    found = zone("UTC" if named in ("Z", "z") else named or style.time_zone)
    if found is None:
        raise _no_time(type, text)
    return at.replace(tzinfo=found[1]).astimezone(timezone.utc)


def _interval(type: Type, text: str) -> dict[str, int]:
    value = interval_micros(text)
    if value is None:
        raise InvalidDatetimeFormat(f'invalid input syntax for type interval: "{text}"')
    return dict(zip(("months", "days", "micros"), value, strict=True))


def _uuid(type: Type, text: str) -> str:
    digits = text.strip().lower().strip("{}").replace("-", "")
    if not re.fullmatch(r"[0-9a-f]{32}", digits):
        raise _wrong(type, text)
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_TEXT: dict[str, Callable[[Type, str], Any]] = {
    "bool": boolean,
    "float4": _float,
    "float8": _float,
    "numeric": _numeric,
    "bytea": _bytea,
    "date": _date,
    "time": _time,
    "interval": _interval,
    "uuid": _uuid,
    "jsonb": lambda _, text: canonical(text),
}


def _array_items(text: str) -> list[str | None]:
    """
    >>> _array_items('{a,"b,\\\\"c",NULL,"NULL"}')
    ['a', 'b,"c', None, 'NULL']
    """
    body = text.strip()
    if not (body.startswith("{") and body.endswith("}")):
        raise InvalidTextRepresentation(
            f'malformed array literal: "{text}"', detail='Array value must start with "{" or dimension information.'
        )
    items: list[str | None] = []
    at, end = 1, len(body) - 1
    if not body[1:end].strip():
        return items
    item = re.compile(r'\s*("(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>(?:[^",{}\\]|\\.)+?))\s*(?=[,}])', re.DOTALL)
    while at < len(body):
        match = item.match(body, at)
        if match is None:
            raise InvalidTextRepresentation(f'malformed array literal: "{text}"')
        quoted, bare = match["quoted"], match["bare"]
        if quoted is None and bare.lower() == "null":
            items.append(None)
        else:
            items.append(re.sub(r"\\(.)", r"\1", bare if quoted is None else quoted, flags=re.DOTALL))
        at = match.end() + 1
    return items


# --- binary --------------------------------------------------------------------------------------------------------------


def from_binary(type: Type, data: bytes) -> Any:
    if type.is_array:
        return _binary_array(type.element, data)
    reader = _BINARY.get(type.name)
    return utf8(data) if reader is None else reader(data)


def _struct(format: str) -> Callable[[bytes], Any]:
    return lambda data: unpack(format, data)[0]


def _binary_numeric(data: bytes) -> Decimal:
    count, weight, sign, scale = unpack_from("!hhHH", data)
    digits = unpack(f"!{count}H", data[8:])
    if sign not in (0, 0x4000):
        raise FeatureNotSupported("numeric NaN and infinity are not supported")
    whole = 0
    for digit in digits:
        if digit > 9999:
            raise ValueError
        whole = whole * 10_000 + digit
    value = Decimal(whole).scaleb(4 * (weight + 1 - count)) if whole else Decimal(0)
    value = value.quantize(Decimal(1).scaleb(-scale)) if len(str(whole)) + 4 * abs(weight) < 28 else value
    return -value if sign else value


def _binary_date(data: bytes) -> date:
    (since_2000,) = unpack("!i", data)
    try:
        return date(1970, 1, 1) + timedelta(days=since_2000 + DAYS_TO_2000)
    except OverflowError:
        raise DatetimeFieldOverflow("date out of range") from None


def _binary_timestamp(data: bytes) -> datetime:
    (since_2000,) = unpack("!q", data)
    try:
        return _EPOCH + timedelta(microseconds=since_2000 + MICROS_TO_2000)
    except OverflowError:
        raise DatetimeFieldOverflow("timestamp out of range") from None


def _binary_interval(data: bytes) -> dict[str, int]:
    micros, days, months = unpack("!qii", data)
    return {"months": months, "days": days, "micros": micros}


def _binary_uuid(data: bytes) -> str:
    if len(data) != 16:
        raise ValueError
    digits = data.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _binary_jsonb(data: bytes) -> str:
    if data[:1] != b"\1":
        raise ValueError
    return canonical(utf8(data[1:]))


def _binary_bool(data: bytes) -> bool:
    if len(data) != 1:
        raise ValueError
    return data != b"\0"


_BINARY: dict[str, Callable[[bytes], Any]] = {
    "bool": _binary_bool,
    "int2": _struct("!h"),
    "int4": _struct("!i"),
    "int8": _struct("!q"),
    "oid": _struct("!I"),
    "float4": _struct("!f"),
    "float8": _struct("!d"),
    "bytea": bytes,
    "numeric": _binary_numeric,
    "date": _binary_date,
    "time": _struct("!q"),
    "timestamp": _binary_timestamp,
    "timestamptz": lambda data: _binary_timestamp(data).replace(tzinfo=timezone.utc),
    "interval": _binary_interval,
    "uuid": _binary_uuid,
    "jsonb": _binary_jsonb,
}


def _binary_array(element: Type, data: bytes) -> list[Any]:
    dimensions, _, _ = unpack_from("!iiI", data)
    if dimensions == 0:
        if len(data) != 12:
            raise ValueError
        return []
    if dimensions != 1:
        raise FeatureNotSupported("arrays of more than one dimension are not supported")
    (count,) = unpack_from("!i", data, 12)
    out: list[Any] = []
    at = 20
    for _ in range(count):
        (length,) = unpack_from("!i", data, at)
        at += 4
        if length < 0:
            out.append(None)
            continue
        if at + length > len(data):
            raise ValueError
        out.append(from_binary(element, data[at : at + length]))
        at += length
    if at != len(data):
        raise ValueError
    return out
