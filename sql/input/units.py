"""Spellings of units of time.

Source: PostgreSQL 15, src/backend/utils/adt/datetime.c, datetktbl and deltatktbl.
"""

SPELLINGS = {
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
