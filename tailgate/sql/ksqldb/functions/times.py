"""Functions of dates and times. Patterns are those of Java's DateTimeFormatter.

Source: ksqlDB 0.29, documentation, "Scalar functions", section "Date and time".
"""

from __future__ import annotations

from tailgate.sql.ksqldb import types as t
from tailgate.sql.ksqldb.expressions import TypeName
from tailgate.sql.ksqldb.functions.entry import Function, Kind
from tailgate.sql.ksqldb.typed.values import EPOCH_DAY, milliseconds, of_milliseconds

UNITS = {
    "milliseconds": "1 millisecond",
    "seconds": "1 second",
    "minutes": "1 minute",
    "hours": "1 hour",
    "days": "1 day",
    "weeks": "7 days",
    "months": "1 month",
    "years": "1 year",
}
OF_TIMES = ("milliseconds", "seconds", "minutes", "hours", "days")
MIDNIGHT = "(date '1970-01-01' + {0})"
_FORMAT, _PARSE = "as a text with a pattern.", "of a text with a pattern."
_NO_TIME, _NO_DATE = "A field of a time gives NULL.", "A field of a date gives NULL."
_ADD, _SUBTRACT = "plus a number of units.", "minus a number of units."


def _row(name: str, arguments: tuple[Kind, ...], result: TypeName, template: str, does: str, *, may_fail: bool = True) -> Function:
    return Function(name, arguments, result, template, does, may_fail=may_fail)


def _zoned(name: str, argument: Kind, result: TypeName, template: str, does: str) -> list[Function]:
    """Returns a function with a pattern, without and with a time zone. {zone}: its place in the template."""
    return [
        _row(name, (argument, t.VARCHAR), result, template.replace("{zone}", "'UTC'"), does),
        _row(name, (argument, t.VARCHAR, t.VARCHAR), result, template.replace("{zone}", "{2}"), does),
    ]


def _sums(name: str, type: TypeName, units: tuple[str, ...], sign: str, does: str) -> list[Function]:
    """Returns a function that adds a number of units, whose name is among the name of the row: {name}:days."""
    rows = []
    for unit in units:
        template = f"CAST({{1}} {sign} {{0}} * interval '{UNITS[unit]}' AS {t.postgresql(type)})"
        rows.append(_row(f"{name}:{unit}", (t.INT, type), type, template, does))
    return rows


ROWS = (
    *_zoned("format_timestamp", t.TIMESTAMP, t.VARCHAR, "ksqldb_format_timestamp({0}, {1}, {zone})", f"A TIMESTAMP {_FORMAT}"),
    *_zoned("parse_timestamp", t.VARCHAR, t.TIMESTAMP, "ksqldb_parse_timestamp({0}, {1}, {zone})", f"The TIMESTAMP {_PARSE}"),
    *_zoned("timestamptostring", t.BIGINT, t.VARCHAR, f"ksqldb_format_timestamp({of_milliseconds('{0}')}, {{1}}, {{zone}})",
            f"Milliseconds since 1970 {_FORMAT}"),
    *_zoned("stringtotimestamp", t.VARCHAR, t.BIGINT, milliseconds("ksqldb_parse_timestamp({0}, {1}, {zone})"),
            f"The milliseconds since 1970 {_PARSE}"),
    _row("format_date", (t.DATE, t.VARCHAR), t.VARCHAR, "ksqldb_format_fields(CAST({0} AS timestamp), {1}, 'date')",
         f"A DATE {_FORMAT} {_NO_TIME}"),
    _row("parse_date", (t.VARCHAR, t.VARCHAR), t.DATE, "CAST(ksqldb_parse_fields({0}, {1}, 'date') AS date)",
         f"The DATE {_PARSE} {_NO_TIME}"),
    _row("datetostring", (t.INT, t.VARCHAR), t.VARCHAR, f"ksqldb_format_fields(CAST({EPOCH_DAY} + {{0}} AS timestamp), {{1}}, 'date')",
         f"Days since 1970 {_FORMAT} {_NO_TIME}"),
    _row("stringtodate", (t.VARCHAR, t.VARCHAR), t.INT, f"(CAST(ksqldb_parse_fields({{0}}, {{1}}, 'day') AS date) - {EPOCH_DAY})",
         f"The days since 1970 {_PARSE}"),
    _row("format_time", (t.TIME, t.VARCHAR), t.VARCHAR, f"ksqldb_format_fields({MIDNIGHT}, {{1}}, 'time')", f"A TIME {_FORMAT} {_NO_DATE}"),
    _row("parse_time", (t.VARCHAR, t.VARCHAR), t.TIME, "CAST(ksqldb_parse_fields({0}, {1}, 'time') AS time)",
         f"The TIME {_PARSE} {_NO_DATE}"),
    _row("convert_tz", (t.TIMESTAMP, t.VARCHAR, t.VARCHAR), t.TIMESTAMP, "ksqldb_convert_tz({0}, {1}, {2})",
         "A TIMESTAMP of one time zone in another."),
    _row("from_unixtime", (t.BIGINT,), t.TIMESTAMP, of_milliseconds("{0}"), "The TIMESTAMP of milliseconds since 1970."),
    _row("unix_timestamp", (t.TIMESTAMP,), t.BIGINT, milliseconds("{0}"), "The milliseconds of a TIMESTAMP since 1970.", may_fail=False),
    _row("from_days", (t.INT,), t.DATE, f"({EPOCH_DAY} + {{0}})", "The DATE of a number of days since 1970."),
    _row("unix_date", (t.DATE,), t.INT, f"({{0}} - {EPOCH_DAY})", "The days of a DATE since 1970.", may_fail=False),
    Function("unix_timestamp", (), t.BIGINT, "", "The current time in milliseconds.", volatile=True),
    Function("unix_date", (), t.INT, "", "The current date in days.", volatile=True),
    *_sums("timestampadd", t.TIMESTAMP, tuple(UNITS), "+", f"A TIMESTAMP {_ADD}"),
    *_sums("timestampsub", t.TIMESTAMP, tuple(UNITS), "-", f"A TIMESTAMP {_SUBTRACT}"),
    *_sums("dateadd", t.DATE, tuple(UNITS), "+", f"A DATE {_ADD}"),
    *_sums("datesub", t.DATE, tuple(UNITS), "-", f"A DATE {_SUBTRACT}"),
    *_sums("timeadd", t.TIME, OF_TIMES, "+", f"A TIME {_ADD}"),
    *_sums("timesub", t.TIME, OF_TIMES, "-", f"A TIME {_SUBTRACT}"),
)  # fmt: skip
