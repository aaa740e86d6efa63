"""Decodes the text of a date and time, or of a time.

    text ──date_tokens──► tokens ──date_fields──► fields ──► Moment

Source: PostgreSQL 15, src/backend/utils/adt/datetime.c, DecodeDateTime, DecodeTimeOnly.
"""

from __future__ import annotations

import re
from datetime import date, time, timedelta
from typing import NamedTuple

from tailgate.values.times import date_tokens as d
from tailgate.values.times.calendar import SECOND
from tailgate.values.times.date_fields import DATE, DAY, MONTH, SUMMER_TIME, TIME, ZONE, Fields, Zone, zone_offset
from tailgate.values.times.date_tokens import BadFormat, Token, ZoneOverflow

_MIDNIGHT = time()
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


class Moment(NamedTuple):
    """A word such as `epoch` or `infinity`, or a date (days since 1970), µs since midnight and a zone."""

    word: str
    days: int
    micros: int
    zone: Zone


class TimeOfDay(NamedTuple):
    """A word such as `now`, or µs since midnight, a zone, and a date (days since 1970) if the text has one."""

    word: str
    micros: int
    zone: Zone
    days: int | None


_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d(?:\.\d{6})?))?(Z|[+-]\d\d(?::\d\d)?)?", re.ASCII)


def _iso(text: str) -> Moment | None:
    """Decodes the form that drivers send, at a tenth of the cost. Returns None for other forms and invalid dates."""
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    try:
        day = date.fromisoformat(match[1])
        clock = time.fromisoformat(match[2]) if match[2] else _MIDNIGHT
        zone = None if match[3] is None else timedelta() if match[3] == "Z" else zone_offset(match[3])
    except (ValueError, ZoneOverflow):
        return None
    micros = ((clock.hour * 60 + clock.minute) * 60 + clock.second) * SECOND + clock.microsecond
    return Moment("", day.toordinal() - _EPOCH_ORDINAL, micros, zone)


def date_and_time(text: str, date_order: str) -> Moment:
    """Decodes a date, perhaps with a time and a zone. Raises the exceptions of `date_tokens`, and 22023."""
    moment = _iso(text)
    if moment is not None:
        return moment
    tokens = d.tokens(text)
    fields = Fields(date_order)
    for at, token in enumerate(tokens):
        fields.add(_field(fields, token, tokens[at + 1] if at + 1 < len(tokens) else None))
    fields.check_date()
    fields.check_half()
    if not fields.word and fields.mask & DATE != DATE:
        raise BadFormat
    return Moment(fields.word, 0 if fields.word else fields.days, fields.time_of_day, _zone(fields))


def _zone(fields: Fields) -> Zone:
    if not fields.mask & SUMMER_TIME:
        return fields.zone
    if not isinstance(fields.zone, timedelta):
        raise BadFormat
    return fields.zone + fields.summer_time


def _field(fields: Fields, token: Token, following: Token | None) -> int:
    """Decodes a token. Returns the mask of its fields."""
    match token.kind:
        case d.DATE:
            return _date(fields, token.text)
        case d.TIME:
            if fields.unit not in ("", "time"):
                raise BadFormat
            fields.unit = ""
            mask = fields.time(token.text)
            fields.check_time()
            return mask
        case d.SIGNED:
            fields.zone = zone_offset(token.text)
            return ZONE
        case d.NUMBER:
            return fields.labelled(token.text) if fields.unit else _number(fields, token.text)
    return fields.word_of(token, following, time_only=False)


def _date(fields: Fields, text: str) -> int:
    """Decodes a date; after a date, a zone by name, or a run-together time with a zone."""
    if fields.unit == "julian":
        fields.unit = ""
        value, rest = d.integer(text)
        fields.julian_day(value)
        fields.zone = zone_offset(rest)
        return DATE | TIME | ZONE
    if not fields.unit and fields.mask & (MONTH | DAY) != MONTH | DAY:
        return fields.date(text)
    if not text[0].isdigit() and not fields.unit:
        return fields.named_zone(text)
    if fields.unit not in ("", "time") or fields.mask & TIME == TIME:
        raise BadFormat
    fields.unit = ""
    return _time_with_zone(fields, text, fields.mask)


def _time_with_zone(fields: Fields, text: str, mask: int) -> int:
    """Decodes a time such as 101112-08."""
    digits, hyphen, zone = text.partition("-")
    if not hyphen:
        raise BadFormat
    fields.zone = zone_offset(hyphen + zone)
    return fields.run_together(digits, mask) | ZONE


def _number(fields: Fields, text: str) -> int:
    whole, point, _ = text.partition(".")
    if point and not fields.mask & DATE:
        return fields.date(text)
    if point and len(whole) > 2:
        return fields.run_together(text, fields.mask)
    if len(text) >= 6 and (not fields.mask & DATE or not fields.mask & TIME):
        return fields.run_together(text, fields.mask)
    return fields.number(text, fields.month_name, fields.mask)


def time_of_day(text: str, date_order: str) -> TimeOfDay:
    """Decodes a time, perhaps after a date and before a zone."""
    tokens = d.tokens(text)
    fields = Fields(date_order)
    for at in range(len(tokens)):
        fields.add(_field_of_time(fields, tokens, at))
    fields.check_date()
    fields.check_half()
    fields.check_time()
    if fields.word:
        return TimeOfDay(fields.word, 0, None, None)
    if fields.mask & TIME != TIME:
        raise BadFormat
    zone = fields.zone
    is_dated = fields.mask & DATE == DATE
    # The offset of a zone with summer time depends on the date.
    if zone is not None and not isinstance(zone, timedelta) and not is_dated and zone.utcoffset(None) is None:
        raise BadFormat
    return TimeOfDay("", fields.time_of_day, _zone(fields), fields.days if is_dated else None)


def _field_of_time(fields: Fields, tokens: list[Token], at: int) -> int:
    token, count = tokens[at], len(tokens)
    match token.kind:
        case d.DATE:
            if at == 0 and count >= 2 and (tokens[-1].kind == d.DATE or tokens[1].kind == d.TIME):
                return fields.date(token.text)
            if not token.text[0].isdigit():
                return fields.named_zone(token.text)
            if fields.mask & TIME == TIME:
                raise BadFormat
            return _time_with_zone(fields, token.text, fields.mask | DATE)
        case d.TIME:
            return fields.time(token.text)
        case d.SIGNED:
            fields.zone = zone_offset(token.text)
            return ZONE
        case d.NUMBER:
            return fields.labelled(token.text) if fields.unit else _number_of_time(fields, tokens, at)
    return fields.word_of(token, tokens[at + 1] if at + 1 < count else None, time_only=True)


def _number_of_time(fields: Fields, tokens: list[Token], at: int) -> int:
    text = tokens[at].text
    whole, point, _ = text.partition(".")
    if point and at == 0 and len(tokens) >= 2 and tokens[-1].kind == d.DATE:
        return fields.date(text)
    if point and len(whole) <= 2:
        raise BadFormat
    if point or len(text) > 4:
        return fields.run_together(text, fields.mask | DATE)
    return fields.number(text, False, fields.mask | DATE)
