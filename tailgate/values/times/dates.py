"""Types date, timestamp with and without time zone, and time.

Years before 1 or beyond 9999, infinity, and words whose meaning depends on the current time (now,
today) are not supported on input.

Source: PostgreSQL 15, src/backend/utils/adt/date.c, timestamp.c.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone, tzinfo
from struct import Struct, pack
from typing import TypeVar

from tailgate.lake.errors import (
    DatetimeFieldOverflow,
    FeatureNotSupported,
    InvalidDatetimeFormat,
    InvalidTimeZoneDisplacementValue,
    TailgateError,
)
from tailgate.lake.types import Type
from tailgate.values.codec.binary import check_size, leading, packed
from tailgate.values.codec.codec import Codec, Writer
from tailgate.values.codec.columns import packed_column, spelled
from tailgate.values.codec.style import Style
from tailgate.values.times import zones
from tailgate.values.times.calendar import (
    DAY,
    DAYS_TO_2000,
    INFINITIES_DATE,
    INFINITIES_TIME,
    MICROS_TO_2000,
    SECOND,
    civil,
)
from tailgate.values.times.date_columns import date_binary, date_text, timestamp_binary, timestamp_text, timestamptz_text
from tailgate.values.times.date_decoding import Moment, date_and_time, time_of_day
from tailgate.values.times.date_tokens import BadFormat, FieldOverflow, MonthOverflow, ZoneOverflow

DATE_YEAR_MAX, TIMESTAMP_YEAR_MAX = 5_874_897, 294_276
YEAR_MIN = -4713  # 4714 BC
_EPOCH, _EPOCH_DAY = datetime(1970, 1, 1), date(1970, 1, 1)
T = TypeVar("T")


def _decoded(decode: Callable[[str, str], T], text: str, type: Type, style: Style) -> T:
    """Calls a decoder. Raises 22007, 22008 or 22009."""
    try:
        return decode(text, style.date_order)
    except BadFormat:
        raise InvalidDatetimeFormat(f'invalid input syntax for type {_name(type)}: "{text}"') from None
    except ZoneOverflow:
        raise InvalidTimeZoneDisplacementValue(f'time zone displacement out of range: "{text}"') from None
    except FieldOverflow as error:
        hint = 'Perhaps you need a different "datestyle" setting.' if isinstance(error, MonthOverflow) else None
        raise DatetimeFieldOverflow(f'date/time field value out of range: "{text}"', hint=hint) from None


def _name(type: Type) -> str:
    """Returns the type's name in messages, which leave out that there is no zone."""
    return type.facts.sql.removesuffix(" without time zone")


def _unsupported_word(word: str, type: Type) -> TailgateError:
    hint = "Write it as in ISO 8601: 2021-04-26 12:00:00."
    return FeatureNotSupported(f"'{word}' as a {_name(type)} is not supported", hint=hint)


def _moment(text: str, type: Type, style: Style, year_max: int) -> Moment:
    """Decodes a date and time of the years 1 to 9999."""
    moment = _decoded(date_and_time, text, type, style)
    if moment.word == "epoch":
        return Moment("", 1970, 0, 0, timedelta())
    if moment.word:
        raise _unsupported_word(moment.word, type)
    if not YEAR_MIN <= moment.year <= year_max:
        raise DatetimeFieldOverflow(f'{"date" if type.name == "date" else "timestamp"} out of range: "{text}"')
    if not 1 <= moment.year <= 9999:
        raise _unsupported_year()
    return moment


def _unsupported_year() -> TailgateError:
    return FeatureNotSupported("years before 1 and beyond 9999 are not supported")


# --- text input ----------------------------------------------------------------------------------


def read_date(text: str, type: Type, style: Style) -> date:
    return _EPOCH_DAY + timedelta(days=_moment(text, type, style, DATE_YEAR_MAX).days)


def read_timestamp(text: str, type: Type, style: Style) -> datetime:
    """Reads a timestamp; a zone in the text is ignored."""
    return _local(_moment(text, type, style, TIMESTAMP_YEAR_MAX))


def _local(moment: Moment) -> datetime:
    try:
        return _EPOCH + timedelta(days=moment.days, microseconds=moment.micros)
    except OverflowError:
        raise _unsupported_year() from None


def read_timestamptz(text: str, type: Type, style: Style) -> datetime:
    """Reads a timestamp to UTC. A text without a zone is in the zone of the session."""
    moment = _moment(text, type, style, TIMESTAMP_YEAR_MAX)
    local = _local(moment)
    zone = moment.zone if moment.zone is not None else zones.of_session(style.time_zone)
    try:
        if isinstance(zone, tzinfo):
            return zones.to_utc(local, zone)
        return (local - zone).replace(tzinfo=timezone.utc)
    except OverflowError:
        raise _unsupported_year() from None


def read_time(text: str, type: Type, style: Style) -> int:
    """Reads µs since midnight; a date before the time and a zone after it are ignored."""
    word, micros = _decoded(time_of_day, text, type, style)
    if word:
        raise _unsupported_word(word, type)
    return micros


# --- text output ---------------------------------------------------------------------------------


def write_date(value: int) -> bytes:
    if value in INFINITIES_DATE:
        return INFINITIES_DATE[value]
    year, month, day = civil(value)
    if year <= 0:
        return b"%04d-%02d-%02d BC" % (1 - year, month, day)
    return b"%04d-%02d-%02d" % (year, month, day)


def fraction(micros: int) -> bytes:
    """Returns the digits after the second, and nothing for 0.

    >>> fraction(120), fraction(0)
    (b'.00012', b'')
    """
    return (b".%06d" % micros).rstrip(b"0") if micros else b""


def write_time(value: int) -> bytes:
    seconds, micros = divmod(value, SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return b"%02d:%02d:%02d" % (hour, minute, second) + fraction(micros)


def write_timestamp(value: int, suffix: bytes = b"", separator: bytes = b" ") -> bytes:
    """Writes a timestamp. `suffix` is the zone's offset, which precedes BC."""
    if value in INFINITIES_TIME:
        return INFINITIES_TIME[value]
    day, rest = divmod(value, DAY)
    date = write_date(day)
    era = b" BC" if date.endswith(b"C") else b""
    return date.removesuffix(b" BC") + separator + write_time(rest) + suffix + era


def write_timestamptz(value: int, time_zone: str, separator: bytes = b" ") -> bytes:
    if value in INFINITIES_TIME:
        return INFINITIES_TIME[value]
    east = zones.offset(time_zone, value // SECOND)
    return write_timestamp(value + east * SECOND, zones.offset_text(east), separator)


def timestamptz_writer(type: Type, style: Style) -> Writer:
    time_zone = style.time_zone
    return lambda value: write_timestamptz(value, time_zone)


# --- binary --------------------------------------------------------------------------------------


_DAYS, _MICROS = Struct("!i"), Struct("!q")  # since 2000-01-01


def read_date_binary(data: bytes, type: Type) -> date:
    days = leading(_DAYS, data)
    if days in (2**31 - 1, -(2**31)):
        check_size(data, _DAYS.size)
        raise _unsupported_word("infinity", type)
    year = civil(days + DAYS_TO_2000)[0]
    if not YEAR_MIN <= year <= DATE_YEAR_MAX or days < -2_451_545:
        raise DatetimeFieldOverflow("date out of range")
    check_size(data, _DAYS.size)
    try:
        return _EPOCH_DAY + timedelta(days=days + DAYS_TO_2000)
    except OverflowError:
        raise _unsupported_year() from None


def read_timestamp_binary(data: bytes, type: Type) -> datetime:
    micros = leading(_MICROS, data)
    if micros in (2**63 - 1, -(2**63)):
        check_size(data, _MICROS.size)
        raise _unsupported_word("infinity", type)
    if not -211_813_488_000_000_000 <= micros < 9_223_371_331_200_000_000:
        raise DatetimeFieldOverflow("timestamp out of range")
    check_size(data, _MICROS.size)
    try:
        return _EPOCH + timedelta(microseconds=micros + MICROS_TO_2000)
    except OverflowError:
        raise _unsupported_year() from None


def read_timestamptz_binary(data: bytes, type: Type) -> datetime:
    return read_timestamp_binary(data, type).replace(tzinfo=timezone.utc)


def read_time_binary(data: bytes, type: Type) -> int:
    micros = leading(_MICROS, data)
    if not 0 <= micros <= DAY:
        raise DatetimeFieldOverflow("time out of range")
    check_size(data, _MICROS.size)
    return micros


def write_date_binary(value: int) -> bytes:
    if value >= 2**31 - 1:
        return b"\x7f\xff\xff\xff"
    return b"\x80\0\0\0" if value <= -(2**31) + 1 else pack("!i", value - DAYS_TO_2000)


def write_timestamp_binary(value: int) -> bytes:
    if value >= 2**63 - 1:
        return b"\x7f" + b"\xff" * 7
    return b"\x80" + b"\0" * 7 if value <= -(2**63) + 1 else pack("!q", value - MICROS_TO_2000)


# Days up to the 28th exist in every month.
_COMMON_DATE = "[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
_COMMON_TIMESTAMP = _COMMON_DATE + r"[ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"

DATE = Codec(
    read_date,
    read_date_binary,
    lambda type, style: write_date,
    lambda type: write_date_binary,
    spelled(_COMMON_DATE),
    date_text,
    date_binary,
)
TIME = Codec(read_time, read_time_binary, lambda type, style: write_time, packed("!q"), column_binary=packed_column("!q"))
TIMESTAMP = Codec(
    read_timestamp,
    read_timestamp_binary,
    lambda type, style: write_timestamp,
    lambda type: write_timestamp_binary,
    spelled(_COMMON_TIMESTAMP),
    timestamp_text,
    timestamp_binary,
)
TIMESTAMPTZ = Codec(
    read_timestamptz,
    read_timestamptz_binary,
    timestamptz_writer,
    lambda type: write_timestamp_binary,
    column_text=timestamptz_text,
    column_binary=timestamp_binary,
)
