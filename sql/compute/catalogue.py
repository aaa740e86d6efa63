"""All user-defined functions, by name."""

from __future__ import annotations

from types import ModuleType

from sql.compute import aggregates, casts, registry
from sql.compute.jsonb import access, construction, edits, order
from sql.compute.numeric import float_functions, number_formats, number_parsing, numeric_functions
from sql.compute.regexp import functions as regexps
from sql.compute.regexp import likes
from sql.compute.text import arrays, byte_strings, strings
from sql.compute.time import date_formats, date_parsing, interval_functions, times, zones

# Importing a family registers its functions.
FAMILIES: tuple[ModuleType, ...] = (
    access,
    aggregates,
    arrays,
    byte_strings,
    casts,
    construction,
    date_formats,
    date_parsing,
    edits,
    float_functions,
    interval_functions,
    likes,
    number_formats,
    number_parsing,
    numeric_functions,
    order,
    regexps,
    strings,
    times,
    zones,
)

UDFS = registry.UDFS
