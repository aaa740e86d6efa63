"""Types date, timestamp with and without time zone, and time.

A date is days since 1970, a timestamp µs since 1970; infinity is the largest number, -infinity its negative. A timestamp
ends in the year 294247, where 64 bits do. Words whose meaning depends on the current time (now, today) are not supported on
input.

Source: PostgreSQL 15, src/backend/utils/adt/date.c, timestamp.c.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta, tzinfo
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
    FIRST_TIME,
    INFINITE_DAY,
    INFINITE_TIME,
    INFINITIES_DATE,
    INFINITIES_TIME,
    MICROS_TO_2000,
    SECOND,
    civil,
    day_in_range,
    time_in_range,
)
from tailgate.values.times.date_columns import date_binary, date_text, timestamp_binary, timestamp_text, timestamptz_text
from tailgate.values.times.date_decoding import Moment, TimeOfDay, date_and_time, time_of_day
from tailgate.values.times.date_tokens import BadFormat, FieldOverflow, MonthOverflow, ZoneOverflow

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
    """Returns the type's name in messages, which leave out "without time zone"."""
    return type.facts.sql.removesuffix(" without time zone")


def _unsupported_word(word: str, type: Type) -> TailgateError:
    hint = "Write it as in ISO 8601: 2021-04-26 12:00:00."
    return FeatureNotSupported(f"'{word}' as a {_name(type)} is not supported", hint=hint)


def _moment(text: str, type: Type, style: Style) -> Moment:
    """Decodes a date and time. Its word is a kind of infinity, or empty."""
    moment = _decoded(date_and_time, text, type, style)
    if moment.word == "epoch":
        return Moment("", 0, 0, timedelta())
    if moment.word and moment.word.encode() not in INFINITIES_DATE.values():
        raise _unsupported_word(moment.word, type)
    return moment


def _infinite(word: str, number: int) -> int:
    return -number if word.startswith("-") else number


# --- text input ----------------------------------------------------------------------------------


def read_date(text: str, type: Type, style: Style) -> int:
    moment = _moment(text, type, style)
    return _infinite(moment.word, INFINITE_DAY) if moment.word else day_in_range(moment.days, text)


def read_timestamp(text: str, type: Type, style: Style) -> int:
    """Reads a timestamp; a zone in the text is ignored."""
    return _local(_moment(text, type, style), text)


def _local(moment: Moment, text: str) -> int:
    return _infinite(moment.word, INFINITE_TIME) if moment.word else time_in_range(moment.days * DAY + moment.micros, text)


def read_timestamptz(text: str, type: Type, style: Style) -> int:
    """Reads a timestamp to UTC. A text without a zone is in the zone of the session."""
    moment = _moment(text, type, style)
    local = _local(moment, text)
    if moment.word:
        return local
    zone = moment.zone if moment.zone is not None else zones.of_session(style.time_zone)
    return zones.to_utc(local, zone) if isinstance(zone, tzinfo) else time_in_range(local - zone // timedelta(microseconds=1), text)


def read_time(text: str, type: Type, style: Style) -> int:
    """Reads µs since midnight; a date before the time and a zone after it are ignored."""
    return clock_time(text, type, style).micros


def clock_time(text: str, type: Type, style: Style) -> TimeOfDay:
    """Decodes a time. Raises 0A000 for words such as `now`."""
    decoded = _decoded(time_of_day, text, type, style)
    if decoded.word:
        raise _unsupported_word(decoded.word, type)
    return decoded


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
END_2000 = 9_223_371_331_200_000_000  # PostgreSQL's end of timestamps, the year 294277


def read_date_binary(data: bytes, type: Type) -> int:
    days = leading(_DAYS, data)
    if days in (2**31 - 1, -(2**31)):
        days = INFINITE_DAY if days > 0 else -INFINITE_DAY
    else:
        days = day_in_range(days + DAYS_TO_2000)
    check_size(data, _DAYS.size)
    return days


def read_timestamp_binary(data: bytes, type: Type) -> int:
    micros = leading(_MICROS, data)
    if micros in (2**63 - 1, -(2**63)):
        check_size(data, _MICROS.size)
        return INFINITE_TIME if micros > 0 else -INFINITE_TIME
    if not FIRST_TIME <= micros + MICROS_TO_2000 < END_2000 + MICROS_TO_2000:
        raise DatetimeFieldOverflow("timestamp out of range")
    check_size(data, _MICROS.size)
    return time_in_range(micros + MICROS_TO_2000)


def read_time_binary(data: bytes, type: Type) -> int:
    micros = leading(_MICROS, data)
    if not 0 <= micros <= DAY:
        raise DatetimeFieldOverflow("time out of range")
    check_size(data, _MICROS.size)
    return micros


def write_date_binary(value: int) -> bytes:
    if value == INFINITE_DAY:
        return b"\x7f\xff\xff\xff"
    return b"\x80\0\0\0" if value == -INFINITE_DAY else pack("!i", value - DAYS_TO_2000)


def write_timestamp_binary(value: int) -> bytes:
    if value == INFINITE_TIME:
        return b"\x7f" + b"\xff" * 7
    return b"\x80" + b"\0" * 7 if value == -INFINITE_TIME else pack("!q", value - MICROS_TO_2000)


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
    read_timestamp_binary,
    timestamptz_writer,
    lambda type: write_timestamp_binary,
    column_text=timestamptz_text,
    column_binary=timestamp_binary,
)
