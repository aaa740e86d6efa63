"""Units of time: their lengths in microseconds and their spellings.

Source: PostgreSQL 15, src/backend/utils/adt/datetime.c, datetktbl and deltatktbl.
"""

from __future__ import annotations

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, TailgateError

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

# the units that a value can be truncated to
TRUNCATABLE = (
    "microsecond millisecond second minute hour day week month quarter year decade century millennium".split()
)  # fmt: skip

UNITS_BY_SPELLING = {
    spelling: unit
    for unit, spellings in {
        "microsecond": "microseconds microsecon us usec usecond useconds usecs",
        "millisecond": "milliseconds millisecon ms msec msecond mseconds msecs",
        "second": "seconds s sec secs",
        "minute": "minutes m min mins",
        "hour": "hours h hr hrs",
        "day": "days d",
        "week": "weeks w",
        "month": "months mon mons",
        "quarter": "qtr",
        "year": "years y yr yrs",
        "decade": "decades dec decs",
        "century": "centuries c cent",
        "millennium": "millennia mil mils",
        "dow": "",
        "isodow": "",
        "doy": "",
        "epoch": "",
        "isoyear": "",
        "julian": "",
        "timezone": "",
        "timezone_hour": "timezone_h",
        "timezone_minute": "timezone_m",
    }.items()
    for spelling in (unit, *spellings.split())
}


def unit_of(word: str) -> str:
    """Returns the unit that a word spells, or the word in lower case."""
    return UNITS_BY_SPELLING.get(word.lower(), word.lower())


def unsupported(word: str, type: str) -> TailgateError:
    """Returns 0A000 for a unit that a type does not support, or 22023 for other words."""
    if unit_of(word) in TRUNCATABLE:
        return FeatureNotSupported(f'unit "{word.lower()}" not supported for type {type}')
    return InvalidParameterValue(f'unit "{word.lower()}" not recognized for type {type}')
