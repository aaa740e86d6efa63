"""All user-defined functions, by name."""

from __future__ import annotations

from types import ModuleType

from tailgate.sql.compute import aggregates, casts, json_texts, registry
from tailgate.sql.compute.jsonb import access, construction, edits
from tailgate.sql.compute.numeric import float_functions, number_formats, number_parsing, numeric_functions
from tailgate.sql.compute.regexp import functions as regexps
from tailgate.sql.compute.regexp import likes
from tailgate.sql.compute.text import arrays, byte_strings, formatting, strings
from tailgate.sql.compute.time import date_formats, date_parsing, interval_functions, times, zones

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
    formatting,
    interval_functions,
    json_texts,
    likes,
    number_formats,
    number_parsing,
    numeric_functions,
    regexps,
    strings,
    times,
    zones,
)

UDFS = registry.UDFS
