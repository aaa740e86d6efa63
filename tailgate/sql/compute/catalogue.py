"""All user-defined functions, by name."""

from __future__ import annotations

from types import ModuleType

from tailgate.sql.compute import aggregates, casts, dimensions, json_texts, multiranges, networks, ranges, registry
from tailgate.sql.compute.jsonb import access, construction, edits, paths
from tailgate.sql.compute.ksqldb import casts as ksqldb_casts
from tailgate.sql.compute.ksqldb import collections as ksqldb_collections
from tailgate.sql.compute.ksqldb import conversion as ksqldb_conversion
from tailgate.sql.compute.ksqldb import json_texts as ksqldb_json_texts
from tailgate.sql.compute.ksqldb import numbers as ksqldb_numbers
from tailgate.sql.compute.ksqldb import regexps as ksqldb_regexps
from tailgate.sql.compute.ksqldb import texts as ksqldb_texts
from tailgate.sql.compute.ksqldb import time_fields as ksqldb_time_fields
from tailgate.sql.compute.ksqldb import times as ksqldb_times
from tailgate.sql.compute.ksqldb import urls as ksqldb_urls
from tailgate.sql.compute.numeric import amounts, float_functions, general_numerics, number_formats, number_parsing, numeric_functions
from tailgate.sql.compute.regexp import functions as regexps
from tailgate.sql.compute.regexp import likes
from tailgate.sql.compute.text import arrays, bit_strings, byte_strings, formatting, hashes, strings
from tailgate.sql.compute.time import date_formats, date_parsing, interval_functions, session_zones, times, zoned_times, zones

# Importing a family registers its functions.
FAMILIES: tuple[ModuleType, ...] = (
    access,
    aggregates,
    amounts,
    arrays,
    bit_strings,
    byte_strings,
    casts,
    construction,
    date_formats,
    date_parsing,
    dimensions,
    edits,
    float_functions,
    formatting,
    general_numerics,
    interval_functions,
    hashes,
    json_texts,
    ksqldb_collections,
    ksqldb_casts,
    ksqldb_conversion,
    ksqldb_json_texts,
    ksqldb_numbers,
    ksqldb_regexps,
    ksqldb_texts,
    ksqldb_time_fields,
    ksqldb_times,
    ksqldb_urls,
    likes,
    multiranges,
    networks,
    number_formats,
    number_parsing,
    numeric_functions,
    paths,
    ranges,
    regexps,
    session_zones,
    strings,
    times,
    zoned_times,
    zones,
)

UDFS = registry.UDFS
