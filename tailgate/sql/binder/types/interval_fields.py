"""Casts to interval types with fields, such as `interval day to hour`."""

from __future__ import annotations

from typing import Any

from tailgate.lake.types import MICROSECONDS, Type
from tailgate.sql.compute.time.interval_functions import Interval, date_trunc_interval
from tailgate.sql.functions.entry import Function

# the casts to interval types, by their last field
RESTRICTED = {
    **{
        unit: Function("cast", ("interval",), "interval", *(f"tg_date_trunc_interval('{unit}', {{0}})",) * 2, kind="cast")
        for unit in ("year", "month", "day", "hour", "minute")
    },
    "second": Function("cast", ("interval",), "interval", "{0}", "{0}", kind="cast"),
}


def restricted(interval: Any, target: Type) -> Interval:
    """Returns an interval without the units below the last field of its type."""
    last = last_field(target)
    return interval if last == "second" else date_trunc_interval(last, interval)


def last_field(target: Type) -> str:
    """Returns the smallest field of a type, or an empty text if it has no fields."""
    return target.fields_of_interval.rpartition(" ")[2]


def has_all_digits(target: Type) -> bool:
    """Returns whether a type is an interval whose seconds are not rounded."""
    return target.name == "interval" and target.modifiers[0] > MICROSECONDS
